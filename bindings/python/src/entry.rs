//! Facts in Python's form: `Entry` and `Part`. Fields have the names of the JSON lines of `acpdb append`.

use acpdb_engine::command::memory::confidence_hundredths;
use acpdb_engine::entry::{self as engine, Bytes, Fact, MemoryEntry, PartEntry, fact};
use acpdb_engine::event::{FileChanger, Lifespan, MemoryKind, Outcome, PartKind, Role, TurnKind};
use acpdb_engine::ids::Micros;
use acpdb_hosts::import::wire;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::fault::{OrRaise as _, invalid, text_error};
use crate::value::{Given, bytes_of, json_bytes, word, wrong_type};

/// A part of a message or of an output.
#[pyclass(frozen, skip_from_py_object, module = "acpdb")]
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) part: PartEntry,
}

#[pymethods]
impl Part {
    /// A text.
    #[staticmethod]
    fn text(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::of(PartKind::Text, bytes_of("text", text)?))
    }

    /// The model's reasoning, with the provider's signature if there is one.
    #[staticmethod]
    #[pyo3(signature = (text, signature=None))]
    fn reasoning(text: &Bound<'_, PyAny>, signature: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut made = Self::of(PartKind::Reasoning, bytes_of("text", text)?);
        made.part.signature = signature.map(|bytes| bytes_of("signature", bytes)).transpose()?;
        Ok(made)
    }

    /// An image or document, as the host stored it.
    #[staticmethod]
    #[pyo3(signature = (data, media_type=None))]
    fn media(data: &Bound<'_, PyAny>, media_type: Option<Given<String>>) -> PyResult<Self> {
        let mut made = Self::of(PartKind::Media, bytes_of("data", data)?);
        made.part.media_type = media_type.map(|Given(text)| text);
        Ok(made)
    }

    /// Data that is kept and sent, and not interpreted.
    #[staticmethod]
    fn opaque(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::of(PartKind::Opaque, bytes_of("data", data)?))
    }

    fn __repr__(&self) -> String {
        format!("<acpdb.Part of {} bytes>", self.part.bytes.len())
    }
}

impl Part {
    fn of(kind: PartKind, bytes: Bytes) -> Self {
        Self { part: PartEntry { kind, bytes, media_type: None, signature: None } }
    }
}

/// One or several parts: a text, bytes, or a list of parts.
fn parts(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<PartEntry>> {
    let each = |item: Bound<'_, PyAny>| match item.cast::<Part>() {
        Ok(part) => Ok(part.get().part.clone()),
        Err(_) => Err(wrong_type(what, "str, bytes or a list of acpdb.Part", &item)),
    };
    if let Ok(list) = value.cast::<PyList>() {
        return list.iter().map(each).collect();
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return tuple.iter().map(each).collect();
    }
    if let Ok(part) = value.cast::<Part>() {
        return Ok(vec![part.get().part.clone()]);
    }
    let is_text = value.is_instance_of::<pyo3::types::PyString>();
    let bytes = bytes_of(what, value).map_err(|error| {
        if is_text { error } else { wrong_type(what, "str, bytes or a list of acpdb.Part", value) }
    })?;
    Ok(vec![PartEntry { kind: PartKind::Text, bytes, media_type: None, signature: None }])
}

/// A text argument that must be characters.
pub(crate) fn name(what: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let Ok(text) = value.cast::<pyo3::types::PyString>() else {
        return Err(wrong_type(what, "str", value));
    };
    let text = text.to_str().map_err(|error| text_error(value.py(), what, error))?;
    Ok(text.to_owned())
}

fn optional(what: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    value.map(|value| name(what, value)).transpose()
}

/// One fact, ready to be appended. Immutable; may be appended to several sessions, and by several threads.
#[pyclass(frozen, skip_from_py_object, module = "acpdb")]
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) entries: Vec<engine::Entry>,
}

impl Entry {
    fn one(entry: impl Into<engine::Entry>, origin: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut entry = entry.into();
        entry.origin = optional("origin", origin)?;
        Ok(Self { entries: vec![entry] })
    }
}

#[pymethods]
impl Entry {
    /// A message with a text, or with parts.
    ///
    /// >>> import acpdb
    /// >>> acpdb.Entry.message("user", "why is the build red?", key="m1")
    /// <acpdb.Entry message>
    /// >>> acpdb.Entry.message("assistant", [acpdb.Part.reasoning("hm", signature="c2ln"), acpdb.Part.text("It is not.")])
    /// <acpdb.Entry message>
    #[staticmethod]
    #[pyo3(signature = (role, text, *, key=None, origin=None))]
    fn message(
        role: Given<&str>,
        text: &Bound<'_, PyAny>,
        key: Option<&Bound<'_, PyAny>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let role: Role = word("role", role.0)?;
        let key = optional("key", key)?.unwrap_or_default();
        Self::one(engine::Entry::message_parts(key, role, parts("text", text)?), origin)
    }

