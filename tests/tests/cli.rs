//! The program as a user and as another program meet it: its input, its output, and the exit code.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_collect,
    reason = "helpers of tests"
)]

#[path = "cli/answers.rs"]
mod answers;
#[path = "cli/bad_input.rs"]
mod bad_input;
#[path = "cli/disks.rs"]
mod disks;
#[path = "cli/doors.rs"]
mod doors;
#[path = "cli/encrypted.rs"]
mod encrypted;
#[path = "cli/erased.rs"]
mod erased;
#[path = "cli/faults.rs"]
mod faults;
#[path = "cli/follow.rs"]
mod follow;
#[path = "cli/hints.rs"]
mod hints;
#[path = "cli/listed.rs"]
mod listed;
#[path = "cli/live_faults.rs"]
mod live_faults;
#[path = "cli/live_input.rs"]
mod live_input;
#[path = "cli/money.rs"]
mod money;
#[path = "cli/newcomer.rs"]
mod newcomer;
#[path = "cli/processes.rs"]
mod processes;
#[path = "cli/projects.rs"]
mod projects;
#[path = "cli/remote.rs"]
mod remote;
#[path = "cli/salvaged.rs"]
mod salvaged;
#[path = "cli/several.rs"]
mod several;
#[path = "cli/started.rs"]
mod started;
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/told_alike.rs"]
mod told_alike;
#[path = "cli/transcript.rs"]
mod transcript;
#[path = "cli/versions.rs"]
mod versions;
#[path = "cli/world.rs"]
mod world;

use world::{FEED, World};

#[test]
fn reads_of_the_bundled_session_in_words() {
    let world = World::new();
    transcript::play(&world, "reads.md");
}

#[test]
fn without_a_verb_the_store_is_told_at_a_glance() {
    let world = World::new();
    transcript::play(&world, "home.md");
}

#[test]
fn acts_on_a_small_session_in_words() {
    let world = World::new();
    world.write("feed.jsonl", FEED);
    transcript::play(&world, "acts.md");
}

#[test]
fn answers_for_programs_keep_their_fields() {
    let world = World::fed();
    transcript::play(&world, "json.md");
}

#[test]
fn mistakes_say_what_to_do() {
    let world = World::fed();
    transcript::play(&world, "mistakes.md");
}

#[test]
fn hosts_and_the_service_that_follows_them() {
    let world = World::new();
    world.stands_in_for("systemctl", "echo active");
    world.stands_in_for("launchctl", "exit 1");
    let folder = world.path("home/.claude/projects/shop");
    std::fs::create_dir_all(&folder).unwrap();
    let line = |kind: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"{kind}-1\",\"sessionId\":\"s\",\"cwd\":\"/w\",\"version\":\"2.1.330\",\
             \"message\":{{\"role\":\"user\",\"content\":\"hello\"}}}}\n"
        )
    };
    let session = folder.join("c0ffee00-0000-4000-8000-000000000001.jsonl");
    std::fs::write(session, line("user") + &line("dream")).unwrap();
    transcript::play(&world, "hosts.md");
    let asked = std::fs::read_to_string(world.path("asked")).unwrap();
    let expected = [
        "systemctl --user daemon-reload",
        "systemctl --user enable --now acpdb-import.service",
        "systemctl --user is-active acpdb-import.service",
        "systemctl --user is-active acpdb-import.service",
        "systemctl --user disable --now acpdb-import.service",
        "systemctl --user daemon-reload",
    ];
    let told: Vec<&str> = asked.lines().filter(|line| line.starts_with("systemctl")).collect();
    assert_eq!(told, expected);
}

#[test]
fn queries_choose_events_items_and_sessions() {
    let world = World::fed();
    transcript::play(&world, "query.md");
}

/// The value that held came back as the newest one, which it had been restored over.
#[test]
fn memory_is_imported_with_the_value_that_was_restored() {
    let world = World::new();
    for value in ["tabs", "spaces", "tabs"] {
        world.run(&["memory", "add", "preference", "indent", value, "--project", "p"]).ok();
    }
    world.run(&["memory", "restore", "indent"]).ok();
    let exported = world.run(&["memory", "export", "--all"]).ok();
    assert_eq!(exported.matches("\"shadowed\":true").count(), 1, "{exported}");
    world.write("memory.jsonl", &exported);
    let import = ["memory", "import", "memory.jsonl", "--project", "p", "--db", "other"];
    world.run(&import).ok();
    let get = ["memory", "get", "indent", "--db", "other"];
    assert_eq!(world.run(&get).ok().trim(), "spaces");
    assert_eq!(world.run(&["memory", "export", "--all", "--db", "other"]).ok(), exported);
    // A second import adds nothing, and a later choice stays.
    assert!(world.run(&import).ok().starts_with("0 events"));
    world.run(&["memory", "restore", "p3", "--db", "other"]);
    world.run(&["memory", "add", "preference", "indent", "none", "--project", "p", "--db", "other"]).ok();
    world.run(&import).ok();
    assert_eq!(world.run(&get).ok().trim(), "none");
}

