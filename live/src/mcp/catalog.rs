//! The tools as a model sees them: names, purposes, arguments and results.

use serde_json::{Value, json};

/// A tool's description.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolDescription {
    /// Its name.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// For the model.
    pub description: &'static str,
    /// JSON schema of the arguments.
    pub input: Value,
    /// JSON schema of the structured result.
    pub output: Value,
    /// Whether it changes nothing.
    pub is_read_only: bool,
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn input(mut properties: Value, required: &[&str]) -> Value {
    if let Some(properties) = properties.as_object_mut() {
        let session = json!({"type": "string", "description": "The session's id; default: this one"});
        properties.insert("session".to_owned(), session);
    }
    object(&properties, required)
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn strings(about: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "description": about})
}

fn act() -> Value {
    let ids = json!({"type": "array", "items": {"type": "string"}});
    object(&json!({"reply": {"type": "string"}, "hidden": ids, "shown": ids}), &["reply", "hidden", "shown"])
}

fn rows(name: &str) -> Value {
    object(&json!({name: {"type": "array", "items": {"type": "object"}}}), &[name])
}

fn held() -> Value {
    let ids = json!({"type": "array", "items": {"type": "string"}});
    object(&json!({"id": {"type": "string"}, "supersedes": ids}), &["id", "supersedes"])
}

/// All tools, in the order in which they are listed.
#[expect(clippy::too_many_lines, reason = "one tool after the other")]
pub fn tools() -> Vec<ToolDescription> {
    let target = "What: a hash such as r_a1b2c, an item such as #812, a range such as #812..#840 or r_a1b2c..e_4c5d6, or `beginning...end` of a text";
    vec![
        ToolDescription {
            name: "context_discard",
            title: "Discard from the context",
            description: "Hides results that are not needed any more. They stay in the history and can be restored.",
            input: input(json!({"targets": strings(target)}), &["targets"]),
            output: act(),
            is_read_only: false,
        },
        ToolDescription {
            name: "context_distill",
            title: "Distill into a summary",
            description: "Hides results behind a summary of what matters in them, each or a whole range. The originals can be restored.",
            input: input(
                json!({"targets": {"type": "array", "minItems": 1, "items": object(
                    &json!({"target": text(target), "summary": text("What stays in its place")}),
                    &["target", "summary"],
                )}}),
                &["targets"],
            ),
            output: act(),
            is_read_only: false,
        },
        ToolDescription {
            name: "context_restore",
            title: "Restore into the context",
            description: "Shows again what was discarded, distilled or superseded.",
            input: input(json!({"targets": strings(target)}), &["targets"]),
            output: act(),
            is_read_only: false,
        },
        ToolDescription {
            name: "recall",
            title: "Search the history",
            description: "Searches everything that was ever in this session, also what left the context, with excerpts. \
                          An id (#812, r_3d86c, a call's) gives its exact text. Words must all occur; also tool:NAME, file:PATTERN, kind:WORD, state:superseded, since:2d.",
            input: input(
                json!({"query": text("Words, a filter, or an id"),
                    "limit": {"type": "integer", "minimum": 1, "maximum": 50, "description": "Default: 10"},
                    "all_sessions": {"type": "boolean",
                        "description": "Whether to search all sessions of this project, also earlier ones"}}),
                &["query"],
            ),
            output: rows("items"),
            is_read_only: true,
        },
        ToolDescription {
            name: "history_chain",
            title: "What superseded what",
            description: "The versions of one thing, oldest first: which result superseded which, and by what rule; also of what is \
                          remembered.",
            input: input(
                json!({"item": text("An item, a hash, a call's id, or the id or key of a remembered item")}),
                &["item"],
            ),
            output: object(&json!({"chain": {"type": "object"}}), &["chain"]),
            is_read_only: true,
        },
        ToolDescription {
            name: "explain",
            title: "Why something is hidden or shown",
            description: "Why an item is, or is not, in the current context.",
            input: input(
                json!({"item": text("An item, a hash, a call's id, or a file for the newest view of it")}),
                &["item"],
            ),
            output: object(&json!({"explanation": {"type": "object"}}), &["explanation"]),
            is_read_only: true,
        },
        ToolDescription {
            name: "todo",
            title: "Open todos",
            description: "The todos of the session that are to be done still.",
            input: input(json!({}), &[]),
            output: object(
                &json!({"todos": {"type": "array", "items": {"type": "object"}}, "reminder_due": {"type": ["object", "null"]}}),
                &["todos", "reminder_due"],
            ),
            is_read_only: true,
        },
        ToolDescription {
            name: "task_update",
            title: "Start and complete tasks",
            description: "Changes tasks, merged by id. One is in progress at a time. A task is completed with a result_summary of at \
                          least 15 characters, which takes the place of the outputs of the task.",
            input: input(
                json!({"tasks": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["id"], "properties": {
                    "id": text("Its id"), "content": text("The work"),
                    "status": {"type": "string", "enum": ["pending", "in_progress", "delegated", "completed"]},
                    "acceptance_criteria": {"type": "array", "items": {"type": "string"}},
                    "result_summary": text("With completed: what was found, decided and changed"),
                }}}}),
                &["tasks"],
            ),
            output: object(&json!({"reply": {"type": "string"}}), &["reply"]),
            is_read_only: false,
        },
        ToolDescription {
            name: "tasks",
            title: "Tasks",
            description: "The tasks of the session, with the summaries of those that are completed.",
            input: input(json!({}), &[]),
            output: rows("tasks"),
            is_read_only: true,
        },
        ToolDescription {
            name: "memory_remember",
            title: "Remember",
            description: "Remembers a decision, a preference or a fact of the project for later sessions. A preference \
                          with a key takes the place of the older one with that key, a fact or decision with a subject that \
                          of the older one on it. Give replaces for anything else that no longer holds.",
            input: input(
                json!({
                    "kind": {"type": "string", "enum": ["decision", "preference", "fact", "note"]},
                    "text": text("What to remember"),
                    "key": text("For a preference: what it is about, such as style/indent"),
                    "category": text("Its category; default: by the key or the kind"),
                    "subject": text("For a fact or decision: what it is about, such as deadline"),
                    "rationale": text("For a decision: why"),
                    "replaces": strings("Remembered items whose place it takes: ids, category/key, or their texts"),
                    "lifespan": {"type": "string", "enum": ["session", "project", "permanent"],
                        "description": "Default: project"},
                }),
                &["kind", "text"],
            ),
            output: held(),
            is_read_only: false,
        },
        ToolDescription {
            name: "memory_supersede",
            title: "Say which one holds",
            description: "Says that one remembered item takes the place of another one. Both stay in the history.",
            input: input(
                json!({"old": text("What no longer holds: its id, category/key, or text"),
                    "new": text("What holds instead"), "reason": text("Why")}),
                &["old", "new"],
            ),
            output: held(),
            is_read_only: false,
        },
        ToolDescription {
            name: "memory_recall",
            title: "What is remembered",
            description: "What is remembered of the project: all that holds, or what has all these words.",
            input: input(json!({"query": text("Words; none: everything")}), &[]),
            output: rows("items"),
            is_read_only: true,
        },
        ToolDescription {
            name: "memory_forget",
            title: "Forget",
            description: "Says that something remembered no longer holds. It stays in the history.",
            input: input(
                json!({"id": text("Its id, category/key, or text"), "reason": text("Why it no longer holds")}),
                &["id"],
            ),
            output: object(&json!({"id": {"type": "string"}}), &["id"]),
            is_read_only: false,
        },
    ]
}
