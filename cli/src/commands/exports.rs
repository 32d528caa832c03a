//! `acpdb export`: sessions as files for other programs.
//!
//! A file is written under a temporary name beside its place and takes its name when it is whole and on the disk, so
//! whoever looks sees the old file or the new one. It can be read by its owner alone: it holds what was recorded.

use std::io::{BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use acpdb_query::export::{ExportError, page};
use serde::Serialize;

use super::describe;
use crate::args::{Export, ExportAct, ExportPage, Global, Target};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::place;

pub(crate) fn run(global: &Global, args: &Export, output: &mut Output) -> Result<Code, Failure> {
    match &args.act {
        ExportAct::Html(args) => html(global, args, output),
    }
}

/// What was written, for programs.
#[derive(Serialize)]
struct Written<'a, R: Serialize> {
    format: &'static str,
    path: &'a Path,
    bytes: u64,
    #[serde(flatten)]
    report: R,
}

fn html(global: &Global, args: &ExportPage, output: &mut Output) -> Result<Code, Failure> {
    let sink = Sink::open(&args.target, output)?;
    let store = place::read(global, output)?;
    let session = super::sessions::default_session_noted(&store, args.session.as_deref(), output)?;
    let view = super::find::view(&store, global, &session)?;
    let (report, to) = sink.fill(|out| page::page(&store, &view, store.now(), out))?;
    finish("html", &to, report, output)
}

/// Says what was written.
fn finish(
    format: &'static str,
    to: &To,
    report: impl Serialize,
    output: &mut Output,
) -> Result<Code, Failure> {
    let To::File { path, bytes } = to else { return Ok(Code::Ok) };
    if output.json {
        output.json_object("acpdb.exported/1", &Written { format, path, bytes: *bytes, report })?;
    } else {
        output.note(format!("{} in {}", describe::bytes(*bytes), path.display()));
    }
    Ok(Code::Ok)
}

/// Where an export is going.
enum Sink {
    Stdout,
    File { path: PathBuf, temporary: tempfile::NamedTempFile, force: bool },
}

/// Where an export went.
enum To {
    Stdout,
    File { path: PathBuf, bytes: u64 },
}

impl Sink {
    /// Refuses what cannot end well before anything is read.
    fn open(target: &Target, output: &Output) -> Result<Self, Failure> {
        let path = match &target.output {
            Some(path) if path.as_os_str() != "-" => path.clone(),
            given => {
                if output.json {
                    return Err(
                        Failure::usage("with --json the export needs a file of its own").hint("-o FILE")
                    );
                }
                if given.is_none() && std::io::stdout().is_terminal() {
                    return Err(
                        Failure::usage("this is not for a terminal").hint("-o FILE, or -o - all the same")
                    );
                }
                return Ok(Self::Stdout);
            }
        };
        if path.is_dir() {
            return Err(Failure::usage(format!("{} is a folder", path.display())).hint("name a file in it"));
        }
        // `persist_noclobber` decides; this spares the work.
        if !target.force && path.symlink_metadata().is_ok() {
            return Err(exists(&path));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let temporary = tempfile::Builder::new().prefix(".acpdb-export-").tempfile_in(folder);
        let temporary =
            temporary.map_err(|error| Failure::io("write in", &folder.display().to_string(), &error))?;
        Ok(Self::File { path, temporary, force: target.force })
    }

    /// Writes the export, and gives it its name once it is whole.
    fn fill<R>(
        self,
        write: impl FnOnce(&mut dyn Write) -> Result<R, ExportError>,
    ) -> Result<(R, To), Failure> {
        match self {
            Self::Stdout => {
                let mut out = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
                let report = write(&mut out).map_err(|error| failure(error, "standard output"))?;
                out.flush().map_err(|error| Failure::io("write", "standard output", &error))?;
                Ok((report, To::Stdout))
            }
            Self::File { path, temporary, force } => {
                let name = path.display().to_string();
                let mut out = BufWriter::with_capacity(256 << 10, temporary.as_file());
                let report = write(&mut out).map_err(|error| failure(error, &name))?;
                out.flush().map_err(|error| Failure::io("write", &name, &error))?;
                drop(out);
                Ok((report, Self::name(temporary, path, force)?))
            }
        }
    }

    fn name(temporary: tempfile::NamedTempFile, path: PathBuf, force: bool) -> Result<To, Failure> {
        let name = path.display().to_string();
        let file = temporary.as_file();
        let written = file.sync_all().and_then(|()| file.metadata());
        let bytes = written.map_err(|error| Failure::io("write", &name, &error))?.len();
        let kept = if force { temporary.persist(&path) } else { temporary.persist_noclobber(&path) };
        kept.map_err(|error| match error.error.kind() {
            std::io::ErrorKind::AlreadyExists => exists(&path),
            _ => Failure::io("write", &name, &error.error),
        })?;
        Ok(To::File { path, bytes })
    }
}

fn exists(path: &Path) -> Failure {
    Failure::new(Code::Failure, format!("{} exists", path.display())).hint("--force replaces it")
}

fn failure(error: ExportError, what: &str) -> Failure {
    match error {
        ExportError::Store(error) => error.into(),
        ExportError::Write(error) => Failure::io("write", what, &error),
        other => Failure::new(Code::Failure, other.to_string()),
    }
}