/// An export of a fork as of a turn that it shares was empty, and said nothing.
#[test]
fn an_export_of_a_fork_before_it_began_has_what_it_shares() {
    let world = World::fed();
    world.run(&["fork", "s1", "--id", "fork"]).ok();
    let lines = |session: &str, format: &str| {
        world.run(&["export", format, session, "--at", "t2", "-o", "-"]).ok().lines().count()
    };
    assert_eq!((lines("fork", "jsonl"), lines("fork", "otlp-json")), (2, 1));
    assert_eq!((lines("s1", "jsonl"), lines("s1", "otlp-json")), (2, 1));
}

#[test]
fn points_in_time_differences_and_branches() {
    let world = World::fed();
    transcript::play(&world, "travel.md");
}

#[test]
fn what_sessions_cost() {
    let world = World::new();
    let price = |names: &str, input: &str| {
        format!(
            "checked = \"2026-01-31\"\n[provider.own]\nsource = \"a contract\"\nread = 0.5\nwrite = 1.0\n\
             ttl_seconds = 300\n[[model]]\nprovider = \"own\"\nnames = [{names}]\ninput = {input}\noutput = 1.0\n"
        )
    };
    world.write("own.toml", price("\"claude-haiku-4-5\"", "100.0"));
    world.write("newer.toml", price("\"claude-haiku-4-5\"", "2.0").replace("2026-01-31", "2099-01-31"));
    world.write("wrong.toml", price("\"a\"", "-1.0"));
    transcript::play(&world, "cost.md");
}

#[test]
fn lists_are_as_wide_as_the_terminal() {
    let world = World::new();
    transcript::play(&world, "widths.md");
}

#[test]
fn words_and_phrases_are_found() {
    let world = World::new();
    transcript::play(&world, "search.md");
}

#[test]
fn what_other_policies_would_have_cost() {
    let world = World::new();
    transcript::play(&world, "simulate.md");
}

#[test]
fn what_is_erased_and_what_is_said_of_it() {
    let world = World::fed();
    // Put together here: a scan of the sources finds no token.
    let token = format!("ghp_{}", "0a1b2c3d4e".repeat(4).get(..36).unwrap());
    let said = |key: &str, text: &str| {
        format!(r#"{{"session":"s3","turn":true,"message":{{"key":"{key}","role":"user","text":"{text}"}}}}"#)
    };
    let lines =
        [said("k1", "my pin is 4711, keep it"), said("k2", &format!("the token is {token}")), String::new()];
    world.write("secrets.jsonl", lines.join("\n"));
    transcript::play(&world, "erase.md");
}

#[test]
fn stores_that_are_imported() {
    let world = World::fed();
    transcript::play(&world, "stores.md");
    // A store of a newer program is refused by name, and nothing of a store is followed.
    let file = std::fs::read_to_string(world.path("other/acpdb.json")).unwrap();
    let (text, _) = file.rsplit_once(",\n  \"check\"").unwrap();
    let (_, rest) = text.split_once(",\n").unwrap();
    let text = format!("{{\n  \"acpdb\": 99,\n{rest}");
    let check = blake3::hash(text.as_bytes()).to_hex();
    std::fs::create_dir(world.path("newer")).unwrap();
    world.write("newer/acpdb.json", format!("{text},\n  \"check\": \"{check}\"\n}}\n"));
    let refused = world.run(&["import", "newer"]);
    assert!(refused.code != 0 && refused.err.contains("newer"), "{refused:?}");
    world.run(&["import", "other", "--follow"]).says(2, &["other is a store"]);
}

#[test]
fn settings_are_listed_read_and_written() {
    let world = World::new();
    world.write("feed.jsonl", FEED);
    transcript::play(&world, "config.md");
}

#[test]
fn a_file_of_settings_that_is_wrong_is_named_and_never_stands_in_the_way_of_mending_it() {
    let world = World::fed();
    std::fs::create_dir_all(world.path("home/.config/acpdb")).unwrap();
    let settings = "home/.config/acpdb/config.toml";
    // One of a newer program, or a slip: said, and passed over.
    world.write(settings, "# mine\npagger = \"less\"\ncolor = \"never\" # plain\n");
    let ran = world.run(&["sessions"]);
    ran.says(0, &["there is no setting \"pagger\"; did you mean pager?"]);
    // Comments and order stay.
    world.run(&["config", "set", "color", "auto"]).ok();
    let text = std::fs::read_to_string(world.path(settings)).unwrap();
    assert!(text.starts_with("# mine\npagger = \"less\"\ncolor = \"auto\""), "{text}");
    for (text, words) in [
        ("color = \"pink\"", ["color cannot be", "auto, always, never"]),
        ("color = 3", ["config.toml", "a text, true or false"]),
        ("color = ", ["config.toml:1", "hint: mend the file"]),
        ("[color]\nx = 1", ["config.toml", "a text, true or false"]),
        // A secret was recorded that was to be taken out.
        ("redcat = true", ["config.toml", "did you mean redact"]),
    ] {
        world.write(settings, text);
        world.run(&["sessions"]).says(2, &words);
        assert_eq!(world.run(&["config", "path"]).code, 0);
    }
    world.write(settings, "db = \"elsewhere\"");
    let mut command = world.command();
    command.args(["info"]).env_remove("ACPDB_PATH");
    world::finish(command, b"").says(7, &["there is no store: ", "elsewhere is not there"]);
}
