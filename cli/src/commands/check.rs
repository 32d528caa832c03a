//! `acpdb checkpoint check`: whether a file proves its claim. Needs no store.

use std::io::Read as _;

use acpdb_engine::codec::LeafEvent;
use acpdb_engine::event::KIND_LABELS;
use acpdb_engine::ids::StoreId;
use acpdb_proof::file::EVENT_PROOF;
use acpdb_proof::{
    Checked, Checkpoint, ConsistencyProof, EventOpening, EventProof, EventsProof, Note, ProofError,
    VerifierKey,
};
use serde_json::{Value, json};

use super::{Code, EscapeLevel, Failure, Output, describe, escape, push};
use crate::args::CheckArgs;
use crate::claims;
use crate::keys;

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The kind of a file.
enum Proof {
    Event(Box<EventProof>),
    Events(EventsProof),
    Growth(ConsistencyProof),
    Note(String),
}

impl Proof {
    fn parse(text: String) -> Result<Self, ProofError> {
        if text.starts_with(EVENT_PROOF) {
            EventProof::parse(&text).map(|proof| Self::Event(Box::new(proof)))
        } else if text.starts_with("{\"schema\":\"acpdb.events/1\"") {
            EventsProof::parse(&text).map(Self::Events)
        } else if text.starts_with('{') {
            ConsistencyProof::parse(&text).map(Self::Growth)
        } else {
            Note::parse(&text).map(|_| Self::Note(text))
        }
    }

    /// The note on which the proof rests.
    fn note(&self) -> Result<Note, ProofError> {
        Note::parse(match self {
            Self::Event(proof) => &proof.note,
            Self::Events(proof) => &proof.note,
            Self::Growth(proof) => &proof.new,
            Self::Note(note) => note,
        })
    }

    /// The store that the proof names: it decides which known keys count.
    fn store(&self) -> Result<StoreId, ProofError> {
        Ok(Checkpoint::parse(self.note()?.text_unchecked())?.store)
    }
}

/// The result of a proof, for people and for programs.
struct Proven<'k> {
    checked: Checked<'k>,
    lines: Vec<(&'static str, String)>,
    value: Value,
}

pub(crate) fn run(args: &CheckArgs, output: &mut Output) -> Result<Code, Failure> {
    let shown = args.file.display().to_string();
    let failed = Failure::io("read", &shown);
    let file = std::fs::File::open(&args.file).map_err(&failed)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(&failed)?;
    let nothing = |error: &ProofError| Failure::new(Code::Damage, format!("{shown} proves nothing: {error}"));
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Failure::new(Code::Damage, format!("{shown} is larger than a proof can be")));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new(Code::Damage, format!("{shown} proves nothing: it is no text")))?;
    let proof = Proof::parse(text).map_err(|error| nothing(&error))?;
    let policy = args.policy.as_deref().map(push::policy_of).transpose()?;
    let mut given = policy.as_ref().map(|policy| policy.logs().to_vec()).unwrap_or_default();
    for key in &args.key {
        given.extend(keys::verifiers(key)?);
    }
    if given.is_empty() && args.key.is_empty() {
        given = keys::known(proof.store().map_err(|error| nothing(&error))?)?;
    }
    if given.is_empty() {
        let failure = Failure::usage("there is no key to check it with");
        return Err(failure.hint("name one with --key, as acpdb key show prints it where it was signed"));
    }
    let mut proven = check(&proof, &given).map_err(|error| nothing(&error))?;
    if let Some(policy) = &policy {
        let quorum = policy.judge(&proof.note().map_err(|error| nothing(&error))?);
        let said = push::words(&quorum);
        if !quorum.is_enough {
            let message =
                format!("{shown} proves nothing under this policy: too few witnesses signed; {said}");
            return Err(Failure::new(Code::Damage, message)
                .hint("where it was signed, acpdb checkpoint push asks them; then export or prove anew"));
        }
        proven.lines.push(("witnesses", said));
        let names: Vec<&String> = quorum.signed.iter().map(|(name, _)| name).collect();
        proven.value = describe::with(proven.value, json!({"witnesses": names}));
    }
    compare(&proven.checked.checkpoint, matches!(proof, Proof::Note(_)))?;
    print(&proven, output)?;
    Ok(Code::Ok)
}

fn check<'k>(proof: &Proof, keys: &'k [VerifierKey]) -> Result<Proven<'k>, ProofError> {
    match proof {
        Proof::Event(proof) => of_event(proof, keys),
        Proof::Events(proof) => of_events(proof, keys),
        Proof::Growth(proof) => {
            let (old, checked) = proof.check(keys)?;
            let new = checked.checkpoint.seq;
            let text = format!("the events up to {old} are the beginning of those up to {new}");
            let value = json!({ "proves": "growth", "from": old, "to": new });
            Ok(Proven { checked, lines: vec![("proves", text)], value })
        }
        Proof::Note(note) => {
            let (checkpoint, key) = Checkpoint::open(note, keys)?;
            let text = format!("{} had {}", checkpoint.store, describe::count(checkpoint.seq.get(), "event"));
            let value = json!({ "proves": "checkpoint" });
            Ok(Proven { checked: Checked { checkpoint, key }, lines: vec![("proves", text)], value })
        }
    }
}

