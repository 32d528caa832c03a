//! Failures at the command line: a message, its causes, a hint, and the exit code.

use std::path::Path;
use std::process::ExitCode;

use acpdb_engine::Error;
use acpdb_engine::command::memory::MemoryRejection;
use acpdb_engine::command::{ContextRejection, Rejection};
pub(crate) use acpdb_live::plugin::chained;

/// How the command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Code {
    Ok = 0,
    Failure = 1,
    Usage = 2,
    Damage = 3,
    LostTail = 4,
    Conflict = 5,
    Busy = 6,
    NotFound = 7,
    Partial = 8,
    Locked = 9,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code as u8)
    }
}

/// The hint for a store that no key opens, or that a key was given for in vain.
pub(crate) const KEY_HINT: &str = "acpdb help encryption says where keys are and how to give them";

/// The hint for a disk that has no room.
const FULL_HINT: &str = "free some space, or raise the limit on the length of files, then run this again";

/// Whether a file could not grow.
fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The reason why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The reader of our output went away, so that nothing is said.
    pub(crate) broken_pipe: bool,
    /// It cannot be known yet whether the work was done.
    pub(crate) is_open: bool,
    /// A text was erased: others are not touched by it.
    pub(crate) is_erased: bool,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            broken_pipe: false,
            is_open: false,
            is_erased: false,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Asks whether the near name was meant, else says where to look.
    pub(crate) fn near(self, near: Option<impl std::fmt::Display>, otherwise: impl Into<String>) -> Self {
        match near {
            Some(near) => self.hint(format!("did you mean {near}?")),
            None => self.hint(otherwise),
        }
    }

    /// The same failure, with another exit code.
    pub(crate) fn coded(self, code: Code) -> Self {
        Self { code, ..self }
    }

    /// The same failure, whose message names `place`.
    pub(crate) fn in_place(self, place: impl std::fmt::Display) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }

    /// Makes failures of files and streams: `action` cannot be done with `what`.
    pub(crate) fn io(action: &str, what: impl std::fmt::Display) -> impl Fn(std::io::Error) -> Self {
        move |error| {
            let failure = Self::new(Code::Failure, format!("cannot {action} {what}: {error}"));
            if is_full(&error) { failure.hint(FULL_HINT) } else { failure }
        }
    }

    /// The failure for a folder that holds something already, or that another process fills: with a hint.
    pub(crate) fn taken(error: Error, what: &str) -> Self {
        let Error::Io { path, source, .. } = &error else { return Self::from(error) };
        let (code, hint) = match source.kind() {
            std::io::ErrorKind::AlreadyExists => (
                Code::Usage,
                format!("a {what} needs a folder that is empty or does not exist yet{}", or_copy(what)),
            ),
            std::io::ErrorKind::InvalidInput => (Code::Usage, "name another folder".to_owned()),
            std::io::ErrorKind::ResourceBusy => {
                (Code::Busy, format!("another process makes a {what} in {}; wait for it", path.display()))
            }
            _ => return Self::from(error),
        };
        Self::from(error).coded(code).hint(hint)
    }

    /// The failure of a write to standard output. That its reader went away is no news to it.
    pub(crate) fn output(error: std::io::Error) -> Self {
        let broken_pipe = error.kind() == std::io::ErrorKind::BrokenPipe;
        Self { broken_pipe, ..Self::io("write", "standard output")(error) }
    }
}

/// The other contents that the folder of a backup may have.
fn or_copy(what: &str) -> &'static str {
    if what == "backup" { ", or one that holds a backup of this store alone" } else { "" }
}

/// The hint for a store of which a part is damaged.
const DAMAGE_HINT: &str =
    "acpdb verify lists the damage; acpdb doctor salvage --into NEW saves what is sound";

/// The end of a verb that met damage. The code of damage replaces the codes of a sound store: done, done in part, nothing found.
/// The codes of a mistake in use, a conflict, a lock, a key and a lost tail stay.
pub(crate) fn in_damage(result: Result<Code, Failure>) -> Result<Code, Failure> {
    let yields = |code: Code| match code {
        Code::Ok | Code::Failure | Code::Damage | Code::NotFound | Code::Partial => true,
        Code::Usage | Code::LostTail | Code::Conflict | Code::Busy | Code::Locked => false,
    };
    match result {
        Ok(code) if yields(code) => Ok(Code::Damage),
        Err(failure) if yields(failure.code) && !failure.broken_pipe => {
            let missed = failure.code == Code::NotFound;
            let failure = failure.coded(Code::Damage);
            if !missed {
                return Err(failure);
            }
            // The hint for a sound store would send the user the wrong way.
            let message = format!("{}; a part of the store is damaged, and was left out", failure.message);
            Err(Failure { message, ..failure }.hint(DAMAGE_HINT))
        }
        other => other,
    }
}

/// Whether nothing has this name. A folder that cannot be looked into may be there.
fn is_missing(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// The exit code of a refused command: a mistake in its use, or a miss if the command names an unknown item.
fn refused(rejection: &Rejection) -> Code {
    match rejection {
        Rejection::Context(ContextRejection::Unknown { .. })
        | Rejection::Memory(MemoryRejection::UnknownItem { .. }) => Code::NotFound,
        _ => Code::Usage,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (code, hint) = match &error {
            Error::Busy { .. } => (Code::Busy, Some("try again, or end the process that holds it")),
            Error::HeadMoved { .. } | Error::Fenced { .. } => (Code::Conflict, None),
            Error::Unshipped { .. } => (Code::Partial, None),
            Error::NotFound { .. } | Error::NotAStore { .. } => (Code::NotFound, None),
            Error::Rejected(rejection) => (refused(rejection), None),
            Error::Ambiguous { .. } | Error::TooLarge { .. } => (Code::Usage, None),
            Error::Corrupt { .. } => (Code::Damage, Some(DAMAGE_HINT)),
            Error::Locked { .. } => (Code::Locked, Some(KEY_HINT)),
            _ => (Code::Failure, None),
        };
        let hint = match &error {
            Error::NotAStore { .. } => Some("make one with `acpdb import`, or name one with --db"),
            Error::Poisoned => {
                Some("look at the disk it is on, then run this again; whatever was acknowledged is kept")
            }
            Error::Io { source, .. } if is_full(source) => Some(FULL_HINT),
            Error::Rejected(rejection) => match **rejection {
                Rejection::Context(ContextRejection::SummaryRequired { .. }) => {
                    Some("acpdb context distill TARGET=SUMMARY")
                }
                Rejection::Context(ContextRejection::Unknown { .. }) => {
                    Some("acpdb context lists the items of a session; --session names another session")
                }
                _ => hint,
            },
            Error::Replaced { .. } => {
                Some("let nothing else write into the store's folder, then run this again and `acpdb verify`")
            }
            _ => hint,
        };
        let is_open = matches!(error, Error::Poisoned | Error::Replaced { .. });
        let is_erased = matches!(error, Error::Erased { .. });
        let message = match &error {
            Error::NotAStore { path, .. } if is_missing(path) => {
                format!("there is no store: {} is not there", path.display())
            }
            _ => chained(&error),
        };
        Self { code, message, hint: hint.map(str::to_owned), broken_pipe: false, is_open, is_erased }
    }
}
