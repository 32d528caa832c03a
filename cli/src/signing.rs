//! Signs the history: when signing is due, and only if the log agrees with all earlier checkpoints.

use acpdb_engine::Store;
use acpdb_engine::ids::Seq;
use acpdb_proof::claims::CheckpointStatus;
use acpdb_proof::{Checkpoint, Judged, Note};

use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::settings::Every;
use crate::{claims, keys, tiles};

/// Signs once as many events or minutes have passed as the user has set. A failure is printed as a warning, and stops nothing.
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

/// The name of the key that signs automatically.
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
            let age = crate::clock::timestamp().as_second().saturating_sub_unsigned(checkpoint.time);
            Ok(age >= i64::try_from(count.saturating_mul(60)).unwrap_or(i64::MAX))
        }
    }
}

/// Signs the events up to now, and reads only the events after the last checkpoint that was seen; that checkpoint itself is
/// believed. `None`: signing needs a pass over all events.
fn signed_on(store: &Store, name: &str, output: &Output) -> Result<Option<(Checkpoint, String)>, Failure> {
    let key = keys::signer(name)?;
    let Some((last, made)) = tiles::grown(store)? else { return Ok(None) };
    let time = now().max(last.time);
    let checkpoint = Checkpoint { store: store.id(), seq: made.seq(), root: made.root(), time };
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
    made: tiles::TilePass,
    output: &Output,
) -> Result<(), Failure> {
    let before = tiles::before(store);
    store.keep_checkpoint(checkpoint.seq, note)?;
    keys::pin(store.id(), note)?;
    made.keep(store, before, output);
    Ok(())
}

/// The time by this machine's clock. A checkpoint is signed with this or the time of the last one, whichever is later: one clock that was ahead
/// once must not end signing for good.
fn now() -> u64 {
    u64::try_from(crate::clock::timestamp().as_second()).unwrap_or_default()
}

/// Signs all events up to now, once they agree with all earlier checkpoints.
pub(crate) fn signed(store: &Store, name: &str, output: &Output) -> Result<(Checkpoint, String), Failure> {
    let key = keys::signer(name)?;
    let mut made = tiles::TilePass::new();
    let judged = claims::judge_with(store, &[], |leaf| made.push(store, leaf))?;
    agreed(&judged).map_err(|failure| failure.in_place("nothing was signed"))?;
    // A second end, signed by the same key, would tell others of a fork.
    if let Some(newer) = judged.claims.iter().find(|claim| claim.standing == CheckpointStatus::Newer) {
        let failure = Failure::new(Code::Damage, format!("nothing was signed: {}", claims::line(newer)));
        return Err(failure.hint("sign the store that this is a backup of"));
    }
    if judged.head == Seq::ZERO {
        return Err(Failure::not_found("nothing was recorded that could be signed"));
    }
    let signed = judged.claims.iter().filter(|claim| claim.standing.holds());
    let time = signed.filter_map(|claim| claim.checkpoint).map(|before| before.time).fold(now(), u64::max);
    let checkpoint = Checkpoint { store: store.id(), seq: judged.head, root: judged.root, time };
    for claim in judged.claims.iter().filter(|claim| claim.standing == CheckpointStatus::Misdated) {
        output.note(format!("note: signed past a wrong clock: {}", claims::line(claim)));
    }
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

/// Fails unless each claim agrees with the log and is signed by a known key.
pub(crate) fn agreed(judged: &Judged) -> Result<(), Failure> {
    let code = claims::code(judged);
    let mut others = judged.claims.iter().filter(|claim| !claim.standing.holds());
    let Some(wrong) = others.find(|claim| claims::code_of(claim.standing) == code) else {
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

/// The failure for a checkpoint that cannot be read.
pub(crate) fn damaged(seq: Seq, why: &str) -> Failure {
    Failure::new(Code::Damage, format!("the checkpoint at {seq} cannot be read: {why}"))
}
