use expect_test::expect;
use proptest::prelude::*;

use super::*;

#[test]
fn moments_are_spelled_as_rfc_3339() {
    let shown: String = [
        0,
        -1,
        951_782_400_000_000,
        1_709_251_199_999_999,
        1_767_323_045_120_000,
        -62_167_219_200_000_000,
        253_402_300_799_000_000,
        i64::MAX,
        i64::MIN,
    ]
    .iter()
    .map(|micros| rfc3339(Micros(*micros)) + "\n")
    .collect();
    expect![[r#"
        1970-01-01T00:00:00Z
        1969-12-31T23:59:59.999999Z
        2000-02-29T00:00:00Z
        2024-02-29T23:59:59.999999Z
        2026-01-02T03:04:05.12Z
        0000-01-01T00:00:00Z
        9999-12-31T23:59:59Z
        294247-01-10T04:00:54.775807Z
        -290308-12-21T19:59:05.224192Z
    "#]]
    .assert_eq(&shown);
}

#[test]
fn an_archive_holds_the_summary_and_every_item() {
    let archive = archive_text(
        Micros(1_767_323_045_000_000),
        Some("Fixed the parser.\n\n✅ judged"),
        ["plan", "two\nlines\n", ""],
    );
    expect![[r#"
        --- ARCHIVED AT 2026-01-02T03:04:05Z ---
        SUMMARY: Fixed the parser.

        ✅ judged
        ---
        plan
        ---
        two
        lines
        ---

    "#]]
    .assert_eq(&archive);
    expect![[r#"
        --- ARCHIVED AT 1970-01-01T00:00:00Z ---
    "#]]
    .assert_eq(&archive_text(Micros(0), None, []));
}

#[test]
fn the_scratchpad_has_a_section_for_what_there_is() {
    let pad = Scratchpad {
        tasks: vec![("t1", "Fixed the parser.\n\n✅ judged"), ("t2", "Wrote docs\n")],
        facts: vec![],
        decisions: vec!["use redb"],
    };
    expect![[r#"
        # Active context

        ## Completed tasks

        - **t1**: Fixed the parser.

          ✅ judged
        - **t2**: Wrote docs

        ## Decisions

        - use redb
    "#]]
    .assert_eq(&pad.render());
    expect![[r#"
        # Active context
    "#]]
    .assert_eq(&Scratchpad::default().render());
}

proptest! {
    /// Later moments spell later, day by day over four centuries and more.
    #[test]
    fn spelling_keeps_the_order(a in 0i64..253_402_300_800, b in 0i64..253_402_300_800) {
        let (first, second) = (rfc3339(Micros(a * 1_000_000)), rfc3339(Micros(b * 1_000_000)));
        prop_assert_eq!(a.cmp(&b), first.cmp(&second));
    }
}
