//! Projects that were renamed: told in the store's own stream, and looked up wherever a project's name is read.
//!
//! ```text
//! rename_project(OLD, NEW) --> ProjectRenamed --> moves --> names of streams, memory, reports
//! ```
//!
//! Events of sessions keep the name that they were recorded with. So a transcript that is read again says nothing new, and renaming
//! back brings back what was there.

use std::sync::Arc;

use crate::command::draft::{Bodies, EventDraft};
use crate::error::Error;
use crate::event::{Actor, Payload, ProjectRenamed};
use crate::ids::{Seq, StreamId};
use crate::locks::steady;
use crate::text::{ProjectMoves, project_of};

use super::write::CommandDrafts;
use super::{Store, StoreInner};

/// The number of the kind.
const PROJECT_RENAMED: u16 = 97;

impl Store {
    /// The projects that go by another name than the one they were recorded with.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn project_moves(&self) -> Result<Arc<ProjectMoves>, Error> {
        self.inner.project_moves()
    }

    /// From here on the project `from`, and each that lies below it, goes by `to`: its sessions, and its memory beside that which
    /// `to` has. Taken back by renaming it back; a project that is renamed to itself goes by its own name again.
    ///
    /// # Errors
    /// Those of an append.
    pub fn rename_project(&self, from: &str, to: &str) -> Result<Seq, Error> {
        let named = |name: &str| project_of(&self.inner.cleaned(name)).into_owned();
        let renamed = ProjectRenamed { old: named(from), new: named(to) };
        let ((), written) = self.inner.decided(&[], &[StreamId::STORE], &mut |_| {
            let draft = EventDraft::of(renamed.clone(), Bodies::default());
            Ok((vec![CommandDrafts { stream: StreamId::STORE, actor: Actor::User, drafts: vec![draft] }], ()))
        })?;
        // Nothing was recorded: no seq.
        Ok(written.map(|written| written.last_seq).unwrap_or_default())
    }
}

impl StoreInner {
    pub(super) fn project_moves(&self) -> Result<Arc<ProjectMoves>, Error> {
        let Some(place) = self.stream_place(StreamId::STORE)? else { return Ok(Arc::default()) };
        let mut read = steady(&self.moves);
        if read.0 == place.head {
            return Ok(Arc::clone(&read.1));
        }
        let (places, _) = self.frames_of(&[StreamId::STORE], read.0)?;
        let mut moves = Arc::clone(&read.1);
        for place in places {
            let Some(frame) = self.sound_frame_at(place.position)? else { continue };
            for event in frame.events().filter(|event| {
                event.envelope.kind == PROJECT_RENAMED
                    && event.envelope.stream == StreamId::STORE
                    && event.seq > read.0
            }) {
                let recorded = match self.noted(self.decode(&frame, &event)) {
                    Err(Error::Corrupt { .. }) => continue,
                    recorded => recorded?,
                };
                if let Payload::ProjectRenamed(renamed) = &recorded.event.payload {
                    Arc::make_mut(&mut moves).tell(&renamed.old, &renamed.new);
                }
            }
        }
        *read = (place.head, Arc::clone(&moves));
        Ok(moves)
    }
}
