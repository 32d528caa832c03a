//! A damaged store as its user sees it: all sound data, a message about the rest, and exit code 3.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::path::Path;
use std::process::{Command, Output};

fn run(store: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
    command.args(args).arg("--db").arg(store).env_remove("ACPDB_PATH").env("COLUMNS", "120").output().unwrap()
}

/// A store with three messages, the second of which a disk has damaged. `backup` made a sound copy before the damage.
fn damaged(folder: &Path) -> std::path::PathBuf {
    let store = folder.join("store");
    for number in 0..3 {
        let line = format!(
            "{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"message {number} of three\"}}}}\n"
        );
        let path = folder.join("line");
        std::fs::write(&path, line).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command.args(["append", "--stdin", "--db"]).arg(&store).stdin(std::fs::File::open(&path).unwrap());
        assert!(command.status().unwrap().success());
    }
    let copied = run(&store, &["backup", &folder.join("copy").to_string_lossy()]);
    assert_eq!(copied.status.code(), Some(0), "{copied:?}");
    let segment = store.join("log/000000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let text = b"message 1 of three";
    let body = bytes.windows(text.len()).position(|window| window == text).unwrap();
    *bytes.get_mut(body - 40).unwrap() ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    store
}

/// A disk loses a bit in the middle of a session. Every question about the session is answered from the sound events, and every answer says that it
/// is not whole.
#[test]
fn reads_around_damage_say_so_and_exit_with_3() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = damaged(folder.path());
    for args in [
        vec!["history"],
        vec!["context"],
        vec!["export", "html"],
        vec!["export", "jsonl"],
        vec!["log", "--texts"],
        vec!["log"],
        vec!["stats"],
        vec!["sessions"],
    ] {
        let done = run(&store, &args);
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert_eq!(done.status.code(), Some(3), "{args:?}: {out} {err}");
        assert!(err.contains("left out: ") && err.contains("is damaged at byte"), "{args:?}: {err}");
        if ["history", "context", "list", "export"].contains(&args[0]) {
            assert!(
                out.contains("message 0 of three") && out.contains("message 2 of three"),
                "{args:?}: {out}"
            );
        }
    }
}

/// The owner of a damaged store asks what to do, saves the rest, and finds all lost events in the backup.
#[test]
fn a_damaged_store_is_diagnosed_and_its_rest_saved() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = damaged(folder.path());
    let text = |done: &Output| String::from_utf8_lossy(&done.stdout).into_owned();

    let doctor = run(&store, &["doctor"]);
    assert_eq!(doctor.status.code(), Some(3));
    assert!(
        text(&doctor).contains("damaged in 1 place") && text(&doctor).contains("salvage --into"),
        "{}",
        text(&doctor)
    );
    let verify = run(&store, &["verify"]);
    assert!(text(&verify).contains("What to do:"), "{}", text(&verify));

    let saved = folder.path().join("saved");
    let salvage = run(&store, &["doctor", "salvage", "--into", &saved.to_string_lossy()]);
    assert_eq!(salvage.status.code(), Some(8), "{salvage:?}");
    assert!(text(&salvage).contains("  lost  "), "{}", text(&salvage));
    let list = text(&run(&saved, &["log", "--texts"]));
    assert!(list.contains("message 0 of three") && list.contains("message 2 of three"), "{list}");
    // Asked for again, as by a script that was interrupted, it is made again.
    let again = run(&store, &["doctor", "salvage", "--into", &saved.to_string_lossy()]);
    assert_eq!(again.status.code(), Some(8), "{again:?}");
    assert!(text(&again).contains("  lost  "), "{}", text(&again));
    append(&saved, &message(9));
    let onto = run(&store, &["doctor", "salvage", "--into", &saved.to_string_lossy()]);
    assert_eq!(onto.status.code(), Some(2), "what was recorded there since stays: {onto:?}");

    let copy = folder.path().join("copy");
    assert_eq!(run(&copy, &["doctor"]).status.code(), Some(0));
    assert!(text(&run(&copy, &["log", "--texts"])).contains("message 1 of three"));
}

