//! One digest over everything that is visible at a watermark, by which `verify` and tests compare folds.

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
        let mut add = |part: &'static str, value: &dyn erased::DigestJson| see(part, value.json());
        add("info", &self.info(at));
        add("turn", &(self.turn(at), self.prompt_count(at), self.closed(at)));
        add("policy", &self.policy(at).as_ref());
        for ix in self.items(at) {
            add("item", &self.item(ix, at));
            add(
                // The name that digests of recorded stores cover.
                concat!("stand-", "in"),
                &[
                    self.placeholder(ix, crate::event::Face::Input, at),
                    self.placeholder(ix, crate::event::Face::Output, at),
                ],
            );
            add("explain", &self.explain(ix, at));
        }
        let current: Vec<String> =
            self.current(at).into_iter().filter_map(|ix| self.item_id(ix)).map(|id| id.to_string()).collect();
        add("current", &current);
        add("edges", &self.edges(at));
        add("log", &self.log_lines(at, HashForm::Shown));
        add("stats", &self.stats(at));
        add("turns", &self.tokens_by_turn(at));
        add("served", &(self.rebases(at), self.served(at), self.forks(at), self.rewinds(at)));
        add("todos", &self.todos().list(at));
        add("tasks", &self.tasks().tasks(at).collect::<Vec<_>>());
        add("task", &self.tasks().active(at));
        let memory: Vec<String> = self
            .memory()
            .at(at)
            .all()
            .iter()
            .map(|item| {
                format!(
                    "{} {:?} {:?}",
                    item.id(),
                    self.memory().at(at).superseded_by(item),
                    item.is_retracted()
                )
            })
            .collect();
        add("memory", &memory);
    }
}

/// Serialisation without naming the type.
mod erased {
    pub(super) trait DigestJson {
        fn json(&self) -> Vec<u8>;
    }

    impl<T: serde::Serialize> DigestJson for T {
        fn json(&self) -> Vec<u8> {
            // A value that cannot be written is not the same as an empty one.
            serde_json::to_vec(self).unwrap_or_else(|error| error.to_string().into_bytes())
        }
    }
}
