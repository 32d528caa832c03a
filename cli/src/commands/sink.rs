//! The file of an export.
//!
//! The export is written under a temporary name beside its place, and gets its name when it is whole and on the disk. So a process
//! that looks sees the old file or the new one. Only its owner can read it: it holds recorded texts. A pipe or a device is written
//! into: a file in its place would take it from its users.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use acpdb_query::export::ExportError;

use crate::args::ExportTarget;
use crate::commands::{Code, Failure, Output};

/// The reason why an export stopped.
pub(crate) enum Stop {
    /// The source or the output failed.
    Export(ExportError),
    /// The request was wrong.
    Failure(Failure),
}

impl From<ExportError> for Stop {
    fn from(error: ExportError) -> Self {
        Self::Export(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// The target of an export.
pub(crate) enum TargetSink {
    Stdout,
    File {
        path: PathBuf,
        temporary: tempfile::NamedTempFile,
        force: bool,
    },
    /// A pipe or a device: bytes written there cannot be taken back.
    Into {
        path: PathBuf,
        file: File,
    },
}

/// The place to which an export went.
pub(crate) enum To {
    Stdout,
    File { path: PathBuf, bytes: u64 },
}

impl TargetSink {
    /// Refuses a target that cannot work, before anything is read.
    pub(crate) fn open(target: &ExportTarget, output: &Output) -> Result<Self, Failure> {
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
        // `persist_noclobber` decides; this check spares the work.
        if !target.force && path.symlink_metadata().is_ok() {
            return Err(exists(&path));
        }
        // Links are followed: the user means their target.
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            let file = OpenOptions::new().write(true).open(&path);
            let file = file.map_err(Failure::io("write", path.display()))?;
            return Ok(Self::Into { path, file });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let temporary = tempfile::Builder::new().prefix(".acpdb-export-").tempfile_in(folder);
        let temporary = temporary.map_err(Failure::io("write in", folder.display()))?;
        crate::interrupt::scratch(temporary.path());
        Ok(Self::File { path, temporary, force: target.force })
    }

    /// Writes the export. A file gets its name once it is whole.
    pub(crate) fn fill<R>(
        self,
        write: impl FnOnce(&mut dyn Write) -> Result<R, Stop>,
    ) -> Result<(R, To), Failure> {
        match self {
            Self::Stdout => {
                let mut out = BufWriter::with_capacity(64 << 10, std::io::stdout().lock());
                let report = write(&mut out).map_err(|stop| failure(stop, Failure::output))?;
                out.flush().map_err(Failure::output)?;
                Ok((report, To::Stdout))
            }
            Self::File { path, temporary, force } => {
                let name = path.display().to_string();
                let mut out = BufWriter::with_capacity(256 << 10, temporary.as_file());
                let report = write(&mut out).map_err(|stop| failure(stop, Failure::io("write", &name)))?;
                out.flush().map_err(Failure::io("write", &name))?;
                drop(out);
                Ok((report, Self::name(temporary, path, force)?))
            }
            Self::Into { path, file } => {
                let name = path.display().to_string();
                let mut out = BufWriter::with_capacity(64 << 10, Counted { file, bytes: 0 });
                let report = write(&mut out).map_err(|stop| failure(stop, Failure::io("write", &name)))?;
                out.flush().map_err(Failure::io("write", &name))?;
                let bytes = out.get_ref().bytes;
                Ok((report, To::File { path, bytes }))
            }
        }
    }

    fn name(temporary: tempfile::NamedTempFile, path: PathBuf, force: bool) -> Result<To, Failure> {
        let name = path.display().to_string();
        let file = temporary.as_file();
        let written = file.sync_all().and_then(|()| file.metadata());
        let bytes = written.map_err(Failure::io("write", &name))?.len();
        let kept = if force { temporary.persist(&path) } else { temporary.persist_noclobber(&path) };
        kept.map_err(|error| match error.error.kind() {
            std::io::ErrorKind::AlreadyExists => exists(&path),
            _ => Failure::io("write", &name)(error.error),
        })?;
        Ok(To::File { path, bytes })
    }
}

/// Counts the bytes written to a target that cannot tell its length.
struct Counted {
    file: File,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.bytes = self.bytes.saturating_add(count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn exists(path: &Path) -> Failure {
    // A link counts as its target, as in `TargetSink::open`.
    let is_replaced = path.metadata().map_or(true, |found| found.is_file());
    let hint = if is_replaced { "--force replaces it" } else { "--force writes into it" };
    Failure::new(Code::Failure, format!("{} exists", path.display())).hint(hint)
}

fn failure(stop: Stop, written: impl FnOnce(io::Error) -> Failure) -> Failure {
    match stop {
        Stop::Failure(failure) => failure,
        Stop::Export(ExportError::Store(error)) => error.into(),
        Stop::Export(ExportError::Write(error)) => written(error),
        Stop::Export(other) => Failure::new(Code::Failure, other.to_string()),
    }
}
