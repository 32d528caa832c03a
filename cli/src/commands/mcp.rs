//! `acpdb mcp`: tools for a model, on standard input and output, or over HTTP.

use std::net::SocketAddr;

use acpdb_live::mcp::tools::{ProjectReach, Tools};

use super::{Code, Failure, Global, Output, store_path};
use crate::args::Mcp;
use crate::tokens::AccessToken;

/// Variables in which hosts name the session for which they run a program.
const SESSION_VARIABLES: [&str; 2] = ["ACPDB_SESSION", "CLAUDE_CODE_SESSION_ID"];

pub(crate) fn run(global: &Global, args: &Mcp, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let access = match args.http {
        Some(listen) => Some((listen, may_listen(listen, args.token.as_deref())?)),
        None => None,
    };
    let store = store_path::open_live(global, output)?;
    let set = |name: &&str| crate::settings::variable(name).filter(|value| !value.is_empty());
    let session = global.session.clone().or_else(|| SESSION_VARIABLES.iter().find_map(set));
    // Without a folder, a call that names no session means the newest session of all.
    let folder = std::env::current_dir().ok().map(|folder| folder.to_string_lossy().into_owned());
    let reach = if args.all_projects { ProjectReach::All } else { ProjectReach::Own };
    let tools = Tools::new(store.clone(), session, folder).reaching(reach);
    match access {
        Some((listen, token)) => serve_http(&tools, listen, &token, output)?,
        None => serve(tools)?,
    }
    store.close()?;
    Ok(Code::Ok)
}

/// Refused before a store is opened.
fn may_listen(listen: SocketAddr, given: Option<&str>) -> Result<AccessToken, Failure> {
    let token = crate::tokens::of("mcp", given)?;
    let may = acpdb_live::proxy::may_listen(listen, token.access.clients);
    may.map_err(|error| Failure::usage(error.to_string()))?;
    Ok(token)
}

#[cfg(feature = "mcp-http")]
fn serve_http(
    tools: &Tools,
    listen: SocketAddr,
    token: &AccessToken,
    output: &mut Output,
) -> Result<(), Failure> {
    use acpdb_live::mcp::http::{McpHttpOptions, PATH, serve_http};
    let mut told = Ok(());
    let served = serve_http(
        tools,
        &McpHttpOptions { listen, access: token.access.clone() },
        &mut |address| {
            told = output.line(format!("http://{address}{PATH}")).and_then(|()| output.flush());
            output.note(format!(
            "clients show a token, such as: ACPDB_TOKEN={token} claude, after claude mcp add --scope project --transport http acpdb \
             http://{address}{PATH} --header 'Authorization: Bearer ${{ACPDB_TOKEN}}'; or in the address: http://{address}/key/TOKEN{PATH}",
            token = token.typed()
        ));
        },
    );
    served.map_err(|error| Failure::new(Code::Failure, crate::failure::chained(&error)))?;
    told
}

#[cfg(not(feature = "mcp-http"))]
fn serve_http(_: &Tools, _: SocketAddr, _: &AccessToken, _: &mut Output) -> Result<(), Failure> {
    let failure = Failure::usage("this program was built without the Model Context Protocol over HTTP");
    Err(failure.hint(
        "build it with --features mcp-http, or leave --http out: it then speaks on standard input and output",
    ))
}

#[cfg(feature = "mcp")]
fn serve(tools: Tools) -> Result<(), Failure> {
    acpdb_live::mcp::server::serve_stdio(tools)
        .map_err(|error| Failure::new(Code::Failure, error.to_string()))
}

#[cfg(not(feature = "mcp"))]
fn serve(_: Tools) -> Result<(), Failure> {
    let failure = Failure::usage("this program was built without tools by the Model Context Protocol");
    Err(failure.hint("build it with --features mcp"))
}
