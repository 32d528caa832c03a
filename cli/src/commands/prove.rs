//! `acpdb checkpoint prove`: a file that shows one event or several, or that a history only grew, to readers without a store.

use std::path::Path;

use acpdb_engine::Store;
use acpdb_engine::ids::Seq;
use acpdb_engine::store::{Leaf, SaltedBody};
use acpdb_engine::text::paths::shown;
use acpdb_proof::event::ShownBody;
use acpdb_proof::tree::{
    consistency_ranges, cover_ranges, inclusion_ranges, verify_consistency, verify_cover, verify_inclusion,
};
use acpdb_proof::{
    Checkpoint, ConsistencyProof, Cover, EventOpening, EventProof, EventsProof, Frontier, Hash, Note,
    ProofError, event,
};
use serde_json::json;

use super::{Code, Failure, Global, Output, describe, find, head, session, store_path};
use crate::args::Prove;
use crate::{claims, keys, tiles};

pub(crate) fn run(global: &Global, args: &Prove, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "prove")?;
    let store = store_path::read(global, output)?;
    let (text, checkpoint) = match (&args.seq, &global.session, &args.from) {
        (Some(seq), ..) => match seq.split_once("..") {
            Some((first, last)) => {
                let range = head::seq_of(first)?..=head::seq_of(last)?;
                let (note, newest) = named(&store, None)?;
                if range.is_empty() || *range.start() == Seq::ZERO || *range.end() > newest.seq {
                    let newest = newest.seq;
                    let failure =
                        Failure::not_found(format!("{seq} is not a range of events up to {newest}"));
                    return Err(failure.hint("acpdb checkpoint sign signs all events up to now"));
                }
                let seqs = (range.start().get()..=range.end().get()).map(Seq).collect();
                (of_events(&store, seqs, &note, &newest, args.with_body)?, newest)
            }
            None if args.event => of_event(&store, head::seq_of(seq)?, args.with_body)?,
            None => of_item(&store, seq, args.with_body, output)?,
        },
        (None, Some(session), _) => of_session(&store, session, args.with_body, output)?,
        (None, None, Some(from)) => of_growth(&store, from, args.to.as_deref())?,
        (None, None, None) => {
            return Err(Failure::usage("name an event, a --session, or --from a checkpoint"));
        }
    };
    if let Some(path) = &args.output {
        let failed = Failure::io("write", path.display());
        write(path, &text, args.with_body).map_err(&failed)?;
        output.note(format!(
            "{} proves it to those who have the key that acpdb key show prints",
            path.display()
        ));
    }
    if output.json {
        let printed = args.output.is_none().then_some(&text);
        let value = json!({
            // An item goes by other names, too; without a seq, all is proven.
            "seq": args.seq.as_deref().and_then(|seq| head::seq_of(seq).ok()), "checkpoint": checkpoint.seq,
            "path": args.output.as_deref().map(shown), "bytes": text.len(), "proof": printed,
        });
        output.json_object("acpdb.prove/1", &value)?;
    } else if args.output.is_none() {
        output.bytes(text.as_bytes())?;
    }
    Ok(Code::Ok)
}

/// A note and its checkpoint.
fn read(note: String) -> Result<(String, Checkpoint), ProofError> {
    let checkpoint = Checkpoint::parse(Note::parse(&note)?.text_unchecked())?;
    Ok((note, checkpoint))
}

/// The checkpoint of a seq, of a file, or the newest.
fn named(store: &Store, name: Option<&str>) -> Result<(String, Checkpoint), Failure> {
    let (shown, note) = match name {
        Some(path) if !path.starts_with('#') && Path::new(path).is_file() => {
            let note = keys::read(Path::new(path))?.unwrap_or_default();
            (path.to_owned(), note)
        }
        _ => {
            let (seq, note) = claims::kept(store, name.map(head::seq_of).transpose()?)?;
            (format!("the checkpoint at {seq}"), note)
        }
    };
    let (note, found) =
        read(note).map_err(|error| Failure::new(Code::Damage, format!("{shown} cannot be read: {error}")))?;
    if found.store != store.id() {
        return Err(Failure::usage(format!("{shown} is of store {}, this is {}", found.store, store.id())));
    }
    Ok((note, found))
}

