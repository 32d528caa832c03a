//! Decisions of commands: their basis is durable, and they are made anew if one of the streams moves.

use std::collections::BTreeMap;

use crate::command::draft::EventDraft;
use crate::entry::StreamInfo;
use crate::error::Error;
use crate::event::Actor;
use crate::ids::{Seq, StreamId};
use crate::text::Signer;

use super::super::StoreInner;
use super::{Drafted, Streams};

/// Drafts that a command records in one stream.
pub(in crate::store) struct CommandDrafts {
    pub(in crate::store) stream: StreamId,
    pub(in crate::store) actor: Actor,
    pub(in crate::store) drafts: Vec<EventDraft>,
}

/// The seqs that a command recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct RecordedSeqs {
    pub(in crate::store) first_seq: Seq,
    pub(in crate::store) last_seq: Seq,
}

/// The signers of the streams that are locked, for a decision.
pub(in crate::store) type Signers = BTreeMap<StreamId, Signer>;
/// The outcome of a decision: the drafts to record, and the answer.
pub(in crate::store) type Decided<T> = Result<(Vec<CommandDrafts>, T), Error>;

/// A signer for streams that have lost their key: its signatures equal no earlier ones.
pub(in crate::store) fn unsigned() -> Signer {
    Signer::new([0; 32])
}

impl StoreInner {
    /// Decides and records. Durable when it returns.
    ///
    /// `opening`: streams to open if something is recorded in them and they are new; `streams`: further streams that the
    /// decision looks at. All of them are locked within this process and conditions of the commit. `decide` is given their
    /// signers, and is called again if one of the streams moved meanwhile.
    pub(in crate::store) fn decided<T>(
        &self,
        opening: &[StreamInfo],
        streams: &[StreamId],
        decide: &mut dyn FnMut(&Signers) -> Decided<T>,
    ) -> Result<(T, Option<RecordedSeqs>), Error> {
        self.check_writable()?;
        let writers = self.writers_of(opening.iter().map(StreamInfo::id).chain(streams.iter().copied()));
        let mut streams = Streams::lock(self, &writers)?;
        streams.settle_known(self)?;
        let mut draft = |streams: &mut Streams<'_>, _: Option<Seq>| {
            let filter = self.erasure_filter()?;
            let mut openings = BTreeMap::new();
            for info in opening {
                let id = info.id();
                openings.extend(streams.open(self, id, info).map(|draft| (id, draft)));
            }
            let (recordings, answer) = decide(&streams.signers())?;
            let mut drafts = Vec::new();
            for CommandDrafts { stream, actor, drafts: more } in recordings {
                drafts.extend(openings.remove(&stream));
                drafts.extend(more.into_iter().map(|draft| draft.said_in(stream, actor)));
            }
            filter.refuse_erased(&drafts)?;
            Ok(Some(Drafted { drafts, answer, until: filter.until }))
        };
        let (answer, placed) = self.place_one(&mut streams, &mut draft)?;
        drop(streams);
        let Some(placed) = placed else {
            self.acknowledge_known()?;
            return Ok((answer, None));
        };
        self.settle(&placed)?;
        let appended = placed.into_appended();
        Ok((answer, Some(RecordedSeqs { first_seq: appended.first_seq, last_seq: appended.last_seq() })))
    }
}
