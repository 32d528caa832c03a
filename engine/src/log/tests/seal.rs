//! Sealed segments: they read as before, take less room, and neither a crash nor a flipped bit changes that.

use super::*;
use crate::storage::Crash;

const NEVER: &dyn Fn() -> bool = &|| false;

/// Seals all complete segments and returns the figures of each.
pub(super) fn seal_all(log: &Log) -> Result<Vec<SealFigures>, LogError> {
    let mut done = Vec::new();
    for number in log.unsealed()? {
        match log.seal(number, NEVER)? {
            SealOutcome::Sealed(figures) => done.push(figures),
            other => panic!("segment {number}: {other:?}"),
        }
    }
    Ok(done)
}

fn sealed_store(commits: u32) -> (SimWorld, Vec<(Seq, String)>) {
    let world = closed_store(commits);
    let (log, _) = open(&world.process(2)).unwrap();
    let truth = sound_listing(&log);
    assert!(!seal_all(&log).unwrap().is_empty());
    log.close().unwrap();
    (world, truth)
}

#[test]
fn a_sealed_segment_says_what_it_said() {
    let world = closed_store(12);
    let (log, _) = open(&world.process(2)).unwrap();
    let (other, _) = open(&world.process(3)).unwrap();
    let truth = sound_listing(&log);
    let places: Vec<Position> =
        log.frames(Position::default(), log.head()).map(|frame| frame.unwrap().position()).collect();
    let sealed = seal_all(&log).unwrap();
    assert!(sealed.len() >= 3, "{sealed:?}");
    assert!(seal_all(&log).unwrap().is_empty(), "a second time there is nothing to do");
    for (who, log) in [("this handle", &log), ("a handle with the old files open", &other)] {
        assert_eq!(sound_listing(log), truth, "{who}");
        let report = log.verify().unwrap();
        assert!(report.is_sound(), "{who}: {report:#?}");
        assert_eq!(report.events, truth.len() as u64);
        let now: Vec<Position> =
            log.frames(Position::default(), log.head()).map(|frame| frame.unwrap().position()).collect();
        assert_eq!(now, places, "{who}");
        for place in &places {
            assert_eq!(log.frame_at(*place).unwrap().position(), *place);
        }
        for (seq, _) in &truth {
            let frame = log.locate(*seq).unwrap().unwrap();
            assert!(frame.event(*seq).is_some(), "{who} {seq}");
        }
    }
    let _ = append(&log, 12).unwrap();
    log.close().unwrap();
    let (log, recovery) = open(&world.process(4)).unwrap();
    assert!(recovery.was_clean);
    assert_eq!(sound_listing(&log).len(), truth.len() + 2);
}

#[test]
fn only_segments_without_news_for_a_day_are_cold() {
    let world = closed_store(12);
    assert_eq!(open(&world.process(2)).unwrap().0.cold().unwrap(), [0; 0]);
    let clock = Arc::new(FixedClock::new(Micros(24 * 3600 * 1_000_000 + 2_000_000), 10));
    let entropy = Arc::new(FixedEntropy::new(3));
    let (log, _) = Log::create_or_open(Arc::new(world.process(3)), clock, entropy, options()).unwrap();
    let cold = log.cold().unwrap();
    assert!(cold.len() > 3 && cold == log.unsealed().unwrap(), "{cold:?}");
    let _ = log.seal(cold[0], NEVER).unwrap();
    assert_eq!(log.cold().unwrap(), cold[1..]);
}

/// The log, as `zstd -dcf log/*.seg` gives it.
fn unpacked(world: &SimWorld) -> Vec<u8> {
    let names = world.files().into_iter().filter(|name| name.ends_with(".seg"));
    let plain = |name: String| {
        let bytes = world.file(&name).unwrap();
        if bytes.starts_with(b"acpdbseg") { bytes } else { zstd::stream::decode_all(&*bytes).unwrap() }
    };
    names.flat_map(plain).collect()
}

