//! The parts of events that are indexed, and how they print as rows.

use expect_test::expect;

use super::sample::{Act, Judge, Script, frames, rows};
use crate::event::KIND_LABELS;
use crate::ids::Seq;
use crate::index::rows::{FILE_CHANGED, MEMORY_RECORDED, SESSION_OPENED, TOOL_CALL_STARTED};
use crate::index::{MemoryIndex, NameKind};

fn script() -> Script {
    let call = |id: &str, given: &str, resolved: Option<&str>| Act::Call {
        id: id.to_owned(),
        tool: "Read".to_owned(),
        label: 0x00a1_b2c3,
        files: vec![(given.to_owned(), resolved.map(str::to_owned))],
    };
    let memory = |id: &str, key: Option<&str>| Act::Memory {
        id: id.to_owned(),
        category: "tooling".to_owned(),
        key: key.map(str::to_owned),
    };
    vec![
        vec![(0, Act::Open { name: "ses_01".to_owned() })],
        vec![(0, call("toolu_1", "app.ts", Some("/p/app.ts"))), (1, Act::Open { name: "ses_02".to_owned() })],
        vec![(1, Act::Turn), (0, Act::Garbled), (0, Act::Unknown)],
        vec![(1, call("toolu_1", "/p/app.ts", None)), (1, Act::File { path: "/p/app.ts".to_owned() })],
        vec![(2, memory("p1", Some("editor"))), (2, memory("f1", None))],
    ]
}

#[test]
fn kinds_that_bear_names_have_the_numbers_of_their_labels() {
    for (number, label) in [
        (SESSION_OPENED, "session_opened"),
        (TOOL_CALL_STARTED, "tool_call_started"),
        (FILE_CHANGED, "file_changed"),
        (MEMORY_RECORDED, "memory_recorded"),
    ] {
        assert!(KIND_LABELS.contains(&(number, label)), "{number} {label}");
    }
}

