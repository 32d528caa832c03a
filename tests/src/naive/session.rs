//! The story of one session, told call by call.

use std::collections::BTreeMap;

use acpdb_engine::event::{Outcome, Payload, Recorded};
use acpdb_engine::ids::{BodyId, ItemId, Seq};
use serde_json::Value;

/// A rule broken on purpose, to see that the comparison notices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// None: the rules as they are.
    None,
    /// Calls of the same turn supersede each other.
    SameTurn,
    /// A failed call supersedes like a completed one.
    FailedSupersedes,
    /// Protected files are not protected.
    NoProtectedFiles,
    /// A restored item stays superseded.
    RestoreDoesNothing,
    /// A compaction changes nothing.
    NoCompaction,
    /// Reads are not cleared by edits.
    EditsClearNothing,
    /// The branch that a rewind left goes on counting.
    NoRewind,
}

/// An edge, as the naive implementation sees it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NaiveEdge {
    /// The older call.
    pub old: ItemId,
    /// The newer call.
    pub new: ItemId,
    /// `hash`, `file` or `todo`.
    pub rule: &'static str,
    /// The event with which it came about.
    pub seq: Seq,
    /// The turn in which it came about.
    pub turn: u32,
    /// Undone by a restore.
    pub released: bool,
}

/// The settings the naive implementation knows.
#[expect(clippy::struct_excessive_bools, reason = "as plain as can be: one flag a setting or a fact")]
#[derive(Clone, Debug)]
struct Rules {
    automatic: bool,
    todo: bool,
    same_turn: bool,
    failed: bool,
    protection_turns: u32,
    protected_tools: Vec<String>,
}