#[test]
fn any_zstd_unpacks_a_sealed_log() {
    let world = closed_store_with(200, 1 << 18);
    let (log, _) = open(&world.process(2)).unwrap();
    log.begin_segment().unwrap();
    let before = unpacked(&world);
    let sealed = seal_all(&log).unwrap();
    assert!(sealed.iter().all(|figures| figures.bytes_after * 4 < figures.bytes_before), "{sealed:?}");
    assert!(!sealed.is_empty());
    assert!(unpacked(&world) == before);
    assert!(log.verify().unwrap().is_sound());
}

/// Commits longer than a chunk are cut before their bodies, and every 64 KiB; all others lie in one chunk each.
#[test]
fn chunks_end_where_commits_end() {
    let world = SimWorld::new(1);
    let large = LogOptions { segment_bytes_max: 1 << 20, ..options() };
    let (log, _) = open_with(&world.process(1), large).unwrap();
    let mut begins = Vec::new();
    for commit in 0..40_u32 {
        let mut event = event(&log, commit, 0);
        let length = [100, 30_000, 150_000][commit as usize % 3];
        let bytes =
            (0..length).map(|byte: u32| byte.wrapping_mul(commit + 7).to_le_bytes()[1]).collect::<Vec<_>>();
        event.bodies = vec![EncodedBody::New { bytes: bytes.into(), salt: [7; 16] }];
        let done = log.append(log.prepare(&[event]).unwrap(), &[]).unwrap();
        begins.push((rows_of(&log, &done)[0].place, length));
    }
    assert!(!seal_all(&log).unwrap().is_empty());
    let file = log.segments.get(1).unwrap().unwrap();
    let chunks = file.sealed.as_ref().unwrap().chunk_list().unwrap();
    assert_eq!((chunks[0].start, chunks[0].end()), (0, 4096));
    assert!(chunks.iter().all(|chunk| chunk.end() - chunk.start <= 64 << 10));
    for (place, length) in begins.iter().filter(|(place, _)| place.segment == 1) {
        let holders = chunks
            .iter()
            .filter(|chunk| chunk.start < place.offset + u64::from(*length) && chunk.end() > place.offset);
        assert_eq!(holders.count(), if *length < 100_000 { 1 } else { 3 }, "{place} {length}");
    }
    let small = chunks.iter().skip(1).filter(|chunk| chunk.end() - chunk.start < 30_000).count();
    assert!(small * 4 < chunks.len(), "neighbours share a chunk");
}

/// The places of the chunks of a sealed segment, and how many events each costs if it is lost.
fn costs(log: &Log, number: u32) -> Vec<(std::ops::Range<u64>, usize)> {
    let file = log.segments.get(number).unwrap().unwrap();
    let chunks = file.sealed.as_ref().unwrap().chunk_list().unwrap();
    let frames: Vec<Frame> = log.frames(Position::default(), log.head()).map(Result::unwrap).collect();
    let cost = |chunk: &super::unpacked::Chunk| {
        let inside = frames.iter().filter(|frame| {
            let header = frame.header();
            header.position.segment() == number
                && header.position.offset() < chunk.end()
                && header.position.offset() + header.frame_bytes() > chunk.start
        });
        let events: usize = inside.map(|frame| frame.header().event_count as usize).sum();
        (chunk.place..chunk.place + u64::from(chunk.entry.packed), events)
    };
    chunks.iter().map(cost).collect()
}

#[test]
fn every_flipped_bit_of_a_sealed_file_is_reported_and_costs_at_most_its_chunk() {
    let (world, truth) = sealed_store(4);
    let read_only = LogOptions { read_only: true, ..options() };
    let name = "log/000000000001.seg";
    let bytes = world.file(name).unwrap();
    let costs = costs(&open(&world.fork(1).process(2)).unwrap().0, 1);
    assert!(costs.len() > 1);
    for bit in 0..bytes.len() * 8 {
        if share(2) > 1 && bit % 8 != bit / 8 % 8 {
            continue;
        }
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let copy = world.fork(1);
        copy.set_file(name, damaged);
        let context = format!("byte {} bit {}", bit / 8, bit % 8);
        let (log, _) = open_with(&copy.process(9), read_only.clone()).unwrap();
        let report = log.verify().unwrap();
        assert!(!report.is_sound(), "{context}: not reported");
        let shown: Vec<_> = listing(&log).into_iter().flatten().collect();
        assert!(shown.iter().all(|line| truth.contains(line)), "{context}: a wrong line");
        let lost: Vec<_> = truth.iter().filter(|line| !shown.contains(line)).collect();
        let cost = costs.iter().find(|(place, _)| place.contains(&(bit as u64 / 8)));
        let cost = cost.map_or(0, |(_, events)| *events);
        assert!(lost.len() <= cost, "{context}: {} events lost, not {cost}\n{report:#?}", lost.len());
        for (seq, _) in lost {
            let is_named = report.violations.iter().any(|found| {
                found.seq_first.is_some_and(|first| first <= *seq)
                    && found.seq_last.is_some_and(|last| last >= *seq)
            });
            assert!(is_named, "{context}: {seq} is lost and not named\n{report:#?}");
        }
    }
}

