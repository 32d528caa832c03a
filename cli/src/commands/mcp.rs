//! `acpdb mcp`: tools for a model, on standard input and output, or over HTTP.

use std::net::SocketAddr;

use acpdb_live::mcp::tools::{ProjectReach, Tools};

use super::{Code, Failure, Global, Output, store_path};
use crate::args::Mcp;

/// Variables in which hosts name the session for which they run a program.
const SESSION_VARIABLES: [&str; 2] = ["ACPDB_SESSION", "CLAUDE_CODE_SESSION_ID"];

pub(crate) fn run(global: &Global, args: &Mcp, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    if let Some(listen) = args.http {
        may_listen(listen, args.token.as_deref())?;
    }
    let store = store_path::open_live(global, output)?;
    let set = |name: &&str| crate::settings::variable(name).filter(|value| !value.is_empty());
    let session = args.session.clone().or_else(|| SESSION_VARIABLES.iter().find_map(set));
    // Without a folder, a call that names no session means the newest session of all.
    let folder = std::env::current_dir().ok().map(|folder| folder.to_string_lossy().into_owned());
    let reach = if args.all_projects { ProjectReach::All } else { ProjectReach::Own };
    let tools = Tools::new(store.clone(), session, folder).reaching(reach);
    match args.http {
        Some(listen) => serve_http(&tools, listen, args.token.clone(), output)?,
        None => serve(tools)?,
    }
    store.close()?;
    Ok(Code::Ok)
}

/// Refused before a store is opened.
fn may_listen(listen: SocketAddr, token: Option<&str>) -> Result<(), Failure> {
    acpdb_live::proxy::may_listen(listen, token).map_err(|error| Failure::usage(error.to_string()))
}

#[cfg(feature = "mcp-http")]
fn serve_http(
    tools: &Tools,
    listen: SocketAddr,
    token: Option<String>,
    output: &mut Output,
) -> Result<(), Failure> {
    use acpdb_live::mcp::http::{Options, PATH, serve_http};
    let mut told = Ok(());
    let served = serve_http(tools, &Options { listen, token }, &mut |address| {
        told = output.line(format!("http://{address}{PATH}")).and_then(|()| output.flush());
    });
    served.map_err(|error| Failure::new(Code::Failure, crate::failure::chained(&error)))?;
    told
}

#[cfg(not(feature = "mcp-http"))]
fn serve_http(_: &Tools, _: SocketAddr, _: Option<String>, _: &mut Output) -> Result<(), Failure> {
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
