//! Ways through the objects of a store whose head is lost. Pure.
//!
//! ```text
//! beginning -> segment 1 -> segment 2 -> pack -> pack -> entries
//!          \-> segment 1'       \-> entries
//! ```
//!
//! A writer that was fenced leaves objects that no head ever named. The objects behind them decide: a way is the better one if what is on it has the higher
//! epoch, for who took over wrote behind what counts; then the one that goes farther.

use std::collections::BTreeMap;

use acpdb_engine::codec::{WrittenPlace, place_record};
use acpdb_engine::ids::Position;

use crate::head::KeptSegment;
use crate::names::PackName;
use crate::run::{LogRun, LogRunKind};

/// A sound chunk or fence without its bytes.
pub(crate) struct FoundEntry {
    number: u64,
    is_fence: bool,
    epoch: u64,
    before: WrittenPlace,
    behind: WrittenPlace,
}

impl FoundEntry {
    pub(crate) fn of(run: &LogRun) -> Self {
        let is_fence = run.kind == LogRunKind::Fence;
        Self { number: run.first, is_fence, epoch: run.epoch, before: run.before, behind: run.behind }
    }

    /// The epoch of who wrote it.
    pub(crate) const fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// An object that covers a part of the log.
#[derive(Clone, Copy)]
pub(crate) enum WayPart {
    Segment(KeptSegment),
    Pack(PackName),
}

/// A part, and where it leads.
pub(crate) struct WayStep {
    pub(crate) part: WayPart,
    pub(crate) epoch: u64,
    pub(crate) before: WrittenPlace,
    pub(crate) behind: WrittenPlace,
}

impl WayStep {
    /// The first number that may hold what comes behind it, and the highest epoch before that number.
    pub(crate) const fn boundary(&self) -> (u64, u64) {
        match self.part {
            WayPart::Segment(kept) => (kept.boundary, kept.floor),
            WayPart::Pack(pack) => (pack.next, pack.epoch),
        }
    }

    const fn segment(&self) -> u32 {
        match self.part {
            WayPart::Segment(kept) => kept.name.number,
            WayPart::Pack(_) => u32::MAX,
        }
    }

    /// Whether another part may be the next.
    fn leads_to(&self, next: &Self) -> bool {
        match next.part {
            WayPart::Segment(kept) => self.segment().checked_add(1) == Some(kept.name.number),
            WayPart::Pack(pack) => pack.next > self.boundary().0,
        }
    }
}

/// How far entries go on behind a place.
#[derive(Default)]
struct Along {
    /// The highest epoch of a fence at the place itself.
    fenced: u64,
    /// Their weight, if one continues the place.
    weight: Option<WayWeight>,
    /// The number of that one, and the highest epoch before it.
    first: Option<(u64, u64)>,
}

/// The number of the first entry that continues a place, and the highest epoch before it.
pub(crate) fn first_behind(
    place: &WrittenPlace,
    boundary: (u64, u64),
    entries: &[FoundEntry],
) -> Option<(u64, u64)> {
    along(place, boundary, entries).first
}

/// The highest epoch on a way, and its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WayWeight {
    epoch: u64,
    end: Position,
}

/// Follows the entries from a boundary on, by the rule of a reader.
fn along(place: &WrittenPlace, (boundary, floor): (u64, u64), entries: &[FoundEntry]) -> Along {
    let (mut place, mut epoch, mut found) = (*place, floor, Along::default());
    let from = entries.partition_point(|entry| entry.number < boundary);
    for entry in entries.iter().skip(from) {
        if entry.epoch < epoch {
            continue;
        }
        if entry.is_fence {
            epoch = entry.epoch;
        } else if entry.before == place {
            found.first = found.first.or(Some((entry.number, epoch)));
            (epoch, place) = (entry.epoch, entry.behind);
            found.weight = Some(WayWeight { epoch, end: place.position });
        }
        // A fence has the place of its writer: one of another place speaks for another way.
        if entry.is_fence && entry.before == place {
            match &mut found.weight {
                Some(weight) => weight.epoch = epoch,
                None => found.fenced = epoch,
            }
        }
    }
    found
}

/// The best way: its parts from the beginning on. Entries are in order.
pub(crate) fn best_way(mut steps: Vec<WayStep>, entries: &[FoundEntry]) -> Vec<WayStep> {
    // Each part before those that it may lead to, and of those that begin at one place the one first that is taken if nothing tells them apart.
    steps.sort_by_key(|step| match step.part {
        WayPart::Segment(kept) => (kept.name.number, std::cmp::Reverse(u64::from(kept.name.generation))),
        WayPart::Pack(pack) => (u32::MAX, std::cmp::Reverse(pack.next)),
    });
    let mut by_place: BTreeMap<[u8; 64], Vec<usize>> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        by_place.entry(place_record(&step.before)).or_default().push(index);
    }
    let mut weights: Vec<Option<(WayWeight, Option<usize>)>> = steps.iter().map(|_| None).collect();
    let choose = |weights: &[Option<(WayWeight, Option<usize>)>],
                  place: &WrittenPlace,
                  boundary,
                  next: &dyn Fn(&WayStep) -> bool| {
        let found = along(place, boundary, entries);
        let mut best: Option<(WayWeight, Option<usize>)> = None;
        for index in by_place.get(&place_record(place)).into_iter().flatten() {
            let is_next = steps.get(*index).is_some_and(next);
            if let Some(Some((weight, _))) = weights.get(*index).filter(|_| is_next)
                && best.is_none_or(|(best, _)| *weight > best)
            {
                best = Some((*weight, Some(*index)));
            }
        }
        if let Some(weight) = found.weight
            && best.is_none_or(|(best, _)| weight > best)
        {
            best = Some((weight, None));
        }
        (found.fenced, best)
    };
    // Packs with the highest number first, then segments: what a part leads to is weighed before it.
    let packs = steps.partition_point(|step| step.segment() < u32::MAX);
    for index in (packs..steps.len()).chain((0..packs).rev()) {
        let Some(step) = steps.get(index) else { continue };
        let (fenced, best) = choose(&weights, &step.behind, step.boundary(), &|next| step.leads_to(next));
        let mut weight = WayWeight { epoch: step.epoch.max(fenced), end: step.behind.position };
        if let Some((behind, _)) = best {
            weight = WayWeight { epoch: weight.epoch.max(behind.epoch), end: behind.end };
        }
        if let Some(slot) = weights.get_mut(index) {
            *slot = Some((weight, best.and_then(|(_, next)| next)));
        }
    }
    let is_first = |next: &WayStep| match next.part {
        WayPart::Segment(kept) => kept.name.number == 1,
        WayPart::Pack(pack) => pack.next > 1,
    };
    let (_, best) = choose(&weights, &WrittenPlace::default(), (1, 0), &is_first);
    let mut order = Vec::new();
    let mut next = best.and_then(|(_, next)| next);
    while let Some(index) = next {
        order.push(index);
        next = weights.get(index).copied().flatten().and_then(|(_, next)| next);
    }
    let mut steps: Vec<_> = steps.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| steps.get_mut(index).and_then(Option::take)).collect()
}
