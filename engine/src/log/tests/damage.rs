//! Damage: every bit, every length, every file. All of it is reported and none of it is served.

use super::*;

/// Checks that a damaged store shows only true lines, and that `verify` says that something is wrong.
fn check(world: &SimWorld, truth: &[(Seq, String)], context: &str) -> (LogReport, usize) {
    let read_only = LogOptions { read_only: true, ..options() };
    let (log, _) = match open_with(&world.process(9), read_only) {
        Ok(opened) => opened,
        Err(error) => panic!("{context}: {error}"),
    };
    let report = log.verify().unwrap();
    let mut shown = 0;
    for line in listing(&log).into_iter().flatten() {
        assert!(truth.contains(&line), "{context}: wrong line {line:?}");
        shown += 1;
    }
    (report, shown)
}

fn small_store(segment_bytes_max: u64) -> (SimWorld, Vec<(Seq, String)>) {
    let world = closed_store_with(3, segment_bytes_max);
    let (log, _) = open(&world.process(2)).unwrap();
    let truth = sound_listing(&log);
    (world, truth)
}

#[test]
fn every_flipped_bit_is_reported_and_costs_at_most_its_commit() {
    every_flip_is_reported();
}

#[test]
fn every_flipped_bit_of_an_encrypted_store_is_reported_and_costs_at_most_its_commit() {
    encrypt();
    every_flip_is_reported();
}

fn every_flip_is_reported() {
    let (world, truth) = small_store(SMALL);
    for name in ["acpdb.json", "checkpoint", "log/000000000001.seg", "log/000000000002.seg"] {
        let Some(bytes) = world.file(name) else { continue };
        for bit in 0..bytes.len() * 8 {
            // Normally one bit of each byte, and of the reserved part of a segment header one in 31 bytes; the
            // decoder's own test flips every bit of a frame.
            let reserved = name.ends_with("seg") && (96..4088).contains(&(bit / 8));
            if share(2) > 1 && (bit % 8 != bit / 8 % 8 || (reserved && !(bit / 8).is_multiple_of(31))) {
                continue;
            }
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let copy = world.fork(1);
            copy.set_file(name, damaged);
            let context = format!("{name} byte {} bit {}", bit / 8, bit % 8);
            let (report, shown) = check(&copy, &truth, &context);
            assert!(!report.is_sound(), "{context}: not reported");
            assert!(truth.len() - shown <= 2, "{context}: {} events lost", truth.len() - shown);
        }
    }
}

#[test]
fn every_shortened_file_is_reported() {
    let (world, truth) = small_store(1 << 20);
    for name in ["acpdb.json", "checkpoint", "log/000000000001.seg"] {
        let bytes = world.file(name).unwrap();
        for length in (0..bytes.len()).rev().step_by(if name.ends_with("seg") { share(7) } else { 1 }) {
            for tail in [true, false] {
                let copy = world.fork(1);
                copy.set_file(name, &bytes[..length]);
                if !tail {
                    copy.remove_file("tail");
                }
                let context = format!("{name} cut to {length}, tail {tail}");
                let (report, shown) = check(&copy, &truth, &context);
                assert!(!report.is_sound(), "{context}: not reported");
                if name.ends_with("seg")
                    && length > 4096 + crate::codec::FRAME_HEADER_BYTES
                    && shown < truth.len()
                {
                    let last = report.missing.map_or_else(
                        || report.violations.iter().filter_map(|violation| violation.seq_last).max(),
                        |(_, last)| Some(last),
                    );
                    assert_eq!(last, truth.last().map(|(seq, _)| *seq), "{context}: {report:#?}");
                }
            }
        }
    }
}

