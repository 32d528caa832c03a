//! `acpdb check`: whether a file proves what it claims. Needs no store.

use std::io::Read as _;

use acpdb_engine::event::KIND_LABELS;
use acpdb_engine::ids::StoreId;
use acpdb_proof::file::EVENT_PROOF;
use acpdb_proof::{Checked, Checkpoint, ConsistencyProof, EventProof, Note, ProofError, VerifierKey};
use serde_json::{Value, json};

use super::{claims, describe};
use crate::args::Check;
use crate::failure::{Code, Failure};
use crate::keys;
use crate::output::{Escape, Output, escape};

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// What a file is.
enum Proof {
    Event(Box<EventProof>),
    Growth(ConsistencyProof),
    Note(String),
}

impl Proof {
    fn parse(text: String) -> Result<Self, ProofError> {
        if text.starts_with(EVENT_PROOF) {
            EventProof::parse(&text).map(|proof| Self::Event(Box::new(proof)))
        } else if text.starts_with('{') {
            ConsistencyProof::parse(&text).map(Self::Growth)
        } else {
            Note::parse(&text).map(|_| Self::Note(text))
        }
    }

    /// The store that it claims to be of: which of the known keys count.
    fn store(&self) -> Result<StoreId, ProofError> {
        let note = match self {
            Self::Event(proof) => &proof.note,
            Self::Growth(proof) => &proof.new,
            Self::Note(note) => note,
        };
        Ok(Checkpoint::parse(Note::parse(note)?.text_unchecked())?.store)
    }
}

/// What was proven, for people and for programs.
struct Proven<'k> {
    checked: Checked<'k>,
    lines: Vec<(&'static str, String)>,
    value: Value,
}

pub(crate) fn run(args: &Check, output: &mut Output) -> Result<Code, Failure> {
    let shown = args.file.display().to_string();
    let failed = |error: &std::io::Error| Failure::io("read", &shown, error);
    let file = std::fs::File::open(&args.file).map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    let nothing = |error: &ProofError| Failure::new(Code::Damage, format!("{shown} proves nothing: {error}"));
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Failure::new(Code::Damage, format!("{shown} is larger than a proof can be")));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new(Code::Damage, format!("{shown} proves nothing: it is no text")))?;
    let proof = Proof::parse(text).map_err(|error| nothing(&error))?;
    let mut given = Vec::new();
    for key in &args.key {
        given.extend(keys::verifiers(key)?);
    }
    if args.key.is_empty() {
        given = keys::known(proof.store().map_err(|error| nothing(&error))?)?;
    }
    if given.is_empty() {
        let failure = Failure::usage("there is no key to check it with");
        return Err(failure.hint("name one with --key, as acpdb key show prints it where it was signed"));
    }
    let proven = check(&proof, &given).map_err(|error| nothing(&error))?;
    compare(&proven.checked.checkpoint, matches!(proof, Proof::Note(_)))?;
    print(&proven, output)?;
    Ok(Code::Ok)
}

fn check<'k>(proof: &Proof, keys: &'k [VerifierKey]) -> Result<Proven<'k>, ProofError> {
    match proof {
        Proof::Event(proof) => of_event(proof, keys),
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
    let number = event.envelope.kind;
    let kind = KIND_LABELS.iter().find(|(known, _)| *known == number).map_or("unknown", |(_, label)| *label);
    let bodies = &proof.opening.bodies;
    let mut lines = vec![
        ("proves", format!("{} {kind} was recorded", event.seq)),
        ("recorded", describe::time(event.time)),
        ("stream", event.envelope.stream.to_string()),
        ("texts", format!("{} of {} shown", bodies.len(), event.rows.len())),
    ];
    for body in bodies {
        let text = String::from_utf8_lossy(&body.bytes);
        lines.push(("text", escape(&text, Escape::Line).into_owned()));
    }
    let texts: Vec<Value> = bodies
        .iter()
        .map(|body| json!({ "row": body.row, "text": String::from_utf8_lossy(&body.bytes) }))
        .collect();
    let value = json!({
        "proves": "event", "event": event.seq, "kind": kind, "recorded_at": describe::time(event.time),
        "stream": event.envelope.stream, "text_count": event.rows.len(), "texts": texts,
    });
    Ok(Proven { checked, lines, value })
}

/// Holds what is claimed against what was seen last of that store on this machine.
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
        let mut value = proven.value.clone();
        if let Some(fields) = value.as_object_mut() {
            let store = checkpoint.store;
            let more = json!({ "store": store, "seq": checkpoint.seq, "time": time, "key": key.to_string() });
            fields.extend(more.as_object().cloned().unwrap_or_default());
        }
        return output.json_object("acpdb.check/1", &value);
    }
    let last = [
        ("store", checkpoint.store.to_string()),
        ("tree", format!("all events up to {}", checkpoint.seq)),
        ("signed", format!("{time} by {key}")),
    ];
    proven.lines.iter().chain(&last).try_for_each(|(name, text)| output.line(format!("{name:<9} {text}")))
}
