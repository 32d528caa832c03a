//! Placeholder of the todo list's state.
use super::facts::Ix;
use crate::event::{TodoChange, TodoList};
use crate::ids::{Seq, Turn};
/// The todo list.
#[derive(Clone, Default, Debug)]
pub struct TodoState;
#[expect(missing_docs, clippy::unused_self, reason = "placeholder")]
impl TodoState {
    pub fn list_written(&mut self, _seq: Seq, _turn: Turn, _call: Option<Ix>, _started: Turn, _list: &TodoList) {}
    pub fn changed(&mut self, _seq: Seq, _turn: Turn, _change: &TodoChange) {}
    pub fn reminded(&mut self, _seq: Seq, _turn: Turn) {}
    pub fn reflected(&mut self, _seq: Seq, _turn: Turn) {}
    pub fn automata(&mut self, _seq: Seq, _turn: Turn) {}
    pub fn rewound(&mut self, _seq: Seq, _fresh: Self) {}
}
