//! Recorded sessions, where there are any beside the repository: valid for every provider at every turn.

use acpdb_engine::ids::{Seq, Turn};
use acpdb_engine::{At, Store};
use acpdb_hosts::export::{ExportChoices, Format, Selection, Unfinished};
use acpdb_hosts::import;
use acpdb_tests::support::{bytes_of, import_bytes, recordings};

use super::judged;

/// Folders of recordings.
const FOLDERS: &[(&str, import::ImportFormat)] = &[
    ("claude-code-large/context-evaluator", import::ImportFormat::ClaudeCode),
    ("claude-code/context-evaluator", import::ImportFormat::ClaudeCode),
    ("claude-code/entire-cli", import::ImportFormat::ClaudeCode),
    ("codex/session-bridge", import::ImportFormat::Codex),
    ("copilot-cli/agentv", import::ImportFormat::CopilotCli),
    ("gemini-cli/entire-cli", import::ImportFormat::GeminiCli),
    ("gemini-cli/session-bridge", import::ImportFormat::GeminiCli),
    ("openai-messages/tau-bench", import::ImportFormat::OpenaiMessages),
    ("opencode/gatomia-vscode", import::ImportFormat::Opencode),
    ("opencode/session-bridge", import::ImportFormat::Opencode),
    ("swe-agent", import::ImportFormat::SweAgent),
];

/// A store with one folder of recordings.
pub(super) fn store_of(folder: &str, format: import::ImportFormat) -> (tempfile::TempDir, Store) {
    let folder = recordings().join(folder);
    let home = tempfile::tempdir().unwrap();
    let store = Store::builder(home.path().join("store")).registry(acpdb_hosts::registry()).open().unwrap();
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().split('.').next().unwrap().to_owned();
        let report = import_bytes(&store, format, &name, &bytes_of(&path).unwrap()).unwrap().report;
        assert!(report.is_complete(), "{name}");
    }
    (home, store)
}

/// Every stream at every `stride`th turn and at its end, in every format.
fn valid_at_turns(stride: usize) {
    for (folder, format) in FOLDERS {
        let (_home, store) = store_of(folder, *format);
        let mut count = 0_u64;
        for stream in store.stream_names().unwrap() {
            let head = store.view(stream.id).unwrap();
            let turns = head.state().turn(Seq::MAX).get();
            let every = (0..=turns).step_by(stride).map(|turn| At::Turn(Turn(turn))).chain([At::Head]);
            for at in every {
                let Ok(view) = store.view_at(stream.id, &at) else { continue };
                for format in Format::REQUESTS {
                    let context = format!("{folder} {} {at:?}", stream.name);
                    let _ = judged(&view, format, &ExportChoices::default(), &context);
                    // As the most demanding models want it, with calls that are still running.
                    let model = match format {
                        Format::Anthropic => "claude-opus-5-5",
                        Format::Gemini => "gemini-3-pro",
                        _ => "gpt-5.5",
                    };
                    let unfinished = Unfinished::Synthetic;
                    let options = ExportChoices {
                        unfinished,
                        model: Some(model.to_owned()),
                        ..ExportChoices::default()
                    };
                    let _ = judged(&view, format, &options, &context);
                    count += 2;
                }
            }
            for format in Format::REQUESTS {
                for selection in [Selection::Whole, Selection::History] {
                    let options = ExportChoices { selection, ..ExportChoices::default() };
                    let _ = judged(&head, format, &options, &format!("{folder} {}", stream.name));
                }
            }
        }
        println!("{folder}: {count} exports");
    }
}

/// `ACPDB_TEST_TURN_STRIDE=1 cargo test --release -p acpdb-tests --test exports recorded` looks at every turn, which takes
/// minutes without optimisation.
#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn recorded_sessions_are_valid_for_every_provider() {
    let stride = std::env::var("ACPDB_TEST_TURN_STRIDE").map_or(23, |text| text.parse().unwrap());
    valid_at_turns(stride);
}
