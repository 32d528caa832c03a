//! The file of a stream: its sections stand and fall alone.

use super::*;
use crate::storage::{Fault, FaultKind, SimStorage, SimWorld, write_file};

const STORE: StoreId = StoreId([7; 16]);
const STREAM: StreamId = StreamId([9; 16]);

/// A file whose sections were changed, with digests that any writer of the folder can make.
pub(in crate::store) fn resealed(bytes: &[u8], store: StoreId, stream: StreamId) -> Vec<u8> {
    let mut header = Header::decode(bytes.first_chunk().unwrap(), store, stream).unwrap();
    for section in Section::ALL {
        let Some(mut entry) = header.entry(section).copied() else { continue };
        let from = usize::try_from(header.offset(section)).unwrap();
        let count = match section {
            Section::IngestState => entry.numbers[0],
            Section::Fold => entry.bytes,
        };
        let covered = &bytes[from..from + usize::try_from(count).unwrap()];
        entry.digest = match section {
            Section::IngestState => blake3::derive_key("acpdb 2026 ingest state v1", covered),
            Section::Fold => blake3::derive_key("acpdb 2026 snapshot v2", covered),
        };
        header.set(section, entry);
    }
    [&header.encode(store, stream), &bytes[HEADER_BYTES..]].concat()
}

fn entry(seq: u64, bytes: &[u8]) -> Entry {
    let footing = Footing { seq: Seq(seq), position: Position(seq * 100), link: Link([3; 32]) };
    Entry { footing, numbers: [seq, 2], bytes: bytes.len() as u64, digest: *blake3::hash(bytes).as_bytes() }
}

fn save(process: &SimStorage, section: Section, seq: u64, bytes: &[u8], not_before: u64) {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let part = Part { section, entry: entry(seq, bytes), bytes: [first, second] };
    assert!(put(process, STORE, STREAM, &[part], Seq(not_before)).unwrap());
}

/// The seq and the bytes of a section, if the file has it.
fn held(process: &SimStorage, section: Section) -> Option<(u64, Vec<u8>)> {
    let file = process.open(&snapshot_name(STREAM), Access::Read).unwrap();
    let header = Header::read(&*file, STORE, STREAM).unwrap()?;
    let entry = header.entry(section)?;
    let mut bytes = vec![0; usize::try_from(entry.bytes).unwrap()];
    assert_eq!(read_up_to(&*file, &mut bytes, header.offset(section)).unwrap(), bytes.len());
    assert_eq!(entry.digest, *blake3::hash(&bytes).as_bytes());
    Some((entry.footing.seq.0, bytes))
}

/// For a rule that came between two versions, the layout's number was counted up by hand; if that was forgotten, the rule
/// took no effect on saved sessions.
#[test]
fn a_program_with_another_rule_is_another_program() {
    let of = |rules: &[&'static str]| program_of("1.0.0", rules.iter().copied());
    let all = [of(&[]), of(&["a"]), of(&["a", "b"]), of(&["b", "a"]), of(&["ab"])];
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].contains(one), "{at}");
    }
    assert_ne!(program(), program_of(env!("CARGO_PKG_VERSION"), std::iter::empty()));
}

#[test]
fn saving_one_section_keeps_the_other() {
    let process = SimWorld::new(1).process(1);
    let long: Vec<u8> = (0..=u8::MAX).cycle().take(2 * COPY_BYTES + 77).collect();
    save(&process, Section::Fold, 5, &long, 0);
    assert_eq!(held(&process, Section::IngestState), None);
    save(&process, Section::IngestState, 6, b"known", 0);
    assert_eq!(held(&process, Section::Fold), Some((5, long.clone())));
    // An ingest state of another length moves the fold.
    save(&process, Section::IngestState, 7, b"more is known", 0);
    assert_eq!(held(&process, Section::IngestState), Some((7, b"more is known".to_vec())));
    assert_eq!(held(&process, Section::Fold), Some((5, long)));
    save(&process, Section::Fold, 8, b"short", 0);
    assert_eq!(held(&process, Section::IngestState), Some((7, b"more is known".to_vec())));
    assert_eq!(held(&process, Section::Fold), Some((8, b"short".to_vec())));
}

/// A section from before an erasure may hold an erased text. It is not carried on.
#[test]
fn a_section_from_before_an_erasure_is_not_copied() {
    let process = SimWorld::new(1).process(1);
    save(&process, Section::Fold, 5, b"a secret", 0);
    save(&process, Section::IngestState, 9, b"known", 6);
    assert_eq!(held(&process, Section::Fold), None);
    assert_eq!(held(&process, Section::IngestState), Some((9, b"known".to_vec())));
}

#[test]
fn a_section_of_another_layout_is_nothing_and_goes_with_the_next_save() {
    let process = SimWorld::new(1).process(1);
    save(&process, Section::IngestState, 5, b"known", 0);
    save(&process, Section::Fold, 5, b"a fold", 0);
    let name = snapshot_name(STREAM);
    let file = process.open(&name, Access::Write).unwrap();
    let mut header = [0; HEADER_BYTES];
    assert_eq!(read_up_to(&*file, &mut header, 0).unwrap(), HEADER_BYTES);
    header[HEAD_BYTES] ^= 1;
    let (covered, stored) = header.split_at_mut(HEADER_BYTES - DIGEST_BYTES);
    stored.copy_from_slice(&digest(covered));
    write_all(&*file, &header, 0, &mut 0).unwrap();
    assert_eq!(held(&process, Section::IngestState), None);
    assert_eq!(held(&process, Section::Fold), Some((5, b"a fold".to_vec())));
    save(&process, Section::Fold, 6, b"another", 0);
    assert_eq!(file_length(&process), (HEADER_BYTES + 7) as u64);
}

fn file_length(process: &SimStorage) -> u64 {
    process.open(&snapshot_name(STREAM), Access::Read).unwrap().len().unwrap()
}

/// Another thread saves the same stream: a section that was not saved is not reported as saved.
#[test]
fn who_comes_second_is_told_that_nothing_was_saved() {
    let world = SimWorld::new(1);
    let (one, two) = (world.process(1), world.process(2));
    one.create_dir(FOLDER).unwrap();
    let busy = one.open(&format!("{}.tmp", snapshot_name(STREAM)), Access::Create).unwrap();
    assert!(busy.try_lock().unwrap());
    let part = Part { section: Section::Fold, entry: entry(1, b"x"), bytes: [b"x", b""] };
    assert!(!put(&two, STORE, STREAM, &[part], Seq::ZERO).unwrap());
}

/// A snapshot that found no space stayed as a temporary file, and took the space that the next commit needed.
#[test]
fn what_finds_no_space_gives_back_what_it_took() {
    for after in 0..6 {
        let process = SimWorld::new(after).process(1);
        process.create_dir(FOLDER).unwrap();
        process.plant(Fault { kind: FaultKind::NoSpace, after, once: false });
        let bytes = [7; 4096];
        let part = Part { section: Section::Fold, entry: entry(1, &bytes), bytes: [&bytes, &[]] };
        let is_put = put(&process, STORE, STREAM, &[part], Seq::ZERO);
        let results = [is_put.map(drop), write_file(&process, &format!("{FOLDER}/x"), &[7; 4096])];
        process.heal();
        let names = process.list(FOLDER).unwrap();
        assert!(names.iter().all(|name| !name.ends_with(".tmp")), "{after}: {names:?}");
        assert_eq!(names.len(), results.iter().filter(|result| result.is_ok()).count(), "{after}");
    }
}
