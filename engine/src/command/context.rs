//! Discard, distill, restore; pin and unpin; policy; rewind: the commands on a context, and the events that record them.
//!
//! ```text
//! (target, summary?) ..  --check all-->  Rejection, nothing recorded
//!                        --resolve---->  calls by hash, parts by pattern, items by id
//!                        --draft------>  one Discarded | Distilled | Restored (+ Pinned), and the exact reply
//! ```
//!
//! All or nothing: every check comes before the first draft, and the drafts are one commit. A target that names nothing new to
//! hide is no error; the reply counts the items that were newly hidden or shown.
//!
//! Pure. Patterns are compared with texts of messages; these come through [`TextSource`].

use std::collections::BTreeSet;

use super::draft::{Bodies, EventDraft};
use super::named::{ContextRejection, hash_of, named, shown_as};
use super::range::{self, range_ends};
use super::target::{ContextAction, Target};
use crate::event::{
    Body, Discarded, Distilled, Face, Hidden, Payload, Pinned, Restored, Rewound, Role, Unpinned,
};
use crate::fold::{CauseView, FaceState, ItemKind, Ix, State, Status};
use crate::ids::{BodyId, ItemId, Seq, Signature};
use crate::text::shorten::{first_three, preview};
use crate::text::{HashTarget, Pattern, Signer};

/// Targets of one command, at most.
pub const TARGET_COUNT_MAX: usize = 10_000;
/// Bytes of a target as typed, at most.
pub const TARGET_BYTES_MAX: usize = 64 << 10;
/// Bytes of a summary, at most.
pub const SUMMARY_BYTES_MAX: usize = 1 << 20;

/// A command on the context of a stream.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// Hide or show.
    Context {
        /// Discard, distill or restore.
        action: ContextAction,
        /// The targets, each with its summary if one is given.
        targets: Vec<(Target, Option<String>)>,
        /// After a restore: keep it from the rules until unpinned.
        pin: bool,
    },
    /// Keep items from the rules.
    Pin {
        /// The targets.
        targets: Vec<Target>,
    },
    /// Leave items to the rules again.
    Unpin {
        /// The targets.
        targets: Vec<Target>,
    },
    /// Take everything after a point off the branch.
    Rewind {
        /// The last seq that stays.
        to: Seq,
    },
}

/// The events that record an accepted command, and the reply to it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Decision {
    /// Events of the stream, one commit. May be none: nothing was newly hidden or shown.
    pub drafts: Vec<EventDraft>,
    /// The exact reply.
    pub reply: String,
    /// Calls that are newly hidden or shown, in order of their targets.
    pub calls: Vec<ItemId>,
    /// Other items that are newly hidden or shown, in order of their targets.
    pub parts: Vec<ItemId>,
}

impl Decision {
    /// One event without bodies.
    fn one(payload: impl Into<Payload>, reply: String) -> Self {
        Self { drafts: vec![EventDraft::of(payload, Bodies::default())], reply, ..Self::default() }
    }
}

/// Gives the texts of message parts.
pub trait TextSource {
    /// The text of a body; `None` if it is erased or cannot be read.
    fn text(&self, body: BodyId) -> Option<String>;
}

impl<F: Fn(BodyId) -> Option<String>> TextSource for F {
    fn text(&self, body: BodyId) -> Option<String> {
        self(body)
    }
}

/// Decides whether `command` is allowed now, and gives the events that record it.
///
/// Pure. `signer` is the stream's: its signature of a pattern finds earlier commands by that pattern. Cost: O(targets), and for
/// a pattern O(assistant texts in the context).
///
/// # Errors
/// [`ContextRejection`]; nothing is to be recorded then.
pub fn decide(
    state: &State,
    command: &Command,
    texts: &dyn TextSource,
    signer: &Signer,
) -> Result<Decision, ContextRejection> {
    match command {
        Command::Context { action, targets, pin } => {
            let asked = CommandInput { state, texts, signer, action: *action };
            asked.check(targets)?;
            match action {
                ContextAction::Restore => asked.restore(targets, *pin),
                ContextAction::Discard | ContextAction::Distill => asked.hide(targets),
            }
        }
        Command::Pin { targets } => {
            let items = named(state, targets)?;
            let reply = format!("Pinned {} item(s)", items.len());
            Ok(Decision::one(Pinned { items }, reply))
        }
        Command::Unpin { targets } => {
            let items = named(state, targets)?;
            let reply = format!("Unpinned {} item(s)", items.len());
            Ok(Decision::one(Unpinned { items }, reply))
        }
        Command::Rewind { to } => {
            if *to > state.head() {
                return Err(ContextRejection::AfterHead { to: *to, head: state.head() });
            }
            Ok(Decision::one(Rewound { to: *to }, format!("Rewound to {to}")))
        }
    }
}

