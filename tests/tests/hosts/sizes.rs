//! Shrinking contexts, by the sizes that the provider reported: a request is smaller than the one before it where the recording has
//! a mark, and nowhere else.
//!
//! ```text
//! request 1      9,000 tokens
//! request 2     12,000
//! rewound                       a mark
//! request 3      9,400          smaller, and there is a mark: so it went back
//! ```
//!
//! A rewind that is none would hide items that the model was still shown; a missed rewind would show items that it was not shown.
//! A compaction of little may add more than it takes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acpdb_engine::Store;
use acpdb_engine::event::{Payload, ReplaceCause, SUM_TIER, Scope, TurnKind};
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_hosts::import::ImportFormat;
use acpdb_tests::support::{bytes_of, import_bytes};
use expect_test::expect;

use super::scenes::imported;

/// A step of the model's: the mark before it, and the size of its request.
struct Step {
    key: String,
    mark: Option<&'static str>,
    size: Option<u64>,
}

/// The marks between two requests of a session, and how the second one's size compares to that of the first.
#[derive(Default)]
struct Falls {
    /// By the mark: requests that are smaller behind one, and those that are not.
    marked: BTreeMap<&'static str, [u32; 2]>,
    /// Requests that are smaller without a mark.
    unexplained: Vec<String>,
    request_count: u32,
}

impl Falls {
    fn add(&mut self, name: &str, store: &Store, stream: StreamId) {
        // A reply's end may stand behind a mark: only the place where its step begins counts.
        let (mut steps, mut mark) = (Vec::<Step>::new(), None);
        for recorded in store.stream_events(stream, Seq::ZERO, Seq::MAX).unwrap() {
            match recorded.unwrap().event.payload {
                Payload::Rewound(_) => mark = Some("rewind"),
                Payload::ContextReplaced(it) if it.cause == ReplaceCause::Compaction => {
                    mark = mark.or(Some("compaction"));
                }
                Payload::ContextReplaced(_) => mark = mark.or(Some("replaced")),
                Payload::HostCleared(_) => mark = mark.or(Some("cleared")),
                Payload::TurnStarted(it) if it.kind == TurnKind::Step => {
                    steps.push(Step { key: it.key, mark: mark.take(), size: None });
                }
                // A sum of the host's is no request.
                Payload::MessageFinished(it) if it.report.service_tier.as_deref() != Some(SUM_TIER) => {
                    let usage = it.report.usage;
                    let parts = [usage.input, usage.cache_read, usage.cache_write];
                    let open = |step: &&mut Step| step.size.is_none();
                    let own = steps.iter().position(|step| step.key == it.key);
                    let step = match own {
                        Some(own) => steps.get_mut(own),
                        None => steps.iter_mut().find(open),
                    };
                    // Some replies are the host's own, and cost nothing.
                    step.unwrap().size = Some(parts.into_iter().flatten().sum::<u64>());
                }
                _ => {}
            }
        }
        let (mut before, mut mark) = (None, None);
        let mut steps = steps.into_iter().peekable();
        while let Some(step) = steps.next() {
            mark = step.mark.or(mark);
            // This host asks for a summary without its tools: that request is none of the conversation.
            if name.starts_with("codex/") && steps.peek().is_some_and(|next| next.mark == Some("compaction"))
            {
                continue;
            }
            let Some(size) = step.size.filter(|size| *size > 0) else { continue };
            self.request_count += 1;
            let is_smaller = before.is_some_and(|before| size < before);
            match mark.take().filter(|_| before.is_some()) {
                Some(mark) => self.marked.entry(mark).or_default()[usize::from(!is_smaller)] += 1,
                None if is_smaller => self.unexplained.push(format!("{name}: {before:?} -> {size}")),
                None => {}
            }
            before = Some(size);
        }
    }