#[test]
fn every_shortened_sealed_file_is_reported() {
    let (world, truth) = sealed_store(4);
    let read_only = LogOptions { read_only: true, ..options() };
    let name = "log/000000000001.seg";
    let bytes = world.file(name).unwrap();
    for length in (0..bytes.len()).step_by(share(5)) {
        let copy = world.fork(1);
        copy.set_file(name, &bytes[..length]);
        let (log, _) = open_with(&copy.process(9), read_only.clone()).unwrap();
        assert!(!log.verify().unwrap().is_sound(), "{length}");
        assert!(listing(&log).into_iter().flatten().all(|line| truth.contains(&line)), "{length}");
    }
    let copy = world.fork(1);
    copy.set_file(name, [bytes.as_slice(), b"more"].concat());
    let (log, _) = open_with(&copy.process(9), read_only.clone()).unwrap();
    assert!(!log.verify().unwrap().is_sound(), "longer");
    assert_eq!(sound_listing(&log), truth);
    // The seek table is a hint: without it, and even without the head, the chunks are found.
    let chunks_end = costs(&open(&world.fork(1).process(2)).unwrap().0, 1).last().unwrap().0.end;
    let mut bare = bytes[..usize::try_from(chunks_end).unwrap()].to_vec();
    for _ in 0..2 {
        copy.set_file(name, &bare);
        let (log, _) = open_with(&copy.process(9), read_only.clone()).unwrap();
        assert_eq!(sound_listing(&log), truth);
        assert!(!log.verify().unwrap().is_sound());
        bare[..128].fill(0);
    }
}

/// The rows of all bodies of segment 1.
fn rows(log: &Log) -> Vec<BodyRow> {
    let frames = log.frames(Position::default(), log.head()).map(Result::unwrap);
    let inside = frames.filter(|frame| frame.position().segment() == 1);
    inside.flat_map(|frame| frame.rows().collect::<Vec<_>>()).collect()
}

fn erase(log: &Log, rows: &[BodyRow]) -> Result<(), LogError> {
    let erasing = log.begin_erasing()?;
    let _ = erasing.zero(rows)?;
    erasing.end()
}

fn is_erased(log: &Log, row: &BodyRow) -> bool {
    matches!(log.body(row), Err(LogError::Erased { .. }))
}

#[test]
fn what_is_erased_in_a_sealed_segment_is_in_no_file_and_no_open_handle() {
    let (world, _) = sealed_store(6);
    let (log, _) = open(&world.process(3)).unwrap();
    let (other, _) = open(&world.process(4)).unwrap();
    let rows = rows(&log);
    let (gone, kept) = rows.split_at(1);
    let text = other.body(&gone[0]).unwrap();
    let name = "log/000000000001.seg";
    let old = world.process(5).open(name, crate::storage::Access::Read).unwrap();
    let before = log.segments.header(1).unwrap().unwrap().generation;
    erase(&log, gone).unwrap();
    let storage: Arc<dyn crate::storage::Storage> = Arc::new(world.process(6));
    assert_eq!(crate::testing::whereabouts(&storage, &text).unwrap(), Vec::<String>::new());
    let mut left = vec![1; usize::try_from(old.len().unwrap()).unwrap()];
    crate::storage::read_up_to(&*old, &mut left, 0).unwrap();
    assert!(left.iter().all(|byte| *byte == 0), "a handle on the former file reads zeros");
    for (who, log) in
        [("it", &log), ("another handle", &other), ("a new one", &open(&world.process(7)).unwrap().0)]
    {
        assert!(is_erased(log, &gone[0]), "{who}");
        assert!(kept.iter().all(|row| log.body(row).is_ok()), "{who}");
        assert_eq!(log.verify_with(|row, _| gone.contains(row)).unwrap().violations, Vec::new(), "{who}");
    }
    assert_eq!(
        open(&world.process(8)).unwrap().0.segments.header(1).unwrap().unwrap().generation,
        before + 1
    );
    assert!(world.files().iter().all(|name| !name.ends_with(".tmp")));
}