    /// A prompt of the user begins.
    #[staticmethod]
    #[pyo3(signature = (key, *, origin=None))]
    fn prompt(key: &Bound<'_, PyAny>, origin: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        Self::one(engine::Entry::prompt(name("key", key)?), origin)
    }

    /// A step of the model begins. Without a key, each call begins a new step.
    #[staticmethod]
    #[pyo3(signature = (key=None, *, number=None, origin=None))]
    fn step(
        key: Option<&Bound<'_, PyAny>>,
        number: Option<Given<u32>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let key = optional("key", key)?.unwrap_or_default();
        Self::one(
            Fact::TurnStarted(fact::TurnStarted { kind: TurnKind::Step, key, number: number.map(|it| it.0) }),
            origin,
        )
    }

    /// A tool was called, with parameters as a dict, or as the exact JSON that the model wrote.
    ///
    /// >>> import acpdb
    /// >>> acpdb.Entry.tool_started("call_1", "read", {"filePath": "src/main.rs"})
    /// <acpdb.Entry tool_started>
    #[staticmethod]
    #[pyo3(signature = (call, tool, params, *, message=None, origin=None))]
    fn tool_started(
        call: &Bound<'_, PyAny>,
        tool: &Bound<'_, PyAny>,
        params: &Bound<'_, PyAny>,
        message: Option<&Bound<'_, PyAny>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let fact = Fact::ToolStarted(fact::ToolStarted {
            call: name("call", call)?,
            message: optional("message", message)?,
            tool: name("tool", tool)?,
            params: json_bytes("params", params)?,
            provider_signature: None,
        });
        Self::one(fact, origin)
    }

    /// A call ended: with an output, or with an error.
    ///
    /// >>> import acpdb
    /// >>> acpdb.Entry.tool_finished("call_1", error="no such file")
    /// <acpdb.Entry tool_finished>
    #[staticmethod]
    #[pyo3(signature = (call, output=None, *, error=None, outcome=None, details=None, origin=None))]
    fn tool_finished(
        call: &Bound<'_, PyAny>,
        output: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
        outcome: Option<Given<&str>>,
        details: Option<&Bound<'_, PyAny>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let said = match (output, error) {
            (Some(_), Some(_)) => return Err(invalid("a call ends with output or error, not with both")),
            (Some(output), None) => parts("output", output)?,
            (None, Some(error)) => parts("error", error)?,
            (None, None) => vec![PartEntry::text("")],
        };
        let outcome = match outcome {
            Some(outcome) => word::<Outcome>("outcome", outcome.0)?,
            None if error.is_some() => Outcome::Failed,
            None => Outcome::Completed,
        };
        let details = details.map(|details| json_bytes("details", details)).transpose()?;
        let call = name("call", call)?;
        Self::one(
            Fact::ToolFinished(fact::ToolFinished {
                call,
                outcome,
                output: said,
                details,
                todo_change: None,
            }),
            origin,
        )
    }

    /// The session's todo list, whole: a list of dicts with `content` and `status`.
    #[staticmethod]
    #[pyo3(signature = (items, *, origin=None))]
    fn todos(items: &Bound<'_, PyAny>, origin: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let list = json_bytes("items", items)?;
        let is_list = serde_json::from_slice::<Vec<serde_json::Map<String, serde_json::Value>>>(&list);
        is_list.map_err(|_| invalid("items is a list of dicts, one a todo"))?;
        Self::one(Fact::TodosReplaced(fact::TodosReplaced { list }), origin)
    }

    /// A fact, preference, decision or note that outlives this message.
    #[staticmethod]
    #[pyo3(signature = (value, *, kind=Given("fact"), id=Given(""), category=Given(""), key=None, subject=None, rationale=None,
        alternatives=Given(Vec::new()), related_files=Given(Vec::new()), confidence=0.8, lifespan=None, replaces=Given(Vec::new()), origin=None),
        text_signature = "(value, *, kind=\"fact\", id=\"\", category=\"\", key=None, subject=None, rationale=None, alternatives=[], related_files=[], confidence=0.8, lifespan=None, replaces=[], origin=None)")]
    #[expect(clippy::too_many_arguments, reason = "each has a name and a default")]
    fn memory(
        value: &Bound<'_, PyAny>,
        kind: Given<&str>,
        id: Given<&str>,
        category: Given<&str>,
        key: Option<Given<String>>,
        subject: Option<Given<String>>,
        rationale: Option<Given<String>>,
        alternatives: Given<Vec<String>>,
        related_files: Given<Vec<String>>,
        confidence: f64,
        lifespan: Option<Given<&str>>,
        replaces: Given<Vec<String>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let entry = MemoryEntry {
            id: id.0.to_owned(),
            kind: word::<MemoryKind>("kind", kind.0)?,
            category: category.0.to_owned(),
            key: key.map(|it| it.0),
            subject: subject.map(|it| it.0),
            value: name("value", value)?,
            rationale: rationale.map(|it| it.0),
            alternatives: alternatives.0,
            related_files: related_files.0,
            confidence: confidence_hundredths(confidence).map_err(|error| invalid(error.to_string()))?,
            lifespan: lifespan.map(|it| word::<Lifespan>("lifespan", it.0)).transpose()?,
            replaces: replaces.0,
            ..MemoryEntry::default()
        };
        let entry = acpdb_bindings::stores::checked(entry).or_raise()?;
        Self::one(Fact::Memory(entry), origin)
    }

    /// A file was changed by no call.
    #[staticmethod]
    #[pyo3(signature = (path, *, by=None, origin=None))]
    fn file_changed(
        path: &Bound<'_, PyAny>,
        by: Option<Given<&str>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let by = by.map(|by| word::<FileChanger>("by", by.0)).transpose()?.unwrap_or_default();
        Self::one(Fact::FileChanged(fact::FileChanged { path: name("path", path)?, by }), origin)
    }

    /// System prompt, tools and model of later requests.
    #[staticmethod]
    #[pyo3(signature = (*, system=None, tools=None, model=None, params=None, origin=None))]
    fn request(
        system: Option<&Bound<'_, PyAny>>,
        tools: Option<&Bound<'_, PyAny>>,
        model: Option<Given<String>>,
        params: Option<&Bound<'_, PyAny>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let fact = Fact::PromptSet(fact::PromptSet {
            system: system.map(|system| bytes_of("system", system)).transpose()?,
            tools: tools.map(|tools| json_bytes("tools", tools)).transpose()?,
            model: model.map(|it| it.0),
            params: params.map(|params| json_bytes("params", params)).transpose()?,
        });
        Self::one(fact, origin)
    }

    /// Another record of the host, kept as it is: `record` names its kind.
    #[staticmethod]
    #[pyo3(signature = (record, raw=None, *, about=None, origin=None))]
    fn host_record(
        record: &Bound<'_, PyAny>,
        raw: Option<&Bound<'_, PyAny>>,
        about: Option<&Bound<'_, PyAny>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let fact = Fact::HostRecorded(fact::HostRecorded {
            record: name("record", record)?,
            about: optional("about", about)?,
            raw: raw.map(|raw| bytes_of("raw", raw)).transpose()?,
        });
        Self::one(fact, origin)
    }

    /// This fact, with the host's raw record from which it was made: `Session.records` gives the record back byte for byte.
    ///
    /// Long texts that the record and the fact share are stored once.
    ///
    /// >>> import acpdb, tempfile
    /// >>> with acpdb.open(tempfile.mkdtemp()) as store:
    /// ...     session = store.session("s1")
    /// ...     entry = acpdb.Entry.message("user", "hello").of_record('{"role": "user", "content": "hello"}')
    /// ...     _ = session.append(entry)
    /// ...     [record for _, record in session.records()]
    /// [b'{"role": "user", "content": "hello"}']
    fn of_record(&self, raw: &Bound<'_, PyAny>) -> PyResult<Self> {
        let raw = json_bytes("raw", raw)?;
        let mut made = self.clone();
        let bodies = wire::bodies(&made.entries);
        if let Some(first) = made.entries.first_mut() {
            first.wire = wire::build(&raw, &bodies);
        }
        Ok(made)
    }

    /// This fact, with a time by the host's clock: microseconds since 1970.
    fn at_time(&self, micros: Given<i64>) -> Self {
        let mut made = self.clone();
        for entry in &mut made.entries {
            entry.host_time = Some(Micros(micros.0));
        }
        made
    }

    fn __repr__(&self) -> String {
        let kind = self.entries.first().map(|entry| match &entry.fact {
            Fact::MessageRecorded(_) => "message",
            Fact::TurnStarted(fact::TurnStarted { kind: TurnKind::Prompt, .. }) => "prompt",
            Fact::TurnStarted(_) => "step",
            Fact::ToolStarted(_) => "tool_started",
            Fact::ToolFinished(_) => "tool_finished",
            Fact::TodosReplaced(_) => "todos",
            Fact::Memory(_) => "memory",
            Fact::FileChanged(_) => "file_changed",
            Fact::PromptSet(_) => "request",
            _ => "host_record",
        });
        format!("<acpdb.Entry {}>", kind.unwrap_or_default())
    }
}

/// The facts of a tuple or list of entries.
pub(crate) fn entries(given: &Bound<'_, PyAny>) -> PyResult<Vec<engine::Entry>> {
    let mut all = Vec::new();
    for item in given.try_iter()? {
        let item = item?;
        let Ok(entry) = item.cast::<Entry>() else {
            let what = if item.is_instance_of::<PyList>() {
                "each argument (spread a list: append(*entries))"
            } else {
                "what is appended"
            };
            return Err(wrong_type(what, "an acpdb.Entry", &item));
        };
        all.extend(entry.get().entries.iter().cloned());
    }
    Ok(all)
}
