//! Settings of each host, before and after; and files as they are on a disk.

use std::path::Path;

use expect_test::expect;

use super::plugin;
use super::settings::{self, HostCommandLine};
use super::*;

const WORDS: &str = "/bin/acpdb hook claude-code --mode prune";

/// Hosts that take hooks.
fn hooked() -> impl Iterator<Item = Host> {
    Host::ALL.into_iter().filter(|host| !host.takes_plugin())
}

fn run(program: &str, host: Host, mode: AttachMode) -> HostCommand<'_> {
    HostCommand { program: Path::new(program), store: None, host, mode }
}

fn command(host: Host) -> HostCommandLine {
    HostCommandLine { words: run("/bin/acpdb", host, AttachMode::Prune).words().unwrap(), host }
}

#[test]
fn a_hook_stands_in_the_form_of_its_host() {
    let check = |host: Host, want: expect_test::Expect| {
        let text = settings::attached("", &command(host)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let first = value["hooks"].as_object().unwrap().iter().next().unwrap();
        want.assert_eq(&format!("{}: {}\n", first.0, first.1));
    };
    check(
        Host::ClaudeCode,
        expect![[r#"
        SessionStart: [{"hooks":[{"type":"command","command":"/bin/acpdb hook claude-code --mode prune 2>/dev/null || true","timeout":15}]}]
    "#]],
    );
    check(
        Host::Codex,
        expect![[r#"
        SessionStart: [{"hooks":[{"type":"command","command":"/bin/acpdb hook codex --mode prune 2>/dev/null || true","timeout":15}]}]
    "#]],
    );
    check(
        Host::GeminiCli,
        expect![[r#"
        SessionStart: [{"matcher":"*","hooks":[{"name":"acpdb","type":"command","command":"/bin/acpdb hook gemini-cli --mode prune 2>/dev/null || true","timeout":15000}]}]
    "#]],
    );
    check(
        Host::CopilotCli,
        expect![[r#"
        sessionStart: [{"type":"command","bash":"/bin/acpdb hook copilot-cli --mode prune --event sessionStart 2>/dev/null || true","timeoutSec":15}]
    "#]],
    );
    check(
        Host::Cursor,
        expect![[r#"
        sessionStart: [{"command":"/bin/acpdb hook cursor --mode prune 2>/dev/null || true","timeout":15}]
    "#]],
    );
    check(
        Host::VsCode,
        expect![[r#"
        SessionStart: [{"type":"command","command":"/bin/acpdb hook vscode --mode prune 2>/dev/null || true","timeout":15}]
    "#]],
    );
}

/// Files of users: other hooks, other indents, none at all.
const FILES: &[&str] = &[
    "",
    "{}",
    "{}\n",
    "{\n    \"model\": \"opus\",\n    \"hooks\": {}\n}",
    "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"say done\"}]}]},\"n\":1.50}",
    "{\n\t\"z\": [1,\n\n 2],\n\t\"hooks\": {\"PreToolUse\": []}\n}\n",
    "{\"version\": 1}",
];

#[test]
fn what_was_attached_twice_is_attached_once() {
    for host in hooked() {
        for file in FILES {
            let once = settings::attached(file, &command(host)).unwrap();
            assert_eq!(settings::attached(&once, &command(host)).unwrap(), once, "{host} {file:?}");
            let found = settings::found(&once, host).unwrap();
            assert!(!found.is_empty(), "{host} {file:?}");
            let other =
                HostCommandLine { words: run("/new/acpdb", host, AttachMode::Record).words().unwrap(), host };
            let moved = settings::attached(&once, &other).unwrap();
            assert!(!moved.contains("/bin/acpdb"), "{host} {file:?}: {moved}");
            let without = settings::detached(&moved, host).unwrap();
            assert!(!without.contains("acpdb"), "{host} {file:?}: {without}");
        }
    }
}

#[test]
fn hooks_of_others_stay_even_in_the_same_group() {
    let ours = format!("{WORDS} 2>/dev/null || true");
    let text = format!(
        r#"{{"hooks":{{"Stop":[{{"hooks":[{{"command":"say done"}},{{"command":"{ours}"}}]}}],"PreCompact":[{{"hooks":[{{"command":"{ours}"}}]}}]}}}}"#
    );
    let without = settings::detached(&text, Host::ClaudeCode).unwrap();
    let value: serde_json::Value = serde_json::from_str(&without).unwrap();
    expect![[r#"{"hooks":{"Stop":[{"hooks":[{"command":"say done"}]}]}}"#]].assert_eq(&value.to_string());
}

/// The hook of another program went with ours, since its line had `hook`, the host and `|| true` in it. And Claude Code shows a model the command
/// of each hook before a compaction.
#[test]
fn lines_that_only_look_like_ours_stay() {
    for line in [
        "othertool hook claude-code stop || true",
        "othertool hook claude-code --mode suggest || true",
        "othertool hook claude-code --mode wild 2>/dev/null || true",
        "othertool x hook claude-code --mode suggest 2>/dev/null || true",
        "othertool hook claude-code --mode suggest --extra x 2>/dev/null || true",
        "othertool --db x hook codex --mode suggest 2>/dev/null || true",
    ] {
        let text =
            format!(r#"{{"hooks":{{"Stop":[{{"hooks":[{{"type":"command","command":"{line}"}}]}}]}}}}"#);
        assert_eq!(settings::found(&text, Host::ClaudeCode).unwrap(), Vec::<String>::new(), "{line}");
        let command = HostCommandLine { words: WORDS.to_owned(), host: Host::ClaudeCode };
        let with = settings::attached(&text, &command).unwrap();
        assert!(with.contains(line) && !with.contains("PreCompact"), "{with}");
        assert_eq!(settings::detached(&text, Host::ClaudeCode).unwrap(), text);
        assert!(settings::detached(&with, Host::ClaudeCode).unwrap().contains(line));
    }
    // Ours, under any name of the program, and with a store.
    for line in [
        "/a/b hook claude-code --mode prune 2>/dev/null || true",
        "'/a b' --db '/c d' hook claude-code --mode record 2>/dev/null || true",
    ] {
        let text =
            format!(r#"{{"hooks":{{"Stop":[{{"hooks":[{{"type":"command","command":"{line}"}}]}}]}}}}"#);
        assert_eq!(settings::found(&text, Host::ClaudeCode).unwrap(), [line]);
    }
}

#[test]
fn detaching_gives_back_the_very_bytes() {
    for host in hooked() {
        for file in FILES.iter().filter(|file| !file.is_empty()) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("settings.json");
            std::fs::write(&path, file).unwrap();
            let words = command(host).words;
            attach(&path, &words, host).unwrap().apply().unwrap();
            attach(&path, &words.replace("prune", "record"), host).unwrap().apply().unwrap();
            assert!(std::fs::read_to_string(&path).unwrap().contains("--mode record"));
            detach(&path, host).unwrap().apply().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), **file, "{host}");
            let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
            assert_eq!(left.len(), 1, "{host} {file:?}: {left:?}");
        }
    }
}

#[test]
fn a_file_that_attaching_made_goes_with_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let none = |_: &str| None;
    for host in hooked() {
        let path = place(host, SettingsOwner::Project, folder.path(), &none).unwrap();
        let plan = attach(&path, &command(host).words, host).unwrap();
        assert!(plan.diff().contains("\n+"), "{}", plan.diff());
        assert!(!path.exists(), "a plan writes nothing");
        plan.apply().unwrap();
        assert!(attach(&path, &command(host).words, host).unwrap().is_nothing(), "{host}");
        detach(&path, host).unwrap().apply().unwrap();
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert!(left.is_empty(), "{host}: {left:?}");
    }
}

/// Detaching removed an empty `~/.claude` that was there before.
#[test]
fn a_folder_that_was_there_empty_stays() {
    let folder = tempfile::tempdir().unwrap();
    let none = |_: &str| None;
    for host in hooked() {
        let path = place(host, SettingsOwner::Project, folder.path(), &none).unwrap();
        let above = path.parent().unwrap();
        std::fs::create_dir_all(above).unwrap();
        for _ in 0..2 {
            attach(&path, &command(host).words, host).unwrap().apply().unwrap();
            detach(&path, host).unwrap().apply().unwrap();
        }
        let left: Vec<_> = std::fs::read_dir(above).unwrap().collect();
        assert!(left.is_empty(), "{host}: {left:?}");
    }
}

#[test]
fn what_others_changed_meanwhile_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.json");
    std::fs::write(&path, "{\"model\": \"a\"}\n").unwrap();
    attach(&path, WORDS, Host::ClaudeCode).unwrap().apply().unwrap();
    let changed = std::fs::read_to_string(&path).unwrap().replace("\"a\"", "\"b\"");
    std::fs::write(&path, changed).unwrap();
    detach(&path, Host::ClaudeCode).unwrap().apply().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"model\": \"b\"}\n");
}

#[test]
fn settings_that_are_not_understood_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.json");
    for (text, said) in [
        ("{ // a remark\n}", "not valid JSON"),
        ("[1]", "it holds JSON, and not an object"),
        ("\u{feff}{}", "a byte order mark"),
        ("{\"hooks\": []}", "is not what the host wants there"),
        ("{\"hooks\": {\"Stop\": 1}}", "is not what the host wants there"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = attach(&path, WORDS, Host::ClaudeCode).unwrap_err().to_string();
        assert!(error.contains("left alone") && error.contains(said), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn places_follow_the_environment() {
    let home = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
    let at = |host, reach, variable: &dyn Fn(&str) -> Option<String>| {
        place(host, reach, Path::new("/p"), variable)
            .map_or_else(|error| error.to_string(), |path| path.display().to_string())
    };
    let mut said = String::new();
    for host in Host::ALL {
        said += &format!(
            "{host}: {} | {}\n",
            at(host, SettingsOwner::Project, &home),
            at(host, SettingsOwner::User, &home)
        );
    }
    expect![[r#"
        claude-code: /p/.claude/settings.local.json | /home/ada/.claude/settings.json
        codex: /p/.codex/hooks.json | /home/ada/.codex/hooks.json
        gemini-cli: /p/.gemini/settings.json | /home/ada/.gemini/settings.json
        copilot-cli: /p/.github/hooks/acpdb-copilot.json | /home/ada/.copilot/hooks/acpdb.json
        cursor: /p/.cursor/hooks.json | /home/ada/.cursor/hooks.json
        vscode: /p/.github/hooks/acpdb-vscode.json | vscode takes hooks of a project (--project) only
        opencode: /p/.opencode/plugin/acpdb.js | /home/ada/.config/opencode/plugin/acpdb.js
        pi: /p/.pi/extensions/acpdb.ts | /home/ada/.pi/agent/extensions/acpdb.ts
    "#]]
    .assert_eq(&said);
    let moved = |name: &str| (name == "CLAUDE_CONFIG_DIR").then(|| "/c".to_owned());
    assert_eq!(at(Host::ClaudeCode, SettingsOwner::User, &moved), "/c/settings.json");
    assert!(at(Host::Cursor, SettingsOwner::User, &|_| None).contains("no home folder"));
}

#[test]
fn a_plugin_is_a_file_of_its_own() {
    for host in [Host::Opencode, Host::Pi] {
        check_plugin(host);
    }
}

fn check_plugin(host: Host) {
    let folder = tempfile::tempdir().unwrap();
    let path = place(host, SettingsOwner::Project, folder.path(), &|_: &str| None).unwrap();
    let (program, store) = ("/bin/it's acpdb", Path::new("/p/.acpdb"));
    let attach = |mode| {
        plugin::attach(&path, &HostCommand { store: Some(store), ..run(program, host, mode) }).unwrap()
    };
    attach(AttachMode::Record).apply().unwrap();
    assert!(attach(AttachMode::Record).is_nothing());
    attach(AttachMode::Prune).apply().unwrap();
    let settings: serde_json::Value = serde_json::from_str(&plugin::found(&path).unwrap().unwrap()).unwrap();
    let expected = serde_json::json!({"program": "/bin/it's acpdb", "db": "/p/.acpdb", "mode": "prune"});
    assert_eq!(settings, expected);
    plugin::detach(&path).unwrap().apply().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    assert!(plugin::detach(&path).unwrap().is_nothing());
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "export default 1").unwrap();
    for plan in [plugin::detach(&path), plugin::attach(&path, &run(program, host, AttachMode::Prune))] {
        assert!(plan.unwrap_err().to_string().contains("left alone"));
    }
}

/// Settings that could not be read counted as settings without acpdb: the status said that it is not attached.
#[test]
fn settings_that_cannot_be_read_are_no_empty_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.json");
    assert_eq!(super::found(&path, Host::ClaudeCode).unwrap(), Vec::<String>::new());
    assert_eq!(plugin::found(&path).unwrap(), None);
    std::fs::write(&path, "// of another program").unwrap();
    assert_eq!(plugin::found(&path).unwrap(), None);
    for bytes in [&b"{\"hooks\": "[..], b"[]", b"\xff\xfe{}"] {
        std::fs::write(&path, bytes).unwrap();
        let error = super::found(&path, Host::ClaudeCode).unwrap_err().to_string();
        assert!(error.contains("settings.json"), "{error}");
    }
    assert!(plugin::found(&path).unwrap_err().to_string().contains("settings.json"), "it is no text");
}

/// `attach` read all settings into values and wrote them again: long numbers lost digits, `1.10` became `1.1`, and `1E400` made it
/// refuse the file.
#[test]
fn what_is_not_ours_stays_byte_for_byte() {
    let theirs = r#"{ "hooks": [ {"command": "say \ud83d", "n": 1.10} ] }"#;
    let file = format!(
        "{{\r\n   \"n\" : 12345678901234567890123,\n   \"\\u0061\": [1.10,  1E400, \"\\ud83d\"],\n   \"hooks\": {{\"Stop\": [{theirs}]}}, \"z\":-0 }}"
    );
    let host = Host::ClaudeCode;
    let with = settings::attached(&file, &command(host)).unwrap();
    let (before, rest) = file.split_once("{\"Stop\"").unwrap();
    let behind = rest.split_once("]}").unwrap().1;
    assert!(with.starts_with(before) && with.ends_with(behind), "{with}");
    assert!(with.contains(theirs), "{with}");
    assert_eq!(settings::found(&with, host).unwrap().len(), 1);
    let without = settings::detached(&with, host).unwrap();
    assert!(without.starts_with(before) && without.ends_with(behind), "{without}");
    assert!(without.contains(theirs) && !without.contains("acpdb"), "{without}");
    let plain = "{\n  \"n\": 1E400\n}\n";
    let with = settings::attached(plain, &command(host)).unwrap();
    assert!(with.starts_with("{\n  \"n\": 1E400,\n  \"hooks\": {\n    \"SessionStart\": ["), "{with}");
    assert_eq!(settings::detached(&with, host).unwrap(), plain);
    let first = with.replace("\"n\": 1E400,\n  ", "").replace("\n  }\n}", "\n  },\n  \"n\": 1E400\n}");
    assert_eq!(settings::detached(&first, host).unwrap(), plain);
}

/// A path that is no UTF-8 was written as another path, so the host ran nothing and recorded nothing.
#[test]
fn a_path_that_settings_cannot_name_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let odd = Path::new(std::ffi::OsStr::from_bytes(b"/bin/\xff/acpdb"));
    let folder = tempfile::tempdir().unwrap();
    for host in Host::ALL {
        let known = run("/bin/acpdb", host, AttachMode::Record);
        for run in [
            HostCommand { program: odd, ..known },
            HostCommand { store: Some(odd), ..known },
            HostCommand { store: Some(Path::new("/a\nb")), ..known },
        ] {
            let path = folder.path().join("acpdb.js");
            let made = if host.takes_plugin() {
                plugin::attach(&path, &run).map(drop)
            } else {
                run.words().map(drop)
            };
            assert!(made.unwrap_err().to_string().contains("cannot be written into"), "{host}");
        }
    }
}

/// The copy of the settings could be read by all users, with the keys in it.
#[test]
fn the_copy_of_the_settings_is_for_the_same_eyes() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.json");
    std::fs::write(&path, "{\"env\": {\"KEY\": \"secret\"}}").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let plan = attach(&path, WORDS, Host::ClaudeCode).unwrap();
    // Left by an older version.
    std::fs::write(&plan.backup, "old").unwrap();
    plan.apply().unwrap();
    for path in [&plan.backup, &path] {
        assert_eq!(
            std::fs::metadata(path).unwrap().permissions().mode() & 0o777,
            0o600,
            "{}",
            path.display()
        );
    }
}

/// A project that was cloned made `attach --project` rewrite a file of its choice, and `doctor` read a device without end.
#[test]
fn links_out_of_a_project_and_files_without_an_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    std::fs::create_dir_all(project.join(".claude")).unwrap();
    std::fs::create_dir_all(project.join("config")).unwrap();
    let path = project.join(".claude/settings.local.json");
    let link = |to: &Path| {
        // The link of the round before, if there is one.
        let _ = std::fs::remove_file(&path);
        std::os::unix::fs::symlink(to, &path).unwrap();
    };
    let outside = folder.path().join("other.json");
    std::fs::write(&outside, "{}").unwrap();
    for to in [outside.as_path(), Path::new("../../nowhere.json"), Path::new("/dev/zero")] {
        link(to);
        let refused = check_within(&path, &project);
        assert!(matches!(refused, Err(AttachError::Leaves { .. })), "{}", to.display());
    }
    assert!(attach(&path, WORDS, Host::ClaudeCode).is_err(), "a device");
    std::fs::write(project.join("config/mine.json"), "{}").unwrap();
    link(Path::new("../config/mine.json"));
    check_within(&path, &project).unwrap();
    check_within(&project.join(".codex/hooks.json"), &project).unwrap();
    // The copy of the settings would be written through this link.
    std::os::unix::fs::symlink(&outside, project.join(".claude/settings.local.json.before-acpdb")).unwrap();
    assert!(matches!(check_within(&path, &project), Err(AttachError::Leaves { .. })));
}

/// A hook whose ending was taken away was attached a second time, and stayed when acpdb was detached.
#[test]
fn a_hook_that_a_person_changed_is_still_ours() {
    for host in hooked() {
        let text = settings::attached("", &command(host)).unwrap();
        let name = host.name();
        for changed in [
            text.replace(" 2>/dev/null || true", ""),
            text.replace("/bin/acpdb hook", "ACPDB_CONFIG=/c '/my bin/acpdb' --db /s -q hook")
                .replace("|| true", "; true"),
        ] {
            assert_ne!(changed, text);
            assert!(!settings::found(&changed, host).unwrap().is_empty(), "{changed}");
            assert_eq!(settings::attached(&changed, &command(host)).unwrap(), text, "{host}");
            assert_eq!(settings::detached(&changed, host).unwrap(), "", "{host}");
        }
        for theirs in ["/bin/other", "/bin/acpdb log --texts; git"] {
            let theirs = text.replace("/bin/acpdb", theirs).replace(" || true", "").replace(name, "theirs");
            assert!(settings::found(&theirs, host).unwrap().is_empty(), "{theirs}");
        }
    }
}

/// A word of the user's settings kept the copy of them, with the keys in it, beside them.
#[test]
fn the_copy_goes_whatever_words_the_settings_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.json");
    let text = r#"{"statusLine":"my hook runner","apiKey":"k"}"#;
    std::fs::write(&path, text).unwrap();
    attach(&path, WORDS, Host::ClaudeCode).unwrap().apply().unwrap();
    assert!(backup(&path).exists());
    detach(&path, Host::ClaudeCode).unwrap().apply().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert!(!backup(&path).exists());
}

/// Detaching removed the user's link and its folder, and left the hooks in the file behind the link.
#[test]
fn a_link_to_nothing_is_a_link_to_nothing_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".claude/settings.json");
    std::fs::create_dir(folder.path().join(".claude")).unwrap();
    std::os::unix::fs::symlink("../none.json", &path).unwrap();
    attach(&path, WORDS, Host::ClaudeCode).unwrap().apply().unwrap();
    assert!(folder.path().join("none.json").exists());
    detach(&path, Host::ClaudeCode).unwrap().apply().unwrap();
    assert_eq!(std::fs::read_link(&path).unwrap(), Path::new("../none.json"));
    assert!(!folder.path().join("none.json").exists());
}

/// Settings with comments were refused, so their users could not attach. Gemini CLI reads them.
#[test]
fn comments_stay_in_settings_of_a_host_that_takes_them() {
    let (host, words) =
        (Host::GeminiCli, run("/bin/acpdb", Host::GeminiCli, AttachMode::Record).words().unwrap());
    let older = run("/bin/old", host, AttachMode::Prune).words().unwrap();
    for text in [
        "{ // a remark\n}",
        "{\n  // my theme\n  \"theme\": \"dark\" // as it is at night: {\n}\n",
        "/* mine */\n{\n\t\"a\": 1, // one\n\t\"b\": \"/* no comment */\" /* two */\n\t// and }\n}\n// end }",
        "{\"a\": \"http://x\" /* é {\" */}",
        "{\n  \"hooks\": {\n    \"AfterAgent\": [{\"hooks\": [ /* mine */ {\"type\": \"command\", \"command\": \"say done\"}]}]\n  } // end\n}\n",
        "{\n  \"a\": 1 /* unended\n}",
    ] {
        let made = settings::attached(text, &HostCommandLine { words: older.clone(), host });
        let Ok(made) = made else {
            assert!(text.contains("unended"), "{text}: {made:?}");
            continue;
        };
        let again = settings::attached(&made, &HostCommandLine { words: words.clone(), host }).unwrap();
        for part in text.split('\n').filter(|part| part.contains("//") || part.contains("/*")) {
            let comment = part.rfind("/*").or(part.rfind("//")).and_then(|place| part.get(place..)).unwrap();
            let comment = comment.split_inclusive("*/").next().unwrap();
            assert!(again.contains(comment), "{comment} of {text} is not in {again}");
        }
        assert_eq!(
            settings::found(&again, host).unwrap(),
            [format!("{words} 2>/dev/null || true")],
            "{again}"
        );
        // Without the copy of before, too, each comment and each member stands where it stood.
        let back = settings::detached(&again, host).unwrap();
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(bare(&back), bare(text), "{again}");
        assert!(
            settings::attached(text, &command(Host::ClaudeCode)).is_err(),
            "Claude Code leaves them aside"
        );
    }
    let between = "{\n  \"hooks\": {\n    // mine\n    \"AfterAgent\": []\n  }\n}\n";
    let refused = settings::attached(between, &HostCommandLine { words, host }).unwrap_err();
    assert_eq!(refused, settings::SettingsError::Comments);
}

/// Detaching cut a comment between a name and its value in two, which left no JSON; lost one before a comma; and let one that goes to the
/// end of its line swallow the closing brace.
#[test]
fn comments_around_hooks_that_go_stay() {
    let host = Host::GeminiCli;
    for (text, left) in [
        (r#"{"hooks": /* mine */ {}}"#, r#"{ /* mine */}"#),
        (r#"{"hooks" /* a */ : /* b */ {} /* c */, "x": 1}"#, r#"{ /* a */ /* b */ /* c */ "x": 1}"#),
        (r#"{"hooks": {} /* , */ , /* x */ "x": 1}"#, r#"{ /* , */ /* x */ "x": 1}"#),
        ("{\"hooks\": {} // c\n, \"x\": 1}", "{ // c\n \"x\": 1}"),
        ("{\n  \"hooks\": // mine\n  {} // end\n  , \"x\": 1\n}", "{ // mine\n // end\n \"x\": 1\n}"),
        (
            r#"{"x": 1 /* , */ , /* y */ "hooks": /* z */ {} /* e */}"#,
            r#"{"x": 1 /* , */ /* y */ /* z */ /* e */}"#,
        ),
        ("{\"x\": 1, // y\n \"hooks\": {} }", "{\"x\": 1 // y\n}"),
        ("{\"x\": 1, // y\r\n \"hooks\": /* a\r\nb */ {}\r\n}", "{\"x\": 1 // y\n /* a\r\nb */}"),
        (r#"{"x": 1, "hooks": {} } // end"#, r#"{"x": 1} // end"#),
        (
            r#"{"hooks": "/* old */", "x": [/* , */], "hooks": /* mine */ {}}"#,
            r#"{"hooks": "/* old */", "x": [/* , */] /* mine */}"#,
        ),
    ] {
        let with = settings::attached(text, &command(host)).unwrap();
        assert!(!settings::found(&with, host).unwrap().is_empty(), "{with}");
        let back = settings::detached(&with, host).unwrap();
        let bare = |text: &str| text.split(' ').collect::<String>();
        assert_eq!(bare(&back), bare(left), "{with}");
        assert_eq!(settings::found(&back, host).unwrap(), Vec::<String>::new(), "it is JSON: {back}");
    }
}

/// Whether comments get lost was asked before hooks of acpdb were taken out: one beside such a hook went without a word.
#[test]
fn a_comment_beside_a_hook_that_goes_is_not_lost() {
    let host = Host::GeminiCli;
    let with = settings::attached("", &command(host)).unwrap();
    let theirs = "{\"type\": \"command\", \"command\": \"say done\"}";
    for (place, said) in [
        ("[\n          {", "[ /* mine */ {"),
        ("\"name\": \"acpdb\"", "\"name\": /* mine */ \"acpdb\""),
        ("[\n          {", &format!("[ {theirs}, /* mine */ {{")),
        (
            "\"matcher\": \"*\",\n        \"hooks\": [",
            &format!("\"matcher\": \"*\", // mine\n \"hooks\": [ {theirs}, "),
        ),
    ] {
        let text = with.replacen(place, said, 1);
        assert_ne!(text, with, "{place}");
        let refused = [settings::attached(&text, &command(host)), settings::detached(&text, host)];
        assert_eq!(refused, [const { Err(settings::SettingsError::Comments) }; 2], "{text}");
    }
    let kept = with.replacen("[\n          {", &format!("[ {theirs}, {{"), 1).replacen(
        theirs,
        &theirs.replace(':', ": /* mine */"),
        1,
    );
    assert!(settings::detached(&kept, host).unwrap().contains("/* mine */"), "in a hook of theirs it stays");
}

/// A user's own status line would be gone, and the user would not know why.
#[test]
fn a_status_line_is_never_overwritten_and_goes_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".claude/settings.json");
    let words = run("/bin/acpdb", Host::ClaudeCode, AttachMode::Record);
    let line = words.status_line().unwrap();
    assert_eq!(line, "/bin/acpdb statusline");
    for before in [
        None,
        Some("{\n  \"model\": \"opus\"\n}\n"),
        Some("{}\n"),
        Some("{\"a\":1}"),
        Some("{ \"a\": [1, 2] }\n"),
    ] {
        if let Some(before) = before {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, before).unwrap();
        }
        let plan = attach(&path, &words.words().unwrap(), Host::ClaudeCode).unwrap();
        let (plan, is_made) = plan.with_status_line(&line).unwrap();
        assert!(is_made);
        plan.apply().unwrap();
        let after = std::fs::read_to_string(&path).unwrap();
        let value: serde_json::Value = serde_json::from_str(&after).unwrap();
        assert_eq!(value["statusLine"], serde_json::json!({"type": "command", "command": line}), "{after}");
        // Once more, with another store, it is ours and is replaced.
        let again = attach(&path, &words.words().unwrap(), Host::ClaudeCode).unwrap();
        let (again, is_made) = again.with_status_line("/bin/acpdb --db /s statusline").unwrap();
        assert!(is_made && again.diff().contains("--db /s"), "{}", again.diff());
        detach(&path, Host::ClaudeCode).unwrap().apply().unwrap();
        assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), before);
    }
    let own =
        "{\n  \"statusLine\": {\"type\": \"command\", \"command\": \"~/line.sh acpdb statusline\"}\n}\n";
    std::fs::write(&path, own).unwrap();
    let plan = attach(&path, &words.words().unwrap(), Host::ClaudeCode).unwrap();
    let (plan, is_made) = plan.with_status_line(&line).unwrap();
    assert!(!is_made);
    plan.apply().unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().contains("~/line.sh"));
    detach(&path, Host::ClaudeCode).unwrap().apply().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), own);
}