#[test]
fn a_lost_file_is_reported_with_what_it_cost() {
    let world = closed_store(12);
    let (log, _) = open(&world.process(2)).unwrap();
    let truth = sound_listing(&log);
    // The tail is a hint, of SYNC only the lock counts, and places are a cache.
    let is_counted = |name: &String| name != "tail" && name != "SYNC" && !name.ends_with(".places");
    for name in world.files().into_iter().filter(is_counted) {
        for tail in [true, false] {
            let copy = world.fork(1);
            copy.remove_file(&name);
            if !tail {
                copy.remove_file("tail");
            }
            let context = format!("{name} lost, tail {tail}");
            let (report, shown) = check(&copy, &truth, &context);
            assert!(!report.is_sound(), "{context}");
            let named: u64 = report
                .violations
                .iter()
                .filter_map(|violation| Some(violation.seq_last?.0 - violation.seq_first?.0 + 1))
                .sum();
            // Without any witness the last commit counts as unconfirmed: a reader does not show it, a writer confirms it.
            assert_eq!(
                named + report.unconfirmed_events,
                (truth.len() - shown) as u64,
                "{context}: {report:#?}"
            );
            // A writer opens it too, shows the same and refuses to append.
            let (log, recovery) = open(&copy.process(3)).unwrap();
            if name.ends_with("seg") || name == "acpdb.json" {
                let refused = append(&log, 50);
                assert!(recovery.damage.is_some(), "{context}");
                assert!(
                    matches!(refused, Err(LogError::Corrupt(_) | LogError::ReadOnly { .. })),
                    "{context}: {refused:?}"
                );
            }
            let confirmed = shown + usize::try_from(report.unconfirmed_events).unwrap();
            assert_eq!(listing(&log).iter().filter(|line| line.is_ok()).count(), confirmed, "{context}");
        }
    }
}

/// Once the last segment's header, the tail and the checkpoint are gone together, nothing says where the log ends. The whole
/// parts are still shown: the segments before, and the frames behind the header that a later frame calls durable.
#[test]
fn a_segment_without_header_hides_only_what_nothing_speaks_for() {
    let world = closed_store(12);
    let (log, _) = open(&world.process(2)).unwrap();
    let truth = sound_listing(&log);
    let segments: Vec<String> = world.files().into_iter().filter(|name| name.ends_with(".seg")).collect();
    assert!(segments.len() > 2, "{segments:?}");
    for (place, name) in segments.iter().enumerate() {
        let copy = world.fork(1);
        for later in segments.iter().skip(place + 1) {
            copy.remove_file(later);
        }
        copy.remove_file("tail");
        copy.remove_file("checkpoint");
        let (report, whole) = check(&copy, &truth, name);
        assert!(whole > 0 && report.unconfirmed_events > 0, "{name}: {report:#?}");
        let mut bytes = copy.file(name).unwrap();
        bytes[40] ^= 1;
        copy.set_file(name, bytes);
        let (report, shown) = check(&copy, &truth, name);
        assert!(!report.is_sound(), "{name}");
        assert_eq!(shown, whole, "{name}: {report:#?}");
        // A writer shows the same and refuses to append.
        let (log, recovery) = open(&copy.process(3)).unwrap();
        let damage = recovery.damage.unwrap();
        assert_eq!((damage.part, damage.segment as usize), (DamagedPart::SegmentHeader, place + 1), "{name}");
        assert!(matches!(append(&log, 50), Err(LogError::Corrupt(_))), "{name}");
        assert_eq!(listing(&log).iter().flatten().count(), whole, "{name}");
    }
}

#[test]
fn zeroed_garbled_swapped_and_stale_sectors_are_reported() {
    let world = closed_store(12);
    let (log, _) = open(&world.process(2)).unwrap();
    let truth = sound_listing(&log);
    let names: Vec<String> = world.files().into_iter().filter(|name| name.ends_with("seg")).collect();
    for name in &names {
        let bytes = world.file(name).unwrap();
        for start in (0..bytes.len()).step_by(512) {
            let end = (start + 512).min(bytes.len());
            let noise: Vec<u8> = blake3::hash(name.as_bytes()).as_bytes().repeat(16);
            let other = world.file(&names[0]).unwrap();
            let replacements = [
                vec![0; end - start],
                noise[..end - start].to_vec(),
                other[other.len() - (end - start)..].to_vec(),
            ];
            for (kind, replacement) in replacements.into_iter().enumerate() {
                let mut damaged = bytes.clone();
                damaged[start..end].copy_from_slice(&replacement);
                if damaged == bytes {
                    continue;
                }
                let copy = world.fork(1);
                copy.set_file(name, damaged);
                let context = format!("{name} sector at {start}, kind {kind}");
                let (report, _) = check(&copy, &truth, &context);
                assert!(!report.is_sound(), "{context}: not reported");
            }
        }
    }
}