/// The events of an item: of a call its start and its end, and the newest revision of either. Another event stands alone.
fn of_item(
    store: &Store,
    text: &str,
    with_body: bool,
    output: &mut Output,
) -> Result<(String, Checkpoint), Failure> {
    let Ok(seq) = head::seq_of(text) else {
        let found = find::item(store, text, None)?;
        return of_item(store, &found.item.seq.to_string(), with_body, output);
    };
    // An event without an item stands alone, whatever the reason.
    let found =
        if store.event(seq)?.is_some() { find::item(store, &seq.to_string(), None).ok() } else { None };
    let mut seqs = vec![seq];
    if let Some((found, ix)) = found.as_ref().and_then(|found| Some((found, found.ix?))) {
        let state = found.view.state();
        seqs.extend(state.item_id(ix).map(|item| item.seq));
        seqs.extend(found.finish);
        seqs.push(state.settled(ix, found.view.at()));
    }
    seqs.retain(|seq| *seq > Seq::ZERO);
    seqs.sort_unstable();
    seqs.dedup();
    if seqs.len() == 1 {
        return of_event(store, seq, with_body);
    }
    match of_covered(store, seqs, with_body, output)? {
        (Some(proof), newest) => Ok((proof, newest)),
        (None, _) => of_event(store, seq, with_body),
    }
}

/// Those of several events that the newest checkpoint covers, and that checkpoint; `None`: none of them.
fn of_covered(
    store: &Store,
    mut seqs: Vec<Seq>,
    with_body: bool,
    output: &Output,
) -> Result<(Option<String>, Checkpoint), Failure> {
    let (note, newest) = named(store, None)?;
    let all = seqs.len();
    seqs.retain(|seq| *seq <= newest.seq);
    if seqs.is_empty() {
        return Ok((None, newest));
    }
    if seqs.len() < all {
        let left = describe::count((all - seqs.len()) as u64, "event");
        output.note(format!("{left} of it after {}, up to which was signed, left out", newest.seq));
    }
    Ok((Some(of_events(store, seqs, &note, &newest, with_body)?), newest))
}

fn of_event(store: &Store, seq: Seq, with_body: bool) -> Result<(String, Checkpoint), Failure> {
    let Some(leaf) = store.leaf(seq)? else {
        return Err(Failure::not_found(format!("the log has no event {seq}")));
    };
    let (note, checkpoint) = named(store, None)?;
    let index = seq.get().saturating_sub(1);
    let Some(mut ranges) = inclusion_ranges(index, checkpoint.seq.get()) else {
        let newest = checkpoint.seq;
        let failure = Failure::not_found(format!("no checkpoint covers {seq}; the newest ends at {newest}"));
        return Err(failure.hint("acpdb checkpoint sign signs all events up to now"));
    };
    ranges.push(0..checkpoint.seq.get());
    let (hash, size) = (event::hash(&leaf.salt, &leaf.bytes), checkpoint.seq.get());
    let is_true = |hashes: &[Hash]| {
        hashes.split_last().is_some_and(|(root, proof)| {
            *root == checkpoint.root && verify_inclusion(index, size, hash, proof, checkpoint.root)
        })
    };
    let mut hashes = tiles::hashes(store, ranges, checkpoint.seq, is_true)?;
    if hashes.pop() != Some(checkpoint.root) {
        return Err(claims::rewritten(&checkpoint));
    }
    let opening = opening(store, leaf, with_body)?;
    let proof = EventProof { opening, index, hashes, note };
    Ok((proof.to_text().map_err(|error| keys::refused(&error))?, checkpoint))
}

/// The opening of an event: the data that a proof shows of it.
fn opening(store: &Store, leaf: Leaf, with_body: bool) -> Result<EventOpening, Failure> {
    let bodies = if with_body { store.salted_bodies(leaf.seq)? } else { Vec::new() };
    let shown = |body: SaltedBody| ShownBody { row: body.row, salt: body.salt, bytes: body.bytes };
    let bodies = bodies.into_iter().map(shown).collect();
    Ok(EventOpening { salt: leaf.salt, event: leaf.bytes, bodies })
}

fn of_session(
    store: &Store,
    session: &str,
    with_body: bool,
    output: &mut Output,
) -> Result<(String, Checkpoint), Failure> {
    let name = session::find(store, session)?;
    let events = store.stream_events(name.id, Seq(1), store.head()?)?;
    let seqs = events.map(|recorded| Ok::<_, Failure>(recorded?.seq)).collect::<Result<Vec<_>, _>>()?;
    match of_covered(store, seqs, with_body, output)? {
        (Some(proof), newest) => Ok((proof, newest)),
        (None, Checkpoint { seq, .. }) => {
            let message = format!("no checkpoint covers an event of {session}; the newest ends at {seq}");
            Err(Failure::not_found(message).hint("acpdb checkpoint sign signs all events up to now"))
        }
    }
}

/// Longest distance of two shown events at which the events between them are read, too: a look-up of the second one would cost
/// more.
const GAP_MAX: u64 = 64;