    fn told(&self) -> String {
        let marked = self
            .marked
            .iter()
            .map(|(mark, [smaller, others])| format!("; {mark}: {smaller} smaller, {others} not"));
        format!("{} unexplained{}", self.unexplained.len(), marked.collect::<String>())
    }
}

fn of(name: &str, store: &Store) -> Falls {
    let mut falls = Falls::default();
    for stream in store.stream_names().unwrap().into_iter().filter(|it| it.scope == Scope::Session) {
        falls.add(name, store, stream.id);
    }
    falls
}

#[test]
fn what_is_concluded_to_have_left_the_context_was_not_sent() {
    let scenes = [
        "claude/main",
        "claude/more",
        "claude/agent",
        "claude/hooks",
        "claude/meanwhile",
        "claude/rewind",
        "claude/compact",
        "claude/fold",
        "pi/main",
        "pi/compact",
        "pi/branch",
        "codex/main",
        "codex/compact",
        "gemini/main",
        "gemini/resume",
        "opencode/main",
        "opencode/compact",
    ];
    let mut rows = String::new();
    for scene in scenes {
        let falls = of(scene, &imported(scene).store);
        assert!(falls.request_count > 1, "{scene}");
        falls.unexplained.iter().for_each(|fall| println!("{fall}"));
        rows.push_str(&format!("{scene}: {}\n", falls.told()));
    }
    expect![[r#"
        claude/main: 0 unexplained
        claude/more: 0 unexplained
        claude/agent: 0 unexplained
        claude/hooks: 0 unexplained
        claude/meanwhile: 0 unexplained
        claude/rewind: 0 unexplained; rewind: 1 smaller, 0 not
        claude/compact: 0 unexplained; compaction: 0 smaller, 1 not
        claude/fold: 0 unexplained; compaction: 1 smaller, 0 not
        pi/main: 0 unexplained
        pi/compact: 0 unexplained; compaction: 1 smaller, 0 not
        pi/branch: 0 unexplained; rewind: 1 smaller, 0 not
        codex/main: 0 unexplained
        codex/compact: 0 unexplained; compaction: 1 smaller, 0 not
        gemini/main: 0 unexplained
        gemini/resume: 0 unexplained; replaced: 0 smaller, 1 not
        opencode/main: 0 unexplained
        opencode/compact: 0 unexplained; compaction: 1 smaller, 0 not
    "#]]
    .assert_eq(&rows);
}

/// The files below a folder that Claude Code wrote.
fn recordings(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            recordings(&path, out);
        } else if path.to_string_lossy().trim_end_matches(".zst").ends_with(".jsonl") {
            out.push(path);
        }
    }
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn sessions_of_others_fall_where_their_recordings_say_so() {
    let folder = PathBuf::from(std::env::var_os("ACPDB_RECORDINGS").unwrap());
    let mut paths = Vec::new();
    for name in ["claude-code", "claude-code-large"] {
        recordings(&folder.join(name), &mut paths);
    }
    paths.sort();
    assert!(!paths.is_empty());
    let home = tempfile::tempdir().unwrap();
    let mut all = Falls::default();
    for (number, path) in paths.iter().enumerate() {
        let store = home.path().join(number.to_string());
        let store = Store::builder(store).registry(acpdb_hosts::registry()).open().unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        let bytes = bytes_of(path).unwrap();
        let _ =
            import_bytes(&store, ImportFormat::ClaudeCode, name.split('.').next().unwrap(), &bytes).unwrap();
        let falls = of(&name, &store);
        all.request_count += falls.request_count;
        all.unexplained.extend(falls.unexplained);
        for (mark, [smaller, others]) in falls.marked {
            let counts = all.marked.entry(mark).or_default();
            *counts = [counts[0] + smaller, counts[1] + others];
        }
    }
    all.unexplained.iter().for_each(|fall| println!("{fall}"));
    assert!(all.request_count > 500, "{}", all.request_count);
    expect!["0 unexplained; compaction: 1 smaller, 0 not"].assert_eq(&all.told());
}