#[test]
fn names_of_a_small_log() {
    let frames = frames(&script());
    let mut index = MemoryIndex::default();
    index.apply(&rows(&frames)).unwrap();
    let mut text = String::new();
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    let judge = Judge::new(&script(), &frames);
    for (kind, text) in judge.texts() {
        for entry in index.names(kind, &text, false, 99).unwrap() {
            line(format!("{kind:?} {text:?}: stream {:02x} {}", entry.stream.as_bytes()[0], entry.seq));
        }
    }
    expect![[r#"
        Session "ses_01": stream ff #1
        Session "ses_02": stream fe #3
        Call "toolu_1": stream fe #7
        Call "toolu_1": stream ff #2
        Label "r_a1b2c": stream fe #7
        Label "r_a1b2c": stream ff #2
        File "st.ppa": stream ff #2
        File "st.ppa/p/": stream fe #8
        File "st.ppa/p/": stream ff #2
        Memory "f1": stream fd #10
        Memory "p1": stream fd #9
    "#]]
    .assert_eq(&text);
    judge.check(&index);
}

/// Rows are kept over program versions. If this changes, `INDEX_VERSION` must change with it.
#[test]
fn rows_of_version_6_are_these() {
    let frames = frames(&script());
    let mut index = MemoryIndex::default();
    index.apply(&rows(&frames)).unwrap();
    expect!["11 rows, 98fe7abe853584d2acf0274b523cbbf1c8df6fe5a3d84c9035890a0f06218b53"].assert_eq(&format!(
        "{} rows, {}",
        index.row_count(),
        index.digest().unwrap()
    ));
}

#[test]
fn a_frame_that_does_not_follow_is_refused_whole_and_a_known_one_is_skipped() {
    let frames = frames(&script());
    let all = rows(&frames);
    let mut index = MemoryIndex::default();
    index.apply(&all[..2]).unwrap();
    let before = index.digest().unwrap();
    for (gap, reason) in [
        (&all[3..], "a frame begins at #7, expected #4"),
        (&[all[2].clone(), all[4].clone()], "a frame begins at #9, expected #7"),
        (&[all[3].clone(), all[2].clone()], "a frame begins at #7, expected #4"),
    ] as [(&[_], _); 3]
    {
        assert_eq!(index.apply(gap).unwrap_err().reason, reason);
        assert_eq!(index.digest().unwrap(), before);
    }
    let watermark = index.apply(&all[..2]).unwrap();
    assert_eq!((watermark.seq, watermark.end), (Seq(3), Some(frames[1].header().end())));
    assert_eq!(index.digest().unwrap(), before);
    let watermark = index.apply(&all).unwrap();
    assert_eq!((watermark.seq, watermark.link), (Seq(10), frames[4].header().link()));
}

/// A zero byte once sorted a name and the name that it begins in the wrong order, and found one for the other.
#[test]
fn names_with_zero_bytes_are_found_as_themselves_and_in_order() {
    let named = |id: &str| Act::Memory { id: id.to_owned(), category: "any".to_owned(), key: None };
    let script = vec![
        vec![(0, named("a\0b")), (1, named("a\0")), (1, named("a"))],
        vec![(0, named("a\0")), (0, named("a")), (2, named("\0")), (2, named("a\u{1}"))],
        vec![(2, named("a\0\0")), (1, named("ab")), (0, named("é"))],
    ];
    let frames = frames(&script);
    let mut index = MemoryIndex::default();
    index.apply(&rows(&frames)).unwrap();
    let names = |text: &str, prefix| {
        let found = index.names(NameKind::Memory, text, prefix, 99).unwrap();
        found.into_iter().map(|entry| entry.seq.0).collect::<Vec<_>>()
    };
    assert_eq!(names("a", false), [3, 5]);
    assert_eq!(names("a\0", false), [2, 4]);
    // a\0 twice, a\0\0, a\0b
    assert_eq!(names("a\0", true), [2, 4, 8, 1]);
    assert_eq!(names("\0", true), [6]);
    Judge::new(&script, &frames).check(&index);
}

/// Names of 20 bytes and more are kept as their first 14 and a digest.
#[test]
fn long_names_are_found_whole_and_by_what_is_kept_of_their_beginning() {
    let named = |id: &str| Act::Memory { id: id.to_owned(), category: "any".to_owned(), key: None };
    let script = vec![vec![
        (0, named("/project/src/a")),
        (0, named("/project/src/a.rs")),
        (0, named("/project/src/a/12")),
        (0, named("/project/src/a/123")),
        (0, named("/project/src/a/1234")),
        (0, named("/project/src/a/12345")),
        (0, named("/project/src/b/12345")),
        (0, named("/project/src/a/123456")),
        (1, named("/project/src/a/12345")),
        (1, named("/project/src/\0\0/12345")),
    ]];
    let frames = frames(&script);
    let mut index = MemoryIndex::default();
    index.apply(&rows(&frames)).unwrap();
    let names = |text: &str, prefix| {
        let found = index.names(NameKind::Memory, text, prefix, 99).unwrap();
        let mut seqs: Vec<u64> = found.into_iter().map(|entry| entry.seq.0).collect();
        seqs.sort_unstable();
        seqs
    };
    for (text, whole, beginning) in [
        ("/project/src/a", &[1][..], &[1, 2, 3, 4, 5, 6, 8, 9][..]),
        ("/project/src/", &[], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        ("/project/src/a.rs", &[2], &[2, 6, 8, 9]),
        ("/project/src/a/12", &[3], &[3, 4, 5, 6, 8, 9]),
        ("/project/src/a/1234", &[5], &[5, 6, 8, 9]),
        ("/project/src/a/12345", &[6, 9], &[6, 8, 9]),
        ("/project/src/a/123456", &[8], &[6, 8, 9]),
        ("/project/src/b/12345", &[7], &[7]),
        ("/project/src/\0\0/12345", &[10], &[10]),
        ("/project/src/c", &[], &[]),
    ] {
        assert_eq!(names(text, false), whole, "{text}");
        assert_eq!(names(text, true), beginning, "{text}..");
    }
    Judge::new(&script, &frames).check(&index);
}