/// Several events in one file, from tiles. `None`: the result is not the signed one, or tiles are missing.
fn of_tiled(
    store: &Store,
    (seqs, indexes): (&[Seq], &[u64]),
    note: &str,
    checkpoint: &Checkpoint,
    with_body: bool,
) -> Result<Option<EventsProof>, Failure> {
    let size = checkpoint.seq.get();
    let hashes = cover_ranges(indexes, size).and_then(|ranges| tiles::roots(store, size, &ranges));
    let Some(hashes) = hashes else { return Ok(None) };
    let (mut openings, mut shown) = (Vec::new(), Vec::new());
    let is_near = |last: &Seq, next: &Seq| next.get().saturating_sub(last.get()) <= GAP_MAX;
    for run in seqs.chunk_by(is_near) {
        let [first, .., last] = run else {
            let [only] = run else { continue };
            let Some(leaf) = store.leaf(*only)? else { return Ok(None) };
            shown.push((only.get().saturating_sub(1), event::hash(&leaf.salt, &leaf.bytes)));
            openings.push(opening(store, leaf, with_body)?);
            continue;
        };
        let mut wanted = run.iter().peekable();
        for leaf in store.leaves(*first, *last)? {
            let leaf = leaf?;
            if wanted.next_if_eq(&&leaf.seq).is_some() {
                shown.push((leaf.seq.get().saturating_sub(1), event::hash(&leaf.salt, &leaf.bytes)));
                openings.push(opening(store, leaf, with_body)?);
            }
        }
    }
    let is_true = verify_cover(&shown, size, &hashes, checkpoint.root);
    Ok(is_true.then(|| EventsProof { openings, hashes, note: note.to_owned() }))
}

/// Several events in one file. Cost: memory for the shown events; without tiles a pass over all events.
fn of_events(
    store: &Store,
    seqs: Vec<Seq>,
    note: &str,
    checkpoint: &Checkpoint,
    with_body: bool,
) -> Result<String, Failure> {
    let indexes: Vec<u64> = seqs.iter().map(|seq| seq.get().saturating_sub(1)).collect();
    if let Some(proof) = of_tiled(store, (&seqs, &indexes), note, checkpoint, with_body)? {
        return proof.to_text().map_err(|error| keys::refused(&error));
    }
    let Some(mut cover) = Cover::new(&indexes, checkpoint.seq.get()) else {
        return Err(claims::cut(checkpoint.seq));
    };
    let (mut whole, mut openings) = (Frontier::default(), Vec::new());
    let mut wanted = seqs.into_iter().peekable();
    for leaf in store.leaves(Seq(1), checkpoint.seq)? {
        let leaf = leaf?;
        let hash = event::hash(&leaf.salt, &leaf.bytes);
        cover.push(hash);
        whole.push(hash);
        if wanted.next_if_eq(&leaf.seq).is_some() {
            openings.push(opening(store, leaf, with_body)?);
        }
    }
    let hashes = cover.hashes().ok_or_else(|| claims::cut(checkpoint.seq))?;
    if whole.size() != checkpoint.seq.get() || wanted.peek().is_some() {
        return Err(claims::cut(checkpoint.seq));
    }
    if whole.root() != checkpoint.root {
        return Err(claims::rewritten(checkpoint));
    }
    let proof = EventsProof { openings, hashes, note: note.to_owned() };
    proof.to_text().map_err(|error| keys::refused(&error))
}

fn of_growth(store: &Store, from: &str, to: Option<&str>) -> Result<(String, Checkpoint), Failure> {
    let (old, first) = named(store, Some(from))?;
    let (new, last) = named(store, to)?;
    let (old_size, new_size) = (first.seq.get(), last.seq.get());
    let Some(mut ranges) = consistency_ranges(old_size, new_size) else {
        let (first, last) = (first.seq, last.seq);
        let failure =
            Failure::usage(format!("the checkpoint to start from ends at {first}, the other one at {last}"));
        return Err(failure.hint("acpdb checkpoint sign makes a newer one"));
    };
    ranges.extend([0..old_size, 0..new_size]);
    let is_true = |hashes: &[Hash]| {
        hashes.split_last_chunk::<2>().is_some_and(|(proof, roots)| {
            *roots == [first.root, last.root]
                && verify_consistency(old_size, new_size, first.root, last.root, proof)
        })
    };
    let mut hashes = tiles::hashes(store, ranges, last.seq, is_true)?;
    for checkpoint in [&last, &first] {
        if hashes.pop() != Some(checkpoint.root) {
            return Err(claims::rewritten(checkpoint));
        }
    }
    let proof = ConsistencyProof { old, new, hashes };
    Ok((proof.to_text().map_err(|error| keys::refused(&error))?, last))
}

/// Writes a proof. A proof with a text can be read by its owner alone, as other files with texts, even if it overwrites a file.
fn write(path: &Path, text: &str, has_text: bool) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    // The old content is removed once the file is its owner's alone.
    options.write(true).create(true).truncate(false);
    if has_text {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut file = options.open(path)?;
    // A pipe or a device has neither a length nor an owner to protect it for.
    if file.metadata()?.is_file() {
        if has_text {
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        }
        file.set_len(0)?;
    }
    file.write_all(text.as_bytes())
}
