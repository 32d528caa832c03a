//! Decisions and preferences.

use acpdb_hosts::import::ImportFormat;
use expect_test::expect;

use super::support::{check, import, origins};

pub(crate) const DECISIONS: &str = r##"{"id": "p-1", "title": "Old way", "status": "Final", "category": "Process", "topic": null, "created": "13-Jun-2000", "replaces": [], "superseded_by": ["p-9"]}
{"id": "p-2", "title": "New way", "status": "Active", "category": "Process", "topic": "Packaging", "created": "2001-07-07", "replaces": ["p-1", "p-0"], "superseded_by": []}
{"id": "p-3", "title": "Undated", "created": "some day"}
{"id": "p-4"}
"##;

#[test]
fn decisions_keep_their_links_and_what_has_no_place() {
    check(
        ImportFormat::MemoryDecisions,
        DECISIONS,
        expect![[r#"
            =  file cwd=-
            memory Decision p-1 Process/-=Old way by=["p-9"] for=[] created=Some(960854400) extra={"topic":null}
            memory Decision p-2 Process/-=New way by=[] for=["p-1", "p-0"] created=Some(994464000) extra={"topic":"Packaging"}
            memory Decision p-3 /-=Undated by=[] for=[] created=None extra=
            kept raw
            sessions 1 records 4 calls 0 failed 0 open 0 todos 0 unknown {} raw 1 skipped 0 cut false
        "#]],
    );
}

pub(crate) const PREFERENCES: &str = r##"{"ts": "2025-05-30T18:25:47-07:00", "commit": "1", "category": "tooling", "key": "pm", "value": "npm", "previous": null}
{"ts": "2025-05-31T18:25:47Z", "commit": "2", "category": "tooling", "key": "pm", "value": "pnpm", "previous": "npm"}
{"ts": "2025-05-31T18:25:48Z", "commit": "3", "category": "tooling", "key": "pm", "value": "PNPM", "previous": "pnpm"}
{"ts": "2025-06-01T00:00:00Z", "commit": "4", "category": "tooling", "key": "pm", "value": null, "previous": "pnpm"}
{"ts": "2025-06-02T00:00:00Z", "commit": "5", "category": "tooling", "key": "pm", "value": "npm", "previous": null}
{"ts": "2025-06-02T00:00:00Z", "commit": "5", "category": "style", "key": "pm", "value": 4, "previous": null}
{"ts": "2025-06-02T00:00:00Z", "commit": "5", "category": "style", "key": "never", "value": null, "previous": null}
{"ts": "2025-06-02T00:00:00Z", "commit": "5", "category": "style", "key": "never", "value": null, "previous": null}
"##;

#[test]
fn preferences_are_numbered_values_of_a_key() {
    check(
        ImportFormat::MemoryPreferences,
        PREFERENCES,
        expect![[r#"
            =  file cwd=-
            memory Preference tooling/pm@2025-05-30T18:25:47-07:00 tooling/pm=npm by=[] for=[] created=Some(1748654747) extra={"commit":"1","previous":null}
            memory Preference tooling/pm@2025-05-31T18:25:47Z tooling/pm=pnpm by=[] for=[] created=Some(1748715947) extra={"commit":"2","previous":"npm"}
            reinforced tooling/pm@2025-05-31T18:25:47Z
            retracted tooling/pm@2025-05-31T18:25:47Z
            memory Preference tooling/pm@2025-06-02T00:00:00Z tooling/pm=npm by=[] for=[] created=Some(1748822400) extra={"commit":"5","previous":null}
            memory Preference style/pm@2025-06-02T00:00:00Z style/pm=4 by=[] for=[] created=Some(1748822400) extra={"commit":"5","previous":null}
            retracted style/never
            retracted style/never
            sessions 1 records 8 calls 0 failed 0 open 0 todos 0 unknown {} raw 0 skipped 0 cut false
        "#]],
    );
}

#[test]
fn a_longer_file_adds_facts_and_changes_none() {
    let whole = origins(&import(ImportFormat::MemoryPreferences, "f", PREFERENCES.as_bytes()).0);
    let lines: Vec<&str> = PREFERENCES.split_inclusive('\n').collect();
    for end in 1..lines.len() {
        let part = origins(&import(ImportFormat::MemoryPreferences, "f", lines[..end].concat().as_bytes()).0);
        assert!(part.is_subset(&whole), "{end} lines");
    }
}

/// Times as numbers were read as none: an older value that was imported later replaced the newer one.
#[test]
fn a_time_may_be_a_number_since_1970() {
    let lines = r#"{"ts":1748654747,"category":"tooling","key":"pm","value":"npm"}
{"ts":1748715947000,"category":"tooling","key":"pm","value":"pnpm"}
{"ts":"1748822400","category":"tooling","key":"pm","value":"yarn"}
"#;
    check(
        ImportFormat::MemoryPreferences,
        lines,
        expect![[r#"
            =  file cwd=-
            memory Preference tooling/pm@1748654747 tooling/pm=npm by=[] for=[] created=Some(1748654747) extra=
            memory Preference tooling/pm@1748715947000 tooling/pm=pnpm by=[] for=[] created=Some(1748715947) extra=
            memory Preference tooling/pm@1748822400 tooling/pm=yarn by=[] for=[] created=Some(1748822400) extra=
            sessions 1 records 3 calls 0 failed 0 open 0 todos 0 unknown {} raw 0 skipped 0 cut false
        "#]],
    );
}