/// One command, with the state, texts and signer that decide it.
struct CommandInput<'a> {
    state: &'a State,
    texts: &'a dyn TextSource,
    signer: &'a Signer,
    action: ContextAction,
}

/// The items that a command hides or shows, gathered in the order of its targets.
#[derive(Default)]
struct TargetItems {
    seen: BTreeSet<Ix>,
    calls: Vec<Ix>,
    parts: Vec<Ix>,
    hidden: Vec<Hidden>,
    bodies: Bodies,
    /// The targets as they were given, in `bodies`.
    targets: Body,
    previews: Vec<String>,
    asked_calls: bool,
    asked_parts: bool,
    matched: bool,
    /// Items of ranges, and what the reply says of each range.
    ranged: Vec<Ix>,
    range_lines: Vec<String>,
}

impl CommandInput<'_> {
    /// Checks limits and missing summaries, before any item is looked up.
    fn check(&self, targets: &[(Target, Option<String>)]) -> Result<(), ContextRejection> {
        if targets.is_empty() {
            return Err(ContextRejection::NoTargets);
        }
        let limits = |what, given: usize, max| {
            if given > max { Err(ContextRejection::TooMuch { what, given, max }) } else { Ok(()) }
        };
        limits("targets", targets.len(), TARGET_COUNT_MAX)?;
        for (target, summary) in targets {
            limits("bytes of a target", target.text().len(), TARGET_BYTES_MAX)?;
            limits("bytes of a summary", summary.as_ref().map_or(0, String::len), SUMMARY_BYTES_MAX)?;
            let blank = summary.as_deref().is_none_or(|summary| summary.trim().is_empty());
            if self.action == ContextAction::Distill && blank {
                let is_pattern = matches!(target, Target::Auto(text) | Target::Shown(text) if hash_of(self.state, text).is_none());
                let is_range = range_ends(&target.text()).is_some();
                let kind = if is_pattern && !is_range { "pattern" } else { "target" };
                return Err(ContextRejection::SummaryRequired { kind, target: target.text() });
            }
        }
        Ok(())
    }

    fn hide(&self, targets: &[(Target, Option<String>)]) -> Result<Decision, ContextRejection> {
        let mut gathered = TargetItems::default();
        gathered.targets = gathered.bodies.add_copied(typed(targets));
        for (target, summary) in targets {
            let summary = summary.as_deref().filter(|_| self.action == ContextAction::Distill);
            if let Some(range) = self.range(target)? {
                self.take_range(&mut gathered, &range, target, summary)?;
                continue;
            }
            match target {
                Target::Auto(text) | Target::Shown(text) => {
                    if let Some(hash) = hash_of(self.state, text) {
                        gathered.asked_calls = true;
                        for ix in self.live_calls(self.groups(target, &hash, text)?)? {
                            self.take(&mut gathered, ix, None, summary);
                        }
                    } else {
                        gathered.asked_parts = true;
                        self.take_pattern(&mut gathered, text, summary);
                    }
                }
                Target::Item(_) | Target::Call(_) => {
                    for item in named(self.state, std::slice::from_ref(target))? {
                        let Some(ix) = self.state.find(item) else { continue };
                        self.refuse_protected(ix)?;
                        if self.state.tool(ix).is_some() {
                            gathered.asked_calls = true;
                        } else {
                            gathered.asked_parts = true;
                            gathered.matched = true;
                        }
                        if self.can_hide(ix) {
                            self.take(&mut gathered, ix, None, summary);
                        }
                    }
                }
            }
        }
        Ok(self.hidden(gathered))
    }

    /// The items of the context that a target means as a range; `None`: it is no range.
    fn range(&self, target: &Target) -> Result<Option<Vec<Ix>>, ContextRejection> {
        let (Target::Auto(text) | Target::Shown(text)) = target else { return Ok(None) };
        let Some((first, last)) = range_ends(text) else { return Ok(None) };
        let end = |text: &str| {
            let target = text.parse().map_or_else(|_| Target::Shown(text.to_owned()), Target::Item);
            let items = named(self.state, &[target])?;
            let found = items.into_iter().find_map(|item| self.state.find(item));
            let in_context = found.filter(|ix| self.state.is_in_context(*ix, Seq::MAX));
            in_context.ok_or_else(|| ContextRejection::NotInContext { target: text.to_owned() })
        };
        Ok(range::between(self.state, end(first)?, end(last)?))
    }

    /// Hides what a range shows: the summary stands in the first place with room for it.
    fn take_range(
        &self,
        gathered: &mut TargetItems,
        range: &[Ix],
        target: &Target,
        summary: Option<&str>,
    ) -> Result<(), ContextRejection> {
        let items = range.iter().filter(|ix| !gathered.seen.contains(*ix));
        let items = items.filter_map(|ix| self.state.item(*ix, Seq::MAX));
        let mut items: Vec<_> = items.filter(|item| range::is_hideable(self.state, item)).collect();
        let mut said = format!("{} {} item(s) of {}", self.action.past(), items.len(), target.text());
        if let Some(summary) = summary.filter(|_| !items.is_empty()) {
            let place = range::place_of(&items, summary)?;
            items.get_mut(..=place).unwrap_or_default().rotate_right(1);
        }
        for (item, place) in items.iter().zip(0..) {
            let body = summary.filter(|_| place == 0).map(|summary| gathered.bodies.add_copied(summary));
            if body.is_some() {
                said = format!("{said}; the summary stands at {}", item.item);
            }
            gathered.hidden.push(Hidden { item: item.item, pattern: None, summary: body });
            gathered.seen.insert(item.ix);
            gathered.ranged.push(item.ix);
        }
        gathered.range_lines.push(said);
        Ok(())
    }

    /// Calls that a hash names, by signature.
    fn groups(
        &self,
        target: &Target,
        hash: &HashTarget,
        text: &str,
    ) -> Result<Vec<Vec<Ix>>, ContextRejection> {
        match target {
            Target::Shown(_) => shown_as(self.state, hash, text),
            _ => Ok(self.state.calls_shown_as(hash, text)),
        }
    }

    /// The newest live call of each signature.
    fn live_calls(&self, groups: Vec<Vec<Ix>>) -> Result<Vec<Ix>, ContextRejection> {
        let mut live = Vec::new();
        let (mut present, mut left) = (0_usize, 0_usize);
        for calls in groups {
            // For this branch, a call off the branch was never recorded.
            let calls: Vec<Ix> =
                calls.into_iter().filter(|ix| !self.state.is_off_branch(*ix, Seq::MAX)).collect();
            let Some(newest) = calls.last().copied() else { continue };
            if self.state.is_protected_tool(newest) {
                if self.state.had_hash(newest) {
                    self.refuse_protected(newest)?;
                }
                continue;
            }
            if calls.iter().any(|ix| self.state.is_in_context(*ix, Seq::MAX)) {
                present += 1;
            } else {
                left += 1;
            }
            live.extend(calls.into_iter().rev().find(|ix| self.can_hide(*ix) && self.state.has_hash(*ix)));
        }
        if present == 0 && left > 0 {
            return Err(ContextRejection::HasLeft);
        }
        Ok(live)
    }

    fn refuse_protected(&self, ix: Ix) -> Result<(), ContextRejection> {
        if !self.state.is_protected_tool(ix) {
            return Ok(());
        }
        let list = self.state.policy(Seq::MAX).protected_tools.patterns().join(", ");
        let tool = self.state.tool(ix).unwrap_or_default().to_string();
        Err(ContextRejection::Protected { verb: self.action.verb(), tool, list })
    }

    /// Whether a call is in the context, finished and not hidden yet.
    fn can_hide(&self, ix: Ix) -> bool {
        let finished = self.state.status(ix, Seq::MAX).is_none_or(|status| status != Status::Pending);
        let output = self.state.face(ix, Face::Output, Seq::MAX);
        let open = matches!(output.cause, None | Some(CauseView::Shortened { .. }));
        finished && open && self.state.is_in_context(ix, Seq::MAX)
    }

    fn take_pattern(&self, gathered: &mut TargetItems, text: &str, summary: Option<&str>) {
        let Some(pattern) = Pattern::parse(text) else { return };
        let signature = self.signer.text("pattern", pattern.normalised());
        for ix in self.state.current(Seq::MAX) {
            let Some(item) = self.state.item(ix, Seq::MAX) else { continue };
            if item.kind != ItemKind::Text || item.role != Role::Assistant {
                continue;
            }
            let matches = item
                .content
                .iter()
                .any(|part| self.texts.text(part.body).is_some_and(|text| pattern.is_match(&text)));
            if matches {
                gathered.matched = true;
                if self.can_hide(ix) {
                    self.take(gathered, ix, Some(signature), summary);
                }
            }
        }
    }

    fn take(&self, gathered: &mut TargetItems, ix: Ix, pattern: Option<Signature>, summary: Option<&str>) {
        if !gathered.seen.insert(ix) {
            return;
        }
        let Some(item) = self.state.item_id(ix) else { return };
        let body = summary.map(|summary| gathered.bodies.add_copied(summary));
        gathered.hidden.push(Hidden { item, pattern, summary: body });
        if self.state.tool(ix).is_some() {
            gathered.calls.push(ix);
            gathered.previews.extend(summary.map(|summary| preview(summary).into_owned()));
        } else {
            gathered.parts.push(ix);
        }
    }

    fn hidden(&self, mut gathered: TargetItems) -> Decision {
        let tools: Vec<String> =
            gathered.calls.iter().map(|ix| self.state.tool(*ix).unwrap_or_default().to_string()).collect();
        let mut lines = Vec::new();
        let distill = self.action == ContextAction::Distill;
        if gathered.asked_calls {
            let (count, verb) = (gathered.calls.len(), self.action.verb());
            lines.push(match (count, distill) {
                (0, _) => format!("No valid tool hashes to {verb}"),
                (_, false) => format!("「 🗑️ discard ✓ {count} manual 」\npruned: {}", first_three(&tools)),
                (_, true) => format!(
                    "「 🗑️ discard ✓ {count} distillation 」\npruned: {} | distilled: {}",
                    first_three(&tools),
                    first_three(&gathered.previews)
                ),
            });
        }
        if gathered.asked_parts {
            let count = gathered.parts.len();
            lines.push(match (distill, gathered.matched) {
                (true, _) => format!("Distilled {count} message(s)"),
                (false, true) => format!("Discarded {count} message(s)"),
                (false, false) => "No matching messages found".to_owned(),
            });
        }
        lines.append(&mut gathered.range_lines);
        let mut drafts = Vec::new();
        if !gathered.hidden.is_empty() {
            let (targets, bodies) = (gathered.targets, std::mem::take(&mut gathered.bodies));
            let items = std::mem::take(&mut gathered.hidden);
            drafts.push(if distill {
                EventDraft::of(Distilled { targets, items }, bodies)
            } else {
                EventDraft::of(Discarded { targets, items }, bodies)
            });
        }
        self.decision(drafts, lines.join("\n"), &gathered)
    }

    fn decision(&self, drafts: Vec<EventDraft>, reply: String, gathered: &TargetItems) -> Decision {
        let (calls, parts): (Vec<Ix>, Vec<Ix>) =
            gathered.ranged.iter().partition(|ix| self.state.tool(**ix).is_some());
        let ids = |list: &[Ix], ranged: &[Ix]| {
            list.iter().chain(ranged).filter_map(|ix| self.state.item_id(*ix)).collect()
        };
        Decision { drafts, reply, calls: ids(&gathered.calls, &calls), parts: ids(&gathered.parts, &parts) }
    }

    fn restore(&self, targets: &[(Target, Option<String>)], pin: bool) -> Result<Decision, ContextRejection> {
        let mut gathered = TargetItems::default();
        let mut pinned = Vec::new();
        for (target, _) in targets {
            if let Some(mut range) = self.range(target)? {
                range.retain(|ix| range::is_hidden_by_act(self.state, *ix) && gathered.seen.insert(*ix));
                gathered.range_lines.push(format!("Restored {} item(s) of {}", range.len(), target.text()));
                gathered.ranged.extend(range);
                continue;
            }
            let found: Vec<Ix> = match target {
                Target::Auto(text) | Target::Shown(text) => {
                    if let Some(hash) = hash_of(self.state, text) {
                        gathered.asked_calls = true;
                        let groups = self.groups(target, &hash, text)?;
                        groups
                            .into_iter()
                            .filter_map(|calls| calls.into_iter().rev().find(|ix| self.can_restore(*ix)))
                            .collect()
                    } else {
                        gathered.asked_parts = true;
                        let pattern = Pattern::parse(text);
                        let signature =
                            pattern.map(|pattern| self.signer.text("pattern", pattern.normalised()));
                        signature.map_or_else(Vec::new, |signature| {
                            let mut found = self.state.hidden_by_pattern(signature, Seq::MAX);
                            found.retain(|ix| self.can_restore(*ix));
                            found
                        })
                    }
                }
                Target::Item(_) | Target::Call(_) => {
                    let mut found: Vec<Ix> = Vec::new();
                    for item in named(self.state, std::slice::from_ref(target))? {
                        let Some(ix) = self.state.find(item) else { continue };
                        match self.state.tool(ix) {
                            Some(_) => gathered.asked_calls = true,
                            None => gathered.asked_parts = true,
                        }
                        pinned.push(item);
                        if self.can_restore(ix) {
                            found.push(ix);
                        }
                    }
                    found
                }
            };
            for ix in found {
                if gathered.seen.insert(ix) {
                    let list =
                        if self.state.tool(ix).is_some() { &mut gathered.calls } else { &mut gathered.parts };
                    list.push(ix);
                }
            }
        }
        let mut lines = Vec::new();
        if gathered.asked_calls {
            lines.push(format!("Restored {} tool(s)", gathered.calls.len()));
        }
        if gathered.asked_parts {
            lines.push(format!("Restored {} message(s)", gathered.parts.len()));
        }
        lines.append(&mut gathered.range_lines);
        let items: Vec<ItemId> = gathered.seen.iter().filter_map(|ix| self.state.item_id(*ix)).collect();
        let mut drafts = Vec::new();
        if pin {
            pinned.extend(items.iter().copied());
            pinned.sort_unstable();
            pinned.dedup();
        }
        if !items.is_empty() {
            let mut bodies = Bodies::default();
            let targets = bodies.add_copied(typed(targets));
            drafts.push(EventDraft::of(Restored { targets, items }, bodies));
        }
        if pin && !pinned.is_empty() {
            drafts.push(EventDraft::of(Pinned { items: pinned }, Bodies::default()));
        }
        Ok(self.decision(drafts, lines.join("\n"), &gathered))
    }

    /// Whether an item is hidden or shortened by a cause that a restore ends.
    fn can_restore(&self, ix: Ix) -> bool {
        self.state.is_in_context(ix, Seq::MAX)
            // The host sends its own text in place of a cleared item: neither face comes back.
            && !self.state.is_cleared(ix, Seq::MAX)
            && [Face::Input, Face::Output].into_iter().any(|face| {
                let view = self.state.face(ix, face, Seq::MAX);
                match view.cause {
                    Some(
                        CauseView::Superseded { .. }
                        | CauseView::Discarded { .. }
                        | CauseView::Distilled { .. }
                        | CauseView::Evicted { .. }
                        | CauseView::Shortened { .. },
                    ) => view.state != FaceState::Absent,
                    _ => false,
                }
            })
    }
}

/// The targets as typed, a JSON array.
fn typed(targets: &[(Target, Option<String>)]) -> Vec<u8> {
    let rows: Vec<Vec<String>> = targets
        .iter()
        .map(|(target, summary)| std::iter::once(target.text()).chain(summary.clone()).collect())
        .collect();
    serde_json::Value::from(rows).to_string().into_bytes()
}
