//! `acpdb resume SESSION --in HOST`: a session as a file that a host opens, as of any point.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use acpdb_engine::text::paths::shown;
use acpdb_hosts::resume::{Origin, ResumeHost, ResumeOptions as Words, write};
use serde::Serialize;

use super::sink::{TargetSink, To};
use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape, find, store_path};
use crate::args::{ExportTarget, ResumeArgs, ResumeIn};
use crate::settings;

/// The result, for programs.
#[derive(Serialize)]
struct ResumeResult<'a> {
    host: &'static str,
    session: &'a str,
    id: &'a str,
    at: u64,
    path: Option<Cow<'a, str>>,
    lines: usize,
    origin: Origin,
    left_out: &'a [String],
    folder: &'a str,
    command: &'a str,
}

pub(crate) fn run(global: &Global, args: &ResumeArgs, output: &mut Output) -> Result<Code, Failure> {
    let (store, session, view) = find::opened(global, args.session.name(global), output)?;
    let host = match args.host {
        Some(ResumeIn::ClaudeCode) => ResumeHost::ClaudeCode,
        Some(ResumeIn::Codex) => ResumeHost::Codex,
        None => ResumeHost::from_name(&session.host).ok_or_else(|| {
            let host = escape(&session.host, EscapeLevel::Line).into_owned();
            Failure::usage(format!("sessions of {host} cannot be written back"))
                .hint("name a host that is to go on: --in claude-code or --in codex")
        })?,
    };
    let words = Words {
        id: args.id.clone().map_or_else(new_id, Ok)?,
        folder: folder(args, &view)?,
        time: format!("{:.3}", crate::clock::timestamp()),
        pruned: args.pruned,
    };
    let path = match &args.output {
        Some(path) => path.clone(),
        None => home(host)?.join(host.place(&words)),
    };
    let written = write(&store, &view, host, &words)?;
    let command = host.opens(&words.id);
    if !args.dry_run {
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            acpdb_live::files::make_folder(parent).map_err(Failure::io("make", parent.display()))?;
        }
        let sink = TargetSink::open(&ExportTarget { output: Some(path.clone()), force: args.force }, output)?;
        let ((), to) = sink.fill(|out| {
            out.write_all(&written.bytes).map_err(acpdb_query::export::ExportError::from)?;
            Ok(())
        })?;
        if matches!(to, To::Stdout) {
            return Ok(Code::Ok);
        }
    }
    if output.json {
        let answer = ResumeResult {
            host: host.name(),
            session: &session.name,
            id: &words.id,
            at: view.at().get(),
            path: (path.as_os_str() != "-").then(|| shown(&path)),
            lines: written.lines,
            origin: written.origin,
            left_out: &written.left_out,
            folder: &words.folder,
            command: &command,
        };
        return output.json_object("acpdb.resume/1", &answer);
    }
    let made = match written.origin {
        Origin::Records => "its host's own records",
        Origin::Conversation => "its conversation",
    };
    let would = if args.dry_run { "nothing is written; it would be " } else { "" };
    output.note(format!(
        "{would}{} of {made} as of {}: {}",
        describe::count(written.lines as u64, "line"),
        view.at(),
        path.display()
    ));
    for line in &written.left_out {
        output.note(line);
    }
    let line = format!("cd {} && {command}", store_path::quoted(Path::new(&words.folder)));
    let line = output.recorded(&line, EscapeLevel::Text).into_owned();
    output.line(line)?;
    Ok(Code::Ok)
}

/// The folder in which the host goes on: the named one, else the session's, else the current one.
fn folder(args: &ResumeArgs, view: &acpdb_engine::View) -> Result<String, Failure> {
    let own = view.state().info(view.at()).and_then(|info| info.cwd.clone());
    let here = || std::env::current_dir().map_err(Failure::io("read", "the current folder"));
    match (&args.folder, own) {
        (Some(folder), _) => {
            let whole = std::path::absolute(folder).map_err(Failure::io("find", folder.display()))?;
            Ok(whole.to_string_lossy().into_owned())
        }
        (None, Some(own)) => Ok(own),
        (None, None) => Ok(here()?.to_string_lossy().into_owned()),
    }
}

/// The folder in which a host keeps its own files.
fn home(host: ResumeHost) -> Result<PathBuf, Failure> {
    let (variable, name) = match host {
        ResumeHost::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude"),
        ResumeHost::Codex => ("CODEX_HOME", ".codex"),
    };
    let set = settings::path_in;
    set(variable).or_else(|| set("HOME").map(|home| home.join(name))).ok_or_else(|| {
        Failure::usage("there is no home folder in which the host keeps sessions")
            .hint("name the file: -o FILE")
    })
}

/// A random id of the form that hosts give sessions.
fn new_id() -> Result<String, Failure> {
    let hex = crate::keys::hex(&crate::keys::random::<16>()?);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    Ok(format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32)))
}
