//! Damaged texts that an answer leaves out.
//!
//! The store steps over damage, takes note of it and goes on. An answer without a word of that would look whole, so damage is
//! told at each door of a running agent: in the journal of hooks and plug-ins, and in the text that a tool gives.

use acpdb_engine::Store;

/// The damage that this handle has met, as a sentence; `None` if it met none.
pub(crate) fn met(store: &Store) -> Option<String> {
    let damage = store.damage_met();
    let first = damage.first()?;
    let more = match damage.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    Some(format!(
        "left out: {first}{more}; what is shown is sound, and not all there was: acpdb verify tells more"
    ))
}
