//! `acpdb ui`: the sessions of a store in a browser, on this machine, as they grow.
//!
//! ```text
//! browser --GET /TOKEN/..--> route (words) -> answers (store) -> body, piece by piece
//!         <--a line for each commit-- changes <- subscription, one for all pages
//! ```
//!
//! It shows the pages that `acpdb export html` writes, with one more script, which follows the store. It changes nothing.

#[cfg(feature = "ui")]
mod answers;
#[cfg(feature = "ui")]
mod body;
#[cfg(feature = "ui")]
mod found;
#[cfg(feature = "ui")]
mod places;
#[cfg(feature = "ui")]
mod route;
#[cfg(feature = "ui")]
mod server;

use super::{Code, Failure, Global, Output};
use crate::args::Ui;

#[cfg(feature = "ui")]
pub(crate) fn run(global: &Global, args: &Ui, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    if !args.listen.ip().is_loopback() {
        return Err(Failure::usage(format!("{} can be reached by others", args.listen)).hint(
            "listen on 127.0.0.1 and reach it from elsewhere by a tunnel: ssh -L PORT:127.0.0.1:PORT HOST",
        ));
    }
    let options = crate::redaction::RedactOptions { redact: args.redact, ..Default::default() };
    let redactor = crate::redaction::rules(&options, false)?.map(|rules| std::sync::Arc::new(rules) as _);
    let store = crate::store_path::read_to_show(global, output)?;
    // The random part of the address, so that no other page can guess it.
    let token = crate::keys::hex(&crate::keys::random::<16>()?);
    let mut told = Ok(());
    let served = server::serve(store, redactor, args.listen, &token, &mut |address| {
        told = output.line(format!("http://{address}/{token}/")).and_then(|()| output.flush());
        output.note("open this address in a browser; Ctrl-C ends it");
    });
    served.map_err(|error| {
        let failure = Failure::io("listen on", args.listen)(error);
        failure.hint("--listen 127.0.0.1:0 takes a port that is free")
    })?;
    told?;
    Ok(Code::Ok)
}

#[cfg(not(feature = "ui"))]
pub(crate) fn run(_: &Global, _: &Ui, _: &mut Output) -> Result<Code, Failure> {
    let failure = Failure::usage("this program was built without the browser's pages");
    Err(failure.hint("build it with --features ui, or write pages with acpdb export html"))
}
