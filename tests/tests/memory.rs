//! Memory from end to end: which sessions see which values and for how long, and memory files of real projects.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

mod memory {
    mod files;
    mod scopes;

    use acpdb_engine::fold::memory::MemoryView;
    use acpdb_engine::ids::{Micros, Seq};
    use acpdb_engine::{MemoryScope, Store};

    /// Reads the memory of a scope, as of a seq and now.
    fn read<T>(store: &Store, scope: &MemoryScope, at: Seq, read: impl FnOnce(&MemoryView<'_>) -> T) -> T {
        let now: Micros = store.now();
        store.memory(scope, at).unwrap().read(now, read)
    }

    /// The values that hold, each with its id, in the order of recording.
    fn current(store: &Store, scope: &MemoryScope, at: Seq) -> Vec<String> {
        read(store, scope, at, |view| {
            let items = view.current().into_iter();
            items.map(|(_, item)| format!("{} {}", item.id(), view.text(&item).unwrap())).collect()
        })
    }
}