#[test]
fn plain_edits_are_told_apart() {
    let world = SimWorld::new(1);
    let (log, _) =
        open_with(&world.process(1), LogOptions { segment_bytes_max: 1 << 20, ..options() }).unwrap();
    // Commits 0, 3 and 6 have frames of one length, so that they can change places.
    let places: Vec<Position> =
        [0, 3, 6, 9].into_iter().map(|commit| append(&log, commit).unwrap().position).collect();
    let store = log.store();
    log.close().unwrap();
    let truth = sound_listing(&open(&world.process(2)).unwrap().0);
    let name = "log/000000000001.seg";
    let bytes = world.file(name).unwrap();
    let at = |index: usize| usize::try_from(places[index].offset()).unwrap();
    let frame = |index: usize| bytes[at(index)..at(index + 1)].to_vec();
    let kinds = |edited: Vec<u8>| {
        let copy = world.fork(1);
        copy.set_file(name, edited);
        let (report, shown) = check(&copy, &truth, "edit");
        let kinds: Vec<String> =
            report.violations.iter().map(|violation| violation.kind.to_string()).collect();
        format!("{kinds:?} missing {:?} shown {shown}", report.missing.map(|(first, last)| (first.0, last.0)))
    };
    let mut swapped = bytes.clone();
    swapped[at(1)..at(2)].copy_from_slice(&frame(2));
    swapped[at(2)..at(3)].copy_from_slice(&frame(1));
    let mut removed = bytes.clone();
    removed.drain(at(1)..at(2));
    let mut inserted = bytes.clone();
    inserted.splice(at(1)..at(1), frame(0));
    let altered = {
        // A forger that knows the format changes a payload and every checksum of its frame, but not the links.
        let mut altered = bytes.clone();
        let header = crate::codec::FrameHeader::decode(&altered[at(1)..], store).unwrap();
        let end = at(1) + usize::try_from(header.bodies_start()).unwrap();
        altered[end - 1] ^= 1;
        let content = &altered[at(1) + crate::codec::FRAME_HEADER_BYTES..end];
        let header = crate::codec::FrameHeader {
            content_digest: crate::ids::Digest(*blake3::hash(content).as_bytes()),
            content_checksum: crc32c::crc32c(content),
            ..header
        };
        altered[at(1)..at(1) + crate::codec::FRAME_HEADER_BYTES].copy_from_slice(&header.encode());
        altered
    };
    let copy = world.fork(1);
    copy.set_file(name, altered);
    let (altered_log, _) = open(&copy.process(5)).unwrap();
    let altered_kinds: Vec<String> =
        altered_log.verify().unwrap().violations.iter().map(|violation| violation.kind.to_string()).collect();
    expect_test::expect![[r#"
        swap two: ["place of a frame"] missing None shown 4
        delete one: ["place of a frame"] missing None shown 2
        insert a copy: ["place of a frame"] missing None shown 2
        delete the newest two: ["end of the log"] missing Some((5, 8)) shown 4
        alter and recompute checksums: ["link"]
    "#]]
    .assert_eq(&format!(
        "swap two: {}\ndelete one: {}\ninsert a copy: {}\ndelete the newest two: {}\nalter and recompute checksums: {altered_kinds:?}\n",
        kinds(swapped),
        kinds(removed),
        kinds(inserted),
        kinds(bytes[..at(2)].to_vec()),
    ));
}

#[test]
fn damaged_bodies_cost_only_the_events_that_use_them() {
    let world = SimWorld::new(1);
    let (log, _) = open(&world.process(1)).unwrap();
    let first = append(&log, 1).unwrap();
    let row = rows_of(&log, &first)[0];
    let (mut user, mut other) = (event(&log, 2, 0), event(&log, 2, 1));
    user.bodies = vec![EncodedBody::New { bytes: b"shared".as_slice().into(), salt: [4; 16] }];
    other.bodies.splice(..0, user.bodies.clone());
    let second = log.append(log.prepare(&[user, other]).unwrap(), &[]).unwrap();
    let shared = rows_of(&log, &second)[0];
    log.close().unwrap();
    let name = "log/000000000001.seg";
    let mut bytes = world.file(name).unwrap();
    let at = usize::try_from(row.place.offset).unwrap();
    bytes[at + 20] ^= 4;
    bytes[usize::try_from(shared.place.offset).unwrap() + 20] ^= 4;
    world.set_file(name, bytes.clone());
    let (log, _) = open(&world.process(2)).unwrap();
    let lines = listing(&log);
    let shown: Vec<u64> = lines.iter().flatten().map(|(seq, _)| seq.0).collect();
    assert_eq!(shown, [2]);
    let report = log.verify().unwrap();
    let named: Vec<_> =
        report.violations.iter().map(|violation| (violation.kind, violation.seq_first)).collect();
    assert_eq!(named, [1, 3, 4].map(|seq| (DamagedPart::Body, Some(Seq(seq)))));
    // An erased body is told apart, and is no damage once its erasure is on record.
    bytes[at..at + 16 + row.bytes as usize].fill(0);
    bytes[usize::try_from(shared.place.offset).unwrap() + 20] ^= 4;
    world.set_file(name, bytes);
    let (log, _) = open(&world.process(3)).unwrap();
    assert!(matches!(log.body(&row), Err(LogError::Erased { .. })));
    assert_eq!(log.verify().unwrap().violations[0].kind, DamagedPart::BodyZeroed);
    assert!(log.verify_with(|erased, _| erased.digest == row.digest).unwrap().is_sound());
}

/// An agent may well print the store's own file, so whole frames occur inside bodies. None of them is taken for a
/// frame when the header before them is damaged.
#[test]
fn a_copy_of_the_log_inside_a_body_is_not_taken_for_the_log() {
    let world = SimWorld::new(1);
    let (log, _) =
        open_with(&world.process(1), LogOptions { segment_bytes_max: 1 << 20, ..options() }).unwrap();
    for commit in 0..3 {
        let _ = append(&log, commit).unwrap();
    }
    let name = "log/000000000001.seg";
    let copied = world.file(name).unwrap();
    let mut event = event(&log, 3, 0);
    event.bodies = vec![EncodedBody::New { bytes: copied.into(), salt: [4; 16] }];
    let place = log.append(log.prepare(&[event]).unwrap(), &[]).unwrap().position;
    let _ = append(&log, 4).unwrap();
    log.close().unwrap();
    let mut bytes = world.file(name).unwrap();
    bytes[usize::try_from(place.offset()).unwrap() + 60] ^= 1;
    world.set_file(name, bytes);
    let (log, _) = open(&world.process(2)).unwrap();
    let frames: Vec<_> = log.frames(Position::default(), log.head()).collect();
    let firsts: Vec<_> = frames.iter().flatten().map(|frame| frame.header().first_seq.0).collect();
    assert_eq!(firsts, [1, 3, 5, 8]);
    let errors: Vec<_> = frames.iter().filter_map(|frame| frame.as_ref().err()).collect();
    let [LogError::Corrupt(damage)] = errors[..] else { panic!("{errors:?}") };
    assert_eq!((damage.seq_first, damage.seq_last), (Some(Seq(7)), Some(Seq(7))));
}
