//! Facts in the form that a package describes: a short JSON of names and numbers, beside the texts themselves.
//!
//! ```text
//! [{"fact": "message", "role": "user", "parts": [{"kind": "text", "body": 0}]}]  +  [b"why is the build red?"]
//! ```
//!
//! Texts cross the border as they are: nothing is escaped, and each is copied once.

use acpdb_engine::command::memory::confidence_hundredths;
use acpdb_engine::entry::{Bytes, Entry, Fact, MemoryEntry, PartEntry, fact};
use acpdb_engine::event::{FileChanger, Lifespan, MemoryKind, Outcome, PartKind, Role, TurnKind};
use acpdb_engine::ids::Micros;
use acpdb_hosts::import::wire;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::fault::{Fault, word};
use crate::stores::checked;

/// Place of a text among the texts of a call.
type Place = usize;

/// A part of a message or of an output.
#[derive(Clone, Debug, Deserialize)]
struct Part {
    kind: PartKind,
    body: Place,
    signature: Option<Place>,
    media_type: Option<String>,
}

/// One fact by its parts.
#[derive(Clone, Debug, Deserialize)]
pub struct Described {
    #[serde(flatten)]
    kind: Kind,
    origin: Option<String>,
    time: Option<i64>,
    /// The host's raw record.
    wire: Option<Place>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
enum Kind {
    Message {
        role: String,
        key: Option<String>,
        parts: Vec<Part>,
    },
    Prompt {
        key: String,
    },
    Step {
        key: Option<String>,
        number: Option<u32>,
    },
    ToolStarted {
        call: String,
        tool: String,
        params: Place,
        message: Option<String>,
    },
    ToolFinished {
        call: String,
        output: Option<Vec<Part>>,
        error: Option<Vec<Part>>,
        outcome: Option<String>,
        details: Option<Place>,
    },
    Todos {
        items: Place,
    },
    Memory(Box<Remembered>),
    FileChanged {
        path: String,
        by: Option<String>,
    },
    Request {
        system: Option<Place>,
        tools: Option<Place>,
        model: Option<String>,
        params: Option<Place>,
    },
    HostRecord {
        record: String,
        raw: Option<Place>,
        about: Option<String>,
    },
}

#[derive(Clone, Debug, Deserialize)]
struct Remembered {
    value: String,
    kind: String,
    id: String,
    category: String,
    key: Option<String>,
    subject: Option<String>,
    rationale: Option<String>,
    alternatives: Vec<String>,
    related_files: Vec<String>,
    confidence: f64,
    lifespan: Option<String>,
    replaces: Vec<String>,
}

/// The texts of a call.
struct Texts<'a>(&'a [Bytes]);

impl Texts<'_> {
    fn at(&self, place: Place) -> Result<Bytes, Fault> {
        let found = self.0.get(place).cloned();
        found.ok_or_else(|| Fault::new("error", format!("there is no text {place} beside this fact")))
    }

    fn json(&self, what: &str, place: Place) -> Result<Bytes, Fault> {
        let bytes = self.at(place)?;
        serde_json::from_slice::<&serde_json::value::RawValue>(&bytes).map_err(|error| {
            Fault::invalid(format!("{what} is no JSON: {error}; give an object to have it written as JSON"))
        })?;
        Ok(bytes)
    }

    fn parts(&self, parts: &[Part]) -> Result<Vec<PartEntry>, Fault> {
        let each = parts.iter().map(|part| {
            Ok(PartEntry {
                kind: part.kind,
                bytes: self.at(part.body)?,
                media_type: part.media_type.clone(),
                signature: part.signature.map(|place| self.at(place)).transpose()?,
            })
        });
        each.collect()
    }
}

/// The facts that `described` describes, with their texts.
pub fn entries(described: &[Described], texts: &[Bytes]) -> Result<Vec<Entry>, Fault> {
    described.iter().map(|one| one.entry(&Texts(texts))).collect()
}

impl Described {
    fn entry(&self, texts: &Texts<'_>) -> Result<Entry, Fault> {
        let mut entry = self.kind.entry(texts)?;
        entry.origin.clone_from(&self.origin);
        entry.host_time = self.time.map(Micros);
        if let Some(place) = self.wire {
            let raw = texts.json("raw", place)?;
            let bodies = wire::bodies(std::slice::from_ref(&entry));
            entry.wire = wire::build(&raw, &bodies);
        }
        Ok(entry)
    }
}

