//! A tape: facts in, events and a fold out, all in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::command::draft::EventDraft;
use crate::command::ingest_state::IngestState;
use crate::command::record::{Draft, Recorder, opening};
use crate::command::{Command, Decision, Rejection, decide};
use crate::entry::{Entry, StreamInfo};
use crate::event::{Actor, Event, Payload, Recorded, Stamp};
use crate::fold::{State, World};
use crate::ids::{BodyId, Micros, Origin, Seq, StreamId};
use crate::registry::Registry;
use crate::secret::Secret;
use crate::text::Signer;

use super::TestTools;

/// Microseconds between two events of a tape.
const STEP_MICROS: i64 = 1_000_000;
/// When a tape begins: 2023-11-14T22:13:20Z.
const BEGIN_MICROS: i64 = 1_700_000_000_000_000;

/// One stream being recorded and folded, with the bodies of its events.
#[derive(Debug)]
pub struct Tape {
    info: StreamInfo,
    registry: Arc<dyn Registry>,
    signer: Signer,
    secret: Secret,
    ingest_state: IngestState,
    world: World,
    events: Vec<Recorded>,
    bodies: BTreeMap<BodyId, Vec<u8>>,
}

impl Tape {
    /// A tape of a session of `host`, opened.
    pub fn new(host: &str, name: &str, registry: Arc<dyn Registry>) -> Self {
        let mut tape = Self {
            info: StreamInfo::session(host, name),
            registry,
            signer: Signer::new([7; 32]),
            // The tape's events are folded as they are, with labels in the clear.
            secret: Secret::missing(),
            ingest_state: IngestState::default(),
            world: World::default(),
            events: Vec::new(),
            bodies: BTreeMap::new(),
        };
        let draft = opening(&tape.info, [7; 32]);
        tape.record(draft.event, draft.bodies.iter().map(|bytes| bytes.to_vec()).collect());
        tape
    }

    /// A tape with the tools of [`TestTools`].
    pub fn of_test_tools(name: &str) -> Self {
        Self::new("test", name, Arc::new(TestTools))
    }

    fn record(&mut self, event: Event, bodies: Vec<Vec<u8>>) -> Seq {
        let seq = self.head().next();
        for (first, bytes) in (0..).zip(bodies) {
            self.bodies.insert(BodyId { seq, first, chunks: 1 }, bytes);
        }
        let steps = i64::try_from(seq.0).unwrap_or(i64::MAX);
        let recorded_at = Micros(BEGIN_MICROS.saturating_add(steps.saturating_mul(STEP_MICROS)));
        let recorded = Recorded { seq, recorded_at, event };
        self.world.apply(&recorded);
        if recorded.event.stream == self.stream() {
            self.ingest_state.observe(&recorded);
        }
        self.events.push(recorded);
        seq
    }

    /// Records a fact; returns the seq of the last event it became, or of the head if it was known.
    pub fn entry(&mut self, entry: impl Into<Entry>) -> Seq {
        let draft = {
            let (stream, registry) = (self.info.id(), self.registry.as_ref());
            let mut recorder =
                Recorder::new(stream, &self.ingest_state, registry, &self.signer, &self.secret, None);
            recorder.draft(&self.info, &entry.into())
        };
        if let Draft::Record(drafts) = draft {
            for draft in drafts {
                self.record(draft.event, draft.bodies.iter().map(|bytes| bytes.to_vec()).collect());
            }
        }
        self.head()
    }

    /// Records a payload as it is, with the bodies that its rows name.
    pub fn payload(&mut self, payload: impl Into<Payload>, bodies: Vec<Vec<u8>>) -> Seq {
        self.payload_in(self.stream(), payload, bodies)
    }

    /// Records an event that a command drafted.
    pub fn drafted(&mut self, draft: EventDraft) -> Seq {
        let draft = draft.said_in(self.stream(), Actor::default());
        self.record(draft.event, draft.bodies.iter().map(|bytes| bytes.to_vec()).collect())
    }

    /// Records a payload in another stream.
    pub fn payload_in(&mut self, stream: StreamId, payload: impl Into<Payload>, bodies: Vec<Vec<u8>>) -> Seq {
        let event = Event {
            stream,
            origin: Origin::ZERO,
            host_time: None,
            stamp: Stamp::default(),
            payload: payload.into(),
        };
        self.record(event, bodies)
    }

    /// Decides a command and records its events.
    ///
    /// # Errors
    /// [`Rejection`]; nothing is recorded then.
    pub fn command(&mut self, command: &Command) -> Result<Decision, Rejection> {
        let bodies = &self.bodies;
        let texts = |body: BodyId| text_of(bodies, body);
        let decision = decide(self.state(), command, &texts, &self.signer)?;
        for draft in &decision.drafts {
            self.drafted(draft.clone());
        }
        Ok(decision)
    }

    /// The stream.
    pub fn stream(&self) -> StreamId {
        self.info.id()
    }

    /// The newest seq.
    pub fn head(&self) -> Seq {
        self.events.last().map_or(Seq::ZERO, |last| last.seq)
    }

    /// All events, in order.
    pub fn events(&self) -> &[Recorded] {
        &self.events
    }

    /// The fold.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// The fold of the stream.
    ///
    /// # Panics
    /// Never: a tape is opened when it is made.
    #[expect(clippy::expect_used, reason = "for tests; a tape is opened when it is made")]
    pub fn state(&self) -> &State {
        self.world.stream(self.stream()).expect("opened")
    }

    /// The bytes of a body; an empty body has no row and is empty.
    pub fn body(&self, body: BodyId) -> Option<Vec<u8>> {
        if body.chunks == 0 {
            return Some(Vec::new());
        }
        self.bodies.get(&body).cloned()
    }

    /// The text of a body.
    pub fn text(&self, body: BodyId) -> Option<String> {
        text_of(&self.bodies, body)
    }

    /// A fold of the events up to `at`, made anew.
    pub fn refold(&self, at: Seq) -> World {
        let mut world = World::default();
        for recorded in self.events.iter().take_while(|recorded| recorded.seq <= at) {
            world.apply(recorded);
        }
        world
    }
}

fn text_of(bodies: &BTreeMap<BodyId, Vec<u8>>, body: BodyId) -> Option<String> {
    if body.chunks == 0 {
        return Some(String::new());
    }
    bodies.get(&body).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}
