//! Claims about a history, compared with that history: the checkpoint that was seen last, and the checkpoints beside the log.
//!
//! ```text
//! pin, notes beside the log --> one pass over the leaves --> agrees | unproven | ahead | rewritten | ..
//! ```
//!
//! Pure: the notes and the leaves are given. An attacker may have written all of them but the pin. So a note counts only if a
//! known key signed it, and no content of a note makes this module fail.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::ids::{Micros, Seq, StoreId};
use acpdb_engine::store::Leaf;

use crate::checkpoint::Checkpoint;
use crate::note::{Note, VerifierKey};
use crate::tree::{Frontier, Hash};
use crate::{ProofError, event};

/// How far a clock may be set back without a remark.
const CLOCK_SLACK_SECONDS: u64 = 120;

/// How a checkpoint stands to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointStatus {
    /// Its root is the log's.
    Agrees,
    /// Its root is the log's, and no known key signed it: the writer of the folder may have made it.
    Unproven,
    /// It knows events that the log does not have.
    Ahead,
    /// It knows events that this backup does not have: it was signed after the backup was made.
    Newer,
    /// A newer checkpoint was seen here.
    Replayed,
    /// The log has other events up to its end.
    Rewritten,
    /// Its root is the log's, and a clock was wrong: a later event says that it was recorded before this checkpoint was signed. The order of
    /// events is that of their seqs; a time proves nothing about them.
    Misdated,
    /// An unknown key signed it, though the store's signer is known.
    OtherKey,
    /// It is of another store.
    OtherStore,
    /// It cannot be read, or its signature is wrong.
    Damaged,
}

impl CheckpointStatus {
    /// Whether a known key signed it and the log is as it says, whatever the clocks.
    pub const fn holds(self) -> bool {
        matches!(self, Self::Agrees | Self::Misdated)
    }
}

/// Where a claim was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimSource {
    /// In the user's own record of the checkpoint that was seen last.
    #[serde(rename = "seen last")]
    SeenLast,
    /// Beside the log.
    Kept,
}

/// The reason for a claim's standing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// In words.
    Text(String),
    /// An event, and the time at which it says that it was recorded.
    Time(Seq, Micros),
}

/// A checkpoint, and how it stands to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Where it was found.
    pub source: ClaimSource,
    /// The checkpoint that it claims, if it can be read.
    pub checkpoint: Option<Checkpoint>,
    /// The note, if it can be read.
    pub note: Option<Note>,
    /// Its standing.
    pub standing: CheckpointStatus,
    /// The reason.
    pub detail: Option<Detail>,
}

impl Claim {
    /// The last event that it covers.
    pub fn seq(&self) -> Option<Seq> {
        self.checkpoint.map(|found| found.seq)
    }

    fn refuse(&mut self, standing: CheckpointStatus, detail: Detail) {
        self.standing = standing;
        self.detail = Some(detail);
    }

    fn is_open(&self) -> bool {
        matches!(self.standing, CheckpointStatus::Agrees | CheckpointStatus::Unproven)
    }
}

/// The notes about a store, and the keys that judge them.
#[derive(Debug, Clone, Default)]
pub struct Claims {
    /// The note that was seen last.
    pub pin: Option<String>,
    /// The notes beside the log, by the seqs of their names; for a note that cannot be read, the reason.
    pub kept: Vec<(Seq, Result<String, String>)>,
    /// Keys that are believed about the store.
    pub keys: Vec<VerifierKey>,
    /// Whether the signer of the store is known: then a note of another key is refused, not only unproven.
    pub is_signer_known: bool,
    /// Whether the log is known to be a backup, as it was made: then it may be older than what was seen last.
    pub is_backup: bool,
}

/// All claims about a store, with the head and the root of its log.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The claims: the claim that was seen last comes first.
    pub claims: Vec<Claim>,
    /// The last event.
    pub head: Seq,
    /// The root over all events.
    pub root: Hash,
}

impl Claims {
    /// Compares all claims with the history of a store. Cost: a pass over the leaves.
    ///
    /// # Errors
    /// The first error of the leaves.
    pub fn judge<E>(
        &self,
        store: StoreId,
        leaves: impl Iterator<Item = Result<Leaf, E>>,
    ) -> Result<Judged, E> {
        self.judge_with(store, leaves, |_| {})
    }

