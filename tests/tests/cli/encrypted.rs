//! Encrypted stores at every door of the program: what opens them, what is refused and in which words.

use std::path::Path;

use crate::world::{FEED, Ran, World, contents, finish};

const PASSPHRASE: &str = "a crossing of horses";

/// Runs with variables of the environment set.
fn with(world: &World, variables: &[(&str, &str)], arguments: &[&str], typed: &str) -> Ran {
    let mut command = world.command();
    command.args(arguments).envs(variables.iter().copied());
    finish(command, typed.as_bytes())
}

trait Tells {
    /// Fails unless the run ended with `code` and said each of `words`.
    fn tells(&self, code: i32, words: &[&str]);
}

impl Tells for Ran {
    #[track_caller]
    fn tells(&self, code: i32, words: &[&str]) {
        let said = format!("{}{}", self.text(), self.err);
        assert_eq!(self.code, code, "{said}");
        for word in words {
            assert!(said.contains(word), "{word:?} is not in {said:?}");
        }
    }
}

/// The file of the key that `init` made beside the settings.
fn key_beside(world: &World) -> std::path::PathBuf {
    let folder = world.path("home/.config/acpdb/keys").read_dir().unwrap();
    let mut files = folder.map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|end| end == "store-key")).unwrap()
}

fn line(text: &str) -> String {
    let line =
        serde_json::json!({"session": "s1", "cwd": "/srv/zebra", "message": {"role": "user", "text": text}});
    format!("{line}\n")
}

fn assert_hidden(world: &World, folder: &str) {
    for (path, bytes) in contents(&world.path(folder)) {
        assert!(!bytes.windows(5).any(|part| part == b"zebra"), "{}", path.display());
    }
}

/// With the key beside the settings nothing has to be named: all verbs work as on any store.
#[test]
fn a_store_whose_key_lies_beside_the_settings_is_used_like_any_other() {
    let world = World::new();
    let made = world.run(&["init", "--encrypt"]);
    made.tells(0, &["is a new store, encrypted", "store-key", "keep a copy of the key elsewhere"]);
    world.run_with(&["append", "--stdin"], FEED).ok();
    world.run_with(&["append", "--stdin"], line("the first zebra")).ok();
    for verb in [
        &["sessions"] as &[&str],
        &["context", "s1"],
        &["history", "s1"],
        &["log", "--texts"],
        &["search", "zebra"],
        &["log"],
        &["info"],
        &["info", "--space"],
        &["verify"],
        &["verify", "--deep"],
        &["doctor"],
        &["verify", "--head"],
        &["backup", "copy"],
        &["doctor", "salvage", "--into", "saved"],
        &["export", "jsonl"],
    ] {
        world.run(verb).ok();
    }
    world.run(&["info"]).tells(0, &["encrypted  all that it records, under one key"]);
    world.run(&["doctor", "seal", "--all"]).tells(0, &["nothing to seal"]);
    world.run(&["doctor", "reindex"]).tells(2, &["no index"]);
    assert!(world.run(&["search", "zebra"]).ok().contains("zebra"));
    assert!(world.run(&["init", "--encrypt"]).ok().contains("is a store already"));
    for folder in ["store", "copy", "saved"] {
        assert_hidden(&world, folder);
        let shown = world.run(&["--db", folder, "context", "s1"]).ok();
        assert!(shown.contains("the first zebra"), "{folder}: {shown}");
        world.run(&["--db", folder, "verify", "--deep"]).ok();
    }
    // To another store, and from one.
    world.run(&["--db", "plain", "import", "store"]).ok();
    assert!(!world.run(&["--db", "plain", "info"]).ok().contains("encrypted"));
    assert!(world.run(&["--db", "plain", "context", "s1"]).ok().contains("the first zebra"));
    // Erased is erased.
    let found = world.run(&["log", "--texts", "--json"]).ok();
    let item = found.lines().find(|row| row.contains("zebra")).unwrap();
    let item: serde_json::Value = serde_json::from_str(item).unwrap();
    let id = format!("#{}", item["seq"]);
    world.run(&["erase", &id, "--reason", "asked for"]).ok();
    assert!(!world.run(&["context", "s1"]).ok().contains("the first zebra"));
    world.run(&["verify"]).ok();
    world.run(&["verify", "--deep"]).ok();
}

