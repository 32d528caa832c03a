//! Memory items in words. The rows themselves are questions: `acpdb_query::memory`.

use acpdb_engine::fold::memory::{MemoryStatus, kind_label};
pub(crate) use acpdb_query::memory::RememberedItem;

use super::describe;
use super::lines::one_line;

/// Schema of lines that are exported and imported again.
pub(crate) const ITEM_SCHEMA: &str = "acpdb.memory_item/1";

/// A row in words.
pub(crate) trait RowWords {
    /// `tooling/package_manager`, else the category, with the subject if there is one.
    fn place(&self) -> String;
    /// The value on one line.
    fn text(&self) -> String;
    /// `current 0.80`, `superseded by p2`.
    fn stands(&self) -> String;
    fn holds(&self) -> bool;
    fn label(&self) -> &'static str;
    /// The day on which the item was recorded.
    fn day(&self) -> String;
}

impl RowWords for RememberedItem {
    fn place(&self) -> String {
        let category = one_line(&self.category);
        match (&self.key, &self.subject) {
            (Some(key), _) => format!("{category}/{}", one_line(key)),
            (None, Some(subject)) => format!("{category}: {}", one_line(subject)),
            (None, None) => category,
        }
    }

    fn text(&self) -> String {
        self.value.as_deref().map_or_else(|| "[not readable]".to_owned(), one_line)
    }

    fn stands(&self) -> String {
        match self.standing {
            MemoryStatus::Superseded => {
                let by: Vec<String> = self.superseded_by.iter().map(|id| one_line(id)).collect();
                format!("superseded by {}", by.join(", "))
            }
            MemoryStatus::Current if self.shadowed => "shadowed by another value".to_owned(),
            MemoryStatus::Current => format!("current {:.2}", self.confidence),
            MemoryStatus::OffBranch => "off the branch".to_owned(),
            standing => standing.label().to_owned(),
        }
    }

    fn holds(&self) -> bool {
        self.standing == MemoryStatus::Current && !self.shadowed
    }

    fn label(&self) -> &'static str {
        kind_label(self.kind)
    }

    fn day(&self) -> String {
        describe::shortened(&self.created, 10)
    }
}
