//! `acpdb checkpoint`: signs the history, shows checkpoints, exports them for others.

use std::path::Path;

use acpdb_engine::Store;
use acpdb_engine::ids::Seq;
use acpdb_engine::text::paths::shown;
use acpdb_proof::{Checkpoint, Note};
use serde_json::json;

use super::{Code, Failure, Global, Output, describe, head, store_path};
use crate::args::{CheckpointAct, CheckpointVerb};
use crate::claims;
use crate::keys;
use crate::signing::{damaged, signed};

pub(crate) fn run(global: &Global, args: &CheckpointVerb, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "checkpoint")?;
    match &args.act {
        CheckpointAct::Sign { key } => sign(&store_path::write(global, output)?, key, output),
        CheckpointAct::Export { seq, tiles: Some(folder) } => {
            let seq = seq.as_deref().map(head::seq_of).transpose()?;
            export_tiles(&store_path::read(global, output)?, seq, folder, output)
        }
        CheckpointAct::Show => show(&store_path::read(global, output)?, output),
        CheckpointAct::Prove(args) => super::prove::run(global, args, output),
        CheckpointAct::Check(args) => super::check::run(args, output),
        CheckpointAct::Push(args) => super::push::run(&store_path::write(global, output)?, args, output),
        CheckpointAct::Export { seq, tiles: None } => {
            let seq = seq.as_deref().map(head::seq_of).transpose()?;
            let store = store_path::read(global, output)?;
            let (seq, note) = claims::kept(&store, seq)?;
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
    let (seq, note) = claims::kept(store, seq)?;
    let parsed = Note::parse(&note).and_then(|note| Checkpoint::parse(note.text_unchecked()));
    let checkpoint = parsed.map_err(|error| damaged(seq, &error.to_string()))?;
    if checkpoint.store != store.id() || checkpoint.seq != seq {
        return Err(damaged(seq, "it is another one"));
    }
    let count = super::tile_export::run(store, &checkpoint, &note, folder)?;
    if output.json {
        let value =
            describe::with(value_of(store, seq, &note)?, json!({"tiles": count, "folder": shown(folder)}));
        output.json_object("acpdb.checkpoint/1", &value)?;
    } else {
        let tiles = describe::count(count, "tile");
        output.line(format!("{}: the tree up to {seq}, {tiles}", folder.display()))?;
    }
    Ok(Code::Ok)
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

fn show(store: &Store, output: &mut Output) -> Result<Code, Failure> {
    // A look at all events says nothing if there is no checkpoint to compare them with.
    if !claims::are_there(store)? {
        output.note("nothing was signed yet; acpdb checkpoint sign does it");
        return if output.json { output.json_items("acpdb.checkpoints/1", &[(); 0]) } else { Ok(Code::Ok) };
    }
    let judged = claims::judge(store, &[])?;
    if output.json {
        output.json_items("acpdb.checkpoints/1", &claims::values(&judged))?;
    } else {
        judged.claims.iter().try_for_each(|claim| output.line(claims::line(claim)))?;
    }
    Ok(claims::code(&judged))
}
