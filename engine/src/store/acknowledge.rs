//! Commits that count only once they are kept elsewhere, too.
//!
//! ```text
//! placed -> durable here -> Acknowledge: kept there? -> the caller's answer
//! ```
//!
//! No answer of the store overtakes that: a fact that is known already is answered once everything durable here is kept there. Readers of this
//! folder see what is durable here.

use crate::error::Error;
use crate::ids::Seq;
use crate::log::{LogError, PlacedCommit};

/// Keeps commits elsewhere before they are acknowledged.
pub trait Acknowledge: Send + Sync {
    /// Returns once all events up to `seq`, which are durable here, are kept elsewhere. Cheap if they are already.
    ///
    /// # Errors
    /// It is unknown whether they are. A later call may find that they are.
    fn acknowledge(&self, seq: Seq) -> Result<(), Unacknowledged>;

    /// The reason why nothing can be recorded through this handle any more, if there is one.
    fn refusal(&self) -> Option<Unacknowledged>;
}

/// The reason why events that are durable here were not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unacknowledged {
    /// Another writer took the store over.
    Fenced {
        /// The epoch of that writer.
        epoch: u64,
    },
    /// They could not be kept elsewhere now.
    Unshipped {
        /// The reason.
        detail: String,
    },
}

impl From<Unacknowledged> for Error {
    fn from(refused: Unacknowledged) -> Self {
        match refused {
            Unacknowledged::Fenced { epoch } => Self::Fenced { epoch },
            Unacknowledged::Unshipped { detail } => Self::Unshipped { detail },
        }
    }
}

/// The reason why a commit is not settled.
#[derive(Debug, Clone)]
pub(super) enum SettleFailure {
    Log(LogError),
    Refused(Unacknowledged),
}

impl From<LogError> for SettleFailure {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl From<SettleFailure> for Error {
    fn from(failure: SettleFailure) -> Self {
        match failure {
            SettleFailure::Log(error) => error.into(),
            SettleFailure::Refused(refused) => refused.into(),
        }
    }
}

/// Waits until a commit is kept elsewhere, if that is asked for.
pub(super) fn kept_elsewhere(
    elsewhere: Option<&dyn Acknowledge>,
    placed: &PlacedCommit,
) -> Result<(), SettleFailure> {
    let Some(elsewhere) = elsewhere else { return Ok(()) };
    elsewhere.acknowledge(placed.appended().last_seq()).map_err(SettleFailure::Refused)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::{ContextAction, Durability, Entry, Role, Store, StreamInfo};

    /// Keeps everything, or nothing.
    #[derive(Default)]
    struct Elsewhere {
        there: AtomicU64,
        is_away: AtomicBool,
        fenced: Mutex<Option<u64>>,
    }

    impl Acknowledge for Elsewhere {
        fn acknowledge(&self, seq: Seq) -> Result<(), Unacknowledged> {
            if self.there.load(SeqCst) >= seq.0 {
                return Ok(());
            }
            if let Some(refused) = self.refusal() {
                return Err(refused);
            }
            if self.is_away.load(SeqCst) {
                return Err(Unacknowledged::Unshipped { detail: "away".to_owned() });
            }
            self.there.fetch_max(seq.0, SeqCst);
            Ok(())
        }

        fn refusal(&self) -> Option<Unacknowledged> {
            self.fenced.lock().unwrap().map(|epoch| Unacknowledged::Fenced { epoch })
        }
    }

    fn said(id: &str) -> [Entry; 1] {
        [Entry::message(id, Role::User, format!("text of {id}"))]
    }

    /// A message that could not be kept elsewhere was recorded here; told again, it was known already, and was acknowledged at once.
    #[test]
    fn nothing_is_acknowledged_that_is_not_kept_elsewhere() {
        for durability in [Durability::Sync, Durability::Os] {
            let folder = tempfile::tempdir().unwrap();
            let elsewhere = Arc::<Elsewhere>::default();
            let builder = Store::builder(folder.path().join("store")).any_file_system();
            let builder = builder.durability(durability).acknowledge(Arc::<Elsewhere>::clone(&elsewhere));
            let store = builder.open().unwrap();
            let session = store.session(StreamInfo::session("test", "elsewhere"));
            let there = || elsewhere.there.load(SeqCst);
            let receipt = session.append(said("m1")).unwrap();
            assert_eq!(there(), receipt.last_seq.0);
            let receipt = session.submit(said("m2")).unwrap().wait().unwrap();
            assert_eq!(there(), receipt.last_seq.0);

            elsewhere.is_away.store(true, SeqCst);
            let was = there();
            let is_unshipped = |found: Result<(), Error>| {
                assert!(matches!(found, Err(Error::Unshipped { .. })), "{found:?}");
            };
            is_unshipped(session.append(said("m3")).map(drop));
            is_unshipped(session.append(said("m3")).map(drop));
            is_unshipped(session.submit(said("m4")).and_then(crate::Ticket::wait).map(drop));
            let item = receipt.items[0].unwrap();
            let hide = vec![(item.into(), None)];
            is_unshipped(store.context(session.id(), ContextAction::Discard, hide).map(drop));
            is_unshipped(store.sync());
            assert_eq!(there(), was);

            elsewhere.is_away.store(false, SeqCst);
            let _ = session.append(said("m3")).unwrap();
            assert_eq!(there(), store.head().unwrap().0, "with all before it");

            *elsewhere.fenced.lock().unwrap() = Some(7);
            let head = store.head().unwrap();
            assert!(matches!(session.append(said("m5")), Err(Error::Fenced { epoch: 7 })));
            assert_eq!(store.head().unwrap(), head, "refused before it is recorded");
        }
    }
}
