//! Trajectories.

use acpdb_hosts::import::ImportFormat;
use expect_test::expect;

use super::support::check;

pub(crate) const RUN: &str = r##"{
  "environment": "main",
  "trajectory": [
    {"action": "ls -F\n", "observation": "a.py\n", "response": "Let me look.\n```\nls -F\n```", "thought": "Let me look.", "state": "{\"open_file\": \"n/a\", \"working_dir\": \"/repo\"}\n", "execution_time": 0.5},
    {"action": "open \"a.py\"", "observation": "", "response": "", "thought": "Open it.", "state": {"open_file": "/repo/a.py", "working_dir": "/repo"}},
    {"action": "submit", "observation": null, "response": "Done."},
    {"response": "no action"}
  ],
  "history": [
    {"role": "system", "content": "SETTING", "agent": "main"},
    {"role": "user", "content": [{"type": "text", "text": "Here is the issue"}]},
    {"role": "assistant", "content": "Let me look.", "action": "ls -F\n"},
    {"role": "user", "content": "a.py\n"}
  ],
  "info": {"exit_status": "submitted"}
}"##;

#[test]
fn a_trajectory_becomes_steps_with_a_call_each() {
    check(
        ImportFormat::SweAgent,
        RUN,
        expect![[r#"
            = swe-agent digest:f5f4 cwd=/repo
            system [text SETTING]
            user [text Here is the issue]
            -- Step
            assistant [text Let me look.\n```\nls -F\n```]
            call 0 shell {"command":"ls -F\n"}
            end 0 Completed [text a.py\n] +details
            -- Step
            assistant [text Open it.]
            call 1 shell {"command":"open \"a.py\""}
            end 1 Completed [text ] +details
            -- Step
            assistant [text Done.]
            call 2 shell {"command":"submit"}
            -- Step
            assistant [text no action]
            kept document
            sessions 1 records 4 calls 3 failed 0 open 1 todos 0 unknown {} raw 0 skipped 0 cut false
        "#]],
    );
}

#[test]
fn history_may_stand_first_and_more_than_one_run_in_a_file() {
    check(
        ImportFormat::SweAgent,
        "{\"history\":[{\"role\":\"user\",\"content\":\"x\"}],\"trajectory\":[{\"action\":\"ls\",\"observation\":1}]}\n[]\n",
        expect![[r#"
            = swe-agent digest:ec90 cwd=-
            user [text x]
            -- Step
            assistant
            call 0 shell {"command":"ls"}
            end 0 Completed [text 1]
            kept document
            = swe-agent digest:d53d cwd=-
            kept raw
            sessions 2 records 2 calls 1 failed 0 open 0 todos 0 unknown {} raw 1 skipped 0 cut false
        "#]],
    );
}
