use expect_test::expect;

use super::*;

#[test]
fn texts() {
    let shown = [
        output_text("t 1/ä", "S:1", None, TaskArchive::File),
        output_text("t 1's", "S:1", None, TaskArchive::Command),
        output_text("t1", "S1", Some("Fixed."), TaskArchive::Command),
        words_text("t1", None),
        words_text("t1", Some("Fixed.")),
        rolling_text("t1", "../S1", TaskArchive::File),
        rolling_text("t1", "S1", TaskArchive::Command),
    ];
    expect![[r#"
        [Task t 1/ä completed: output evicted to archive. Use 'grep' on .sigma/archives/S_1/t_1_ä.log if previous logs are needed.]
        [Task t 1's completed: output evicted to archive. Use `acpdb task archive 't 1'\''s' --session S:1` if previous logs are needed.]
        [Task t1 completed. Raw logs evicted to archive. 
        SUMMARY: Fixed.]
        [Assistant thinking/text for task t1 evicted to save tokens.]
        [Assistant thinking/text for task t1 evicted to save tokens. 
        SUMMARY: Fixed.]
        [Tool output for task t1 evicted (Rolling Prune) to keep context small. Use 'grep' on .sigma/archives/.._S1/t1.log if previous logs are needed.]
        [Tool output for task t1 evicted (Rolling Prune) to keep context small. Use `acpdb task archive t1 --session S1` if previous logs are needed.]"#]].assert_eq(&shown.join("\n"));
}
