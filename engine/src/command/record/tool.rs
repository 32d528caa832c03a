//! Calls and todo lists: signatures, keys, labels, sizes, and the entries of lists.

use super::Recorder;
use crate::command::draft::Bodies;
use crate::command::task::TaskUpdate;
use crate::entry::fact::{ToolFinished, ToolStarted};
use crate::entry::{Bytes, StreamInfo, TodoChangeEntry};
use crate::event::{
    Key, KeyKind, PartKind, Shown, SignatureForm, TodoChange, TodoHead, TodoList, TodoUpdate, ToolCallStarted,
};
use crate::ids::Signature;
use crate::text::json::{Json, ParamPath, canonical_or_text};
use crate::text::shorten::{set_aside, shown_params};
use crate::text::signature::Label;
use crate::text::signature::mask;
use crate::text::{collapse_space, paths, tokens};

impl Recorder<'_> {
    pub(super) fn started(
        &self,
        info: &StreamInfo,
        call: &ToolStarted,
        bodies: &mut Bodies,
    ) -> ToolCallStarted {
        let ToolStarted { call, message, tool, params, provider_signature } = call;
        let (canonical, json) = canonical_or_text(params);
        // Two numbers of twenty digits stay two numbers, though hosts' hashes take them for one.
        let exact = json.as_ref().map_or_else(|| canonical.clone(), Json::canonical_exact);
        let json = json.unwrap_or(Json::Null);
        let facts = self.registry.tool(&info.host, tool, &json);
        let shown = shown_params(&json, &facts.shown);
        let line = shown.call_line(tool, "");
        let line = line.strip_suffix(" \u{2192} ").unwrap_or(&line);
        let aside = set_aside(params);
        let object = aside.as_deref().map_or(&params[..], str::as_bytes);
        let size = |text: &[u8]| u32::try_from(text.len()).unwrap_or(u32::MAX);
        let label = Label::of(tool, canonical.as_bytes());
        // Parameters that are no change of tasks are parameters of another kind, and change none.
        let tasks = facts.tasks.and_then(|update| TaskUpdate::from_json(&update).ok());
        ToolCallStarted {
            call: call.clone(),
            message: message.clone(),
            tool: tool.clone(),
            params: bodies.add(params),
            canonical_tokens: tokens::estimate(canonical.as_bytes()),
            label: self.secret.seal_label(label.bits()),
            signature: self.signer.call(tool, exact.as_bytes()),
            forms: self.forms(tool, &json, &exact, &facts.file_params),
            class: facts.class,
            keys: facts.keys.into_iter().map(|key| self.resolved(key)).collect(),
            volatile: facts.volatile,
            todo: facts.todo,
            todos: facts.todos.and_then(|list| self.todo_list(&Bytes::from(list), bodies)),
            shown: Shown {
                line_bytes: size(line.as_bytes()),
                line_tokens: tokens::estimate(line.as_bytes()),
                object_bytes: size(object),
                object_tokens: tokens::estimate(object),
            },
            registry: self.registry.version(),
            provider_signature: provider_signature.as_ref().map(|bytes| bodies.add_uncounted(bytes)),
            tasks: tasks.map(|update| update.fields(bodies)).unwrap_or_default(),
        }
    }

    /// The forms of the signature that differ from the plain one.
    fn forms(
        &self,
        tool: &str,
        json: &Json,
        canonical: &str,
        file_params: &[&'static str],
    ) -> Vec<(SignatureForm, Signature)> {
        let mut forms = Vec::new();
        let mut push = |form, text: &str, plain: &str| {
            if text != plain {
                forms.push((form, self.signer.call(tool, text.as_bytes())));
            }
        };
        let has_nulls =
            json.as_object().is_some_and(|fields| fields.iter().any(|(_, value)| value.is_null()));
        if has_nulls {
            push(SignatureForm::NoNulls, &json.canonical_without_nulls(), canonical);
        }
        if !file_params.is_empty() {
            let params: Vec<ParamPath<'_>> = file_params.iter().map(|path| ParamPath::new(path)).collect();
            let cwd = self.cwd.as_deref();
            let mut resolve = |given: &str| paths::resolve(given, cwd);
            let resolved = json.canonical_with(&params, &mut resolve);
            push(SignatureForm::Resolved, &resolved, canonical);
            if has_nulls && resolved != canonical {
                let text = json.canonical_without_nulls_with(&params, &mut resolve);
                push(SignatureForm::ResolvedNoNulls, &text, canonical);
            }
        }
        forms
    }

    /// The key as the log keeps it: paths are resolved, and free text is replaced by a mask that serves only to compare.
    pub(super) fn resolved(&self, mut key: Key) -> Key {
        match key.kind {
            KeyKind::File => {
                let resolved = paths::resolve(&key.given, self.cwd.as_deref());
                key.resolved = Some(resolved).filter(|resolved| *resolved != key.given);
            }
            KeyKind::Search | KeyKind::State | KeyKind::Check => self.mask_fields(&mut key),
            KeyKind::Url | KeyKind::Exec => key.given = self.masked(&key.given),
            KeyKind::Task => {}
        }
        key
    }

    /// Replaces all fields but the first, which names the question, and but paths of searches.
    fn mask_fields(&self, key: &mut Key) {
        let shown = (1..=key.fields.len())
            .rev()
            .find(|count| key.fields.get(..*count).is_some_and(|fields| fields.join(":") == key.given));
        for field in key.fields.iter_mut().skip(1) {
            let is_path = key.kind == KeyKind::Search && is_plain_path(field);
            if !field.is_empty() && !is_path {
                *field = self.masked(field);
            }
        }
        key.given = match shown.and_then(|count| key.fields.get(..count)) {
            Some(fields) => fields.join(":"),
            None => self.masked(&key.given),
        };
    }

    /// A status or a priority as the log keeps it: a word that hosts use for statuses and priorities, or a mask.
    fn word(&self, text: &str) -> String {
        let lower = text.to_ascii_lowercase().replace(['-', ' '], "_");
        if STATUS_WORDS.contains(&lower.as_str()) { text.to_owned() } else { self.masked(text) }
    }

    fn masked(&self, text: &str) -> String {
        mask(&self.signer.text("key", text))
    }

    pub(super) fn todo_update(
        &self,
        info: &StreamInfo,
        ended: &ToolFinished,
        bodies: &mut Bodies,
    ) -> Option<TodoUpdate> {
        if let Some(change) = &ended.todo_change {
            return Some(TodoUpdate::Change(self.todo_change(change, bodies)));
        }
        let pending = self.pending_tools.get(&ended.call).map(String::as_str);
        let tool =
            pending.or_else(|| self.ingest_state.open_call(&ended.call).map(|open| open.tool.as_str()))?;
        let text = ended.output.iter().find(|part| part.kind == PartKind::Text)?;
        let list = self.registry.todos_in_output(&info.host, tool, &text.bytes)?;
        self.todo_list(&Bytes::from(list), bodies).map(TodoUpdate::List)
    }

    pub(super) fn todo_list(&self, list: &Bytes, bodies: &mut Bodies) -> Option<TodoList> {
        let items = self.todo_heads(list)?;
        Some(TodoList { body: bodies.add_uncounted(list), items })
    }

    /// The heads of a list's entries, for the fold; `None` if the bytes are no list.
    fn todo_heads(&self, list: &[u8]) -> Option<Vec<TodoHead>> {
        // As the text above says.
        let json = Json::parse(list).ok()?;
        let entries = json.as_array()?;
        if entries.iter().any(|entry| entry.as_object().is_none()) {
            return None;
        }
        let items = entries.iter().map(|entry| TodoHead {
            id: entry.get("id").and_then(id_text),
            content: self.content_signature(entry),
            status: self.word(entry.get("status").and_then(Json::as_str).unwrap_or("pending")),
            priority: entry.get("priority").and_then(Json::as_str).map(|text| self.word(text)),
        });
        Some(items.collect())
    }

    fn content_signature(&self, entry: &Json) -> Signature {
        let content = entry.get("content").and_then(Json::as_str).unwrap_or_default();
        self.signer.text("todo", &collapse_space(content))
    }

    pub(super) fn todo_change(&self, change: &TodoChangeEntry, bodies: &mut Bodies) -> TodoChange {
        // As above.
        let json = change.entry.as_ref().and_then(|entry| Json::parse(entry).ok());
        let content = json.as_ref().filter(|json| json.get("content").is_some());
        TodoChange {
            id: change.id.clone(),
            status: change.status.as_ref().map(|text| self.word(text)),
            entry: change.entry.as_ref().map(|entry| bodies.add_uncounted(entry)),
            content: content.map(|json| self.content_signature(json)),
        }
    }
}

/// Words that hosts use for statuses and priorities of todos. Any other word is free text.
const STATUS_WORDS: &[&str] = &[
    "",
    "pending",
    "in_progress",
    "inprogress",
    "completed",
    "complete",
    "cancelled",
    "canceled",
    "blocked",
    "deleted",
    "done",
    "open",
    "closed",
    "todo",
    "doing",
    "failed",
    "skipped",
    "active",
    "not_started",
    "waiting",
    "review",
    "high",
    "medium",
    "low",
    "critical",
    "urgent",
    "normal",
    "none",
];

/// Whether a field of a search is a path and nothing else: absolute, or below a folder that it names, without white space
/// and the signs of patterns.
fn is_plain_path(field: &str) -> bool {
    let begins = ["/", "./", "../", "~/"].iter().any(|start| field.starts_with(start)) || field == ".";
    begins && !field.contains(|sign: char| sign.is_whitespace() || "*?[]{}()|^$+\\\"'<>=&;".contains(sign))
}

/// Ids of todo entries are texts or whole numbers.
fn id_text(json: &Json) -> Option<String> {
    let number = || json.as_u64().map(|number| number.to_string());
    json.as_str().map(str::to_owned).or_else(number)
}