/// A verb with options before it.
fn named<'a>(options: &[&'a str], verb: &[&'a str]) -> Vec<&'a str> {
    [options, verb].concat()
}

/// Each refusal ends with code 9, names the store and the key, and says what to do.
#[test]
fn a_key_that_is_missing_wrong_or_not_needed_is_named() {
    let world = World::new();
    world.run(&["init", "--encrypt"]).ok();
    world.run_with(&["append", "--stdin"], line("the first zebra")).ok();
    world.run(&["doctor", "reindex"]).says(2, &["keeps no index", "nothing to make anew"]);
    world.run(&["--db", "other", "init", "--encrypt", "--passphrase"]).tells(2, &["ACPDB_PASSPHRASE"]);
    let key = key_beside(&world);
    let elsewhere = world.path("elsewhere.key");
    std::fs::rename(&key, &elsewhere).unwrap();
    let told = elsewhere.to_str().unwrap();
    let wrong = world.path("wrong.key");
    let wrong = wrong.to_str().unwrap();
    world.run(&["--db", "second", "--key-file", wrong, "init", "--encrypt"]).ok();
    let verbs: [&[&str]; 9] = [
        &["sessions"],
        &["context", "s1"],
        &["info"],
        &["append", "--stdin"],
        &["verify", "--deep"],
        &["doctor", "salvage", "--into", "none"],
        &["backup", "none"],
        &["key", "rotate"],
        &["erase", "#2", "--reason", "x"],
    ];
    let before = contents(&world.path("store"));
    for verb in verbs {
        if verb != ["key", "rotate"] {
            world
                .run_with(verb, line("x"))
                .tells(9, &["store is encrypted, and no key was given", "help encryption"]);
        }
        world
            .run_with(&named(&["--key-file", wrong], verb), line("x"))
            .tells(9, &["wrong.key does not open", "store"]);
        let none = named(&["--db", "nowhere", "--key-file", told], verb);
        let said = world.run_with(&none, line("x"));
        assert!(said.code == 9 || said.code == 7, "{verb:?}: {}", said.text());
        assert!(!world.path("none").exists() && !world.path("nowhere").exists(), "{verb:?}");
    }
    assert!(contents(&world.path("store")) == before, "a refusal changed something");
    // Bytes are checked without the key. That they are sound makes no store that can be read.
    world
        .run(&["verify"])
        .tells(9, &["cannot be read", "no key was given", "checked", "verify --without-key"]);
    world.run(&["verify", "--without-key"]).tells(0, &["sound", "not proven", "without the key"]);
    world.run(&["doctor"]).tells(9, &["problem  key", "every digest and link holds"]);
    // A store was called sound, and nothing to be done, after all that could open it was gone.
    let wrapped = std::fs::read(world.path("store/key")).unwrap();
    std::fs::remove_file(world.path("store/key")).unwrap();
    world.run(&["verify"]).tells(9, &["cannot be read", "key is missing", "from a backup"]);
    assert!(world.run(&["verify", "--json"]).text().contains("\"verdict\":\"unreadable\""));
    assert_eq!(world.run(&["doctor"]).code, 9);
    std::fs::write(world.path("store/key"), &wrapped[1..]).unwrap();
    world.run(&["verify"]).tells(9, &["key is damaged"]);
    std::fs::write(world.path("store/key"), &wrapped).unwrap();
    world.run(&["--key-file", told, "verify"]).tells(0, &["sound"]);
    assert!(world.run(&["verify", "--json"]).text().contains("\"verdict\":\"unreadable\""));
    world.run(&["--key-file", told, "context", "s1"]).tells(0, &["the first zebra"]);
    let variable = [("ACPDB_KEY_FILE", told)];
    with(&world, &variable, &["context", "s1"], "").tells(0, &["the first zebra"]);
    with(&world, &variable, &["verify", "--deep"], "").ok();
    // Neither a plain store nor none takes a key.
    world.run_with(&["--db", "plain", "append", "--stdin"], line("plain")).ok();
    let refused = world.run(&["--db", "plain", "--key-file", told, "sessions"]);
    refused.tells(9, &["plain is not encrypted", "elsewhere.key", "leave it out"]);
    let refused = world.run_with(&["--db", "nowhere", "--key-file", told, "append", "--stdin"], line("x"));
    refused.tells(9, &["nowhere holds no store", "elsewhere.key", "init --encrypt"]);
    world.run(&["--db", "nowhere", "--key-file", told, "init"]).tells(2, &["add --encrypt"]);
    world.run(&["--db", "plain", "init", "--encrypt"]).tells(5, &["is not encrypted"]);
    assert!(!world.path("nowhere").exists());
}

#[test]
fn a_passphrase_opens_a_store_and_a_key_is_rotated_as_often_as_asked() {
    let world = World::new();
    let said = [("ACPDB_PASSPHRASE", PASSPHRASE)];
    with(&world, &said, &["init", "--encrypt", "--passphrase"], "").ok();
    with(&world, &said, &["append", "--stdin"], &line("the first zebra")).ok();
    world.run(&["context", "s1"]).tells(9, &["no key was given"]);
    with(&world, &[("ACPDB_PASSPHRASE", "another crossing")], &["context", "s1"], "")
        .tells(9, &["the passphrase does not open"]);
    with(&world, &said, &["context", "s1"], "").tells(0, &["the first zebra"]);
    // To a file; asked again after a kill; to a passphrase again.
    let log = contents(&world.path("store/log"));
    let file = world.path("vault.key");
    let file = file.to_str().unwrap();
    with(&world, &said, &["key", "rotate", "--to", file], "").tells(0, &["wrapped anew", "vault.key"]);
    with(&world, &said, &["key", "rotate", "--to", file], "").tells(0, &["opens the store already"]);
    assert!(contents(&world.path("store/log")) == log, "the log is as it was");
    with(&world, &said, &["context", "s1"], "").tells(9, &["the passphrase does not open"]);
    world.run(&["--key-file", file, "context", "s1"]).tells(0, &["the first zebra"]);
    let both = [("ACPDB_NEW_PASSPHRASE", "a third crossing")];
    with(&world, &both, &["--key-file", file, "key", "rotate", "--to-passphrase"], "")
        .tells(0, &["a passphrase"]);
    let third = [("ACPDB_PASSPHRASE", "a third crossing")];
    with(&world, &third, &["context", "s1"], "").tells(0, &["the first zebra"]);
    // To a key beside the settings: then nothing has to be named.
    with(&world, &third, &["key", "rotate"], "").tells(0, &["store-key"]);
    world.run(&["context", "s1"]).tells(0, &["the first zebra"]);
    world.run(&["verify", "--deep"]).ok();
    assert_hidden(&world, "store");
    world.run_with(&["--db", "plain", "append", "--stdin"], line("plain")).ok();
    world.run(&["--db", "plain", "key", "rotate"]).tells(2, &["is not encrypted"]);
}

/// The folder of an encrypted store was not mounted: with its passphrase given, every verb that records made a new plain store there.
#[test]
fn a_passphrase_that_is_given_means_an_encrypted_store() {
    let world = World::new();
    let said = [("ACPDB_PASSPHRASE", PASSPHRASE)];
    let prompt =
        r#"{"hook_event_name":"UserPromptSubmit","session_id":"s1","cwd":"/w","prompt":"the first zebra"}"#;
    world.run_with(&["--db", "plain", "append", "--stdin"], line("a plain horse")).ok();
    let plain = contents(&world.path("plain"));
    for (folder, words) in [("gone", "holds no store, and a key was given"), ("plain", "is not encrypted")] {
        for (arguments, input) in [
            (&["append", "--stdin"][..], line("the first zebra")),
            (&["import", "bare.jsonl"], String::new()),
            (&["mcp"], String::new()),
            (&["context"], String::new()),
            (&["sessions"], String::new()),
            (&["doctor", "seal"], String::new()),
            (&["verify"], String::new()),
            (&["doctor"], String::new()),
            (&["doctor", "salvage", "--into", "saved"], String::new()),
            (&["attach", "claude"], String::new()),
            (&["service", "--manager", "systemd", "install", "--no-start"], String::new()),
        ] {
            let arguments = [&["--db", folder], arguments].concat();
            let ran = with(&world, &said, &arguments, &input);
            assert_ne!(ran.code, 0, "{arguments:?}: {}", ran.text());
            let told = format!("{}{}", ran.text(), ran.err);
            let is_told = told.contains(words)
                || told.contains("no acpdb.json")
                || told.contains("is not there")
                || told.contains("bare.jsonl");
            assert!(is_told, "{arguments:?}: {told}");
        }
        with(&world, &said, &["--db", folder, "hook", "claude-code"], prompt).tells(0, &["{}"]);
    }
    assert!(!world.path("gone").exists());
    assert!(contents(&world.path("plain")) == plain, "the plain store is as it was");
    // Nor is a plain store made from what was shipped.
    let disk = format!("file://{}", world.path("disk").display());
    std::fs::create_dir(world.path("disk")).unwrap();
    world.run(&["--db", "plain", "backup", &disk]).ok();
    with(&world, &said, &["restore", &disk, "gone"], "").tells(9, &["is not encrypted, and a key was given"]);
    with(&world, &said, &["--db", "gone", "init"], "").tells(2, &["add --encrypt"]);
    assert!(!world.path("gone").exists());
    // Where a key that signs is under a passphrase, the same variable opens that one.
    with(&world, &said, &["key", "new", "--passphrase"], "").ok();
    with(&world, &said, &["--db", "plain", "append", "--stdin"], &line("another horse")).ok();
    with(&world, &said, &["--db", "gone", "append", "--stdin"], &line("the first zebra"))
        .tells(9, &["a key was given"]);
}

/// The disk of the user's own encrypted store was not mounted: hooks and verbs made a plain store in its place, and said nothing.
#[test]
fn an_encrypted_store_that_is_away_is_not_replaced_by_a_plain_one() {
    let world = World::new();
    let prompt =
        r#"{"hook_event_name":"UserPromptSubmit","session_id":"s1","cwd":"/w","prompt":"the first zebra"}"#;
    world.run(&["init", "--encrypt"]).ok();
    world.run_with(&["append", "--stdin"], line("the first zebra")).ok();
    world.write("session.jsonl", r#"{"role":"user","content":"the first zebra"}"#);
    std::fs::rename(world.path("store"), world.path("elsewhere")).unwrap();
    let words = ["you made an encrypted store in", "it is not there", "init"];
    for round in 0..2 {
        let doors: [(&[&str], String); 4] = [
            (&["append", "--stdin"], line("the first zebra")),
            (&["import", "session.jsonl"], String::new()),
            (&["mcp"], String::new()),
            (&["policy", "set", "economy"], String::new()),
        ];
        for (door, input) in doors {
            let ran = world.run_with(door, input);
            let told = format!("{}{}", ran.text(), ran.err);
            assert!(
                ran.code == 9 && words.iter().all(|word| told.contains(word)),
                "{round} {door:?}: {} {told}",
                ran.code
            );
        }
        for glance in [&[][..], &["--json"]] {
            world.run(glance).tells(9, &words);
        }
        world.run_with(&["hook", "claude-code"], prompt).tells(0, &["{}"]);
        assert!(!world.path("store/acpdb.json").exists());
        // The same with an empty folder in its place, as of a disk that is not mounted.
        std::fs::create_dir_all(world.path("store")).unwrap();
    }
    // A plain store that took its place is not written either, until its owner says so.
    std::fs::remove_dir(world.path("store")).unwrap();
    world.run_with(&["--db", "plain", "append", "--stdin"], line("a horse")).ok();
    std::fs::rename(world.path("plain"), world.path("store")).unwrap();
    world
        .run_with(&["append", "--stdin"], line("the first zebra"))
        .tells(9, &["one that is not encrypted lies there"]);
    world.run(&["init"]).ok();
    world.run_with(&["append", "--stdin"], line("another horse")).ok();
    std::fs::remove_dir_all(world.path("store")).unwrap();
    world.run_with(&["append", "--stdin"], line("a third horse")).ok();
}

/// A log was set back, and its key was given by hand: `verify` and `doctor` did not open the store with it, compared no checkpoint, and said "sound".
#[test]
fn what_was_signed_is_compared_with_any_key_that_opens_the_store() {
    let world = World::new();
    let key = world.path("elsewhere.key");
    let key = key.to_str().unwrap();
    let file = ["--key-file", key];
    let passphrase = [("ACPDB_PASSPHRASE", PASSPHRASE)];
    let ways = [("a", &[][..], &["--passphrase"][..], &passphrase[..]), ("b", &file, &[], &[])];
    world.run(&["key", "new"]).ok();
    for (store, options, made, said) in ways {
        let run = |verb: &[&str], typed: &str| {
            let arguments = [&["--db", store][..], options, verb].concat();
            with(&world, said, &arguments, typed)
        };
        run(&[&["init", "--encrypt"][..], made].concat(), "").ok();
        run(&["append", "--stdin"], &line("the first zebra")).ok();
        let before = contents(&world.path(store));
        run(&["append", "--stdin"], &line("the second zebra")).ok();
        run(&["checkpoint", "sign"], "").ok();
        run(&["verify"], "").tells(0, &["sound", "seen last", "agrees"]);
        run(&["doctor"], "").tells(0, &["agree with the log"]);
        std::fs::remove_dir_all(world.path(store).join("checkpoints")).unwrap();
        for (path, bytes) in before {
            std::fs::write(path, bytes).unwrap();
        }
        for verb in ["verify", "doctor"] {
            run(&[verb], "").tells(4, &["is ahead: the log was set back"]);
        }
        run(&["verify", "--without-key"], "").tells(0, &["not proven", "compared with what was signed"]);
    }
}

/// `doctor` found nothing to do where the owner's key had gone.
#[test]
fn doctor_says_that_no_key_at_hand_opens_a_store() {
    let world = World::new();
    world.run(&["init", "--encrypt"]).ok();
    world.run_with(&["append", "--stdin"], line("the first zebra")).ok();
    world.run(&["doctor"]).tells(0, &["Nothing needs to be done"]);
    let key = key_beside(&world);
    let elsewhere = world.path("elsewhere.key");
    std::fs::rename(&key, &elsewhere).unwrap();
    world.run(&["doctor"]).tells(9, &["problem  key", "no key was given"]);
    world.run(&["doctor", "--json"]).tells(9, &[r#""state":"problem","what":"key""#]);
    world.run(&["verify"]).tells(9, &["cannot be read", "no key was given"]);
    world.run(&["--key-file", elsewhere.to_str().unwrap(), "doctor"]).tells(0, &["Nothing needs to be done"]);
    with(&world, &[("ACPDB_PASSPHRASE", PASSPHRASE)], &["doctor"], "").tells(9, &["problem  key"]);
}

/// A plain store stays as it is, and who has the disk to which it is shipped cannot read it.
#[test]
fn what_is_shipped_encrypted_is_read_with_its_key_alone() {
    let world = World::fed();
    let disk = format!("file://{}", world.path("disk").display());
    let texts = world.run(&["log", "--texts"]).ok();
    let first = world.run(&["backup", &disk, "--encrypt"]);
    assert!(first.err.contains("store-key") && first.err.contains("keep a copy elsewhere"), "{}", first.err);
    first.ok();
    let is_open = |name: &Path| name.ends_with("acpdb-remote.json") || name.ends_with("object-key");
    for (name, bytes) in contents(&world.path("disk")) {
        assert_eq!(bytes.starts_with(b"acpdbenc"), !is_open(&name), "{}", name.display());
    }
    // From here on it is what is there that decides; so it is for all verbs.
    world.run_with(&["append", "--stdin"], line("the first zebra")).ok();
    world.run(&["backup", &disk]).ok();
    world.run(&["--db", &disk, "verify"]).tells(0, &["sound"]);
    world.run(&["--db", &disk, "search", "zebra"]).tells(0, &["the first zebra"]);
    world.run(&["restore", &disk, "again"]).ok();
    assert!(world.run(&["--db", "again", "log", "--texts"]).ok().starts_with(&texts));
    // A key in another file, a passphrase, no key, another key.
    let keys = world.path("home/.config/acpdb/keys");
    let key = std::fs::read_dir(&keys).unwrap().next().unwrap().unwrap().file_name();
    std::fs::rename(&keys, world.path("kept")).unwrap();
    let key = world.path("kept").join(key).display().to_string();
    world.run(&["--db", &disk, "sessions"]).tells(9, &["no key of it is at hand"]);
    world.run(&["--db", &disk, "verify"]).tells(9, &["no key of it is at hand"]);
    world.run(&["backup", &disk]).tells(9, &["no key of it is at hand"]);
    world.run(&["restore", &disk, "more"]).tells(9, &["no key of it is at hand"]);
    world.run(&["--db", &disk, "--key-file", &key, "search", "zebra"]).tells(0, &["the first zebra"]);
    world.run(&["restore", &disk, "more", "--key-file", &key]).ok();
    let other = format!("file://{}", world.path("other").display());
    let said = [("ACPDB_PASSPHRASE", "correct horse battery")];
    with(&world, &said, &["backup", &other, "--encrypt"], "").tells(0, &["all up to"]);
    with(&world, &said, &["--db", &other, "search", "zebra"], "").tells(0, &["the first zebra"]);
    with(&world, &[("ACPDB_PASSPHRASE", "another horse")], &["--db", &other, "sessions"], "")
        .tells(9, &["does not open"]);
    world.run(&["--db", &other, "--key-file", &key, "sessions"]).tells(9, &["does not open"]);
    // A store that was shipped as it is stays so, and a key is not taken for nothing there.
    let plain = format!("file://{}", world.path("plain").display());
    world.run(&["backup", &plain]).ok();
    world.run(&["backup", &plain, "--encrypt"]).tells(9, &["shipped there as it is", "another place"]);
    world
        .run(&["--db", &plain, "--key-file", &key, "sessions"])
        .tells(9, &["is not encrypted, and a key was given"]);
    // Without its wrapped key it is noise, and it is not begun anew.
    let objects = contents(&world.path("disk"));
    let (wrapped, _) = objects.iter().find(|(name, _)| name.ends_with("object-key")).unwrap();
    std::fs::remove_file(wrapped).unwrap();
    for arguments in [&["backup", &disk, "--encrypt"][..], &["backup", &disk], &["restore", &disk, "none"]] {
        let ran = world.run(&[arguments, &["--key-file", &key]].concat());
        ran.tells(9, &["its key is gone"]);
    }
    // By the settings, for a service, and for an encrypted store, which needs none.
    world.run(&["config", "set", "backup_encrypt", "true"]).ok();
    let third = format!("file://{}", world.path("third").display());
    world.run(&["backup", &third]).ok();
    assert!(!contents(&world.path("third")).iter().any(|(_, bytes)| bytes.starts_with(b"acpdbrun")));
    world.run(&["--db", "sealed", "init", "--encrypt"]).ok();
    world.run(&["--db", "sealed", "backup", &third]).tells(2, &["leave out --encrypt"]);
    world.run(&["backup", "copy", "--encrypt"]).tells(2, &["is no URL"]);
    let settings = world.path("home/.config/acpdb/config.toml");
    std::fs::write(&settings, "backup_encryp = true\n").unwrap();
    world.run(&["backup", &third]).tells(2, &["did you mean backup_encrypt?"]);
}
