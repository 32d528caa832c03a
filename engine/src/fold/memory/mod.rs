//! Placeholder of the memory's state.
use crate::event::Recorded;
use crate::ids::{ItemId, Seq};
/// The memory items.
#[derive(Clone, Default, Debug)]
pub struct MemoryState;
#[expect(missing_docs, clippy::unused_self, reason = "placeholder")]
impl MemoryState {
    pub fn apply(&mut self, _recorded: &Recorded) {}
    pub fn restored(&mut self, _seq: Seq, _items: &[ItemId]) {}
    pub fn rewound(&mut self, _seq: Seq, _fresh: Self) {}
}
