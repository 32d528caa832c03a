//! One digest over everything that is visible at a watermark, by which `verify` and tests compare folds.

use crate::event::Face;
use crate::fold::state::State;
use crate::ids::Seq;

use super::HashForm;

impl State {
    /// BLAKE3 over every item with its faces and causes, every edge, the order of the context, figures, policy, todos,
    /// tasks and memory at `at`. Two states with equal digests answer every read at `at` alike. Cost: O(items).
    pub fn digest(&self, at: Seq) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("acpdb 2026 fold digest v1");
        self.each_visible(at, &mut |part, json| {
            hasher.update(part.as_bytes());
            hasher.update(&[0]);
            hasher.update(&json);
            hasher.update(&[0]);
        });
        *hasher.finalize().as_bytes()
    }

    /// Everything that the digest covers, part by part, as JSON.
    pub(crate) fn each_visible(&self, at: Seq, see: &mut dyn FnMut(&'static str, Vec<u8>)) {
        see("info", json(&self.info(at)));
        see("turn", json(&(self.turn(at), self.prompt_count(at), self.closed(at))));
        see("policy", json(&self.policy(at).as_ref()));
        for ix in self.items(at) {
            see("item", json(&self.item(ix, at)));
            let placeholders = [Face::Input, Face::Output].map(|face| self.placeholder(ix, face, at));
            // The name that digests of recorded stores cover.
            see(concat!("stand-", "in"), json(&placeholders));
            see("explain", json(&self.explain(ix, at)));
        }
        let current: Vec<String> =
            self.current(at).into_iter().filter_map(|ix| self.item_id(ix)).map(|id| id.to_string()).collect();
        see("current", json(&current));
        see("edges", json(&self.edges(at)));
        see("log", json(&self.log_lines(at, HashForm::Shown)));
        see("stats", json(&self.stats(at)));
        see("turns", json(&self.tokens_by_turn(at)));
        see("served", json(&(self.rebases(at), self.served(at), self.forks(at), self.rewinds(at))));
        see("todos", json(&self.todos().list(at)));
        see("tasks", json(&self.tasks().tasks(at).collect::<Vec<_>>()));
        see("task", json(&self.tasks().active(at)));
        let memory: Vec<String> = self
            .memory()
            .at(at)
            .all()
            .iter()
            .map(|item| {
                let edges = self.memory().at(at).superseded_by(item);
                format!("{} {edges:?} {:?}", item.id(), item.is_retracted())
            })
            .collect();
        see("memory", json(&memory));
    }
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    // A value that cannot be written is not the same as an empty one.
    serde_json::to_vec(value).unwrap_or_else(|error| error.to_string().into_bytes())
}
