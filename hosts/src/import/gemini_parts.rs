//! Parts of Gemini CLI's messages: thoughts, contents, results, tokens.

use acpdb_engine::entry::PartEntry;
use acpdb_engine::event::Usage;

use super::json::{count, elements, member, owned, pick};
use super::without_cached;

/// `{subject, description}` as the model writes it: a bold line, then the text.
pub(super) fn thought(thought: &str) -> Option<PartEntry> {
    let [subject, description, text] = pick(thought, ["subject", "description", "text"])?;
    let description = owned(description.or(text)).unwrap_or_default();
    match owned(subject).filter(|subject| !subject.is_empty()) {
        Some(subject) => Some(PartEntry::reasoning(format!("**{subject}**\n\n{description}"), None)),
        None if description.is_empty() => None,
        None => Some(PartEntry::reasoning(description, None)),
    }
}

/// `content` is a text, a part, or a list of both. An empty text is no part.
pub(super) fn content_parts(content: Option<&str>) -> Vec<PartEntry> {
    let Some(content) = content else { return Vec::new() };
    let pieces = elements(content).unwrap_or_else(|| vec![content]);
    pieces.into_iter().filter_map(part).collect()
}

fn part(piece: &str) -> Option<PartEntry> {
    if let Some(text) = owned(Some(piece)) {
        return (!text.is_empty()).then(|| PartEntry::text(text));
    }
    let [text, thought, inline] = pick(piece, ["text", "thought", "inlineData"]).unwrap_or_default();
    if let Some(text) = owned(text) {
        return Some(if thought == Some("true") {
            PartEntry::reasoning(text, None)
        } else {
            PartEntry::text(text)
        });
    }
    if let Some([kind, data]) = inline.and_then(|inline| pick(inline, ["mimeType", "data"]))
        && let Some(data) = owned(data)
    {
        return Some(PartEntry::media(data, owned(kind)));
    }
    Some(PartEntry::opaque(piece))
}

/// The parts of `result` that go back to the model: for a response its `output` or `error`, else the whole response.
pub(super) fn output(result: Option<&str>) -> Vec<PartEntry> {
    let Some(result) = result else { return Vec::new() };
    let pieces = elements(result).unwrap_or_else(|| vec![result]);
    let shown = |piece: &str| {
        let Some(response) = member(member(Some(piece), "functionResponse"), "response") else {
            return part(piece);
        };
        let [output, error] = pick(response, ["output", "error"]).unwrap_or_default();
        match owned(output).or_else(|| owned(error)) {
            Some(text) => Some(PartEntry::text(text)),
            None => Some(PartEntry::text(response)),
        }
    };
    pieces.into_iter().filter_map(shown).collect()
}

pub(super) fn usage(tokens: &str) -> Usage {
    let [input, output, cached, thoughts, tool] =
        pick(tokens, ["input", "output", "cached", "thoughts", "tool"]).unwrap_or_default().map(count);
    without_cached(Usage {
        // The tokens that the provider's own tools put into the prompt are not in the host's `input`.
        input: input.map(|input| input.saturating_add(tool.unwrap_or(0))),
        // The host's `output` does not include thoughts, which are paid for as output.
        output: output.map(|output| output.saturating_add(thoughts.unwrap_or(0))),
        cache_read: cached,
        reasoning: thoughts,
        ..Usage::default()
    })
}

pub(super) fn response(part: &str) -> Option<&str> {
    member(Some(part), "functionResponse")
}

/// The id by which the provider knows a call: the file may write the tool's name before it.
pub(super) fn bare<'i>(id: &'i str, tool: &str) -> &'i str {
    let own = id.strip_prefix(tool).and_then(|rest| rest.strip_prefix("__"));
    own.filter(|own| !own.is_empty() && !tool.is_empty()).unwrap_or(id)
}

/// The same of a call, or of a response, as it stands in a file.
pub(super) fn id_of_call(call: &str) -> String {
    let [id, name] = pick(call, ["id", "name"]).unwrap_or_default().map(owned);
    bare(&id.unwrap_or_default(), &name.unwrap_or_default()).to_owned()
}

/// The pieces of a result that answer this call: a list that was written anew has the responses of all calls of its message at each.
pub(super) fn own_responses<'r>(result: &'r str, call: &str) -> std::borrow::Cow<'r, str> {
    let pieces = elements(result).unwrap_or_default();
    let named: Vec<(&str, String)> =
        pieces.iter().filter_map(|piece| Some((*piece, id_of_call(response(piece)?)))).collect();
    let own: Vec<&str> = named.iter().filter(|(_, id)| id == call).map(|(piece, _)| *piece).collect();
    if own.is_empty() || own.len() == named.len() {
        return std::borrow::Cow::Borrowed(result);
    }
    std::borrow::Cow::Owned(format!("[{}]", own.join(",")))
}