/// `verify` beside an erasure read the header of the old file and the head of the new one, and called a sound store damaged.
#[test]
fn a_sealed_file_that_is_replaced_while_it_is_checked_is_not_called_damaged() {
    let (world, _) = sealed_store(6);
    let (log, _) = open(&world.process(3)).unwrap();
    let (other, _) = open(&world.process(4)).unwrap();
    let rows = rows(&log);
    let held = other.segments.get(1).unwrap().unwrap();
    erase(&log, &rows[..1]).unwrap();
    assert_eq!(other.segments.check_packed(1, &held).unwrap(), Vec::new());
    // Damaged bytes stay damage.
    let name = "log/000000000001.seg";
    let mut bytes = world.file(name).unwrap();
    bytes[36] ^= 1;
    world.set_file(name, &bytes);
    assert!(!other.segments.check_packed(1, &held).unwrap().is_empty());
}

#[test]
fn a_crash_at_any_step_of_an_erasure_in_a_sealed_segment_loses_no_other_text() {
    let (world, _) = sealed_store(6);
    let (gone, kept, text) = {
        let (log, _) = open(&world.process(3)).unwrap();
        let mut rows = rows(&log);
        let gone = rows.remove(1);
        let kept: Vec<_> = rows.iter().map(|row| (*row, log.body(row).unwrap())).collect();
        (gone, kept, log.body(&gone).unwrap())
    };
    for crash in [Crash::Kill, Crash::Power] {
        for step in 0.. {
            let mut finished = false;
            for seed in 0..if share(2) == 1 { 12 } else { 3 } {
                let copy = world.fork(seed);
                let storage = copy.process(3);
                let (log, _) = open(&storage).unwrap();
                storage.crash_at(storage.operation_count() + step, crash);
                let outcome = erase(&log, &[gone]);
                drop(log);
                finished = !storage.is_dead();
                assert!(outcome.is_ok() || !finished, "{outcome:?}");
                let context = format!("{crash:?} at step {step}, seed {seed}");
                let (log, _) = open(&copy.process(4)).unwrap();
                for (row, body) in &kept {
                    assert_eq!(log.body(row).unwrap(), *body, "{context}");
                }
                let is_under_way = log.is_erasing().unwrap();
                if let Some(erasing) = log.resume_erasing().unwrap() {
                    let _ = erasing.zero(&[gone]).unwrap();
                    erasing.end().unwrap();
                }
                if is_under_way || finished {
                    let storage: Arc<dyn crate::storage::Storage> = Arc::new(copy.process(5));
                    let found = crate::testing::whereabouts(&storage, &text).unwrap();
                    assert_eq!(found, Vec::<String>::new(), "{context}");
                    assert!(is_erased(&log, &gone), "{context}");
                }
                for (row, body) in &kept {
                    assert_eq!(log.body(row).unwrap(), *body, "{context}");
                }
                let report = log.verify_with(|row, _| *row == gone).unwrap();
                assert!(report.is_sound(), "{context}: {report:#?}");
                let _ = log.seal(1, NEVER).unwrap();
                let left: Vec<String> =
                    copy.files().into_iter().filter(|name| name.ends_with(".seg.tmp")).collect();
                assert!(left.is_empty(), "{context}: {left:?}");
            }
            if finished {
                assert!(step > 10, "{step} steps");
                break;
            }
        }
    }
}

