//! The histories that another store tells, by ids.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::event::{Payload, Scope};
use crate::ids::{FactId, StoreId, StreamId};
use crate::travel::{FactRef, Piece};

use super::gone::Gone;
use super::lineage::{Lineages, is_branch};

/// One stream of another store.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    pub(super) scope: Scope,
    pub(super) host: String,
    pub(super) name: String,
    /// Its own events that are part of its history, in order.
    pub(super) ids: Vec<FactId>,
    /// The event that it goes on from, if it is a branch that a merge made.
    pub(super) branch_of: Option<FactRef>,
    /// Place among the streams, by their first events.
    pub(super) order: u64,
    /// The sessions that it came from: the one that started it, and that of its first fork.
    pub(super) came_from: Vec<StreamId>,
    fork: Option<FactRef>,
}

/// The histories of all streams of another store.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    source: Option<StoreId>,
    pub(super) streams: BTreeMap<StreamId, Told>,
    /// The subjects of streams.
    pub(super) subjects: BTreeMap<StreamId, String>,
    /// Some of it was damaged: a missing event says nothing.
    pub(super) has_gaps: bool,
}

impl Outline {
    /// The store that it is of.
    pub(super) const fn source(&self) -> Option<StoreId> {
        self.source
    }

    /// Takes note of a piece.
    pub(super) fn observe(&mut self, piece: &Piece) {
        let parcel = match piece {
            Piece::Heading(heading) => {
                self.source = Some(heading.store);
                return;
            }
            Piece::Gap(_) => {
                self.has_gaps = true;
                return;
            }
            Piece::End(_) => return,
            Piece::Parcel(parcel) => parcel,
        };
        if parcel.stream == StreamId::STORE {
            return;
        }
        let order = self.streams.len() as u64;
        let told = self.streams.entry(parcel.stream).or_insert_with(|| Told { order, ..Told::default() });
        if let Payload::SessionOpened(opened) = &parcel.event {
            told.scope = opened.scope;
            told.host.clone_from(&opened.host);
            told.name.clone_from(&opened.name);
            told.came_from.extend(opened.parent.as_ref().map(|parent| parent.stream));
        }
        if let Payload::Forked(forked) = &parcel.event
            && told.ids.is_empty()
            && told.fork.is_none()
        {
            let at = parcel.named(forked.at);
            told.came_from.push(forked.from);
            told.fork = Some(FactRef { stream: forked.from, id: at.map_or(FactId::ZERO, |at| at.id) });
            if self.is_branch(parcel.stream, forked.from, parcel.id) {
                if let Some(told) = self.streams.get_mut(&parcel.stream) {
                    told.branch_of = at.copied().or(told.fork);
                }
                return;
            }
        }
        if let Some(told) = self.streams.get_mut(&parcel.stream).filter(|_| !parcel.is_beside()) {
            told.ids.push(parcel.id);
        }
    }

    fn is_branch(&self, stream: StreamId, from: StreamId, fork: FactId) -> bool {
        let names = |id| self.streams.get(&id).map(|told: &Told| (told.scope, &*told.host, &*told.name));
        names(stream).is_some_and(|own| is_branch((stream, own), (from, names(from)), fork))
    }

    /// The outline of a store, without its texts, and without shredded streams: those cannot be told, on purpose.
    pub(super) fn of(lineages: &Lineages, source: StoreId) -> Self {
        let mut streams: Vec<_> =
            lineages.streams.iter().filter(|(_, lineage)| !lineage.is_shredded).collect();
        streams.sort_by_key(|(_, lineage)| lineage.lines.first().map(|line| line.seq));
        let told = (0..).zip(streams).map(|(order, (id, lineage))| {
            let branch_of = lineage.parent.filter(|_| lineage.is_branch);
            let told = Told {
                scope: lineage.scope,
                host: lineage.host.clone(),
                name: lineage.name.clone(),
                ids: lineage.lines.iter().filter(|line| !line.beside).map(|line| line.id).collect(),
                branch_of: branch_of.map(|(parent, at)| lineages.point(parent, at)),
                order,
                came_from: lineage.came_from.clone(),
                fork: None,
            };
            (*id, told)
        });
        let (streams, has_gaps) = (told.collect(), !lineages.gaps.is_empty());
        Self { source: Some(source), streams, subjects: BTreeMap::new(), has_gaps }
    }

    /// The whole history of a stream, and how many of its events are other streams'; without streams that go nowhere.
    pub(super) fn history(&self, stream: StreamId, gone: &Gone) -> (Vec<FactId>, usize) {
        let mut pieces: Vec<&[FactId]> = Vec::new();
        let mut seen = FxHashSet::default();
        let (mut stream, mut until) = (stream, None::<FactId>);
        while let Some(told) = self.streams.get(&stream).filter(|_| seen.insert(stream)) {
            let end = match until {
                None => told.ids.len(),
                Some(id) => told.ids.iter().position(|own| *own == id).map_or(0, |place| place + 1),
            };
            if !gone.contains(&stream) {
                pieces.push(told.ids.get(..end).unwrap_or_default());
            }
            match told.branch_of {
                Some(at) => (stream, until) = (at.stream, Some(at.id)),
                None => break,
            }
        }
        let inherited = pieces.iter().skip(1).map(|piece| piece.len()).sum();
        (pieces.into_iter().rev().flatten().copied().collect(), inherited)
    }
}