    /// As [`Claims::judge`]; `each` gets the hash of each leaf, in order.
    ///
    /// # Errors
    /// The first error of the leaves.
    pub fn judge_with<E>(
        &self,
        store: StoreId,
        leaves: impl Iterator<Item = Result<Leaf, E>>,
        each: impl FnMut(Hash),
    ) -> Result<Judged, E> {
        let mut claims: Vec<Claim> = Vec::new();
        claims.extend(self.pin.as_ref().map(|note| claim_of(store, ClaimSource::SeenLast, note, &self.keys)));
        let is_signer_known = self.is_signer_known || self.pin.is_some();
        for (seq, note) in &self.kept {
            let mut claim = match note {
                Ok(note) => claim_of(store, ClaimSource::Kept, note, &self.keys),
                Err(why) => {
                    let detail = Some(Detail::Text(why.clone()));
                    Claim {
                        source: ClaimSource::Kept,
                        checkpoint: None,
                        note: None,
                        standing: CheckpointStatus::Damaged,
                        detail,
                    }
                }
            };
            if claim.checkpoint.is_some_and(|found| found.seq != *seq) {
                let why = format!("it lies where that of {seq} should");
                claim.refuse(CheckpointStatus::Damaged, Detail::Text(why));
            }
            if claim.standing == CheckpointStatus::Unproven && is_signer_known {
                claim.standing = CheckpointStatus::OtherKey;
            }
            claims.push(claim);
        }
        let walk = LeafPass::new(&claims, leaves, each)?;
        for claim in claims.iter_mut().filter(|claim| claim.is_open()) {
            let Some(checkpoint) = claim.checkpoint else { continue };
            match walk.roots.get(&checkpoint.seq) {
                None => {
                    let why = format!("the log ends at {}", walk.head);
                    let is_newer = self.is_backup && claim.source == ClaimSource::SeenLast;
                    let standing = if is_newer { CheckpointStatus::Newer } else { CheckpointStatus::Ahead };
                    claim.refuse(standing, Detail::Text(why));
                }
                Some(root) if *root != checkpoint.root => {
                    let why = format!("events up to {} are others now", checkpoint.seq);
                    claim.refuse(CheckpointStatus::Rewritten, Detail::Text(why));
                }
                Some(_) => {
                    // A note that no known key signed says nothing, whatever its time.
                    if claim.standing == CheckpointStatus::Agrees
                        && let Some((seq, time)) = walk.earlier(&checkpoint)
                    {
                        claim.refuse(CheckpointStatus::Misdated, Detail::Time(seq, time));
                    }
                }
            }
        }
        if !self.is_backup {
            name_replayed(&mut claims);
        }
        Ok(Judged { claims, head: walk.head, root: walk.root })
    }
}

/// Marks the newest checkpoint beside the log as replayed, if it is older than the checkpoint that was seen last.
fn name_replayed(claims: &mut [Claim]) {
    let seen = claims.first().filter(|claim| claim.source == ClaimSource::SeenLast).and_then(Claim::seq);
    let newest = claims.iter_mut().rfind(|claim| claim.source == ClaimSource::Kept);
    if let (Some(seen), Some(newest)) = (seen, newest)
        && newest.standing.holds()
        && newest.seq().is_some_and(|seq| seq < seen)
    {
        newest.refuse(CheckpointStatus::Replayed, Detail::Text(format!("that of {seen}")));
    }
}

/// The claim of a note, with the note's signature checked.
fn claim_of(store: StoreId, source: ClaimSource, note: &str, keys: &[VerifierKey]) -> Claim {
    let standing = CheckpointStatus::Agrees;
    let mut claim = Claim { source, checkpoint: None, note: None, standing, detail: None };
    let read = Note::parse(note).and_then(|note| Ok((Checkpoint::parse(note.text_unchecked())?, note)));
    let (checkpoint, note) = match read {
        Ok(read) => read,
        Err(error) => {
            claim.refuse(CheckpointStatus::Damaged, Detail::Text(error.to_string()));
            return claim;
        }
    };
    claim.checkpoint = Some(checkpoint);
    if checkpoint.store != store {
        claim.refuse(CheckpointStatus::OtherStore, Detail::Text(format!("of {}", checkpoint.store)));
        return claim;
    }
    match note.signed_by(keys) {
        Ok(_) => {}
        // The note that was seen last is the user's own file: it counts even if its key is gone.
        Err(ProofError::OtherKey { .. }) if source == ClaimSource::SeenLast => {}
        Err(ProofError::OtherKey { found }) => claim.refuse(CheckpointStatus::Unproven, Detail::Text(found)),
        Err(error) => claim.refuse(CheckpointStatus::Damaged, Detail::Text(error.to_string())),
    }
    claim.note = Some(note);
    claim
}

/// The results of one pass over the leaves.
struct LeafPass {
    head: Seq,
    root: Hash,
    roots: BTreeMap<Seq, Hash>,
    /// For the end of each claim: the event after it with the earliest time.
    earliest: BTreeMap<Seq, (Seq, Micros)>,
}

impl LeafPass {
    fn new<E>(
        claims: &[Claim],
        leaves: impl Iterator<Item = Result<Leaf, E>>,
        mut each: impl FnMut(Hash),
    ) -> Result<Self, E> {
        let wanted: BTreeSet<Seq> = claims.iter().filter_map(Claim::seq).collect();
        let mut frontier = Frontier::default();
        let mut roots = BTreeMap::new();
        // The earliest event between a claim's end and the end of the next claim.
        let mut stretches: Vec<(Seq, (Seq, Micros))> = Vec::new();
        for leaf in leaves {
            let leaf = leaf?;
            let hash = event::hash(&leaf.salt, &leaf.bytes);
            frontier.push(hash);
            each(hash);
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
        Ok(Self { head: Seq(frontier.size()), root: frontier.root(), roots, earliest })
    }

    /// The event after a checkpoint that says it was recorded before the checkpoint was signed.
    fn earlier(&self, checkpoint: &Checkpoint) -> Option<(Seq, Micros)> {
        let found = self.earliest.get(&checkpoint.seq).copied();
        found.filter(|(_, time)| is_earlier(*time, checkpoint))
    }
}

/// Whether an event after a checkpoint says that it was recorded before the checkpoint was signed.
fn is_earlier(time: Micros, checkpoint: &Checkpoint) -> bool {
    // Nothing is older than the beginning of time.
    let signed = checkpoint.time.saturating_sub(CLOCK_SLACK_SECONDS).saturating_mul(1_000_000);
    time < Micros(i64::try_from(signed).unwrap_or(i64::MAX))
}
