//! Places as a handle holds them: the rows of the last segment, and the streams that were asked for.

use rustc_hash::FxHashMap;

use super::place_run::{PlaceRun, StreamPlace};
use crate::codec::FramePlace;
use crate::ids::StreamId;
use crate::storage::StoredFile;

/// The file of places of the last segment, open for writing.
pub(super) struct PlacesWriter {
    pub(super) number: u32,
    pub(super) file: Box<dyn StoredFile>,
}

/// Places as a handle knows them.
#[derive(Default)]
pub(super) struct PlacesState {
    /// The rows of the last segment.
    pub(super) run: Option<PlaceRun>,
    /// The streams of all segments before `listed`, in order of their first events, and where each stands.
    pub(super) listed: u32,
    pub(super) streams: Vec<StreamPlace>,
    pub(super) at: FxHashMap<StreamId, usize>,
    /// First frames that were asked for.
    pub(super) firsts: FxHashMap<StreamId, FramePlace>,
}

impl PlacesState {
    /// Adds a stream of a complete segment.
    pub(super) fn list(&mut self, place: StreamPlace) {
        if let Some(known) = self.at.get(&place.stream).and_then(|at| self.streams.get_mut(*at)) {
            known.head = known.head.max(place.head);
            return;
        }
        self.at.insert(place.stream, self.streams.len());
        self.streams.push(place);
    }
}
