use expect_test::expect;

use super::*;

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
        notes: vec!["the pages are slow"],
    };
    expect![[r#"
        # Active context

        ## Completed tasks

        - **t1**: Fixed the parser.

          ✅ judged
        - **t2**: Wrote docs

        ## Decisions

        - use redb

        ## Notes

        - the pages are slow
    "#]]
    .assert_eq(&pad.render());
    expect![[r#"
        # Active context
    "#]]
    .assert_eq(&Scratchpad::default().render());
}
