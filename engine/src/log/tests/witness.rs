//! Witnesses that lie: a witness is called agreeing only if it was compared, and each lie is named.

use super::*;
use crate::codec::{
    DurablePoint, FRAME_HEADER_BYTES, PageCounts, TAIL_BYTES, TailPage, WrittenPlace, place_record,
};
use crate::ids::Link;

fn standings(report: &LogReport, kind: WitnessKind) -> Vec<(String, WitnessStatus)> {
    let of_kind = report.witnesses.iter().filter(|witness| witness.kind == kind);
    of_kind.map(|witness| (witness.name.clone(), witness.standing)).collect()
}

fn verified(world: &SimWorld) -> LogReport {
    let read_only = LogOptions { read_only: true, ..options() };
    open_with(&world.process(9), read_only).unwrap().0.verify().unwrap()
}

fn forked_files(report: &LogReport) -> Vec<String> {
    let forked = report.violations.iter().filter(|violation| violation.kind == DamagedPart::Forked);
    forked.map(|violation| violation.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

/// A place with another link; with a wrong seq; one commit earlier by its position; one beyond the end.
fn lies(place: WrittenPlace) -> [(&'static str, WrittenPlace); 4] {
    let off = |grains: u64| Position(place.position.0 + grains);
    [
        ("link", WrittenPlace { link: Link([7; 32]), ..place }),
        ("seq", WrittenPlace { seq: Seq(place.seq.0 - 1), ..place }),
        ("position", WrittenPlace { position: Position(place.position.0 - 1), ..place }),
        ("ahead", WrittenPlace { position: off(40), seq: Seq(place.seq.0 + 2), ..place }),
    ]
}

#[test]
fn after_a_clean_close_every_witness_was_compared_whole() {
    let world = closed_store(12);
    let report = verified(&world);
    assert!(report.is_sound(), "{report:#?}");
    for witness in &report.witnesses {
        let expected: &[WitnessStatus] = match (witness.kind, witness.name.as_str()) {
            (WitnessKind::Checkpoint, _) | (_, "tail written") => &[WitnessStatus::Agrees],
            // Of the records of durable ends, one names the end.
            (WitnessKind::Tail, _) => &[WitnessStatus::Agrees, WitnessStatus::Behind],
            _ => &[WitnessStatus::Behind],
        };
        assert!(expected.contains(&witness.standing), "{witness:?}");
        assert_eq!(witness.compared, ["seq", "position", "link"], "{witness:?}");
    }
    let durable = report.witnesses.iter().filter(|witness| witness.name.starts_with("tail c"));
    assert!(durable.clone().any(|witness| witness.standing == WitnessStatus::Agrees), "{report:#?}");
    for kind in [WitnessKind::Tail, WitnessKind::Checkpoint, WitnessKind::Segment] {
        assert!(!standings(&report, kind).is_empty(), "{kind:?}");
    }
}

/// The link in a record of the tail was altered, and the report said that the tail agrees, since only its position was looked
/// at. Now seq, position and link of all its records are compared, and a lie is damage that names the file.
#[test]
fn a_tail_that_lies_is_found() {
    let world = closed_store(12);
    let place = verified_head(&world);
    let records =
        [("tail written", 576), ("tail confirmed", TailPage::CONFIRMED_OFFSET), ("tail claim 1", 784)];
    for (name, offset) in records {
        for (lie, written) in lies(place) {
            let copy = world.fork(1);
            let mut page = copy.file("tail").unwrap();
            let at = usize::try_from(offset).unwrap();
            page[at..at + 64].copy_from_slice(&place_record(&written));
            copy.set_file("tail", page);
            let report = verified(&copy);
            let standing = standings(&report, WitnessKind::Tail);
            let found = standing.iter().find(|(found, _)| found == name).unwrap().1;
            // A written record that the page itself does not call durable was never acknowledged.
            let is_hint = name == "tail written" && matches!(lie, "position" | "ahead");
            let expected = match lie {
                _ if is_hint => WitnessStatus::NotCompared,
                "ahead" => WitnessStatus::Ahead,
                _ => WitnessStatus::Forked,
            };
            assert_eq!(found, expected, "{name}, {lie}: {report:#?}");
            let is_damage = expected == WitnessStatus::Forked;
            assert_eq!(forked_files(&report), vec!["tail"; usize::from(is_damage)], "{name}, {lie}");
        }
    }
    // A page of another store, garbage, and no page at all.
    for (bytes, expected) in [
        (Some(TailPage::encode(StoreId([9; 16]), &place, PageCounts::default())), WitnessStatus::Damaged),
        (Some(vec![5; TAIL_BYTES]), WitnessStatus::Damaged),
        (None, WitnessStatus::Absent),
    ] {
        let copy = world.fork(1);
        match bytes {
            Some(bytes) => copy.set_file("tail", bytes),
            None => copy.remove_file("tail"),
        }
        assert_eq!(standings(&verified(&copy), WitnessKind::Tail), [("tail".to_owned(), expected)]);
    }
}

fn verified_head(world: &SimWorld) -> WrittenPlace {
    open(&world.fork(1).process(3)).unwrap().0.head()
}

#[test]
fn a_checkpoint_that_lies_is_found() {
    let world = closed_store(12);
    let place = verified_head(&world);
    let store = open(&world.fork(1).process(3)).unwrap().0.store();
    for (lie, written) in lies(place) {
        let copy = world.fork(1);
        copy.set_file("checkpoint", DurablePoint { store, written }.encode());
        let report = verified(&copy);
        let expected = if lie == "ahead" { WitnessStatus::Ahead } else { WitnessStatus::Forked };
        assert_eq!(
            standings(&report, WitnessKind::Checkpoint),
            [("checkpoint".to_owned(), expected)],
            "{lie}"
        );
        assert!(!report.is_sound(), "{lie}");
        assert_eq!(report.is_only_cut(), lie == "ahead", "{lie}: {report:#?}");
    }
    let copy = world.fork(1);
    copy.set_file("checkpoint", DurablePoint { store: StoreId([9; 16]), written: place }.encode());
    let report = verified(&copy);
    assert_eq!(
        standings(&report, WitnessKind::Checkpoint),
        [("checkpoint".to_owned(), WitnessStatus::Damaged)]
    );
    assert!(!report.is_sound());
}

#[test]
fn a_header_of_a_segment_that_lies_is_found() {
    let world = closed_store(12);
    let name = "log/000000000002.seg";
    let bytes = world.file(name).unwrap();
    let header = crate::codec::SegmentHeader::decode(&bytes).unwrap();
    for (lie, header) in [
        ("link", SegmentHeader { previous: Link([7; 32]), ..header }),
        ("seq", SegmentHeader { first_seq: Seq(header.first_seq.0 + 1), ..header }),
        // The last commit before the segment ends one grain later: the walk went over that without a word.
        ("position", SegmentHeader { previous_end: Position(header.previous_end.0 - 1), ..header }),
    ] {
        let copy = world.fork(1);
        let mut lying = bytes.clone();
        lying[..4096].copy_from_slice(&header.encode());
        copy.set_file(name, lying);
        let report = verified(&copy);
        let standing = standings(&report, WitnessKind::Segment);
        // The commit that the wrong seq points into is no part of this log any more.
        let expected = if lie == "seq" { WitnessStatus::NotCompared } else { WitnessStatus::Forked };
        assert!(standing.contains(&("segment 2".to_owned(), expected)), "{lie}: {report:#?}");
        assert!(!report.is_sound(), "{lie}");
    }
}

/// A link kept elsewhere is compared with the commit that holds its seq, wherever in that commit the seq is.
#[test]
fn links_that_were_kept_elsewhere_are_compared() {
    let world = closed_store(12);
    let (log, _) = open(&world.process(2)).unwrap();
    let frames: Vec<_> = log.frames(Position::default(), log.head()).map(Result::unwrap).collect();
    let frame = frames[4].header();
    let judge = |seq: Seq, link: Link| {
        let report = log.verify_against(|_, _| false, vec![Witness::expected(seq, link)]).unwrap();
        standings(&report, WitnessKind::Expected)[0].1
    };
    for seq in frame.first_seq.0..=frame.last_seq().0 {
        assert_eq!(judge(Seq(seq), frame.link()), WitnessStatus::Behind);
        assert_eq!(judge(Seq(seq), Link([7; 32])), WitnessStatus::Forked);
    }
    assert_eq!(judge(log.head().seq, log.head().link), WitnessStatus::Agrees);
    assert_eq!(judge(log.head().seq.next(), log.head().link), WitnessStatus::Ahead);
}

/// The newest part of a log was cut off, and the report called that damage, exit code 3. A file that ends too early has lost
/// its end, wherever in a commit that is: in its header, its spine or its bodies.
#[test]
fn a_log_that_is_cut_has_lost_its_end_and_is_not_damaged() {
    let world = closed_store_with(5, 1 << 20);
    let name = "log/000000000001.seg";
    let bytes = world.file(name).unwrap();
    let (log, _) = open(&world.fork(1).process(2)).unwrap();
    let frames: Vec<_> = log.frames(Position::default(), log.head()).map(Result::unwrap).collect();
    let start = usize::try_from(frames[3].position().offset()).unwrap();
    let end = usize::try_from(log.head().position.offset()).unwrap();
    assert!(start + FRAME_HEADER_BYTES < end);
    for length in (start..end).step_by(16) {
        let copy = world.fork(1);
        copy.set_file(name, &bytes[..length]);
        let report = verified(&copy);
        assert!(report.is_only_cut(), "cut to {length} of {end}: {report:#?}");
        assert_eq!(report.missing.unwrap().1, Seq(10), "cut to {length}");
        assert!(report.missing.unwrap().0 >= Seq(7), "cut to {length}");
        // And damage before the cut is damage.
        let mut damaged = bytes[..length].to_vec();
        damaged[4096 + 60] ^= 1;
        copy.set_file(name, damaged);
        assert!(!verified(&copy).is_only_cut(), "damaged, and cut to {length}");
    }
}