#[test]
fn a_text_in_a_damaged_chunk_is_erased_and_the_damage_stays_damage() {
    let (world, _) = sealed_store(6);
    let (log, _) = open(&world.process(3)).unwrap();
    let row = rows(&log)[0];
    let (chunk, _) = costs(&log, 1)[1].clone();
    drop(log);
    let name = "log/000000000001.seg";
    let mut bytes = world.file(name).unwrap();
    bytes[usize::try_from(chunk.end).unwrap() - 20] ^= 1;
    world.set_file(name, bytes);
    let (log, _) = open(&world.process(4)).unwrap();
    assert!(matches!(log.body(&row), Err(LogError::Corrupt(_))), "zeros would say that it was erased");
    erase(&log, &[row]).unwrap();
    assert!(is_erased(&log, &row));
    assert!(!log.verify().unwrap().is_sound());
    assert!(matches!(log.seal(1, NEVER).unwrap(), SealOutcome::NotNeeded));
}

#[test]
fn a_crash_at_any_step_of_sealing_costs_nothing() {
    let world = closed_store(6);
    let truth = sound_listing(&open(&world.process(2)).unwrap().0);
    for crash in [Crash::Kill, Crash::Power] {
        for step in 0.. {
            let mut finished = false;
            for seed in 0..if share(2) == 1 { 12 } else { 3 } {
                let copy = world.fork(seed);
                let storage = copy.process(3);
                let (log, _) = open(&storage).unwrap();
                storage.crash_at(storage.operation_count() + step, crash);
                let outcome = seal_all(&log);
                drop(log);
                finished = !storage.is_dead();
                assert!(outcome.is_ok() || !finished, "{outcome:?}");
                let context = format!("{crash:?} at step {step}, seed {seed}");
                let (log, recovery) = open(&copy.process(4)).unwrap();
                assert!(recovery.damage.is_none(), "{context}: {recovery:?}");
                assert_eq!(sound_listing(&log), truth, "{context}");
                let report = log.verify().unwrap();
                assert!(report.is_sound(), "{context}: {report:#?}");
                let _ = seal_all(&log).unwrap();
                assert_eq!(sound_listing(&log), truth, "{context}, sealed again");
                assert!(log.unsealed().unwrap().is_empty(), "{context}");
                let _ = log.seal(1, NEVER).unwrap();
                let left: Vec<String> =
                    copy.files().into_iter().filter(|name| name.ends_with(".seg.tmp")).collect();
                assert!(left.is_empty(), "{context}: {left:?}");
            }
            if finished {
                assert!(step > 10, "{step} steps");
                break;
            }
        }
    }
}

#[test]
fn a_damaged_segment_is_left_as_it_is() {
    let world = closed_store(6);
    let name = "log/000000000001.seg";
    let sound = world.file(name).unwrap();
    for at in [4096 + 20, 4096 + 200, sound.len() - 20] {
        let mut damaged = sound.clone();
        damaged[at] ^= 1;
        let copy = world.fork(1);
        copy.set_file(name, damaged.clone());
        let (log, _) = open(&copy.process(3)).unwrap();
        assert!(matches!(log.seal(1, NEVER), Err(LogError::Corrupt(_))), "{at}");
        assert_eq!(copy.file(name).unwrap(), damaged, "{at}");
        assert!(copy.file("log/000000000001.seg.tmp").is_none(), "{at}");
    }
}

#[test]
fn two_do_not_seal_at_once_and_whoever_is_told_to_stop_stops() {
    let world = closed_store(6);
    let (log, _) = open(&world.process(3)).unwrap();
    let (other, _) = open(&world.process(4)).unwrap();
    assert_eq!(log.seal(1, &|| true).unwrap(), SealOutcome::Stopped);
    assert!(world.file("log/000000000001.seg.tmp").is_none());
    let lock = other.seal_lock().unwrap().unwrap();
    assert_eq!(log.seal(1, NEVER).unwrap(), SealOutcome::Busy);
    drop(lock);
    assert!(matches!(log.seal(1, NEVER).unwrap(), SealOutcome::Sealed(_)));
    assert_eq!(other.seal(1, NEVER).unwrap(), SealOutcome::NotNeeded);
    let last = log.head().position.segment();
    assert_eq!(log.seal(last, NEVER).unwrap(), SealOutcome::NotNeeded);
}
