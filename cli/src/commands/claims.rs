//! What was signed of a store, held against its log: the checkpoint that was seen last, and those beside the log.
//!
//! ```text
//! pins/STORE.note, STORE/checkpoints/*.note --> one pass over the leaves --> agrees | ahead | rewritten | ..
//! ```

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::Store;
use acpdb_engine::ids::{Micros, Seq};
use acpdb_proof::{Checkpoint, Frontier, Hash, Note, ProofError, VerifierKey, event};

use super::describe;
use crate::failure::{Code, Failure};
use crate::keys;

/// How far a clock may be set back without being taken for a lie.
const CLOCK_SLACK_SECONDS: u64 = 120;

/// Most checkpoints beside a log that are looked at.
const KEPT_COUNT_MAX: usize = 10_000;

/// How a checkpoint stands to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Standing {
    /// Its root is that of the log.
    Agrees,
    /// Its root is that of the log, and no key that is known signed it.
    UnknownKey,
    /// It knows events that the log does not have.
    Ahead,
    /// Another one that is newer was seen here.
    Replayed,
    /// The events that it covers are not those of the log.
    Rewritten,
    /// It covers fewer events and claims a later time than what was recorded after it.
    Backdated,
    /// A key that is not known signed it, and there is one that is.
    OtherKey,
    /// It is of another store.
    OtherStore,
    /// It cannot be read, or its signature is wrong.
    Damaged,
}

impl Standing {
    pub(crate) const fn code(self) -> Code {
        match self {
            Self::Agrees | Self::UnknownKey => Code::Ok,
            Self::Ahead | Self::Replayed => Code::LostTail,
            _ => Code::Damage,
        }
    }
}

/// A checkpoint, and how it stands to the log.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Claim {
    /// `seen last`, or `kept`.
    pub(crate) source: &'static str,
    pub(crate) seq: Option<Seq>,
    /// When it was signed, as its signer says.
    pub(crate) time: Option<String>,
    pub(crate) standing: Standing,
    /// Why, in words.
    pub(crate) detail: Option<String>,
    #[serde(skip)]
    pub(crate) checkpoint: Option<Checkpoint>,
}

impl Claim {
    fn refused(mut self, standing: Standing, detail: impl Into<String>) -> Self {
        self.standing = standing;
        self.detail = Some(detail.into());
        self
    }
}

/// All claims about a store, and what its log has.
pub(crate) struct Judged {
    pub(crate) claims: Vec<Claim>,
    pub(crate) head: Seq,
    /// The root over all events.
    pub(crate) root: Hash,
}

impl Judged {
    /// The worst of all: what does not fit is worse than what is missing.
    pub(crate) fn code(&self) -> Code {
        let codes = || self.claims.iter().map(|claim| claim.standing.code());
        match (codes().any(|code| code == Code::Damage), codes().any(|code| code == Code::LostTail)) {
            (true, _) => Code::Damage,
            (_, true) => Code::LostTail,
            _ => Code::Ok,
        }
    }

    /// A line for each.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.claims.iter().map(|claim| {
            let seq = claim.seq.map(|seq| format!(" at {seq}")).unwrap_or_default();
            let time = claim.time.as_ref().map(|time| format!(", signed {time}")).unwrap_or_default();
            let name = match claim.source {
                "kept" => "checkpoint",
                _ => "checkpoint that was seen last",
            };
            let standing = match claim.standing {
                Standing::Agrees => "agrees",
                Standing::UnknownKey => "agrees, signed with a key that is not known here",
                Standing::Ahead => "is ahead: the log was set back",
                Standing::Replayed => "was replayed: a newer one was seen here",
                Standing::Rewritten => "contradicts the log: it was rewritten, or forked",
                Standing::Backdated => "contradicts the log: events after it are backdated",
                Standing::OtherKey => "is signed with another key",
                Standing::OtherStore => "is of another store",
                Standing::Damaged => "is damaged",
            };
            let detail = claim.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
            format!("{name}{seq} {standing}{time}{detail}")
        })
    }
}

/// Whether anything was ever signed of the store, as far as is known here.
pub(crate) fn are_there(store: &Store) -> Result<bool, Failure> {
    Ok(keys::pinned(store.id())?.is_some() || !store.checkpoint_seqs()?.is_empty())
}

