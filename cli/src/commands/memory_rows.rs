//! Memory items as rows: one value, rendered for people and for programs.

use acpdb_engine::event::{Lifespan, MemoryKind};
use acpdb_engine::fold::memory::{MemoryEdge, MemoryItem, MemoryView, Standing, kind_label};
use acpdb_engine::ids::{BodyId, ItemId, Micros, StreamId};
use serde::Serialize;
use serde_json::Value;

use super::describe;
use super::lines::one_line;

/// Schema of lines that are exported and imported again.
pub(crate) const ITEM_SCHEMA: &str = "acpdb.memory_item/1";

/// One item with its texts.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) id: String,
    #[serde(serialize_with = "shown")]
    pub(crate) item: ItemId,
    pub(crate) stream: StreamId,
    pub(crate) kind: MemoryKind,
    pub(crate) category: String,
    pub(crate) key: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) value: Option<String>,
    pub(crate) rationale: Option<String>,
    pub(crate) alternatives: Vec<String>,
    pub(crate) related_files: Vec<String>,
    /// After decay.
    pub(crate) confidence: f64,
    /// Before decay.
    pub(crate) confirmed: f64,
    pub(crate) lifespan: Lifespan,
    pub(crate) created: String,
    pub(crate) reinforced: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) standing: Standing,
    /// Another preference of the same key holds instead, though no edge says so.
    pub(crate) shadowed: bool,
    pub(crate) superseded_by: Vec<String>,
    pub(crate) supersedes: Vec<String>,
    /// As its own record says.
    pub(crate) status: Option<String>,
    /// Whatever else its record said.
    pub(crate) extra: Option<Value>,
}

impl Row {
    pub(crate) fn new(
        view: &MemoryView<'_>,
        stream: StreamId,
        item: &MemoryItem<'_>,
        texts: &Texts<'_>,
    ) -> Self {
        let record = &item.facts().record;
        let body = |body: acpdb_engine::event::Body| texts(item.body(body));
        let (mut superseded_by, mut supersedes) = (Vec::new(), Vec::new());
        if let Some((_, memory)) = view.stream(stream) {
            let by = memory.superseded_by(item).into_iter().filter(MemoryEdge::hides);
            superseded_by.extend(by.map(|edge| edge.new));
            let of = memory.supersedes(item).into_iter().filter(MemoryEdge::hides);
            supersedes.extend(of.map(|edge| edge.old));
        }
        Self {
            id: item.id().to_owned(),
            item: item.item(),
            stream,
            kind: item.kind(),
            category: item.category().to_owned(),
            key: record.key.clone().map(Into::into),
            subject: record.subject.clone().map(Into::into),
            value: view.text(item),
            rationale: record.rationale.and_then(body),
            alternatives: record.alternatives.iter().filter_map(|text| body(*text)).collect(),
            related_files: record.related_files.iter().map(ToString::to_string).collect(),
            confidence: item.confidence(view.now()).as_f64(),
            confirmed: item.confirmed().as_f64(),
            lifespan: item.lifespan(),
            created: precise(item.facts().created),
            reinforced: item.reinforced().map(precise),
            source: record.source.map(|source| source.item.to_string()),
            standing: item.standing(view.now()),
            shadowed: view.is_shadowed(item),
            superseded_by,
            supersedes,
            status: record.status.clone().map(Into::into),
            extra: record.extra.and_then(body).and_then(|text| serde_json::from_str(&text).ok()),
        }
    }

    /// `tooling/package_manager`, else the category, with the subject if there is one.
    pub(crate) fn place(&self) -> String {
        let category = one_line(&self.category);
        match (&self.key, &self.subject) {
            (Some(key), _) => format!("{category}/{}", one_line(key)),
            (None, Some(subject)) => format!("{category}: {}", one_line(subject)),
            (None, None) => category,
        }
    }

    /// The value on one line.
    pub(crate) fn text(&self) -> String {
        self.value.as_deref().map_or_else(|| "[erased]".to_owned(), one_line)
    }

    /// `current 0.80`, `superseded by p2`.
    pub(crate) fn stands(&self) -> String {
        match self.standing {
            Standing::Superseded => {
                let by: Vec<String> = self.superseded_by.iter().map(|id| one_line(id)).collect();
                format!("superseded by {}", by.join(", "))
            }
            Standing::Current if self.shadowed => "shadowed by another value".to_owned(),
            Standing::Current => format!("current {:.2}", self.confidence),
            Standing::OffBranch => "off the branch".to_owned(),
            standing => standing.label().to_owned(),
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.standing == Standing::Current && !self.shadowed
    }

    pub(crate) fn label(&self) -> &'static str {
        kind_label(self.kind)
    }

    /// The day it came about.
    pub(crate) fn day(&self) -> &str {
        self.created.get(..10).unwrap_or(&self.created)
    }
}

/// An id as people and programs name it.
fn shown<S: serde::Serializer>(item: &ItemId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(item)
}

/// Reads texts other than values.
pub(crate) type Texts<'a> = dyn Fn(BodyId) -> Option<String> + 'a;

/// A time as RFC 3339 with its fraction, so that an export loses nothing.
fn precise(micros: Micros) -> String {
    let time = jiff::Timestamp::from_microsecond(micros.get());
    time.map_or_else(|_| describe::time(micros), |time| time.to_string())
}
