//! What a host, a home and a network may be that is not expected: hooks end well, `attach` says what is wrong and leaves all as it was.

use serde_json::{Value, json};

use super::world::{Ran, World, contents, finish};

/// A run with this home, in this folder, and with no store named.
fn run(world: &World, home: &str, folder: &str, arguments: &[&str], input: &[u8]) -> Ran {
    let mut command = world.command();
    command.args(arguments).env("HOME", home).env_remove("ACPDB_PATH").current_dir(folder);
    finish(command, input)
}

fn prompt(world: &World, text: &str) -> String {
    json!({"conversation_id": "s1", "hook_event_name": "beforeSubmitPrompt", "generation_id": text, "prompt": text,
        "workspace_roots": [world.path(".")]})
    .to_string()
}

/// Where nothing can be written, not even by the superuser.
const READ_ONLY: &str = "/proc";

#[test]
fn in_a_home_that_takes_no_file_attaching_says_so_and_hooks_go_on() {
    let world = World::new();
    for host in ["claude", "codex", "gemini", "cursor", "opencode", "pi"] {
        let ran = run(&world, READ_ONLY, "/", &["attach", host], b"");
        ran.says(1, &["cannot make /proc/"]);
        let ran = run(&world, READ_ONLY, "/", &["detach", host], b"");
        assert_eq!(ran.code, 0, "{host}: there is nothing to take away: {}", ran.err);
    }
    let ran = run(&world, READ_ONLY, "/", &["config", "set", "redact", "true"], b"");
    ran.says(1, &["cannot write /proc/"]);
    // No store can be made there: nothing is recorded. One that is named is used; that the journal cannot be written is no reason.
    let folder = world.path(".").to_str().unwrap().to_owned();
    for arguments in [&["hook", "cursor"][..], &["--db", "store", "hook", "cursor"]] {
        let ran = run(&world, READ_ONLY, &folder, arguments, prompt(&world, "in a home of stone").as_bytes());
        assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"), "{arguments:?}: {}", ran.err);
    }
    assert!(world.list().contains("in a home of stone"));
}

#[test]
fn a_host_in_a_folder_without_a_store_is_recorded_in_the_one_of_the_user() {
    let world = World::new();
    let home = world.path("home");
    let (home, folder) = (home.to_str().unwrap(), world.path("."));
    for (said, cwd) in [("here", world.path(".")), ("in a folder that is gone", world.path("no/such/folder"))]
    {
        let mut event: Value = serde_json::from_str(&prompt(&world, said)).unwrap();
        event["workspace_roots"] = json!([cwd]);
        let ran =
            run(&world, home, folder.to_str().unwrap(), &["hook", "cursor"], event.to_string().as_bytes());
        assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"), "{said}: {}", ran.err);
        let list = world.run(&["--db", "home/.local/share/acpdb", "list"]).ok();
        assert!(list.contains(said), "{said}: {list}");
    }
    assert!(!world.path(".acpdb").exists() && !world.path("store").exists());
}

/// Settings that are not what the host's would be: left alone to the byte, in both directions, and said.
#[test]
fn settings_that_are_not_understood_are_left_alone() {
    let world = World::new();
    for (file, hosts) in [
        (".claude/settings.json", "claude"),
        (".codex/hooks.json", "codex"),
        (".gemini/settings.json", "gemini"),
        (".cursor/hooks.json", "cursor"),
    ] {
        let path = world.path("home").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for bytes in [
            &b"{ // mine\n}"[..],
            b"{\"hooks\": {}",
            b"[]",
            b"null",
            b"{\"hooks\": []}",
            b"{\"hooks\": {\"Stop\": {}, \"SessionStart\": 1, \"sessionStart\": 1}}",
            b"\xff\xfe{}",
            b"\xef\xbb\xbf{}",
        ] {
            std::fs::write(&path, bytes).unwrap();
            let shown = String::from_utf8_lossy(bytes).into_owned();
            let before = contents(&world.path("home"));
            let ran = world.run(&["attach", hosts]);
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(ran.code == 1 && ran.err.contains(name), "{hosts} {shown}: {} {}", ran.code, ran.err);
            let ran = world.run(&["detach", hosts]);
            assert!([0, 1].contains(&ran.code), "{hosts} {shown}: {}", ran.err);
            assert!(contents(&world.path("home")) == before, "{hosts} {shown}: something was changed");
            world.run(&["attach", "--status", hosts]).ok();
        }
    }
}

#[test]
fn an_event_that_is_longer_than_is_read_records_nothing_and_ends_well() {
    let world = World::new();
    let mut event: Value = serde_json::from_str(&prompt(&world, "long")).unwrap();
    event["prompt"] = "x".repeat(64 << 20).into();
    let ran = world.run_with(&["hook", "cursor"], event.to_string());
    assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"), "{}", ran.err);
    let status = world.run(&["attach", "--status", "cursor"]).ok();
    assert!(status.contains("1 error"), "{status}");
    world.run_with(&["hook", "cursor"], prompt(&world, "short")).ok();
    assert!(world.list().contains("short"));
}