fn of_event<'k>(proof: &EventProof, keys: &'k [VerifierKey]) -> Result<Proven<'k>, ProofError> {
    let checked = proof.check(keys)?;
    let event = proof.opening.read()?;
    let mut lines = vec![
        ("proves", format!("{} {} was recorded", event.seq, kind_of(&event))),
        ("recorded", describe::time(event.time)),
        ("stream", event.envelope.stream.to_string()),
        ("texts", format!("{} of {} shown", proof.opening.bodies.len(), event.rows.len())),
    ];
    let value = describe::with(json!({ "proves": "event" }), shown(&proof.opening, &mut lines)?);
    Ok(Proven { checked, lines, value })
}

/// An event for programs; its shown texts are added to `lines`, for people.
fn shown(opening: &EventOpening, lines: &mut Vec<(&'static str, String)>) -> Result<Value, ProofError> {
    let event = opening.read()?;
    let mut texts = Vec::new();
    for body in &opening.bodies {
        let text = String::from_utf8_lossy(&body.bytes);
        lines.push(("text", escape(&text, EscapeLevel::Line).into_owned()));
        texts.push(json!({ "row": body.row, "text": text }));
    }
    Ok(json!({
        "event": event.seq, "kind": kind_of(&event), "recorded_at": describe::time(event.time),
        "stream": event.envelope.stream, "text_count": event.rows.len(), "texts": texts,
    }))
}

/// Lines and values of the shown events.
fn of_events<'k>(proof: &EventsProof, keys: &'k [VerifierKey]) -> Result<Proven<'k>, ProofError> {
    let found = proof.check(keys)?;
    let count = describe::count(proof.openings.len() as u64, "event");
    let of = found.stream.map(|stream| format!(" of stream {stream}")).unwrap_or_default();
    let (first, last) = (found.first, found.last);
    let mut lines = vec![("proves", format!("{count}{of} from {first} to {last} were recorded"))];
    let mut events = Vec::new();
    for opening in &proof.openings {
        let event = opening.read()?;
        lines.push(("event", format!("{} {} {}", event.seq, kind_of(&event), describe::time(event.time))));
        events.push(shown(opening, &mut lines)?);
    }
    let value =
        json!({ "proves": "events", "from": first, "to": last, "stream": found.stream, "events": events });
    Ok(Proven { checked: found.checked, lines, value })
}

fn kind_of(event: &LeafEvent<'_>) -> &'static str {
    let number = event.envelope.kind;
    KIND_LABELS.iter().find(|(known, _)| *known == number).map_or("unknown", |(_, label)| *label)
}

/// Compares the claimed checkpoint with the last one of that store that this machine saw.
fn compare(found: &Checkpoint, is_note: bool) -> Result<(), Failure> {
    let Some((path, note)) = keys::pinned(found.store)? else { return Ok(()) };
    let seen = Note::parse(&note).and_then(|note| Checkpoint::parse(note.text_unchecked()));
    let at = path.display();
    let seen = seen.map_err(|error| Failure::new(Code::Damage, format!("{at} cannot be read: {error}")))?;
    seen.agrees_with(found).map_err(|error| {
        Failure::new(Code::Damage, format!("it contradicts what was seen last, {at}: {error}"))
    })?;
    if is_note && found.seq < seen.seq {
        let message =
            format!("the checkpoint at {} is older than that of {} which was seen here", found.seq, seen.seq);
        return Err(Failure::new(Code::LostTail, message).hint(format!("what was seen last is in {at}")));
    }
    Ok(())
}

fn print(proven: &Proven<'_>, output: &mut Output) -> Result<(), Failure> {
    let Checked { checkpoint, key } = &proven.checked;
    let time = claims::time_of(checkpoint);
    if output.json {
        let (store, seq) = (checkpoint.store, checkpoint.seq);
        let more = json!({ "store": store, "seq": seq, "time": time, "key": key.to_string() });
        let value = describe::with(proven.value.clone(), more);
        return output.json_object("acpdb.check/1", &value).map(drop);
    }
    let last = [
        ("store", checkpoint.store.to_string()),
        ("tree", format!("all events up to {}", checkpoint.seq)),
        ("signed", format!("{time} by {key}")),
    ];
    proven.lines.iter().chain(&last).try_for_each(|(name, text)| output.line(format!("{name:<9} {text}")))
}
