//! `acpdb checkpoint`: sign the history, show what was signed, print it for others.

use std::path::Path;

use acpdb_engine::Store;
use acpdb_engine::ids::Seq;
use acpdb_proof::{Checkpoint, Judged, Note};
use serde_json::json;

use super::{claims, describe, head, tiles};
use crate::args::{CheckpointAct, CheckpointVerb, Global};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::settings::Every;
use crate::{keys, place};

pub(crate) fn run(global: &Global, args: &CheckpointVerb, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "checkpoint")?;
    match &args.act {
        CheckpointAct::Sign { key } => sign(&place::write(global, output)?, key, output),
        CheckpointAct::Export { seq, tiles: Some(folder) } => {
            let seq = seq.as_deref().map(head::seq_of).transpose()?;
            export_tiles(&place::read(global, output)?, seq, folder, output)
        }
        CheckpointAct::Show => show(&place::read(global, output)?, output),
        CheckpointAct::Push(args) => super::push::run(&place::write(global, output)?, args, output),
        CheckpointAct::Export { seq, tiles: None } => {
            let seq = seq.as_deref().map(head::seq_of).transpose()?;
            let store = place::read(global, output)?;
            let (seq, note) = kept(&store, seq)?;
            if output.json {
                output.json_object("acpdb.checkpoint/1", &value_of(&store, seq, &note)?)?;
            } else {
                output.bytes(note.as_bytes())?;
            }
            Ok(Code::Ok)
        }
    }
}

fn value_of(store: &Store, seq: Seq, note: &str) -> Result<serde_json::Value, Failure> {
    let parsed = Note::parse(note).and_then(|note| Checkpoint::parse(note.text_unchecked()));
    let checkpoint = parsed.map_err(|error| damaged(seq, &error.to_string()))?;
    let root = keys::hex(&checkpoint.root.0);
    Ok(json!({
        "store": store.id(), "seq": checkpoint.seq, "root": root,
        "time": claims::time_of(&checkpoint), "note": note,
    }))
}

fn export_tiles(
    store: &Store,
    seq: Option<Seq>,
    folder: &Path,
    output: &mut Output,
) -> Result<Code, Failure> {
    let (seq, note) = kept(store, seq)?;
    let parsed = Note::parse(&note).and_then(|note| Checkpoint::parse(note.text_unchecked()));
    let checkpoint = parsed.map_err(|error| damaged(seq, &error.to_string()))?;
    if checkpoint.store != store.id() || checkpoint.seq != seq {
        return Err(damaged(seq, "it is another one"));
    }
    let count = super::tile_export::run(store, &checkpoint, &note, folder)?;
    if output.json {
        let mut value = value_of(store, seq, &note)?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("tiles".to_owned(), json!(count));
            fields.insert("folder".to_owned(), json!(folder));
        }
        output.json_object("acpdb.checkpoint/1", &value)?;
    } else {
        let tiles = describe::count(count, "tile");
        output.line(format!("{}: the tree up to {seq}, {tiles}", folder.display()))?;
    }
    Ok(Code::Ok)
}

fn damaged(seq: Seq, why: &str) -> Failure {
    Failure::new(Code::Damage, format!("the checkpoint at {seq} cannot be read: {why}"))
}

/// A checkpoint that is kept beside the log; the newest where none is named.
pub(crate) fn kept(store: &Store, seq: Option<Seq>) -> Result<(Seq, String), Failure> {
    let newest = || Ok::<_, Failure>(claims::seqs(store)?.last().copied());
    let seq = match seq {
        Some(seq) => Some(seq),
        None => newest()?,
    };
    let note = seq.map(|seq| claims::note_of(store, seq)).transpose()?.flatten();
    seq.zip(note).ok_or_else(|| {
        let which = seq.map(|seq| format!(" at {seq}")).unwrap_or_default();
        Failure::not_found(format!("no checkpoint was signed{which}")).hint(
            "acpdb checkpoint sign signs all events up to now; acpdb checkpoint show lists what was signed",
        )
    })
}

fn sign(store: &Store, name: &str, output: &mut Output) -> Result<Code, Failure> {
    let (checkpoint, note) = signed(store, name, output)?;
    if output.json {
        output.json_object("acpdb.checkpoint/1", &value_of(store, checkpoint.seq, &note)?)?;
    } else {
        let events = describe::count(checkpoint.seq.get(), "event");
        output.line(format!(
            "{}: {events} signed with {name}, {}",
            checkpoint.seq,
            claims::time_of(&checkpoint)
        ))?;
    }
    Ok(Code::Ok)
}

/// Signs once so much is new as the user has set. That it could not be done is said, and stops nothing.
pub(crate) fn sign_if_due(store: &Store, every: Every, output: &Output) {
    let sign = || match signed_on(store, DEFAULT_KEY, output)? {
        Some(signed) => Ok(signed),
        None => signed(store, DEFAULT_KEY, output),
    };
    let signed = is_due(store, every).and_then(|is_due| is_due.then(sign).transpose());
    match signed {
        Ok(None) => {}
        Ok(Some((checkpoint, _))) => {
            output.note(format!("{} signed with {DEFAULT_KEY}, as set", checkpoint.seq));
        }
        Err(failure) => output.warn(format!(
            "nothing was signed, although the setting sign asks for it: {}{}",
            failure.message,
            failure.hint.map(|hint| format!("; {hint}")).unwrap_or_default()
        )),
    }
}

