//! Many bodies read at a time equal bodies read one by one, and so does their damage.

use proptest::prelude::*;

use super::seal::seal_all;
use super::*;

/// A text of some length that packs well.
fn long(number: usize) -> Vec<u8> {
    format!("{number} the quick brown fox ").repeat(1 + number * 7 % 90).into_bytes()
}

/// A closed store of commits with bodies of many lengths, its first segments sealed.
fn filled(world: &SimWorld) -> Vec<BodyRow> {
    let roomy = LogOptions { segment_bytes_max: 100_000, ..options() };
    let (log, _) = open_with(&world.process(1), roomy).unwrap();
    let mut rows = Vec::new();
    for commit in 0..60_usize {
        let bodies = (0..5).map(|part| EncodedBody::New {
            // One in five is equal to one of another commit: sealing stores it once.
            bytes: long(if part == 0 { 3 } else { commit * 5 + part }).into(),
            salt: log.salt().unwrap(),
        });
        let events = [EncodedEvent { bodies: bodies.collect(), ..event(&log, 1, 0) }];
        let appended = log.append(log.prepare(&events).unwrap(), &[]).unwrap();
        rows.extend(rows_of(&log, &appended));
    }
    let sealed = seal_all(&log).unwrap().len();
    assert!(sealed > 1, "{sealed} segments are sealed");
    log.close().unwrap();
    rows
}

/// The outcome of reading, in words.
fn said(read: &Result<Vec<u8>, LogError>) -> Result<String, String> {
    match read {
        Ok(bytes) => Ok(String::from_utf8(bytes.clone()).unwrap()),
        Err(LogError::Erased { place }) => Err(format!("erased at {place}")),
        Err(error) => Err(error.to_string()),
    }
}

fn reader(world: &SimWorld) -> Log {
    open_with(&world.process(7), LogOptions { read_only: true, ..options() }).unwrap().0
}

/// Asks for these rows together and one by one, with a handle for each way, so that neither knows the other's findings. Then asks
/// with the frames of the rows, and the bytes that were read with the frames.
fn compare(world: &SimWorld, rows: &[BodyRow]) -> Vec<Result<String, String>> {
    let together: Vec<_> = reader(world).bodies(rows).iter().map(said).collect();
    let log = reader(world);
    let alone: Vec<_> = rows.iter().map(|row| said(&log.body(row))).collect();
    assert_eq!(together, alone);
    let log = reader(world);
    let frames: Vec<_> = log.frames(Position::default(), log.head()).filter_map(Result::ok).collect();
    let start = |frame: &crate::codec::Frame| (frame.position().segment(), frame.position().offset());
    let of = |row: &BodyRow| {
        frames.iter().rev().find(|frame| start(frame) < (row.place.segment, row.place.offset)).cloned()
    };
    let framed: Vec<_> = rows.iter().map(|row| (of(row), *row)).collect();
    assert_eq!(log.bodies_of(&framed).iter().map(said).collect::<Vec<_>>(), alone);
    let one_by_one = framed.iter().map(|(frame, row)| match frame {
        Some(frame) => said(&log.body_of(frame, row)),
        None => said(&log.body(row)),
    });
    assert_eq!(one_by_one.collect::<Vec<_>>(), alone);
    together
}

/// Bytes that follow a content are read with it, and not again; a frame that is kept lets go of them.
#[test]
fn short_bodies_come_with_their_frame() {
    let world = SimWorld::new(1);
    let (log, _) =
        open_with(&world.process(1), LogOptions { segment_bytes_max: 1 << 20, ..options() }).unwrap();
    for _ in 0..20 {
        let _ = log.append(log.prepare(&[event(&log, 1, 300)]).unwrap(), &[]).unwrap();
    }
    let frames: Vec<_> = log.frames(Position::default(), log.head()).map(Result::unwrap).collect();
    let at_hand = |frame: &crate::codec::Frame| {
        let row = frame.rows().next().unwrap();
        frame.block_at_hand(&row).is_some()
    };
    let found: Vec<bool> = frames.iter().map(at_hand).collect();
    // One body may lie across two windows.
    assert!(found.iter().filter(|found| **found).count() >= 18, "{found:?}");
    assert!(frames.iter().all(|frame| !at_hand(&frame.alone())));
    let row = frames[3].rows().next().unwrap();
    assert!(frames[4].block_at_hand(&row).is_none(), "a body of another frame");
}

#[test]
fn many_bodies_at_a_time_are_what_they_are_one_by_one() {
    let world = SimWorld::new(1);
    let rows = filled(&world);
    let all = compare(&world, &rows);
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    assert_eq!(all[5], Ok(String::from_utf8(long(3)).unwrap()), "an equal one");
    assert_eq!(all[7], Ok(String::from_utf8(long(7)).unwrap()));
    // Enough of them that a second thread checks some: the answers are those of a thread alone.
    let many: Vec<BodyRow> = rows.iter().copied().cycle().take(6000).collect();
    let log = reader(&world);
    let read = log.bodies(&many);
    assert!(read.iter().zip(all.iter().cycle()).all(|(read, alone)| said(read) == *alone));
    assert!(log.bodies(&[]).is_empty());
}

/// Rows that name no body, or none of that length or digest, and bodies of zeros.
#[test]
fn what_is_no_body_is_said_so_and_costs_no_other() {
    let world = SimWorld::new(1);
    let rows = filled(&world);
    let far = rows.last().unwrap();
    let wrong = |change: &dyn Fn(&mut BodyRow)| {
        [rows[2], *far].map(|mut row| {
            change(&mut row);
            row
        })
    };
    let mut asked = vec![rows[0], *far];
    asked.extend(wrong(&|row| row.digest.0[0] ^= 1));
    asked.extend(wrong(&|row| row.bytes += 1));
    asked.extend(wrong(&|row| row.bytes = u32::MAX));
    asked.extend(wrong(&|row| row.place.offset += 16));
    asked.extend(wrong(&|row| row.place.segment = 99));
    asked.extend(wrong(&|row| row.place.offset = 1 << 34));
    asked.push(rows[1]);
    let found = compare(&world, &asked);
    let sound: Vec<usize> = (0..found.len()).filter(|at| found[*at].is_ok()).collect();
    assert_eq!(sound, [0, 1, found.len() - 1], "{found:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::testing::cases(60)))]

    /// For damage at any byte of a segment, reading together gives the same answers as reading one by one.
    #[test]
    fn damage_is_the_same_together_and_alone(segment in 1..5_u32, at in 0..1_000_000_usize, length in 1..40_usize) {
        static STORE: std::sync::OnceLock<(SimWorld, Vec<BodyRow>)> = std::sync::OnceLock::new();
        let (world, rows) = STORE.get_or_init(|| {
            let world = SimWorld::new(1);
            let rows = filled(&world);
            (world, rows)
        });
        let name = format!("log/{segment:012}.seg");
        if let Some(mut bytes) = world.file(&name) {
            // Where bodies are: behind the header.
            let at = 4096 + at % (bytes.len() - 4096);
            for byte in bytes.iter_mut().skip(at).take(length) {
                *byte ^= 0x55;
            }
            let copy = world.fork(1);
            copy.set_file(&name, bytes);
            compare(&copy, rows);
        }
    }
}
