//! The proposals of a session's messages, and the commands that record them.

use std::collections::BTreeSet;

use acpdb_engine::event::MemoryKind;
use acpdb_engine::fold::memory::MemoryView;
use acpdb_engine::fold::{CauseView, ItemKind, Ix, State};
use acpdb_engine::ids::{BodyId, ItemId, Seq, StreamId};
use acpdb_engine::{Error, MemoryCommand, MemoryScope, Role, Store, View};

use super::{Proposal, propose};

/// A proposal of a message of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionProposal {
    /// The part that holds the words.
    pub source: ItemId,
    /// The role of the speaker.
    pub role: Role,
    /// The proposal itself.
    pub proposal: Proposal,
}

/// The proposals of a session's messages, given the memory of now; in order of the messages. A proposal that was recorded from the
/// same place before is left out.
///
/// Cost: reads every text of the session.
///
/// # Errors
/// [`Error::NotFound`] for an unknown session.
pub fn of_session(store: &Store, session: StreamId) -> Result<Vec<SessionProposal>, Error> {
    let view = store.view(session)?;
    let memory = store.memory(&MemoryScope::session(session), Seq::MAX)?;
    let texts = texts(&view);
    memory.read(store.now(), |remembered| {
        let sources: BTreeSet<_> = remembered
            .all()
            .iter()
            .filter_map(|(_, item)| item.facts().record.source)
            .map(|source| (source.item, source.start, source.end))
            .collect();
        let mut all = Vec::new();
        for (source, role, bodies) in texts {
            let proposals = propose(role, &joined(&view, &bodies)?, remembered).into_iter();
            all.extend(
                proposals
                    .filter(|it| !sources.contains(&(source, place(it.start), place(it.end))))
                    .map(|proposal| SessionProposal { source, role, proposal }),
            );
        }
        Ok(all)
    })
}

/// The command that accepts a proposal of a session, as memory is now: proposals that were accepted since it was found may have
/// changed the items that it supersedes.
///
/// Cost: reads the text that holds the proposal.
///
/// # Errors
/// [`Error::NotFound`] for an unknown session.
pub fn acceptance(
    store: &Store,
    session: StreamId,
    chosen: &SessionProposal,
) -> Result<MemoryCommand, Error> {
    let SessionProposal { source, role, proposal } = chosen;
    let view = store.view(session)?;
    let said = {
        let state = view.state();
        state.find(*source).and_then(|ix| said(state, ix, view.at()))
    };
    // A source that is not among the texts has no proposals.
    let text = said.map(|(_, _, bodies)| joined(&view, &bodies)).transpose()?.unwrap_or_default();
    let memory = store.memory(&MemoryScope::session(session), Seq::MAX)?;
    let is_same =
        |it: &&Proposal| (it.rule, it.start, it.end) == (proposal.rule, proposal.start, proposal.end);
    let command = |remembered: &MemoryView<'_>| {
        let fresh = propose(*role, &text, remembered);
        command(fresh.iter().find(is_same).unwrap_or(proposal), Some(*source))
    };
    Ok(memory.read(store.now(), command))
}

/// The command that accepts a proposal; `source` is the item that holds the text.
#[must_use]
pub fn command(proposal: &Proposal, source: Option<ItemId>) -> MemoryCommand {
    if let Some(known) = &proposal.reinforces {
        return MemoryCommand::Reinforce { item: acpdb_engine::command::memory::MemoryRef::Item(known.item) };
    }
    let mut item = proposal.item.clone();
    item.source = source.map(|source| (source, place(proposal.start), place(proposal.end)));
    // A preference takes the place of the one with its key by that rule; other items must name the items that they replace.
    if item.kind != MemoryKind::Preference {
        item.replaces = proposal.supersedes.iter().map(|known| known.item.to_string()).collect();
    }
    MemoryCommand::Add(item)
}

/// A place in a text as it is recorded. Texts are looked at up to [`TEXT_BYTES_MAX`](super::TEXT_BYTES_MAX).
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// A text: its item, the speaker's role, its bodies.
type Said = (ItemId, Role, Vec<BodyId>);

/// The texts of a session's users and assistants on the active branch, in order.
fn texts(view: &View) -> Vec<Said> {
    let state = view.state();
    state.items(view.at()).filter_map(|ix| said(state, ix, view.at())).collect()
}

/// The text of an item, if a user or an assistant said it on the active branch.
fn said(state: &State, ix: Ix, at: Seq) -> Option<Said> {
    let item = state.item(ix, at)?;
    let is_said = item.kind == ItemKind::Text && matches!(item.role, Role::User | Role::Assistant);
    let is_gone = matches!(
        item.output.cause,
        Some(CauseView::OffBranch { .. } | CauseView::Erased { .. } | CauseView::Lost { .. })
    );
    (is_said && !is_gone).then(|| (item.item, item.role, item.content.iter().map(|part| part.body).collect()))
}

fn joined(view: &View, bodies: &[BodyId]) -> Result<String, Error> {
    let mut text = String::new();
    for body in bodies {
        match view.body(*body) {
            Ok(bytes) => text.push_str(&String::from_utf8_lossy(&bytes)),
            // An erased text suggests nothing any more.
            Err(Error::Erased { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
