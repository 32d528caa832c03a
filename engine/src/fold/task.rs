//! Placeholder of the tasks' state.
use crate::event::{TaskChanged, TaskEvicted};
use crate::ids::{Seq, Turn};
/// The tasks.
#[derive(Clone, Default, Debug)]
pub struct TaskState;
#[expect(missing_docs, clippy::unused_self, reason = "placeholder")]
impl TaskState {
    pub fn changed(&mut self, _seq: Seq, _turn: Turn, _event: &TaskChanged) {}
    pub fn evicted(&mut self, _seq: Seq, _event: &TaskEvicted) {}
    pub fn active(&self, _at: Seq) -> Option<&str> {
        None
    }
    pub fn rewound(&mut self, _seq: Seq, _fresh: Self) {}
}
