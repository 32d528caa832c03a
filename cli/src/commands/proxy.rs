//! `acpdb proxy URL`: a proxy between a host and its provider, on this machine.

use super::{Code, Failure, Global, Output};
use crate::args::ProxyArgs;

/// Says that an exchange went through and is not recorded.
#[cfg(feature = "proxy")]
fn unrecorded(why: &str) {
    use std::io::Write as _;
    let why = crate::output::escape(why, crate::output::EscapeLevel::Line);
    // If standard error is closed, there is no other place to say it.
    let _ = writeln!(std::io::stderr(), "warning: an exchange is not recorded: {why}");
}

#[cfg(feature = "proxy")]
pub(crate) fn run(global: &Global, args: &ProxyArgs, output: &mut Output) -> Result<Code, Failure> {
    use crate::args::ProxyMode;
    use acpdb_live::proxy::prune::RecordingFolders;
    use acpdb_live::proxy::server::{ProxyOptions, Unrecorded, serve};
    use acpdb_live::proxy::{ProxyError, may_listen};
    super::at::refuse(global)?;
    let failure = |error: &ProxyError| {
        let message = crate::failure::chained(error);
        match error {
            ProxyError::Exposed(_) | ProxyError::Upstream(_) => Failure::usage(message),
            _ => Failure::new(Code::Failure, message),
        }
    };
    let token = crate::tokens::of("proxy", args.token.as_deref())?;
    may_listen(args.listen, token.access.clients).map_err(|error| failure(&error))?;
    // A request waits while the proxy waits for a lock, so the wait is short.
    let store = crate::store_path::open_live(global, output)?;
    let prune = match args.mode {
        ProxyMode::Record => None,
        ProxyMode::Prune => Some(RecordingFolders::usual(&crate::settings::variable)),
    };
    let options = ProxyOptions {
        listen: args.listen,
        upstream: args.upstream.clone(),
        access: token.access.clone(),
        session: None,
        prune,
        unrecorded: Unrecorded(std::sync::Arc::new(unrecorded)),
    };
    let mut told = Ok(());
    let served = serve(store.clone(), &options, &mut |address| {
        told = output
            .line(format!(
                "http://{address} passes on to {}",
                acpdb_live::proxy::without_name(&options.upstream)
            ))
            .and_then(|()| output.flush());
        output.note(format!(
            "clients show a token, such as: ANTHROPIC_BASE_URL=\"http://{address}/key/{}\" claude",
            token.typed()
        ));
    });
    served.map_err(|error| failure(&error))?;
    told?;
    crate::kept::leave_if_much(&store);
    store.close()?;
    Ok(Code::Ok)
}

#[cfg(not(feature = "proxy"))]
pub(crate) fn run(_: &Global, _: &ProxyArgs, _: &mut Output) -> Result<Code, Failure> {
    let failure = Failure::usage("this program was built without the proxy");
    Err(failure.hint("build it with --features proxy"))
}
