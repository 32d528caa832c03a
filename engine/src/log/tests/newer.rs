//! Bytes of newer programs: refused, or opened for reading as they ask, and never touched.

use super::*;
use crate::codec::{FRAME_HEADER_BYTES, FeatureBits, FrameHeader, StoreFile};

const FIRST: &str = "log/000000000001.seg";

/// Sets the features that the store's file names.
fn name_features(world: &SimWorld, needs: &[&str], writes: &[&str]) {
    let mut file = StoreFile::decode(&world.file("acpdb.json").unwrap()).unwrap();
    file.needs = needs.iter().map(ToString::to_string).collect();
    file.writes = writes.iter().map(ToString::to_string).collect();
    world.set_file("acpdb.json", file.encode());
}

/// All files but the tail, which processes share.
fn files(world: &SimWorld) -> Vec<(String, Vec<u8>)> {
    let names = world.files().into_iter().filter(|name| name != "tail");
    names.map(|name| (name.clone(), world.file(&name).unwrap())).collect()
}

fn sealed_header(mut header: [u8; FRAME_HEADER_BYTES], store: StoreId) -> [u8; FRAME_HEADER_BYTES] {
    let checksum = crc32c::crc32c_append(crc32c::crc32c(store.as_bytes()), &header[..156]);
    header[156..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// The store of the first segment.
fn store_of(world: &SimWorld) -> StoreId {
    SegmentHeader::decode(&world.file(FIRST).unwrap()).unwrap().store
}

#[test]
fn a_store_that_needs_what_is_not_known_is_refused() {
    let world = closed_store(3);
    name_features(&world, &["sealed-spines", "tree"], &[]);
    let before = files(&world);
    for read_only in [false, true] {
        let error =
            open_with(&world.process(2), LogOptions { read_only, ..options() }).map(drop).unwrap_err();
        assert!(matches!(error, LogError::NewerFormat { .. }), "{error}");
        assert!(error.to_string().contains("needs the features sealed-spines, tree"), "{error}");
    }
    assert_eq!(files(&world), before);
}

#[test]
fn a_store_that_only_newer_programs_write_is_read() {
    let world = closed_store(3);
    name_features(&world, &[], &["tree"]);
    let before = files(&world);
    let (log, recovery) = open(&world.process(2)).unwrap();
    assert!(recovery.read_only && recovery.damage.is_none());
    assert_eq!(sound_listing(&log).len(), 6);
    let error = append(&log, 3).unwrap_err();
    assert!(matches!(error, LogError::NewerFormat { .. }) && error.to_string().contains("tree"), "{error}");
    assert!(log.seal(1, &|| false).is_err());
    log.close().unwrap();
    assert_eq!(files(&world), before);
}

/// The store's file may be an older copy; the segments say it, too.
#[test]
fn the_last_segment_says_what_writing_needs() {
    let world = closed_store(1);
    let mut bytes = world.file(FIRST).unwrap();
    let header = SegmentHeader::decode(&bytes).unwrap();
    let set = |bytes: &mut Vec<u8>, features| {
        let header = SegmentHeader { features, ..header };
        bytes[..4096].copy_from_slice(&header.encode());
    };
    set(&mut bytes, FeatureBits { needs: 0, writes: 2 });
    world.set_file(FIRST, bytes.clone());
    let (log, _) = open(&world.process(2)).unwrap();
    assert_eq!(sound_listing(&log).len(), 2);
    assert!(matches!(append(&log, 1), Err(LogError::NewerFormat { .. })));
    drop(log);
    set(&mut bytes, FeatureBits { needs: 2, writes: 0 });
    world.set_file(FIRST, bytes);
    let before = files(&world);
    let (log, recovery) = open(&world.process(3)).unwrap();
    assert_eq!(recovery.damage.unwrap().part, DamagedPart::Newer);
    assert!(append(&log, 1).is_err());
    drop(log);
    assert_eq!(files(&world), before);
}

/// A frame with a flag that was not known, behind an older tail page, was moved to quarantine and zeroed, and verify
/// called the store sound. It stays where it is now, and so do the torn bytes before it.
#[test]
fn a_frame_with_an_unknown_flag_is_never_torn() {
    for (torn_before, at, value) in
        [(false, 7, 2), (false, 4, 3), (false, 139, 1), (false, 155, 1), (true, 7, 128)]
    {
        let world = SimWorld::new(1);
        let large = LogOptions { segment_bytes_max: 1 << 20, ..options() };
        let (log, _) = open_with(&world.process(1), large.clone()).unwrap();
        let _ = append(&log, 0).unwrap();
        log.close().unwrap();
        let older = (world.file("tail").unwrap(), world.file("checkpoint").unwrap());
        let (log, _) = open_with(&world.process(2), large.clone()).unwrap();
        let middle = append(&log, 1).unwrap().position;
        let last = append(&log, 2).unwrap().position;
        log.close().unwrap();
        let mut bytes = world.file(FIRST).unwrap();
        let start = usize::try_from(last.offset()).unwrap();
        let mut header: [u8; FRAME_HEADER_BYTES] =
            bytes[start..start + FRAME_HEADER_BYTES].try_into().unwrap();
        // The frame is of a program that claims nothing durable, so that only its flag can save it.
        header[48..56].fill(0);
        header[at] = value;
        bytes[start..start + FRAME_HEADER_BYTES].copy_from_slice(&sealed_header(header, store_of(&world)));
        if torn_before {
            bytes[usize::try_from(middle.offset()).unwrap() + 9] ^= 1;
        }
        world.set_file(FIRST, bytes);
        world.set_file("tail", older.0);
        world.set_file("checkpoint", older.1);
        let before = files(&world);
        let (log, recovery) = open_with(&world.process(3), large.clone()).unwrap();
        let damage = recovery.damage.unwrap();
        assert_eq!((damage.part, damage.offset), (DamagedPart::Newer, last.offset() + 4), "{damage}");
        assert!(append(&log, 3).is_err());
        let shown = listing(&log).into_iter().flatten().count();
        assert!(shown >= 2, "what is before it can be read: {shown}");
        let kinds: Vec<DamagedPart> =
            log.verify().unwrap().violations.iter().map(|violation| violation.kind).collect();
        assert!(kinds.contains(&DamagedPart::Newer), "{kinds:?}");
        drop(log);
        assert_eq!(files(&world), before, "byte {at} as {value}");
    }
}

/// A frame of another store, or one that belongs elsewhere, is torn as ever.
#[test]
fn a_stale_copy_of_a_newer_frame_is_torn() {
    let world = closed_store_with(2, 1 << 20);
    let mut bytes = world.file(FIRST).unwrap();
    let end = bytes.len();
    let first = FrameHeader::decode(&bytes[4096..], store_of(&world)).unwrap();
    let mut header = first.encode();
    header[6] = 1;
    bytes.extend(sealed_header(header, store_of(&world)));
    world.set_file(FIRST, bytes);
    let (log, recovery) =
        open_with(&world.process(2), LogOptions { segment_bytes_max: 1 << 20, ..options() }).unwrap();
    assert!(recovery.damage.is_none() && recovery.torn_bytes > 0);
    let _ = append(&log, 2).unwrap();
    assert!(world.file(FIRST).unwrap().len() > end);
    assert!(log.verify().unwrap().is_sound());
}

/// A newer program names a feature while other handles have the store open: none of them writes, or reads, past that moment.
#[test]
fn an_upgrade_makes_other_handles_reopen() {
    let world = closed_store(2);
    let (writer, _) = open(&world.process(2)).unwrap();
    let (reader, _) = open_with(&world.process(3), LogOptions { read_only: true, ..options() }).unwrap();
    let _ = append(&writer, 2).unwrap();
    assert!(reader.refresh().is_ok());
    let (newer, _) = open(&world.process(4)).unwrap();
    newer.name_features(&[], &["tree"]).unwrap();
    let before = files(&world);
    for log in [&writer, &newer] {
        assert!(matches!(append(log, 3), Err(LogError::Upgraded { .. })));
    }
    assert!(matches!(reader.refresh(), Err(LogError::Upgraded { .. })));
    assert_eq!(sound_listing(&reader).len(), 6, "what it knows stays readable");
    let _ = (writer.close(), newer.close());
    assert_eq!(files(&world), before);
    let (reopened, recovery) = open(&world.process(5)).unwrap();
    assert!(recovery.read_only);
    assert_eq!(sound_listing(&reopened).len(), 6);
    assert!(matches!(append(&reopened, 3), Err(LogError::NewerFormat { .. })));
}

/// The page that counts upgrades may be lost; the store's file is looked at before anything is repaired.
#[test]
fn an_upgrade_is_seen_without_the_page() {
    let world = closed_store(1);
    let (writer, _) = open(&world.process(2)).unwrap();
    let _ = append(&writer, 1).unwrap();
    name_features(&world, &[], &["tree"]);
    let mut page = world.file("tail").unwrap();
    page.fill(0);
    world.set_file("tail", page);
    let error = append(&writer, 2).unwrap_err();
    assert!(matches!(error, LogError::Upgraded { .. }), "{error}");
}
