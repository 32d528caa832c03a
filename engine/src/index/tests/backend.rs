//! Ops that are held back read as if they were written, leave no trace if they are dropped, and are done whole for a durable commit.

use std::fs;
use std::sync::Arc;

use proptest::prelude::*;
use redb::StorageBackend as _;

use super::sample::{frames, open, rows, steady, storage};
use crate::index::backend::Backend;
use crate::index::{IndexDurability, IndexOptions};
use crate::storage::{Access, Storage};

fn backend(storage: &Arc<dyn Storage>) -> Backend {
    Backend::new(storage.open("file", Access::Create).unwrap()).unwrap()
}

fn write(model: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    model.resize(model.len().max(offset + bytes.len()), 0);
    model[offset..offset + bytes.len()].copy_from_slice(bytes);
}

proptest! {
    #[test]
    fn held_back_or_let_through_it_reads_the_same(
        before in prop::collection::vec(any::<u8>(), 0..300),
        ops in prop::collection::vec((0_u8..4, 0_usize..400, prop::collection::vec(any::<u8>(), 1..60)), 0..30),
        through_at in 0_usize..40,
    ) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), &before).unwrap();
        let files = storage(folder.path());
        let backend = backend(&files);
        let mut model = before.clone();
        for (number, (kind, offset, bytes)) in ops.iter().enumerate() {
            if number == through_at {
                backend.let_through().unwrap();
            }
            match kind {
                0 => {
                    backend.set_len(*offset as u64).unwrap();
                    model.resize(*offset, 0);
                }
                1 => backend.sync_data().unwrap(),
                _ => {
                    backend.write(*offset as u64, bytes).unwrap();
                    write(&mut model, *offset, bytes);
                }
            }
            prop_assert_eq!(backend.len().unwrap(), model.len() as u64);
            let mut whole = vec![0xee; model.len()];
            backend.read(0, &mut whole).unwrap();
            prop_assert_eq!(&whole, &model);
            let from = offset.min(&model.len()) / 2;
            let mut part = vec![0xee; model.len() - from];
            backend.read(from as u64, &mut part).unwrap();
            prop_assert_eq!(&part, &model[from..]);
            prop_assert!(backend.read(from as u64, &mut vec![0; model.len() - from + 1]).is_err());
            if number < through_at {
                prop_assert_eq!(&fs::read(folder.path().join("file")).unwrap(), &before);
            }
        }
        backend.let_through().unwrap();
        prop_assert_eq!(fs::read(folder.path().join("file")).unwrap(), model);
    }
}

#[test]
fn too_much_is_not_held_back() {
    let folder = tempfile::tempdir().unwrap();
    let backend = backend(&storage(folder.path()));
    let page = vec![7; 4096];
    for number in 0..300 {
        backend.write(number * 4096, &page).unwrap();
    }
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), vec![7; 300 * 4096]);
}

/// Every command that looked something up marked the index's file when it opened and when it closed it, with eight syncs:
/// on a slow disk that took longer than the command itself.
#[test]
fn an_index_that_is_only_read_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let all = frames(&steady(20));
    let index = open(&folder, &all, IndexOptions::default());
    index.apply(&rows(&all[..10]), IndexDurability::Immediate).unwrap();
    drop(index);
    let path = folder.path().join("index.redb");
    let bytes = fs::read(&path).unwrap();
    let index = open(&folder, &all, IndexOptions::default());
    assert_eq!((index.watermark().seq.0, index.row_count().is_ok()), (30, true));
    // Rows that need not last are not written either.
    index.apply(&rows(&all[10..]), IndexDurability::None).unwrap();
    assert_eq!(index.watermark().seq.0, 60);
    drop(index);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    let index = open(&folder, &all, IndexOptions::default());
    assert_eq!((index.notice(), index.watermark().seq.0), (None, 30));
}