fn append(store: &Path, lines: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
    command.args(["append", "--stdin", "--db"]).arg(store).stdin(std::process::Stdio::piped());
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

fn message(number: usize) -> String {
    format!(
        "{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"message {number} of many\"}}}}\n"
    )
}

/// A store whose second message has a text that a disk has damaged; its event is sound.
fn with_damaged_text(folder: &Path) -> std::path::PathBuf {
    let store = folder.join("store");
    append(&store, &(0..3).map(message).collect::<String>());
    let segment = store.join("log/000000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let text = b"message 1 of many";
    let body = bytes.windows(text.len()).position(|window| window == text).unwrap();
    *bytes.get_mut(body).unwrap() ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    store
}

/// A text was damaged, and `context`, its JSON, the bodies of requests and `export jsonl` ended with exit code 0, three of them without a word. Every
/// verb that reads the text says on stderr that it left the text out, and ends with 3.
#[test]
fn every_verb_that_reads_a_damaged_text_says_so_and_exits_with_3() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = with_damaged_text(folder.path());
    let mut wrong = Vec::new();
    for verb in [
        "context",
        "context --json",
        "context --full",
        "context --format anthropic",
        "context --format openai",
        "context --format responses",
        "context --format gemini",
        "context --format markdown",
        "context --format text",
        "context --format openai --json",
        "context --format openai --mode batched",
        "context --format openai --mode history",
        "history",
        "history text:many",
        "list",
        "list --json",
        "log text:many",
        "memory propose s1",
        "show #4",
        "show #4 --json",
        "diff #3 #5",
        "scan",
        "export html",
        "export jsonl",
        "simulate",
    ] {
        let words: Vec<&str> = verb.split(' ').collect();
        let done = run(&store, &words);
        let err = String::from_utf8_lossy(&done.stderr);
        if done.status.code() != Some(3) || !err.contains("is damaged at byte") {
            wrong.push(format!("{verb}: {:?} {err}", done.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // An answer without texts has nothing to leave out.
    for verb in [
        "info",
        "policy show",
        "verify --head",
        "history --json",
        "diff #3 #5 --json",
        "explain #4",
        "export otlp-json",
        "context --summary --at #5",
        "stats",
    ] {
        let words: Vec<&str> = verb.split(' ').collect();
        let done = run(&store, &words);
        assert_eq!(done.status.code(), Some(0), "{verb}: {done:?}");
        // The session's title is its first message, which is sound.
        let told = String::from_utf8_lossy(&done.stdout).replace("message 0 of many", "");
        assert!(!told.contains("of many"), "{verb} shows texts: {done:?}");
    }
    assert_eq!(run(&store, &["verify"]).status.code(), Some(3));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Log, tail and checkpoint were put back beside a newer index and newer saved folds. These are caches: answers come from the log, and they are made
/// anew. A link that was kept elsewhere tells of the loss.
#[test]
fn caches_that_know_more_than_a_log_that_was_put_back_are_made_anew() {
    let folder = tempfile::TempDir::new().unwrap();
    let (store, old) = (folder.path().join("store"), folder.path().join("old"));
    append(&store, &(0..3).map(message).collect::<String>());
    copy(&store, &old);
    append(&store, &(3..5).map(message).collect::<String>());
    assert_eq!(run(&store, &["doctor", "reindex"]).status.code(), Some(0));
    let kept = String::from_utf8(run(&store, &["verify", "--head"]).stdout).unwrap();
    assert_eq!(run(&store, &["verify", "--expect", kept.trim()]).status.code(), Some(0));
    copy(&old, &store);
    for args in
        [vec!["verify"], vec!["verify", "--deep"], vec!["sessions"], vec!["log", "--texts"], vec!["doctor"]]
    {
        let done = run(&store, &args);
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert_eq!(done.status.code(), Some(0), "{args:?}: {out}{err}");
        assert!(!out.contains("message 3"), "{args:?}: {out}");
    }
    let rolled_back = run(&store, &["verify", "--expect", kept.trim()]);
    assert_eq!(rolled_back.status.code(), Some(4), "{rolled_back:?}");
    assert!(String::from_utf8_lossy(&rolled_back.stdout).contains("the link that was kept ahead at #7"));
    // The log goes on past the end that the index knew: still another history.
    append(&store, &(10..14).map(message).collect::<String>());
    let list = String::from_utf8(run(&store, &["log", "--texts"]).stdout).unwrap();
    assert!(list.contains("message 13") && !list.contains("message 4 "), "{list}");
    assert_eq!(run(&store, &["verify", "--expect", kept.trim()]).status.code(), Some(3));
    assert_eq!(run(&store, &["doctor", "reindex"]).status.code(), Some(0));
    assert_eq!(run(&store, &["verify", "--deep"]).status.code(), Some(0));
}

/// The head is printed in a line, kept elsewhere, and compared later: with a history made anew, and with a history cut short.
#[test]
fn a_head_that_was_kept_elsewhere_is_compared() {
    let folder = tempfile::TempDir::new().unwrap();
    let (store, old, other) =
        (folder.path().join("store"), folder.path().join("old"), folder.path().join("other"));
    append(&store, &message(0));
    copy(&store, &old);
    let kept = folder.path().join("kept");
    let mut lines = run(&store, &["verify", "--head"]).stdout;
    append(&store, &(1..3).map(message).collect::<String>());
    lines.extend(run(&store, &["verify", "--head", "--json"]).stdout);
    std::fs::write(&kept, &lines).unwrap();
    let text = String::from_utf8_lossy(&lines).into_owned();
    let link = text.split_whitespace().nth(2).unwrap();
    append(&store, &message(3));
    let file = kept.to_string_lossy().into_owned();
    let judge = |store: &Path, args: &[&str]| {
        let done = run(store, args);
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let (code, out) = judge(&store, &["verify", "--expect", &file, "--expect", &format!("3={link}")]);
    assert_eq!(code, Some(0), "{out}");
    assert_eq!(out.matches("the link that was kept agrees").count(), 3, "{out}");
    // The output of `head` is taken as an argument, too: `verify --expect "$(acpdb verify --head)"`.
    let (code, out) = judge(&store, &["verify", "--expect", text.lines().next().unwrap()]);
    assert_eq!(code, Some(0), "{out}");
    assert_eq!(judge(&store, &["verify", "--expect", text.trim()]).0, Some(0));
    let (code, out) = judge(&old, &["verify", "--expect", &file]);
    assert_eq!(code, Some(4), "{out}");
    assert!(out.contains("the link that was kept ahead at #5"), "{out}");
    // The same store, and another future.
    copy(&old, &other);
    append(&other, &(7..9).map(message).collect::<String>());
    let (code, out) = judge(&other, &["verify", "--expect", &file]);
    assert_eq!(code, Some(3), "{out}");
    assert!(out.contains("inconsistent") && out.contains("the link that was kept forked at #5"), "{out}");
    let (code, out) = judge(&store, &["verify", "--expect", &format!("2={}", "0".repeat(64))]);
    assert_eq!(code, Some(3), "{out}");
    // A link of another store says nothing about this one.
    let stranger = folder.path().join("stranger");
    append(&stranger, &message(0));
    assert_eq!(judge(&stranger, &["verify", "--expect", &file]).0, Some(2));
    assert_eq!(judge(&stranger, &["verify", "--expect", text.lines().next().unwrap()]).0, Some(2));
    for wrong in ["3", "x=y", "3=abc", ""] {
        assert_eq!(judge(&store, &["verify", "--expect", wrong]).0, Some(2), "{wrong}");
    }
    assert_eq!(judge(&store, &["verify", "--head", "99"]).0, Some(7));
}

/// A short output was read twice, and the placeholder of the first was estimated at more tokens than the output. The deep check called that damage
/// and advised to salvage the store. Estimates are no damage.
#[test]
fn a_placeholder_that_is_estimated_above_what_it_replaces_is_no_damage() {
    let folder = tempfile::TempDir::new().unwrap();
    for length in [1, 30, 60, 100, 200, 5000] {
        let store = folder.path().join(length.to_string());
        let output = "x".repeat(length);
        let lines: String = (1..=3)
            .map(|turn| {
                format!(
                    "{{\"session\":\"s1\",\"turn\":true,\"tool\":{{\"call\":\"c{turn}\",\"tool\":\"read\",\
                     \"params\":{{\"filePath\":\"a.rs\"}},\"output\":\"{output}\"}}}}\n"
                )
            })
            .collect();
        append(&store, &lines);
        let done = run(&store, &["verify", "--deep"]);
        assert_eq!(done.status.code(), Some(0), "{length}: {}", String::from_utf8_lossy(&done.stdout));
    }
}

/// A store of an imported session: commits of hundreds of events. A disk has damaged one bit of the last of them, or of each but the first.
fn with_damaged_commits(folder: &Path, only_last: bool) -> std::path::PathBuf {
    let store = folder.join("store");
    let done = run(&folder.join("none"), &["demo", "--bundled", "--keep", &store.to_string_lossy()]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let segment = store.join("log/000000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let magic = bytes.windows(4).enumerate().filter(|(_, window)| *window == b"ACPF");
    let frames: Vec<usize> = magic.map(|(at, _)| at).skip(1).collect();
    assert!(frames.len() > 1);
    // Behind its header a frame begins with its spine.
    let skipped = if only_last { frames.len() - 1 } else { 0 };
    for frame in frames.iter().skip(skipped) {
        *bytes.get_mut(frame + 170).unwrap() ^= 1;
    }
    std::fs::write(&segment, bytes).unwrap();
    store
}

/// One bit was wrong in the commit of an import. `salvage` copied one event of 434, said "Nothing is lost." and ended with 0. Now
/// it copies the commits that are sound, names the events of the others, and ends with 8.
#[test]
fn a_salvage_never_hides_what_is_lost_at_the_end() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = with_damaged_commits(folder.path(), true);
    let saved = folder.path().join("saved");
    let done = run(&store, &["doctor", "salvage", "--json", "--into", &saved.to_string_lossy()]);
    assert_eq!(done.status.code(), Some(8), "{done:?}");
    let told: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let lost: u64 = told["lost_events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|range| number(&range[1]) - number(&range[0]) + 1)
        .sum();
    assert_eq!(number(&told["events"]) + lost, number(&told["source_head"]), "{told}");
    assert!((1..=256).contains(&lost) && number(&told["events"]) > 100, "{told}");
    assert_eq!(run(&saved, &["verify", "--deep"]).status.code(), Some(0));
    assert_eq!(run(&saved, &["context"]).status.code(), Some(0));

    let again = folder.path().join("again");
    let done = run(&store, &["doctor", "salvage", "--into", &again.to_string_lossy()]);
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(text.contains("  lost  events ") && !text.contains("Nothing is lost"), "{text}");
}

/// A log that no witness confirms is not called whole.
#[test]
fn a_salvage_says_that_it_does_not_know_where_the_log_ended() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = folder.path().join("store");
    append(&store, &message(0));
    for name in ["tail", "checkpoint"] {
        std::fs::remove_file(store.join(name)).unwrap();
    }
    let saved = folder.path().join("saved");
    let done = run(&store, &["doctor", "salvage", "--into", &saved.to_string_lossy()]);
    let text = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(8), "{text}");
    assert!(text.contains("says where the log ended") && !text.contains("Nothing is lost"), "{text}");
}

/// The commit of an import was damaged, and the store looked like an empty one: "no session", "no items", exit code 7, of a search
/// 1, in part without a word. A verb that finds nothing in a damaged store says that it is damaged, and ends with 3.
#[test]
fn a_damaged_store_does_not_look_like_an_empty_one() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = with_damaged_commits(folder.path(), false);
    let mut wrong = Vec::new();
    for verb in [
        "context",
        "context --json",
        "history",
        "history --json",
        "explain 297",
        "explain #297",
        "search no-such-word",
        "sessions",
        "list",
        "log",
        "show #297",
        "diff #3 #400",
        "blame nothing",
        "stats",
        "cost",
        "todo list",
        "context --summary --at #300",
        "export jsonl",
        "export html",
        "scan",
        "simulate",
        "task list",
        "context discard #297",
        "undo",
        "undo --redo",
        "rewind #100",
        "fork s1",
    ] {
        let words: Vec<&str> = verb.split(' ').collect();
        let done = run(&store, &words);
        let err = String::from_utf8_lossy(&done.stderr);
        let warns = err.contains("warning: ") && err.contains("damaged at byte");
        let points = err.contains("acpdb verify");
        if done.status.code() != Some(3) || !warns || !points || err.contains("acpdb import") {
            wrong.push(format!("{verb}: {:?} {err}", done.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let doctor = run(&store, &["doctor"]);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("1 event is sound and readable"), "{doctor:?}");
}

/// All files below a folder, with their bytes.
fn bytes_of(folder: &Path) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(bytes_of(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// A store of a form before the first release is refused by name, whatever is asked of it, and no byte of it changes.
#[test]
fn a_store_of_a_former_form_is_refused_by_every_verb() {
    for version in [1, 2] {
        let fixture =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/fixtures/v{version}/store"));
        let folder = tempfile::TempDir::new().unwrap();
        let store = folder.path().join("store");
        for (path, bytes) in bytes_of(&fixture) {
            let to = store.join(path.strip_prefix(&fixture).unwrap());
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::write(to, bytes).unwrap();
        }
        let before = bytes_of(&store);
        let other = folder.path().join("other").to_string_lossy().into_owned();
        let verbs: [&[&str]; 9] = [
            &["context"],
            &["sessions"],
            &["info"],
            &["verify"],
            &["doctor"],
            &["doctor", "seal"],
            &["backup", &other],
            &["doctor", "salvage", "--into", &other],
            &["context", "discard", "tool:read", "--session", "latest"],
        ];
        for verb in verbs {
            let done = run(&store, verb);
            let said = [done.stdout, done.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(said.contains(&format!("format version {version}")), "{verb:?}: {said}");
            assert_ne!(done.status.code(), Some(0), "{verb:?}: {said}");
            assert_eq!(bytes_of(&store), before, "{verb:?}");
            assert!(!Path::new(&other).exists(), "{verb:?}");
        }
    }
}

/// Without the file that says where the log ends, a lost end cannot be seen, and the verdict was "sound".
#[test]
fn a_store_without_its_tail_is_not_sound() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = folder.path().join("store");
    append(&store, &message(1));
    let (tail, whole) = (store.join("tail"), std::fs::read(store.join("tail")).unwrap());
    let zeros = vec![0; whole.len()];
    let mut foreign = whole.clone();
    for byte in &mut foreign {
        *byte ^= 0x55;
    }
    for (what, bytes) in
        [("gone", None), ("empty", Some(&[][..])), ("zeros", Some(&zeros)), ("other", Some(&foreign))]
    {
        std::fs::remove_file(&tail).unwrap();
        if let Some(bytes) = bytes {
            std::fs::write(&tail, bytes).unwrap();
        }
        let verified = run(&store, &["verify"]);
        let out = String::from_utf8_lossy(&verified.stdout);
        assert_eq!(verified.status.code(), Some(3), "{what}: {out}");
        assert!(
            out.contains("the file that says where it ends is gone") && out.contains("seal"),
            "{what}: {out}"
        );
        let report = run(&store, &["verify", "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(report["verdict"], "damaged", "{what}");
        let doctor = run(&store, &["doctor"]);
        assert_eq!(doctor.status.code(), Some(3), "{what}");
        assert!(String::from_utf8_lossy(&doctor.stdout).contains("problem  log"), "{what}: {doctor:?}");
        // The events that are there can be read, and the next verb that writes makes the file anew.
        assert_eq!(run(&store, &["log", "--texts"]).status.code(), Some(0), "{what}");
        assert_eq!(run(&store, &["doctor", "seal"]).status.code(), Some(0), "{what}");
        assert_eq!(run(&store, &["verify"]).status.code(), Some(0), "{what}");
    }
}

/// A store that no user could read was "sound" where its log was whole, or a failure without a verdict.
#[test]
fn what_cannot_be_read_is_neither_sound_nor_damaged() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = folder.path().join("store");
    append(&store, &message(1));
    let kept = folder.path().join("kept");
    // Something that no user can read as a file: the machine's owner may read every file.
    for name in ["acpdb.json", "tail", "checkpoint", "secret", "log/000000000001.seg"] {
        std::fs::rename(store.join(name), &kept).unwrap();
        std::fs::create_dir(store.join(name)).unwrap();
        for args in [&["verify"][..], &["verify", "--deep"], &["doctor"]] {
            let done = run(&store, args);
            let out = String::from_utf8_lossy(&done.stdout);
            assert_eq!(done.status.code(), Some(9), "{name} {args:?}: {out}");
            assert!(out.contains("cannot be read") && !out.contains(": sound"), "{name} {args:?}: {out}");
        }
        let report = run(&store, &["verify", "--json"]);
        assert_eq!(report.status.code(), Some(9), "{name}");
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(report["verdict"], "unreadable", "{name}");
        std::fs::remove_dir(store.join(name)).unwrap();
        std::fs::rename(&kept, store.join(name)).unwrap();
        assert_eq!(run(&store, &["verify"]).status.code(), Some(0), "{name}");
    }
    // A folder without a store stays a failure of its own.
    assert_eq!(run(&folder.path().join("nothing"), &["verify"]).status.code(), Some(7));
}