/// Compares all claims; keys that were given count as known. Cost: a pass over all events, whose texts are not read.
pub(crate) fn judge(store: &Store, given: &[VerifierKey]) -> Result<Judged, Failure> {
    let mut keys = keys::known(store.id())?;
    keys.extend_from_slice(given);
    let pin = keys::pinned(store.id())?.map(|(_, note)| claim_of(store, "seen last", &note, &keys));
    // That the user has a key of one's own says nothing about a store that others sign.
    let is_signed_by_known = pin.is_some() || !given.is_empty() || keys::is_trusted_for(store.id())?;
    let mut claims: Vec<Claim> = pin.into_iter().collect();
    let seqs = store.checkpoint_seqs()?;
    // A folder of a stranger may hold any number; the newest say most.
    for seq in seqs.iter().copied().skip(seqs.len().saturating_sub(KEPT_COUNT_MAX)) {
        let note = match store.kept_checkpoint(seq) {
            Ok(note) => note.unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        let mut claim = claim_of(store, "kept", &note, &keys);
        if claim.checkpoint.is_some_and(|found| found.seq != seq) {
            claim = claim.refused(Standing::Damaged, format!("it lies where that of {seq} should"));
        }
        if claim.standing == Standing::UnknownKey && is_signed_by_known {
            claim.standing = Standing::OtherKey;
        }
        claims.push(claim);
    }
    let walk = Walk::new(store, &claims)?;
    for claim in &mut claims {
        let Some(checkpoint) = claim.checkpoint else { continue };
        if !matches!(claim.standing, Standing::Agrees | Standing::UnknownKey) {
            continue;
        }
        let refused = match walk.roots.get(&checkpoint.seq) {
            None => Some((Standing::Ahead, format!("the log ends at {}", walk.head))),
            Some(root) if *root != checkpoint.root => {
                Some((Standing::Rewritten, format!("events up to {} are others now", checkpoint.seq)))
            }
            Some(_) => walk
                .backdated(&checkpoint)
                .map(|(seq, time)| (Standing::Backdated, format!("{seq} says {}", describe::time(time)))),
        };
        if let Some((standing, detail)) = refused {
            *claim = claim.clone().refused(standing, detail);
        }
    }
    replayed(&mut claims);
    Ok(Judged { claims, head: walk.head, root: walk.root })
}

/// Names the newest checkpoint beside the log, if it is older than the one that was seen last.
fn replayed(claims: &mut [Claim]) {
    let seen = claims.first().filter(|claim| claim.source == "seen last").and_then(|claim| claim.seq);
    let newest = claims.iter_mut().rfind(|claim| claim.source == "kept");
    if let (Some(seen), Some(newest)) = (seen, newest)
        && newest.standing == Standing::Agrees
        && newest.seq.is_some_and(|seq| seq < seen)
    {
        *newest = newest.clone().refused(Standing::Replayed, format!("that of {seen}"));
    }
}

/// What a note claims, once its signature was checked.
fn claim_of(store: &Store, source: &'static str, note: &str, keys: &[VerifierKey]) -> Claim {
    let standing = Standing::Agrees;
    let mut claim = Claim { source, seq: None, time: None, standing, detail: None, checkpoint: None };
    let read = Note::parse(note).and_then(|note| Ok((Checkpoint::parse(note.text_unchecked())?, note)));
    let (checkpoint, note) = match read {
        Ok(read) => read,
        Err(error) => return claim.refused(Standing::Damaged, error.to_string()),
    };
    claim.seq = Some(checkpoint.seq);
    claim.time = Some(time_of(&checkpoint));
    if checkpoint.store != store.id() {
        let detail = format!("of {}", checkpoint.store);
        return claim.refused(Standing::OtherStore, detail);
    }
    claim.checkpoint = Some(checkpoint);
    match note.signed_by(keys) {
        Ok(_) => claim,
        // What was seen last is the user's own file: that its key is gone takes nothing from it.
        Err(ProofError::OtherKey { .. }) if source == "seen last" => claim,
        Err(ProofError::OtherKey { found }) => claim.refused(Standing::UnknownKey, found),
        Err(error) => claim.refused(Standing::Damaged, error.to_string()),
    }
}

/// When a checkpoint was signed, in words.
pub(crate) fn time_of(checkpoint: &Checkpoint) -> String {
    describe::time(Micros(i64::try_from(checkpoint.time).unwrap_or(i64::MAX).saturating_mul(1_000_000)))
}

/// What one pass over the leaves gives.
struct Walk {
    head: Seq,
    root: Hash,
    roots: BTreeMap<Seq, Hash>,
    /// For the end of each claim: the event after it with the earliest time.
    earliest: BTreeMap<Seq, (Seq, Micros)>,
}

impl Walk {
    fn new(store: &Store, claims: &[Claim]) -> Result<Self, Failure> {
        let wanted: BTreeSet<Seq> =
            claims.iter().filter_map(|claim| claim.checkpoint.map(|found| found.seq)).collect();
        let head = store.head()?;
        let mut frontier = Frontier::default();
        let mut roots = BTreeMap::new();
        // The earliest event between a claim's end and that of the next one.
        let mut stretches: Vec<(Seq, (Seq, Micros))> = Vec::new();
        for leaf in store.leaves(Seq(1), head)? {
            let leaf = leaf?;
            frontier.push(event::hash(&leaf.salt, &leaf.bytes));
            if let Some((_, place)) = stretches.last_mut()
                && leaf.time < place.1
            {
                *place = (leaf.seq, leaf.time);
            }
            if wanted.contains(&leaf.seq) {
                roots.insert(leaf.seq, frontier.root());
                stretches.push((leaf.seq, (leaf.seq, Micros(i64::MAX))));
            }
        }
        let mut earliest = BTreeMap::new();
        let mut later = (Seq::ZERO, Micros(i64::MAX));
        for (end, place) in stretches.into_iter().rev() {
            later = if place.1 < later.1 { place } else { later };
            earliest.insert(end, later);
        }
        if frontier.size() != head.get() {
            let found = Seq(frontier.size());
            return Err(Failure::new(
                Code::Damage,
                format!("the log can be read up to {found}, and ends at {head}"),
            ));
        }
        Ok(Self { head, root: frontier.root(), roots, earliest })
    }

    /// The event after a checkpoint that says it was recorded before that was signed.
    fn backdated(&self, checkpoint: &Checkpoint) -> Option<(Seq, Micros)> {
        let signed = checkpoint.time.saturating_sub(CLOCK_SLACK_SECONDS).saturating_mul(1_000_000);
        let signed = Micros(i64::try_from(signed).unwrap_or(i64::MAX));
        let found = self.earliest.get(&checkpoint.seq).copied();
        found.filter(|(_, time)| *time < signed)
    }
}