/// The key that signs by itself.
const DEFAULT_KEY: &str = "default";

fn is_due(store: &Store, every: Every) -> Result<bool, Failure> {
    let head = store.head()?;
    let Some(last) = claims::seqs(store)?.last().copied() else { return Ok(head > Seq::ZERO) };
    match every {
        Every::Events(count) => Ok(head.get().saturating_sub(last.get()) >= count),
        Every::Minutes(_) if head <= last => Ok(false),
        Every::Minutes(count) => {
            let note = claims::note_of(store, last)?.unwrap_or_default();
            let parsed = Note::parse(&note).and_then(|note| Checkpoint::parse(note.text_unchecked()));
            let checkpoint = parsed.map_err(|error| damaged(last, &error.to_string()))?;
            let age = jiff::Timestamp::now().as_second().saturating_sub_unsigned(checkpoint.time);
            Ok(age >= i64::try_from(count.saturating_mul(60)).unwrap_or(i64::MAX))
        }
    }
}

/// Signs what came since the checkpoint that was seen last, which is believed to cover what it covered: only what is new is read. `None`:
/// that cannot be told without a pass over all events.
fn signed_on(store: &Store, name: &str, output: &Output) -> Result<Option<(Checkpoint, String)>, Failure> {
    let key = keys::signer(name)?;
    let Some((last, made)) = tiles::grown(store)? else { return Ok(None) };
    let checkpoint = Checkpoint { store: store.id(), seq: made.seq(), root: made.root(), time: now() };
    if checkpoint.agrees_with(&last).is_err() {
        return Ok(None);
    }
    let note = checkpoint.sign(&key).map_err(|error| keys::refused(&error))?;
    kept_and_pinned(store, &checkpoint, &note, made, output)?;
    Ok(Some((checkpoint, note)))
}

fn kept_and_pinned(
    store: &Store,
    checkpoint: &Checkpoint,
    note: &str,
    made: tiles::Made,
    output: &Output,
) -> Result<(), Failure> {
    let before = tiles::before(store);
    store.keep_checkpoint(checkpoint.seq, note)?;
    keys::pin(store.id(), note)?;
    made.keep(store, before, output);
    Ok(())
}

fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default()
}

/// Signs all events up to now, once they agree with what was signed before.
fn signed(store: &Store, name: &str, output: &Output) -> Result<(Checkpoint, String), Failure> {
    let key = keys::signer(name)?;
    let mut made = tiles::Made::new();
    let judged = claims::judge_with(store, &[], |leaf| made.push(store, leaf))?;
    agreed(&judged).map_err(|mut failure| {
        failure.message = format!("nothing was signed: {}", failure.message);
        failure
    })?;
    if judged.head == Seq::ZERO {
        return Err(Failure::not_found("nothing was recorded that could be signed"));
    }
    let checkpoint = Checkpoint { store: store.id(), seq: judged.head, root: judged.root, time: now() };
    for before in judged.claims.iter().filter_map(|claim| claim.checkpoint) {
        checkpoint.agrees_with(&before).map_err(|error| {
            let failure = Failure::new(Code::Damage, format!("nothing was signed: {error}"));
            failure.hint("look at the clock of this machine")
        })?;
    }
    let note = checkpoint.sign(&key).map_err(|error| keys::refused(&error))?;
    kept_and_pinned(store, &checkpoint, &note, made, output)?;
    Ok((checkpoint, note))
}

/// Fails unless all that was signed fits the log and is vouched for.
pub(crate) fn agreed(judged: &Judged) -> Result<(), Failure> {
    let code = claims::code(judged);
    let Some(wrong) = judged.claims.iter().find(|claim| claims::code_of(claim.standing) == code) else {
        return Ok(());
    };
    let failure = Failure::new(code, claims::line(wrong));
    Err(match code {
        Code::Ok => return Ok(()),
        Code::Partial => failure.hint(
            "believe its signer with acpdb key trust KEY; if you do not, move the file out of checkpoints in the store",
        ),
        _ => failure.hint("acpdb checkpoint show lists what was signed; acpdb verify checks the rest"),
    })
}

fn show(store: &Store, output: &mut Output) -> Result<Code, Failure> {
    let judged = claims::judge(store, &[])?;
    if output.json {
        output.json_items("acpdb.checkpoints/1", &claims::values(&judged))?;
    } else {
        judged.claims.iter().try_for_each(|claim| output.line(claims::line(claim)))?;
        if judged.claims.is_empty() {
            output.note("nothing was signed yet; acpdb checkpoint sign does it");
        }
    }
    Ok(claims::code(&judged))
}