/// Reads a policy as it was recorded.
fn rules(text: &str) -> Rules {
    let json: Value = serde_json::from_str(text).unwrap_or_default();
    let flag = |name: &str| json.get(name).and_then(Value::as_bool).unwrap_or_default();
    let turns = json.get("turn_protection.turns").and_then(Value::as_u64).unwrap_or_default();
    let tools = json.get("protected_tools").and_then(Value::as_array).cloned().unwrap_or_default();
    Rules {
        automatic: flag("automatic"),
        todo: flag("todo"),
        same_turn: flag("same_turn"),
        failed: flag("failed"),
        protection_turns: if flag("turn_protection") { u32::try_from(turns).unwrap_or(u32::MAX) } else { 0 },
        protected_tools: tools.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

/// A call as far as it has come.
#[expect(clippy::struct_excessive_bools, reason = "as plain as can be: one flag a setting or a fact")]
#[derive(Clone, Debug)]
struct Call {
    item: ItemId,
    host_id: String,
    tool: String,
    params: String,
    file: Option<String>,
    turn: u32,
    outcome: Option<Outcome>,
    ready: bool,
    left: bool,
    cleared: bool,
    pinned: bool,
    superseded: bool,
}

/// An event or a rewind on the active branch.
#[derive(Clone, Debug)]
enum Deed<'e> {
    Event(&'e Recorded),
    /// The part that a rewind does not undo.
    Kept {
        turn: u32,
        policy: Option<Rules>,
    },
}

/// The state of the story.
struct Story<'b> {
    bodies: &'b dyn Fn(BodyId) -> Option<Vec<u8>>,
    mutation: Mutation,
    rules: Rules,
    turn: u32,
    calls: Vec<Call>,
    edges: Vec<NaiveEdge>,
}

/// The edges of a session after its `events`, in the order in which they came about.
pub fn edges(
    events: &[Recorded],
    bodies: &dyn Fn(BodyId) -> Option<Vec<u8>>,
    mutation: Mutation,
) -> Vec<NaiveEdge> {
    let mut branch: Vec<(Seq, Deed<'_>)> = Vec::new();
    for recorded in events {
        match &recorded.event.payload {
            Payload::Rewound(rewound) if mutation != Mutation::NoRewind => {
                let before = told(&branch, bodies, mutation);
                branch.retain(|(seq, _)| *seq <= rewound.to);
                branch.push((recorded.seq, Deed::Kept { turn: before.turn, policy: Some(before.rules) }));
            }
            _ => branch.push((recorded.seq, Deed::Event(recorded))),
        }
    }
    told(&branch, bodies, mutation).edges
}

/// Tells a branch from its beginning.
fn told<'b>(
    branch: &[(Seq, Deed<'_>)],
    bodies: &'b dyn Fn(BodyId) -> Option<Vec<u8>>,
    mutation: Mutation,
) -> Story<'b> {
    let mut story =
        Story { bodies, mutation, rules: rules("{}"), turn: 0, calls: Vec::new(), edges: Vec::new() };
    for (seq, deed) in branch {
        match deed {
            Deed::Event(recorded) => story.happens(*seq, &recorded.event.payload),
            Deed::Kept { turn, policy } => {
                story.turn = story.turn.max(*turn);
                if let Some(policy) = policy {
                    story.rules = policy.clone();
                }
            }
        }
    }
    story
}

impl Story<'_> {
    fn happens(&mut self, seq: Seq, payload: &Payload) {
        match payload {
            Payload::PolicySet(set) => self.rules = rules(&set.policy),
            Payload::TurnStarted(started) => {
                self.turn = started.number.map_or(self.turn + 1, |number| number.max(self.turn));
                let ripe: Vec<usize> = (0..self.calls.len()).filter(|at| self.is_ripe(*at)).collect();
                for at in ripe {
                    self.becomes_ready(at, seq);
                }
            }
            Payload::ToolCallStarted(started) => {
                let params = (self.bodies)(started.params.id(seq)).unwrap_or_default();
                let params: Value = serde_json::from_slice(&params).unwrap_or_default();
                let file = params.get("filePath").and_then(Value::as_str).filter(|path| !path.is_empty());
                let is_file_tool = ["read", "write", "edit", "delete"].contains(&started.tool.as_str());
                self.calls.push(Call {
                    item: ItemId::first(seq),
                    host_id: started.call.clone(),
                    tool: started.tool.clone(),
                    file: file.filter(|_| is_file_tool).map(plain_path),
                    params: sorted(&params, is_file_tool),
                    turn: self.turn,
                    outcome: None,
                    ready: false,
                    left: false,
                    cleared: false,
                    pinned: false,
                    superseded: false,
                });
            }
            Payload::ToolCallFinished(finished) => {
                let open = |call: &Call| call.host_id == finished.call && call.outcome.is_none();
                let Some(at) = self.calls.iter().rposition(open) else { return };
                if let Some(call) = self.calls.get_mut(at) {
                    call.outcome = Some(finished.outcome);
                }
                if self.is_ripe(at) {
                    self.becomes_ready(at, seq);
                }
            }
            Payload::ContextReplaced(replaced) if self.mutation != Mutation::NoCompaction => {
                for call in &mut self.calls {
                    call.left = !replaced.order.contains(&call.item);
                }
            }
            Payload::HostCleared(cleared) => self.each(&cleared.items, |call| call.cleared = true),
            Payload::Pinned(pinned) => self.each(&pinned.items, |call| call.pinned = true),
            Payload::Unpinned(unpinned) => self.each(&unpinned.items, |call| call.pinned = false),
            Payload::Restored(restored) if self.mutation != Mutation::RestoreDoesNothing => {
                for item in &restored.items {
                    let found = self.calls.iter_mut().find(|call| call.item == *item);
                    let Some(call) = found.filter(|call| !call.left && !call.cleared) else { continue };
                    call.superseded = false;
                    for edge in self.edges.iter_mut().filter(|edge| edge.old == *item) {
                        edge.released = true;
                    }
                }
            }
            _ => {}
        }
    }

    fn each(&mut self, items: &[ItemId], change: fn(&mut Call)) {
        self.calls.iter_mut().filter(|call| items.contains(&call.item)).for_each(change);
    }

    /// Whether a call can become ready now.
    fn is_ripe(&self, at: usize) -> bool {
        self.calls.get(at).is_some_and(|call| {
            let good = call.outcome == Some(Outcome::Completed)
                || self.mutation == Mutation::FailedSupersedes && call.outcome == Some(Outcome::Failed);
            good && !call.ready && !call.left && self.turn - call.turn >= self.rules.protection_turns
        })
    }

    /// The call becomes ready: each rule looks at each earlier call.
    fn becomes_ready(&mut self, at: usize, seq: Seq) {
        let Some(new) = self.calls.get(at).cloned() else { return };
        if self.rules.automatic {
            for rule in ["hash", "file", "todo"] {
                for old in 0..self.calls.len() {
                    if self.hides(rule, old, at) {
                        let Some(call) = self.calls.get_mut(old) else { continue };
                        call.superseded = true;
                        let (old, new, turn) = (call.item, new.item, self.turn);
                        self.edges.push(NaiveEdge { old, new, rule, seq, turn, released: false });
                    }
                }
            }
        }
        if let Some(call) = self.calls.get_mut(at) {
            call.ready = true;
        }
    }

    /// Whether a rule lets call `new` hide call `old`.
    fn hides(&self, rule: &str, old_at: usize, new_at: usize) -> bool {
        let (Some(old), Some(new)) = (self.calls.get(old_at), self.calls.get(new_at)) else { return false };
        let failed = matches!(old.outcome, Some(Outcome::Failed | Outcome::Aborted));
        let in_time = if self.rules.same_turn || self.mutation == Mutation::SameTurn {
            old_at < new_at
        } else {
            old.turn < new.turn
        };
        let may_go = (old.ready || failed && self.rules.failed && rule != "todo")
            && in_time
            && !(old.superseded || old.left || old.cleared || old.pinned)
            && !self.is_protected_file(old)
            && (rule == "todo" || !self.is_protected_tool(&old.tool));
        may_go
            && match rule {
                "hash" => {
                    new.tool != "clock"
                        && old.tool.to_lowercase() == new.tool.to_lowercase()
                        && old.params == new.params
                }
                "file" => old.file.is_some() && old.file == new.file && self.clears(&new.tool, &old.tool),
                _ => {
                    self.rules.todo
                        && ["todowrite", "todoread"].contains(&new.tool.as_str())
                        && old.tool == new.tool
                }
            }
    }

    /// The file matrix: writes, edits and deletions clear reads, writes and edits.
    fn clears(&self, new: &str, old: &str) -> bool {
        let changes = ["write", "edit", "delete"].contains(&new);
        let is_mutant = self.mutation == Mutation::EditsClearNothing && new == "edit";
        changes && !is_mutant && ["read", "write", "edit"].contains(&old)
    }

    fn is_protected_file(&self, call: &Call) -> bool {
        let named = |file: &String| file.rsplit('/').next() == Some(".env");
        self.mutation != Mutation::NoProtectedFiles && call.file.as_ref().is_some_and(named)
    }

    fn is_protected_tool(&self, tool: &str) -> bool {
        self.rules.protected_tools.iter().any(|name| name == tool)
    }
}

/// A path without steps on the spot.
fn plain_path(path: &str) -> String {
    path.split('/').filter(|step| *step != ".").collect::<Vec<_>>().join("/")
}

/// Parameters with their names in order, and with plain paths if they name a file.
fn sorted(params: &Value, names_file: bool) -> String {
    let members: BTreeMap<String, Value> = params
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| match value.as_str() {
            Some(path) if names_file && name == "filePath" => (name.clone(), plain_path(path).into()),
            _ => (name.clone(), value.clone()),
        })
        .collect();
    format!("{members:?}")
}
