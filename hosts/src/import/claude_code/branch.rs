//! Several programs that go on with one session: each appends its records to the session's one file.
//!
//! ```text
//! u1 a1            two terminals have read this far
//!      a2          the first goes on                   stream S       u1 a1 a2
//!      b1          the second does: like a rewind      stream S       u1 a1 b1
//!        a3        the first goes on behind a2         stream S+2     Forked from S behind a2, a3
//!        b2                                            stream S       u1 a1 b1 b2
//!          a4                                          stream S+2     a3 a4
//! ```
//!
//! A record that hangs on a branch that was left shows that the branch was not given up: it goes on in a stream of its own, which shares
//! the history up to there. So each program has the context that it would send next, and however often they take turns, there is one
//! rewind and one stream for each branch. Where a session is named, its newest branch is meant: the one on which its host would go on.

use std::sync::Arc;

use acpdb_engine::entry::{Entry, ItemRef, PointRef, StreamInfo, fact};

use super::super::{ImportError, time};
use super::Importer;
use super::line::LineState;
use super::record::Record;
use super::started::prompt_in;

/// Most branches of a session that have a stream of their own: each is folded with all that it shares, and few programs go on with one
/// session. A record that hangs on another one is read as a rewind.
const BRANCH_COUNT_MAX: usize = 16;

impl Importer<'_, '_> {
    /// The line of a record of the session: the line of its parent, or one of its own if the parent is on a branch that was left.
    pub(super) fn line_of(
        &mut self,
        home: usize,
        record: &Record<'_>,
        end: u64,
    ) -> Result<usize, ImportError> {
        if self.is_child(home) {
            return Ok(home);
        }
        let own = record.uuid.as_deref();
        if let Some(known) = own.and_then(|uuid| self.side.get(uuid)).filter(|line| !self.is_child(**line)) {
            return Ok(*known);
        }
        let Some(parent) = record.parent.as_deref().or(record.logical_parent.as_deref()) else {
            return Ok(home);
        };
        let owner = self.side.get(parent).copied().filter(|line| !self.is_child(*line)).unwrap_or(home);
        let Some(state) = self.lines.get(owner) else { return Ok(home) };
        let left = state.left(parent).filter(|_| !own.is_some_and(|uuid| state.has_told(uuid, record)));
        let line = match left.map(|group| (group, self.branches.get(&(owner, group)).copied())) {
            Some((_, Some(branch))) => branch,
            Some((group, None)) if record.is_said() && self.branches.len() < BRANCH_COUNT_MAX => {
                self.begin_branch(owner, group, record, end)?
            }
            _ => owner,
        };
        if line != owner
            && let Some(state) = self.lines.get_mut(line)
        {
            state.hangs_on_base(parent);
        }
        if line != home
            && let Some(uuid) = own
        {
            self.side.insert(uuid.to_owned(), line);
        }
        Ok(line)
    }

    /// The line of a side record: by its agent, else by its parent record.
    pub(super) fn side_line(&mut self, home: usize, record: &Record<'_>) -> usize {
        if self.is_child(home) {
            return home;
        }
        let session = self.lines.get(home).map(|line| line.info().name.clone()).unwrap_or_default();
        let known = record.parent.as_deref().and_then(|parent| self.side.get(parent)).copied();
        let line = if let (None, Some(line)) = (record.agent, known) {
            line
        } else {
            let agent = self.agent_of(record);
            let prompt = prompt_in(record.message);
            let call = prompt.and_then(|prompt| self.prompts.get(&prompt)?.clone());
            self.open_child(&session, &agent, call, record)
        };
        if let Some(uuid) = record.uuid.as_deref() {
            self.side.insert(uuid.to_owned(), line);
        }
        line
    }

    /// Begins the stream in which the branch goes on that ends with a group of a line.
    fn begin_branch(
        &mut self,
        owner: usize,
        group: usize,
        record: &Record<'_>,
        end: u64,
    ) -> Result<usize, ImportError> {
        let Some((state, home)) = self.lines.get(owner).zip(self.home.and_then(|home| self.lines.get(home)))
        else {
            return Ok(owner);
        };
        let number = self.branches.len() + 2;
        let info = StreamInfo {
            cwd: record.cwd.as_deref().map(str::to_owned).or_else(|| home.info().cwd.clone()),
            host_time: time(record.timestamp),
            title: None,
            ..home.info().branch(number)
        };
        let at = state.end_of(group).map_or_else(|| PointRef::Before(String::new()), PointRef::After);
        let from = state.info().id();
        let origin = format!("forked:{}", info.name);
        let branch = state.branch(Arc::new(info), group, &origin);
        let line = self.lines.len();
        self.lines.push(branch);
        self.branches.insert((owner, group), line);
        let fork = Entry::from(fact::Forked { from, at }).origin(origin).at(time(record.timestamp));
        self.emit(line, vec![fork], end)?;
        Ok(line)
    }
}

impl LineState {
    /// The group of a record, if that is on a branch that was left.
    fn left(&self, uuid: &str) -> Option<usize> {
        let group = self.seen.get(uuid).copied().flatten()?;
        let depth = self.groups.get(group)?.depth;
        (self.path.get(depth) != Some(&group)).then_some(group)
    }

    /// Whether this very record was told.
    fn has_told(&self, uuid: &str, record: &Record<'_>) -> bool {
        self.contents.get(uuid).is_some_and(|known| known.contains(&record.content()))
    }

    /// Origin of the last fact of the branch that ends with a group.
    fn end_of(&self, group: usize) -> Option<String> {
        self.groups.get(group)?.after.clone()
    }

    /// A line that goes on behind a group of this one; `origin`: that of its beginning.
    fn branch(&self, info: Arc<StreamInfo>, group: usize, origin: &str) -> Self {
        let mut branch = Self::new(info);
        branch.last_origin = Some(origin.to_owned());
        let key = self.groups.get(group).map(|group| group.key.clone()).unwrap_or_default();
        branch.by_message.insert(Box::from(key.as_str()), 0);
        let base = branch.push_group(&key);
        if let Some(base) = branch.groups.get_mut(base) {
            base.recorded = true;
        }
        let calls = self.by_call.iter().filter(|(_, of)| **of == group);
        branch.by_call = calls.map(|(call, _)| (call.clone(), 0)).collect();
        // A compaction on the branch may keep messages from before it.
        let own = self.info().id();
        let shared = |item: &ItemRef| match item {
            ItemRef::Origin(origin, part) => ItemRef::Shared(own, origin.clone(), *part),
            other => other.clone(),
        };
        let of_list = |items: &Vec<ItemRef>| items.iter().map(shared).collect::<Vec<_>>();
        branch.items = self.items.iter().map(|(uuid, items)| (uuid.clone(), of_list(items))).collect();
        branch.said = self.said.iter().map(|(words, items)| (*words, of_list(items))).collect();
        branch.call_items = self.call_items.iter().map(|(call, item)| (call.clone(), shared(item))).collect();
        branch.outputs.clone_from(&self.outputs);
        branch
    }

    /// Remembers a record of the group that the line begins behind.
    fn hangs_on_base(&mut self, uuid: &str) {
        self.seen.insert(Box::from(uuid), Some(0));
    }
}
