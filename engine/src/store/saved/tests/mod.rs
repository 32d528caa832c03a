//! Files of saved values: what they are taken for, whatever becomes of them.

mod fold;
mod ingest_state;

use super::*;
use crate::storage::{Fault, FaultKind, SimStorage, SimWorld, write_file};

const STORE: StoreId = StoreId([7; 16]);
const STREAM: StreamId = StreamId([9; 16]);
const FOOTING: Footing = Footing { seq: Seq(5), position: Position(77), link: Link([3; 32]) };

/// A file that was changed, with the digest that any writer of the folder can make.
pub(in crate::store) fn resealed(bytes: &[u8]) -> Vec<u8> {
    let (head, archive) = (&bytes[..HEAD_BYTES], &bytes[ARCHIVE_AT..]);
    [head, &digest(head, archive), archive].concat()
}

fn held(process: &SimStorage, name: &SavedName) -> Option<(Footing, Vec<u8>)> {
    let saved = read(process, STORE, name).unwrap()?;
    Some((saved.footing, saved.archive.to_vec()))
}

#[test]
fn a_file_is_of_one_kind_owner_store_and_build() {
    let process = SimWorld::new(1).process(1);
    let (fold, ingest_state) = (SavedName::fold(STREAM), SavedName::ingest_state(STREAM));
    assert!(put(&process, STORE, &fold, FOOTING, b"a fold").unwrap());
    assert!(put(&process, STORE, &ingest_state, Footing::default(), b"known").unwrap());
    assert_eq!(held(&process, &fold), Some((FOOTING, b"a fold".to_vec())));
    assert_eq!(held(&process, &ingest_state), Some((Footing::default(), b"known".to_vec())));
    assert!(read(&process, StoreId([8; 16]), &fold).unwrap().is_none());
    for other in [&ingest_state, &SavedName::fold(StreamId([8; 16])), &SavedName::aside("imports")] {
        assert!(
            read(&process, STORE, &SavedName { path: fold.path.clone(), ..other.clone() }).unwrap().is_none()
        );
    }
    // Of another build: the stamp differs, and the digest holds.
    let mut bytes = crate::storage::read_file(&process, &fold.path, 1 << 20).unwrap().unwrap();
    bytes[8] ^= 1;
    write_file(&process, &fold.path, &resealed(&bytes)).unwrap();
    assert_eq!(held(&process, &fold), None);
    bytes[8] ^= 1;
    write_file(&process, &fold.path, &resealed(&bytes)).unwrap();
    assert!(held(&process, &fold).is_some());
}

/// Another thread saves under the same name: what was not saved is not reported as saved.
#[test]
fn who_comes_second_is_told_that_nothing_was_saved() {
    let world = SimWorld::new(1);
    let (one, two) = (world.process(1), world.process(2));
    let name = SavedName::fold(STREAM);
    one.create_dir(FOLDER).unwrap();
    let busy = one.open(&format!("{}.tmp", name.path), Access::Create).unwrap();
    assert!(busy.try_lock().unwrap());
    assert!(!put(&two, STORE, &name, FOOTING, b"x").unwrap());
}

/// A snapshot that found no space stayed as a temporary file, and took the space that the next commit needed.
#[test]
fn what_finds_no_space_gives_back_what_it_took() {
    for after in 0..6 {
        let process = SimWorld::new(after).process(1);
        process.create_dir(FOLDER).unwrap();
        process.plant(Fault { kind: FaultKind::NoSpace, after, once: false });
        let is_put = put(&process, STORE, &SavedName::fold(STREAM), FOOTING, &[7; 4096]);
        let results = [is_put.map(drop), write_file(&process, &format!("{FOLDER}/x"), &[7; 4096])];
        process.heal();
        let names = process.list(FOLDER).unwrap();
        assert!(names.iter().all(|name| !name.ends_with(".tmp")), "{after}: {names:?}");
        assert_eq!(names.len(), results.iter().filter(|result| result.is_ok()).count(), "{after}");
    }
}
