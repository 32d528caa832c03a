//! The process that goes on for `acpdb run`, if that is killed: requests of its program go straight to the provider.
//!
//! ```text
//! acpdb run --token, ports, program--> successor, which waits       done --> it ends
//!           killed: the pipe ends  --> it listens at the same ports, and passes bytes on blindly, until the program has ended
//! ```
//!
//! It has a group of processes of its own: keys that interrupt the program do not reach it.

use std::io::{BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use acpdb_live::proxy::access::{ClientAccess, Clients};
use acpdb_live::proxy::inside::begin;
use acpdb_live::proxy::server::{ProxyOptions, Unrecorded};
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::{Code, Failure, Output};
use crate::failure::chained;

/// The last word of a run that ended by itself.
const DONE: &str = "done";
/// How often the successor looks whether the program has ended.
const LOOK_WAIT: Duration = Duration::from_millis(200);

/// A port that the program was given, and the provider behind it.
#[derive(Serialize, Deserialize)]
pub(super) struct SuccessorPort {
    pub(super) port: u16,
    pub(super) upstream: String,
}

/// The values by which a successor goes on. They go through a pipe: others see arguments.
#[derive(Serialize, Deserialize)]
pub(super) struct SuccessorOrder {
    pub(super) token: String,
    pub(super) ports: Vec<SuccessorPort>,
    pub(super) program: u32,
}

/// A successor that waits.
pub(super) struct Successor(Child);

impl Successor {
    /// Starts one; `None`: there is none, and the run goes on without.
    pub(super) fn begin(order: &SuccessorOrder) -> Option<Self> {
        // Without a name of this program, without a process or with a broken pipe a kill ends the program's requests, too.
        let mut command = Command::new(std::env::current_exe().ok()?);
        command
            .args(["run", "--successor", "--", "none"])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        // As above.
        let mut child = command.spawn().ok()?;
        let mut line = serde_json::to_string(order).unwrap_or_default();
        line.push('\n');
        // As above: one that got no order ends.
        child.stdin.as_mut()?.write_all(line.as_bytes()).ok()?;
        Some(Self(child))
    }

    /// Ends it: its run has ended.
    pub(super) fn end(mut self) {
        if let Some(mut stdin) = self.0.stdin.take() {
            // One that is gone hears nothing.
            let _ = stdin.write_all(DONE.as_bytes());
        }
        // It ends as its pipe does.
        let _ = self.0.wait();
    }
}

/// Waits for the end of a run, and goes on for one that was killed.
pub(crate) fn run(output: &Output) -> Result<Code, Failure> {
    let mut lines = std::io::stdin().lock().lines();
    // As below.
    let order = lines.next().and_then(Result::ok);
    // A line that cannot be read, or is none, is no order.
    let order: Option<SuccessorOrder> = order.and_then(|line| serde_json::from_str(&line).ok());
    let order = order.ok_or_else(|| Failure::usage("acpdb run starts this by itself"))?;
    let is_done = lines.next().is_some_and(|line| line.is_ok_and(|line| line == DONE));
    let program = i32::try_from(order.program).ok().and_then(Pid::from_raw);
    let Some(program) = program.filter(|program| !is_done && lives(*program)) else { return Ok(Code::Ok) };
    let access = ClientAccess::new(&order.token, Clients::OfThisUser);
    let access = access.ok_or_else(|| Failure::usage("there is no token"))?;
    let options = order.ports.into_iter().map(|port| ProxyOptions {
        listen: ([127, 0, 0, 1], port.port).into(),
        upstream: port.upstream,
        access: access.clone(),
        session: None,
        prune: None,
        unrecorded: Unrecorded(Arc::new(|_| {})),
    });
    let mut without: Vec<ProxyOptions> = options.collect();
    let mut inside = Vec::new();
    let mut is_told = false;
    while lives(program) {
        // Another process may hold one of the ports for a while: the others cannot wait for it.
        let (mut taken, mut failed) = (Vec::new(), None);
        for options in without {
            match begin(None, std::slice::from_ref(&options)) {
                Ok(mut proxy) => {
                    proxy.open();
                    inside.push(proxy);
                }
                Err(error) => {
                    failed = Some(chained(&error));
                    taken.push(options);
                }
            }
        }
        without = taken;
        if !is_told {
            output.warn(
                "acpdb run was killed: requests of its program go straight to the provider, and are not recorded",
            );
            if let Some(failed) = failed {
                output.warn(format!("{failed}; it is tried again while the program goes on"));
            }
            is_told = true;
        }
        std::thread::sleep(LOOK_WAIT);
    }
    Ok(Code::Ok)
}

/// Whether a process goes on. One that nothing has waited for yet does not.
fn lives(program: Pid) -> bool {
    // Where processes have no files, its number says it.
    let state = std::fs::read_to_string(format!("/proc/{}/stat", program.as_raw_nonzero())).ok();
    let state = state.and_then(|state| state.rsplit_once(')').map(|(_, rest)| rest.trim_start().to_owned()));
    rustix::process::test_kill_process(program).is_ok()
        && !state.is_some_and(|state| state.starts_with(['Z', 'X']))
}