impl Kind {
    fn entry(&self, texts: &Texts<'_>) -> Result<Entry, Fault> {
        let json = |what: &str, place: &Option<Place>| place.map(|place| texts.json(what, place)).transpose();
        Ok(match self {
            Self::Message { role, key, parts } => {
                let role: Role = word("role", role)?;
                Entry::message_parts(key.clone().unwrap_or_default(), role, texts.parts(parts)?)
            }
            Self::Prompt { key } => Entry::prompt(key.clone()),
            Self::Step { key, number } => {
                let key = key.clone().unwrap_or_default();
                fact::TurnStarted { kind: TurnKind::Step, key, number: *number }.into()
            }
            Self::ToolStarted { call, tool, params, message } => fact::ToolStarted {
                call: call.clone(),
                message: message.clone(),
                tool: tool.clone(),
                params: texts.json("params", *params)?,
                provider_signature: None,
            }
            .into(),
            Self::ToolFinished { call, output, error, outcome, details } => {
                let said = match (output, error) {
                    (Some(_), Some(_)) => {
                        return Err(Fault::invalid("a call ends with output or error, not with both"));
                    }
                    (Some(said), None) | (None, Some(said)) => texts.parts(said)?,
                    (None, None) => vec![PartEntry::text("")],
                };
                let outcome = match outcome {
                    Some(outcome) => word::<Outcome>("outcome", outcome)?,
                    None if error.is_some() => Outcome::Failed,
                    None => Outcome::Completed,
                };
                let details = json("details", details)?;
                fact::ToolFinished { call: call.clone(), outcome, output: said, details, todo_change: None }
                    .into()
            }
            Self::Todos { items } => {
                let list = texts.json("items", *items)?;
                serde_json::from_slice::<Vec<Map<String, Value>>>(&list)
                    .map_err(|_| Fault::invalid("items is a list of objects, one a todo"))?;
                fact::TodosReplaced { list }.into()
            }
            Self::Memory(it) => Fact::Memory(it.entry()?).into(),
            Self::FileChanged { path, by } => {
                let by = by.as_deref().map(|by| word::<FileChanger>("by", by)).transpose()?;
                fact::FileChanged { path: path.clone(), by: by.unwrap_or_default() }.into()
            }
            Self::Request { system, tools, model, params } => fact::PromptSet {
                system: system.map(|place| texts.at(place)).transpose()?,
                tools: json("tools", tools)?,
                model: model.clone(),
                params: json("params", params)?,
            }
            .into(),
            Self::HostRecord { record, raw, about } => fact::HostRecorded {
                record: record.clone(),
                about: about.clone(),
                raw: raw.map(|place| texts.at(place)).transpose()?,
            }
            .into(),
        })
    }
}

impl Remembered {
    fn entry(&self) -> Result<MemoryEntry, Fault> {
        let lifespan = self.lifespan.as_deref();
        checked(MemoryEntry {
            id: self.id.clone(),
            kind: word::<MemoryKind>("kind", &self.kind)?,
            category: self.category.clone(),
            key: self.key.clone(),
            subject: self.subject.clone(),
            value: self.value.clone(),
            rationale: self.rationale.clone(),
            alternatives: self.alternatives.clone(),
            related_files: self.related_files.clone(),
            confidence: confidence_hundredths(self.confidence)
                .map_err(|error| Fault::invalid(error.to_string()))?,
            lifespan: lifespan.map(|text| word::<Lifespan>("lifespan", text)).transpose()?,
            replaces: self.replaces.clone(),
            ..MemoryEntry::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str, texts: &[&str]) -> Result<Vec<Entry>, Fault> {
        let described: Vec<Described> =
            serde_json::from_str(json).map_err(|error| Fault::invalid(error.to_string()))?;
        let texts: Vec<Bytes> = texts.iter().map(|text| Bytes::from(text.as_bytes())).collect();
        entries(&described, &texts)
    }

    #[test]
    fn a_description_and_its_texts_become_facts() {
        let json = r#"[{"fact": "message", "role": "user", "parts": [{"kind": "text", "body": 0}], "origin": "o1"},
            {"fact": "tool_finished", "call": "c1", "error": [{"kind": "text", "body": 1}]}]"#;
        let made = read(json, &["hello", "no such file"]).unwrap_or_default();
        let mut message = Entry::message("", Role::User, "hello");
        message.origin = Some("o1".to_owned());
        assert_eq!(made.first(), Some(&message));
        assert!(matches!(
            made.get(1).map(|entry| &entry.fact),
            Some(Fact::ToolFinished(fact::ToolFinished { outcome: Outcome::Failed, .. }))
        ));
    }

    #[test]
    fn values_that_cannot_be_recorded_are_refused_with_what_to_give() {
        let memory = |value: &str, kind: &str, confidence: &str| {
            format!(
                r#"[{{"fact": "memory", "value": "{value}", "kind": "{kind}", "id": "", "category": "",
                "alternatives": [], "related_files": [], "confidence": {confidence}, "replaces": []}}]"#
            )
        };
        let table = [
            (
                r#"[{"fact": "message", "role": "usr", "parts": []}]"#.to_owned(),
                "role: unknown variant `usr`",
            ),
            (r#"[{"fact": "todos", "items": 0}]"#.to_owned(), "items is a list of objects"),
            (
                r#"[{"fact": "tool_started", "call": "c", "tool": "t", "params": 1}]"#.to_owned(),
                "params is no JSON",
            ),
            (r#"[{"fact": "host_record", "record": "r", "raw": 9}]"#.to_owned(), "there is no text 9"),
            (
                r#"[{"fact": "tool_finished", "call": "c", "output": [], "error": []}]"#.to_owned(),
                "not with both",
            ),
            (memory("", "fact", "0.5"), "there is nothing to remember"),
            (memory("v", "preference", "0.5"), "a preference needs key"),
            (memory("v", "fact", "7"), "confidence"),
        ];
        for (json, says) in table {
            let refused = read(&json, &["{}", "{"]).err().map(|fault| fault.text).unwrap_or_default();
            assert!(refused.contains(says), "{json}: {refused}");
        }
    }
}
