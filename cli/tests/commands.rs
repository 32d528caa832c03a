//! Verbs that record, as a user sees them: their output, their exit code, and that a refusal records nothing.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at what it did not expect"
)]

mod done;

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use done::{Done, finish};

/// A store with one session of two calls, a text and a todo list.
struct Shell {
    folder: TempDir,
}

impl Shell {
    fn new() -> Self {
        let shell = Self { folder: TempDir::new().unwrap() };
        let long = "x".repeat(400);
        let lines = [
            r#"{"session":"s1","host":"opencode","project":"p","turn":true,"message":{"role":"user","text":"I prefer pnpm here."}}"#.to_owned(),
            format!(r#"{{"session":"s1","host":"opencode","tool":{{"call":"c1","tool":"read","params":{{"filePath":"/a"}},"output":"{long}"}}}}"#),
            r#"{"session":"s1","host":"opencode","message":{"role":"assistant","text":"First I look at the file that was named, then at its tests, and then I say what to do."}}"#.to_owned(),
            r#"{"session":"s1","host":"opencode","tool":{"call":"t1","tool":"todowrite","params":{"todos":[]},"output":"[{\"id\":\"1\",\"content\":\"Look\\u001b[2J\",\"status\":\"in_progress\"}]"}}"#.to_owned(),
        ];
        let done = shell.run(&["append", "--stdin"], &lines.join("\n"));
        assert_eq!(done.code, 0, "{done:?}");
        shell
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn run(&self, args: &[&str], stdin: &str) -> Done {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command.args(args).arg("--db").arg(self.store()).env_remove("ACPDB_PATH").env("COLUMNS", "120");
        finish(&mut command, stdin)
    }

    /// Checks that the command prints `expected` and ends with 0.
    fn says(&self, args: &[&str], expected: &str) {
        let done = self.run(args, "");
        assert_eq!((done.out.trim_end(), done.code), (expected, 0), "{args:?}: {}", done.err);
    }

    /// Checks that the command ends with `code`, says `part` on stderr, and leaves the store unchanged.
    fn refuses(&self, args: &[&str], stdin: &str, code: i32, part: &str) {
        let before = self.head();
        let done = self.run(args, stdin);
        assert_eq!(done.code, code, "{args:?}: {done:?}");
        assert!(done.err.contains(part), "{args:?}: {}", done.err);
        assert_eq!(self.head(), before, "{args:?} recorded something");
    }

    fn json(&self, args: &[&str], stdin: &str) -> serde_json::Value {
        let mut args = args.to_vec();
        args.push("--json");
        let done = self.run(&args, stdin);
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{args:?}: {error}: {done:?}"))
    }

    fn head(&self) -> serde_json::Value {
        self.json(&["info"], "")["head"].clone()
    }
}

#[test]
fn the_context_is_acted_on_by_hash_pattern_seq_and_call() {
    let shell = Shell::new();
    let call = shell.json(&["history", "tool:read"], "")["items"][0]["item"].as_str().unwrap().to_owned();
    shell.says(&["context", "discard", "c1"], &format!("{call} hidden; undo: acpdb undo"));
    shell.says(&["context", "restore", "c1"], &format!("{call} shown again; undo: acpdb undo"));
    let text = shell.json(&["history", "First"], "")["items"][0]["item"].as_str().unwrap().to_owned();
    shell.says(
        &["context", "distill", "First I...to do.=the plan = done"],
        &format!("{text} hidden behind a summary; undo: acpdb undo"),
    );
    let context = shell.run(&["context", "s1", "--full"], "");
    assert!(context.out.contains("[distilled] the plan = done"), "{}", context.out);
    let request = r#"{"action":"restore","targets":[["first i...TO DO."]]}"#;
    let reply = shell.json(&["context", "restore", "--stdin"], request);
    assert_eq!((&reply["schema"], &reply["reply"]), (&"acpdb.act/1".into(), &"Restored 1 message(s)".into()));
    assert_eq!(reply["shown"].as_array().unwrap().len(), 1);
    shell.refuses(
        &["context", "discard", "no such...text"],
        "",
        7,
        "no message is shown that matches no such",
    );
    shell.says(&["context", "pin", "c1"], &format!("{call} pinned; undo: acpdb undo"));
    shell.says(&["context", "unpin", "c1"], &format!("{call} left to the rules again; undo: acpdb undo"));
    shell.refuses(&["context", "distill", "c1"], "", 2, "Summary required for distill action on target: c1");
    shell.refuses(&["context", "discard"], "", 2, "in a shell, write 297 or '#297'");
    shell.refuses(&["context", "discard", "#999"], "", 7, "nothing in this stream is called `#999`");
    shell.refuses(&["context", "discard", "c1", "--session", "s9"], "", 7, "s9");
    shell.refuses(&["context", "discard", "--stdin"], request, 2, "standard input asks to restore");
    shell.refuses(&["context", "discard", "c1", "--at", "#3"], "", 2, "--at is for reading");
}

/// `context restore 297` printed "Restored 0 message(s)" and ended well: of the three forms of an id only `#297` was read, which a
/// shell takes for a comment.
#[test]
fn acts_take_the_ids_that_explain_takes() {
    let shell = Shell::new();
    let call = shell.json(&["history", "tool:read"], "")["items"][0]["item"].as_str().unwrap().to_owned();
    let number = call.trim_start_matches('#').to_owned();
    // The event behind the message is the message's end, and names it, too.
    let end = (number.parse::<u64>().unwrap() + 1).to_string();
    for id in [number.clone(), format!("@{number}"), call.clone(), "c1".to_owned(), end] {
        shell.says(&["context", "discard", &id], &format!("{call} hidden; undo: acpdb undo"));
        let again = shell.run(&["context", "discard", &id], "");
        assert_eq!(
            (again.code, again.out.contains("nothing changed: hidden already")),
            (0, true),
            "{again:?}"
        );
        shell.says(&["context", "restore", &id], &format!("{call} shown again; undo: acpdb undo"));
    }
    shell.refuses(&["context", "discard", "read the plan"], "", 7, "acpdb history lists them");
    shell.refuses(&["context", "discard", "r_fffff"], "", 7, "no item is called");
    shell.refuses(&["context", "restore", "99999"], "", 7, "no item is called \"99999\"");
    shell.refuses(&["context", "restore", "@99999"], "", 7, "nothing in this stream is called");
    // The model's own tool answers with its recorded words.
    let request = r#"{"action":"discard","targets":[["no such...text"]]}"#;
    assert_eq!(
        shell.json(&["context", "discard", "--stdin"], request)["reply"],
        "No matching messages found"
    );
}

/// `pin` of a superseded item said "Pinned 1 item(s)", and `explain` that the item is hidden and that no rule hides it.
#[test]
fn a_pin_of_a_hidden_item_says_what_it_is_good_for() {
    let shell = Shell::new();
    let line = r#"{"session":"s1","host":"opencode","turn":true,"tool":{"call":"c2","tool":"read","params":{"filePath":"/a"},"output":"y"}}"#;
    assert_eq!(shell.run(&["append", "--stdin"], line).code, 0);
    let call = shell.json(&["history", "tool:read"], "")["items"][0]["item"].as_str().unwrap().to_owned();
    let number = call.trim_start_matches('#');
    shell.says(
        &["context", "pin", number],
        &format!(
            "{call} pinned; undo: acpdb undo\n\
             {call} stays hidden: a pin is for later rules; acpdb context restore {number} shows it now"
        ),
    );
    let explained = shell.run(&["explain", number], "").out;
    assert!(explained.contains("It is pinned: no later rule changes it; a restore shows it."), "{explained}");
    assert!(explained.contains(&format!("acpdb context restore {number}")), "{explained}");
    assert_eq!(shell.run(&["context", "restore", number], "").code, 0);
    assert!(shell.run(&["explain", number], "").out.contains("It is pinned: no rule hides it."));
}

#[test]
fn memory_is_added_found_drawn_and_refused() {
    let shell = Shell::new();
    let add =
        |value: &str| shell.run(&["memory", "add", "preference", "package_manager", value, "-p", "p"], "");
    assert!(add("npm").out.contains("recorded: preference p1 tooling/package_manager = npm"));
    assert!(add("NPM").out.contains("reinforced"));
    assert!(add("yarn").out.contains("in the place of p1: npm"));
    shell.says(&["memory", "get", "package_manager"], "yarn");
    let history = shell.run(&["memory", "history", "package_manager"], "").out;
    let marks: Vec<(&str, bool)> =
        history.lines().skip(1).map(|line| (&line[..3], line.contains("superseded"))).collect();
    assert_eq!(marks, [("○", true), ("●", false)], "{history}");
    let list = shell.json(&["memory", "list", "--all"], "");
    let items = list["items"].as_array().unwrap();
    let row =
        |item: &serde_json::Value| format!("{} {} {}", item["id"], item["standing"], item["superseded_by"]);
    assert_eq!(
        items.iter().map(row).collect::<Vec<_>>(),
        [r#""p1" "superseded" ["p2"]"#, r#""p2" "current" []"#]
    );
    shell.refuses(&["memory", "get", "pakage_manager"], "", 7, "did you mean package_manager?");
    shell.refuses(&["memory", "add", "prefrence", "a", "b"], "", 2, "did you mean preference?");
    shell.refuses(
        &["memory", "add", "fact", "x", "--category", "personnal"],
        "",
        2,
        "did you mean 'personal'?",
    );
    shell.refuses(&["memory", "add", "fact", "x", "--confidence", "1.5"], "", 2, "between 0 and 1");
    shell.refuses(&["memory", "supersede", "p2", "p2"], "", 2, "cannot supersede itself");
    shell.refuses(&["memory", "retract", "p9"], "", 7, "p9");
    shell.refuses(&["memory", "propose", "s1", "--accept", "7"], "", 2, "no number of a proposal");
    let accepted = shell.run(&["memory", "propose", "s1", "--accept", "all"], "");
    assert!(accepted.out.contains("tooling/package_manager = pnpm"), "{accepted:?}");
    shell.says(&["memory", "get", "tooling/package_manager"], "pnpm");
}

#[test]
fn an_export_is_imported_again_and_adds_nothing_twice() {
    let shell = Shell::new();
    for value in ["npm", "yarn"] {
        let done = shell.run(&["memory", "add", "preference", "package_manager", value, "-p", "p"], "");
        assert_eq!(done.code, 0, "{done:?}");
    }
    let _ =
        shell.run(&["memory", "add", "decision", "Use redb", "--rationale", "it is embedded", "-p", "p"], "");
    let exported = shell.run(&["memory", "export", "--all", "-p", "p"], "").out;
    let file = shell.folder.path().join("copy.jsonl");
    std::fs::write(&file, &exported).unwrap();
    let import = ["memory", "import", file.to_str().unwrap()];
    assert_eq!(shell.run(&import, "").code, 0);
    let again = shell.json(&import, "");
    assert_eq!((&again["events"], &again["project"]), (&0.into(), &"copy".into()));
    assert_eq!(shell.run(&["memory", "export", "--all", "-p", "copy"], "").out, exported);
    std::fs::write(&file, "{\"schema\":\"acpdb.memory_item/1\"}\n").unwrap();
    shell.refuses(&import, "", 8, "line 1 was not recorded");
    shell.refuses(&["memory", "import", "/no/such/file"], "", 7, "cannot read");
}

#[test]
fn policies_are_set_by_preset_file_and_key_and_refused_with_what_is_near() {
    let shell = Shell::new();
    let file = shell.folder.path().join("mine.toml");
    std::fs::write(&file, "preset = \"careful\"\n[file]\nedit_quiet_steps = 2\n").unwrap();
    let preset = || shell.json(&["policy", "show"], "")["changed"].clone();
    for (what, changed) in [
        (vec!["balanced"], serde_json::json!({"preset": "balanced"})),
        (vec!["retry=on"], serde_json::json!({"preset": "balanced", "retry": true})),
        (vec![file.to_str().unwrap()], serde_json::json!({"preset": "careful", "file.edit_quiet_steps": 2})),
    ] {
        let args = [vec!["policy", "set"], what].concat();
        assert_eq!(shell.run(&args, "").code, 0, "{args:?}");
        assert_eq!(preset(), changed, "{args:?}");
    }
    shell.refuses(&["policy", "set", "carful"], "", 2, "did you mean `careful`?");
    shell.refuses(&["policy", "set", "file.edit_clear=-"], "", 2, "did you mean `file.edit_clears`?");
    shell.refuses(&["policy", "set", "/no/such.toml"], "", 7, "cannot read");
    shell.refuses(&["policy", "set", "acp", "--session", "s9"], "", 7, "s9");
}

#[test]
fn tasks_and_todos_are_shown_and_changed() {
    let shell = Shell::new();
    // A host's texts cannot steer the terminal.
    let list = shell.run(&["todo", "list"], "").out;
    assert!(list.contains("▶ Look\\u{1b}[2J") && !list.contains('\u{1b}'), "{list:?}");
    assert_eq!(shell.json(&["todo", "list"], "")["items"][0]["status"], "in_progress");
    shell.refuses(&["history", "--todo", "9"], "", 7, "no todo entry");
    let update = |json: &str| shell.run(&["task", "update"], json);
    assert_eq!(
        update(r#"{"tasks":[{"id":"A","content":"do it","status":"in_progress"}]}"#).out,
        "Updated 1 task\n"
    );
    let second = r#"{"tasks":[{"id":"B","status":"in_progress"}]}"#;
    shell.refuses(&["task", "update"], second, 2, "complete task 'A' before starting 'B'");
    let refused = shell.json(&["task", "update"], second);
    assert_eq!(refused["reply"], "Error updating task: complete task 'A' before starting 'B'");
    let done = r#"{"tasks":[{"id":"A","status":"completed","result_summary":"It is done and it works."}]}"#;
    assert_eq!(update(done).out, "Updated 1 task; completed and evicted: A\n");
    let archive = shell.run(&["task", "archive", "A"], "").out;
    assert!(archive.starts_with("--- ARCHIVED AT ") && archive.contains("SUMMARY: It is done"), "{archive}");
    shell.refuses(&["task", "archive", "Z"], "", 7, "no task");
    assert!(shell.run(&["task", "scratchpad"], "").out.starts_with("# Active context\n"));
}

/// Lists lost their shape in narrow terminals: headings and hosts were wrapped into columns of two letters.
#[test]
fn columns_are_left_out_and_never_wrapped() {
    let shell = Shell::new();
    let feed = |number: u32| {
        format!(
            r#"{{"session":"session-{number}","host":"claude-code","turn":true,"message":{{"role":"user","text":"A title that is much longer than any terminal is wide, number {number}, and goes on and on and on and on"}}}}"#
        )
    };
    let lines: Vec<String> = (0..5).map(feed).collect();
    assert_eq!(shell.run(&["append", "--stdin"], &lines.join("\n")).code, 0);
    for width in [40, 80, 120, 200] {
        for verb in [&["sessions"][..], &["sessions", "--sort", "title"], &["sessions", "kind:text"]] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
            command.args(verb).arg("--db").arg(shell.store()).env("COLUMNS", width.to_string());
            let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
            let rows: Vec<&str> = out.lines().collect();
            assert_eq!(rows.len(), 7, "a heading and six sessions at {width}:\n{out}");
            assert!(rows.iter().all(|row| row.chars().count() <= width), "{width}:\n{out}");
            assert!(rows[0].starts_with("id ") && rows[0].contains("title"), "{width}:\n{out}");
        }
    }
}

/// An undo took back the undo before it, so that the first of two discards was never reached; after a rewind it failed. Now repeated undos go back
/// through the acts, and repeated redos forward.
#[test]
fn undo_goes_back_through_the_acts_and_redo_forward() {
    let shell = Shell::new();
    let acted = |args: &[&str]| {
        let done = shell.run(args, "");
        (done.code, done.out.split_whitespace().take(5).collect::<Vec<_>>().join(" "))
    };
    let hidden = || {
        let text = shell.run(&["history", "state:discarded"], "").out;
        ["prefer pnpm", "First I look"].map(|part| text.contains(part))
    };
    let message = |part: &str| {
        let done = shell.run(&["log", "--texts", "--json"], "");
        let rows = done.out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let mut rows = rows.filter(|row| row.to_string().contains(part));
        rows.next().unwrap_or_else(|| panic!("{part}: {}", done.out))["seq"].to_string()
    };
    let (first, second) = (format!("#{}", message("pnpm")), format!("#{}", message("First I look")));
    let base = shell.head().as_u64().unwrap();
    assert_eq!(shell.run(&["context", "discard", &first], "").code, 0);
    assert_eq!(shell.run(&["context", "discard", &second], "").code, 0);
    let (one, two) = (base + 1, base + 2);
    assert_eq!(hidden(), [true, true]);
    assert_eq!(acted(&["undo"]), (0, format!("took back #{two} discarded: 1")));
    assert_eq!(hidden(), [true, false]);
    assert_eq!(acted(&["undo"]), (0, format!("took back #{one} discarded: 1")));
    assert_eq!(hidden(), [false, false]);
    shell.refuses(&["undo"], "", 7, "no act on the context of s1 is left to take back");
    assert_eq!(acted(&["undo", "--redo"]), (0, format!("did again #{one} discarded: 1")));
    assert_eq!(hidden(), [true, false]);
    assert_eq!(acted(&["undo", "--redo"]), (0, format!("did again #{two} discarded: 1")));
    assert_eq!(hidden(), [true, true]);
    shell.refuses(&["undo", "--redo"], "", 7, "nothing that was done to the context of s1 is undone");
    assert_eq!(acted(&["undo"]).0, 0);
    assert_eq!(acted(&["undo"]).0, 0);
    assert_eq!(hidden(), [false, false]);
    // An act after the undos is the next to be taken back.
    assert_eq!(shell.run(&["context", "pin", &first], "").code, 0);
    assert!(acted(&["undo"]).1.ends_with("pinned: 1"), "a pin");
    shell.refuses(&["undo"], "", 7, "is left to take back");
}

/// A discarded item is distilled; the undo of that is two acts, and one step back.
#[test]
fn an_undo_of_several_acts_is_one_step_back() {
    let shell = Shell::new();
    assert_eq!(shell.run(&["context", "discard", "c1"], "").code, 0);
    let base = shell.head().as_u64().unwrap();
    assert_eq!(shell.run(&["context", "restore", "c1"], "").code, 0);
    assert_eq!(shell.run(&["context", "distill", "c1=the file"], "").code, 0);
    assert_eq!(shell.run(&["undo"], "").code, 0, "the distill");
    assert_eq!(shell.run(&["context", "discard", "c1"], "").code, 0);
    let done = shell.run(&["undo"], "");
    assert!(done.out.starts_with("took back") && done.out.contains("discarded"), "{done:?}");
    assert!(shell.head().as_u64().unwrap() > base);
}

/// After a rewind the acts behind it are off the branch, and `undo` takes back the newest act that is left. A rewind to the branch that was left
/// brought nothing back, and made the hint of the rewind before it wrong.
#[test]
fn after_a_rewind_undo_finds_the_acts_that_are_left() {
    let shell = Shell::new();
    let base = shell.head().as_u64().unwrap();
    assert_eq!(shell.run(&["context", "pin", "c1"], "").code, 0);
    assert_eq!(shell.run(&["context", "discard", "First I...to do."], "").code, 0);
    let to = format!("#{}", base + 1);
    let would = shell.json(&["rewind", &to, "--dry-run"], "");
    assert_eq!((&would["dry_run"], &would["last_seq"]), (&true.into(), &serde_json::Value::Null), "{would}");
    assert!(shell.run(&["rewind", &to, "--dry-run"], "").out.contains("would leave the branch"));
    assert_eq!(shell.head(), base + 2, "nothing is done");
    let rewound = shell.run(&["rewind", &to], "");
    assert!(rewound.err.contains(&format!("acpdb fork s1 --at '#{}'", base + 2)), "{rewound:?}");
    shell.refuses(&["rewind", "@rewind-1"], "", 7, "is on a branch that was left");
    shell.refuses(&["rewind", "@rewind-1", "--dry-run"], "", 7, "is on a branch that was left");
    // Nor does it if there is something to take off: it said only that.
    let said = r#"{"session":"s1","message":{"role":"user","text":"and on"}}"#;
    assert_eq!(shell.run(&["append", "--stdin"], said).code, 0);
    let again = shell.run(&["rewind", &format!("#{}", base + 2)], "");
    assert!(again.code == 0 && again.err.contains("is on a branch that was left"), "{again:?}");
    let done = shell.run(&["undo"], "");
    assert!(done.out.starts_with(&format!("took back #{} pinned", base + 1)), "{done:?}");
}

/// Of two paths, one of which was mistyped, the answer was that no store is named.
#[test]
fn an_import_of_a_policy_names_the_path_that_is_not_there() {
    let shell = Shell::new();
    let path = |name: &str| shell.folder.path().join(name).display().to_string();
    let (here, gone) = (path("here.jsonl"), path("gone"));
    std::fs::write(&here, "").unwrap();
    shell.refuses(&["import", "--policy", &here, &gone], "", 7, &format!("error: {gone} is not there"));
    shell.refuses(
        &["import", "--policy", &gone, &gone],
        "",
        7,
        &format!("error: {gone}, {gone} are not there"),
    );
    shell.refuses(&["import", "--policy", &here], "", 2, "no store is named");
}

/// `sessions` folded all sessions that came by `append`, every time: nothing kept their figures.
#[test]
fn many_lines_that_are_appended_leave_their_figures_behind() {
    let shell = Shell::new();
    let kept = shell.store().join("snap/sessions.aside");
    assert!(!kept.exists(), "a few lines are folded as fast as their figures are read");
    let lines: Vec<String> = (0..260)
        .map(|n| format!(r#"{{"session":"s2","message":{{"role":"user","text":"line {n}"}}}}"#))
        .collect();
    assert_eq!(shell.run(&["append", "--stdin"], &lines.join("\n")).code, 0);
    let first = std::fs::read(&kept).unwrap();
    let one = r#"{"session":"s2","message":{"role":"user","text":"one more"}}"#;
    assert_eq!(shell.run(&["append", "--stdin"], one).code, 0);
    assert_eq!(std::fs::read(&kept).unwrap(), first, "little is new");
    // Verbs that make figures void make them anew: after each of these, every list folded all sessions.
    let mut before = first;
    for act in [&["erase", "c1", "--reason", "r"][..], &["policy", "set", "calm"]] {
        assert_eq!(shell.run(act, "").code, 0, "{act:?}");
        let now = std::fs::read(&kept).unwrap();
        assert_ne!(now, before, "{act:?}");
        before = now;
    }
}

/// A dry run listed what an erasure of the whole item would hit.
#[test]
fn a_dry_run_of_a_stretch_lists_what_the_erasure_then_hits() {
    let shell = Shell::new();
    let hit = |args: &[&str]| {
        let report = shell.json(&[&["erase", "t1", "--span", "20..24"], args].concat(), "");
        // An erased text belongs to no item any more.
        let rows = report["hit"].as_array().unwrap().iter();
        let rows = rows.map(|row| (row["seq"].as_u64().unwrap(), row["bytes"].as_u64().unwrap()));
        let mut sums = std::collections::BTreeMap::new();
        rows.for_each(|(seq, bytes)| *sums.entry(seq).or_insert(0) += bytes);
        sums
    };
    let dry = hit(&["--dry-run"]);
    assert_eq!((dry.len(), &dry), (1, &hit(&["--reason", "r"])), "the result and its list");
}

/// A host writes the first line of a session before it writes times and the folder, and a hook reads it at once. The session then had no
/// beginning and no project for ever.
#[test]
fn a_session_whose_first_line_says_little_has_its_folder_and_beginning_from_the_next() {
    let shell = Shell::new();
    let lines = [
        r#"{"type":"file-history-snapshot","messageId":"x","snapshot":{"messageId":"x","trackedFileBackups":{}},"isSnapshotUpdate":false}"#,
        r#"{"sessionId":"s7","cwd":"/home/dev/shop","version":"2.1.39","type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-01-05T10:00:00.000Z","message":{"role":"user","content":"hello"}}"#,
    ];
    let path = shell.folder.path().join("s7.jsonl");
    for count in 1..=lines.len() {
        std::fs::write(&path, lines[..count].join("\n") + "\n").unwrap();
        // Nothing is said in the first line alone, so nothing of it is recorded yet.
        let code = shell.run(&["import", "--format", "claude-code", path.to_str().unwrap()], "").code;
        assert_eq!(code, i32::from(count == 1));
    }
    let told = shell.json(&["sessions", "project:shop"], "");
    assert_eq!(
        (&told["items"][0]["id"], told["items"][0]["began"].as_str()),
        (&"s7".into(), Some("2026-01-05T10:00:00Z")),
        "{told}"
    );
    for line in [
        r#"{"session":"s8","message":{"role":"user","text":"a"}}"#,
        r#"{"session":"s8","cwd":"/home/dev/mill","message":{"role":"user","text":"b"}}"#,
    ] {
        assert_eq!(shell.run(&["append", "--stdin"], line).code, 0);
    }
    assert_eq!(shell.json(&["sessions", "project:mill"], "")["items"][0]["id"], "s8");
}
