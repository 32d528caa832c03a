//! `acpdb mcp`: tools for a model, on standard input and output.

use acpdb_live::mcp::tools::Tools;

use crate::args::{Global, Mcp};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::place;

/// Variables in which hosts name the session that they run a program for.
const SESSION_VARIABLES: [&str; 2] = ["ACPDB_SESSION", "CLAUDE_CODE_SESSION_ID"];

pub(crate) fn run(global: &Global, args: &Mcp, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let store = place::open(global, output)?;
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let session = args.session.clone().or_else(|| SESSION_VARIABLES.iter().find_map(set));
    let folder = std::env::current_dir().ok().map(|folder| folder.to_string_lossy().into_owned());
    serve(Tools::new(store.clone(), session, folder))?;
    store.close()?;
    Ok(Code::Ok)
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
