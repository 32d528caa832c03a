//! Programs of several versions on one path: how `attach`, hooks and `attach --status` treat each other's settings.

use serde_json::{Value, json};

use super::world::{Ran, World, finish};

/// Runs a copy of the program, as another version would lie beside it.
fn by(world: &World, program: &str, arguments: &[&str], input: &str) -> Ran {
    let path = world.path(program);
    if !path.exists() {
        // A process of its own copies it: a program that another test starts meanwhile would inherit a file that is being written, and
        // for as long as it has that, the copy cannot be run ("text file busy").
        let mut copy = std::process::Command::new("cp");
        assert!(copy.arg(acpdb_tests::binary::binary().unwrap()).arg(&path).status().unwrap().success());
    }
    let plain = world.command();
    let mut command = std::process::Command::new(path);
    command.args(arguments).current_dir(world.path(".")).env_clear();
    for (name, value) in plain.get_envs() {
        value.map(|value| command.env(name, value));
    }
    finish(command, input.as_bytes())
}

fn settings(world: &World) -> String {
    std::fs::read_to_string(world.path("home/.claude/settings.json")).unwrap_or_default()
}

/// The program that attaches last is the one that runs, once for each event, and either of them detaches. If it goes, the host goes on,
/// and the other says so: events were lost without a word.
#[test]
fn the_program_that_attached_last_runs_and_is_missed_when_it_goes() {
    let world = World::new();
    let theirs = "{\n  \"model\": \"opus\"\n}\n";
    std::fs::create_dir_all(world.path("home/.claude")).unwrap();
    std::fs::write(world.path("home/.claude/settings.json"), theirs).unwrap();
    by(&world, "old-acpdb", &["attach", "claude"], "").ok();
    let count = |name: &str| settings(&world).matches(&format!("/{name} --db")).count();
    let once = count("old-acpdb");
    by(&world, "new-acpdb", &["attach", "claude"], "").ok();
    assert_eq!((count("old-acpdb"), count("new-acpdb")), (0, once));
    let status = |program: &str| by(&world, program, &["attach", "--status", "claude"], "").ok();
    assert!(!status("old-acpdb").contains("not there"));
    std::fs::remove_file(world.path("new-acpdb")).unwrap();
    let said = status("old-acpdb");
    assert!(
        said.contains("that program is not there") && said.contains("acpdb attach claude-code again"),
        "{said}"
    );
    let json: Value =
        serde_json::from_str(&by(&world, "old-acpdb", &["attach", "--status", "--json"], "").ok()).unwrap();
    assert_eq!(json["items"][0]["attached"][0]["program_is_missing"], true, "{json}");
    // Attached for the project as well, the model is told everything twice.
    by(&world, "old-acpdb", &["attach", "claude", "--project"], "").ok();
    assert!(status("old-acpdb").contains("told twice"), "{}", status("old-acpdb"));
    by(&world, "old-acpdb", &["detach", "claude", "--project"], "").ok();
    by(&world, "old-acpdb", &["detach", "claude"], "").ok();
    assert_eq!(settings(&world), theirs);
    // The same for a host that takes a plug-in.
    by(&world, "new-acpdb", &["attach", "opencode"], "").ok();
    std::fs::remove_file(world.path("new-acpdb")).unwrap();
    let said = by(&world, "old-acpdb", &["attach", "--status", "opencode"], "").ok();
    assert!(said.contains("that program is not there"), "{said}");
}

/// A hook that a newer version wrote, run by an older one: the host hears nothing of it, and `attach --status` does.
#[test]
fn what_an_older_program_does_not_understand_is_told_of() {
    let world = World::new();
    let event =
        json!({"session_id": "s1", "hook_event_name": "Stop", "cwd": "/p", "is_new": true}).to_string();
    for arguments in [
        &["hook", "claude-code", "--brand-new", "3"][..],
        &["hook", "claude", "--mode", "brand-new"],
        &["--db", "store", "hook", "claude-code", "brand-new"],
    ] {
        let ran = world.run_with(arguments, &event);
        assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"), "{arguments:?}: {}", ran.err);
        let status = world.run(&["attach", "--status", "claude"]).ok();
        assert!(
            status.contains("brand-new") && status.contains("another version"),
            "{arguments:?}: {status}"
        );
    }
    let status: Value =
        serde_json::from_str(&world.run(&["attach", "--status", "claude", "--json"]).ok()).unwrap();
    assert_eq!(status["items"][0]["errors"], 3, "{status}");
    // A setting of a newer version is passed over; a value that is none keeps a hook from recording, for it could be about redaction or the subject.
    std::fs::create_dir_all(world.path("home/.config/acpdb")).unwrap();
    let hook = |text: &str| {
        world.write("home/.config/acpdb/config.toml", text);
        let said = json!({"conversation_id": text, "hook_event_name": "beforeSubmitPrompt", "generation_id": "g",
            "prompt": text, "workspace_roots": [world.path(".")]});
        let ran = world.run_with(&["hook", "cursor"], said.to_string());
        assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"), "{text}: {}", ran.err);
        let row = world.run(&["attach", "--status", "cursor", "--json"]);
        world.write("home/.config/acpdb/config.toml", "");
        let list = world.run(&["log", "--texts"]);
        (list.text().contains(text), row)
    };
    assert!(hook("brand-new = 1").0);
    for text in ["redact = \"brand-new\"", "redact = "] {
        assert!(!hook(text).0, "{text}");
        let status = world.run(&["attach", "--status", "cursor"]).ok();
        assert!(status.contains("config.toml"), "{text}: {status}");
    }
}

/// Events that a newer program recorded are kept, and the view says that it does not show them.
#[test]
fn a_view_says_that_it_does_not_understand_all() {
    use acpdb_engine::command::draft::{Bodies, EventDraft};
    use acpdb_engine::event::{Actor, Payload};
    use acpdb_engine::{Entry, Role, Store, StreamInfo};

    let world = World::new();
    let store = Store::builder(world.path("store")).open().unwrap();
    let session = store.session(StreamInfo::session("a-host", "s1"));
    let _ = session.append([Entry::message("m1", Role::User, "why is the build red?")]).unwrap();
    let shown = || world.run(&["context", "s1"]);
    assert_eq!(shown().err, "");
    let newer = Payload::Unknown { number: 9999, version: 1, bytes: vec![0xa0] };
    let draft = EventDraft::of(newer, Bodies::default());
    session.decide(Actor::Host, &mut |_| Ok((vec![draft.clone()], ()))).unwrap();
    store.close().unwrap();
    let ran = shown();
    assert!(ran.err.contains("not fully understood: a newer acpdb recorded 1 event"), "{}", ran.err);
    assert!(ran.ok().contains("why is the build red?"));
}
