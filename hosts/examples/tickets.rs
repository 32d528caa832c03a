//! Commits that are awaited: the same store in a runtime, here tokio's, with one thread for everything.
//!
//! ```text
//! cargo run -p acpdb-hosts --example tickets [FOLDER]
//! ```
//!
//! The engine knows no runtime: a `Ticket` is a plain future, woken by the store's own thread. Calls that block (views,
//! contexts, `append`) belong into `spawn_blocking`.

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::store::Session;
use acpdb_engine::{Error, Store};
use acpdb_hosts::export::{Exporter, Format};
use acpdb_serve::{ServeOptions, Step};

/// A tool that takes its time; meanwhile others run.
async fn tool(session: Session, number: u32) -> Result<(), Error> {
    let call = format!("call-{number}");
    let params = format!(r#"{{"file_path":"/file-{number}"}}"#);
    // Durable before the effect: nothing runs that the log does not know of.
    let _ = session.submit([Entry::tool_started(&call, "read", params).origin(&call)])?.await?;
    for _ in 0..number % 5 {
        tokio::task::yield_now().await; // the effect
    }
    let ended = Entry::tool_completed(&call, format!("text of file {number}"));
    let _ = session.submit([ended.origin(format!("{call}:end"))])?.await?;
    Ok(())
}

async fn step(session: Session) -> Result<usize, Box<dyn std::error::Error>> {
    let asked = Entry::message("ask", Role::User, "Read all of them.").origin("msg:ask");
    let _ = session.submit([asked])?.await?;
    let tools: Vec<_> = (0..50).map(|number| tokio::spawn(tool(session.clone(), number))).collect();
    for tool in tools {
        tool.await??;
    }
    let context = move || -> Result<usize, Error> {
        let step = Step::begin(&session, "step-1")?;
        Ok(step.context(&Exporter::new(Format::Anthropic), &ServeOptions::default())?.bytes.len())
    };
    Ok(tokio::task::spawn_blocking(context).await??)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "target/tickets".to_owned());
    let store = Store::builder(folder).registry(acpdb_hosts::registry()).open()?;
    let session = store.session(StreamInfo::session("example", "awaited"));
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let bytes = runtime.block_on(step(session))?;
    println!("50 calls awaited at once; the next request has {bytes} bytes");
    Ok(())
}
