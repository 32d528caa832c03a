//! Messages that the user took back: `session.revert{messageID, partID}`, and messages and parts that are gone.

use std::collections::HashSet;

use super::super::{ImportContext, PresentMessage, json};
use super::SessionReader;

/// The message that a session is reverted to, and the part, if it is reverted: they and all behind are not sent.
pub(super) struct RevertPoint(Option<(String, Option<String>)>);

impl RevertPoint {
    /// Reads the revert of a session's info.
    pub(super) fn of(info: &str) -> Self {
        let [message, part] = json::member(Some(info), "revert")
            .and_then(|revert| json::pick(revert, ["messageID", "partID"]))
            .unwrap_or_default()
            .map(json::owned);
        Self(message.map(|message| (message, part)))
    }
}

/// A message in a host's list, and the ids of its parts where they have facts of their own.
pub(in crate::import) type ListedMessage = (String, Option<Vec<String>>);

/// The name of a part: its own, else its message and place.
pub(super) fn part_id(own: Option<&str>, message: &str, place: usize) -> String {
    json::owned(own).unwrap_or_else(|| format!("{message}/{place}"))
}

/// A message in a document's list.
pub(super) fn listed(message: &str) -> Option<ListedMessage> {
    let [info, parts] = json::pick(message, ["info", "parts"])?;
    let id = json::owned(json::member(info, "id"))?;
    let parts = parts.and_then(json::elements).unwrap_or_default().into_iter().enumerate();
    let named = |(place, part): (usize, &str)| part_id(json::member(Some(part), "id"), &id, place);
    let parts = parts.map(named).collect();
    Some((id, Some(parts)))
}

impl SessionReader {
    /// Says which messages and parts the session has: those of the list, up to what it is reverted to.
    pub(in crate::import) fn present(
        &mut self,
        list: impl Iterator<Item = ListedMessage>,
        context: &mut ImportContext<'_>,
    ) {
        let list: Vec<ListedMessage> = list.collect();
        // Where a redactor put one word in place of ids, parts cannot be told apart.
        let mut ids = HashSet::new();
        let mut each = list.iter().flat_map(|(id, parts)| std::iter::once(id).chain(parts.iter().flatten()));
        let is_clear = each.all(|id| ids.insert(id));
        let mut messages = Vec::new();
        for (key, parts) in &list {
            let mut parts = parts.as_deref().filter(|_| is_clear);
            let reverted = self.undo.0.as_ref().filter(|(message, _)| message == key);
            if matches!(reverted, Some((_, None))) {
                break;
            }
            if let (Some((_, Some(part))), Some(before)) = (reverted, &mut parts)
                && let Some(place) = before.iter().position(|id| id == part)
            {
                *before = before.get(..place).unwrap_or_default();
            }
            let items = |id: &String| [format!("part:{id}"), format!("call:{id}:start")];
            let items = parts.map(|parts| parts.iter().flat_map(items).collect());
            messages.push(PresentMessage { key: key.clone(), items });
            if reverted.is_some() {
                break;
            }
        }
        if self.undo.0.is_some() {
            self.present.clone_from(&messages);
        }
        context.sink.present(&self.stream, messages);
    }

    /// Takes back what is reverted and was told just now.
    pub(in crate::import) fn revert(&self, context: &mut ImportContext<'_>) {
        if self.undo.0.is_some() {
            context.sink.present(&self.stream, self.present.clone());
        }
    }
}
