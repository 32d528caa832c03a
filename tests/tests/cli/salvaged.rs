//! A damaged store is saved: what is lost, and the program's words about it.

use std::path::PathBuf;

use crate::world::{World, contents};

/// Changes a bit of the only copy of some words in the log.
fn damage(world: &World, words: &str) {
    let holds = |bytes: &[u8]| bytes.windows(words.len()).position(|window| window == words.as_bytes());
    let mut hits = 0;
    for file in std::fs::read_dir(world.path("store/log")).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        if let Some(at) = holds(&bytes) {
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            hits += 1;
        }
    }
    assert_eq!(hits, 1, "{words}");
}

fn say(world: &World, words: &str) {
    let line = serde_json::json!({"session": "s1", "message": {"role": "user", "text": words}});
    world.run_with(&["append", "--stdin"], format!("{line}\n")).ok();
}

#[test]
fn a_folder_inside_the_damaged_store_is_refused() {
    let world = World::fed();
    for inside in ["store/new", "nowhere/../store/new"] {
        let refused = world.run(&["salvage", "--into", inside]);
        refused.says(2, &["/new", "which is only read", "name a folder beside it"]);
    }
    assert!(!world.path("new").exists());
}

#[test]
fn what_an_interrupted_salvage_left_is_named() {
    let world = World::fed();
    std::fs::create_dir(world.path("new.partial")).unwrap();
    std::fs::write(world.path("new.partial/tail"), "").unwrap();
    world.run(&["salvage", "--into", "new"]).says(2, &["new.partial", "remove it if none is"]);
}

#[test]
fn many_lost_texts_are_counted() {
    let world = World::new();
    let words: Vec<String> = (0..12).map(|number| format!("words number {number}.")).collect();
    for words in &words {
        say(&world, words);
    }
    for words in &words {
        damage(&world, words);
    }
    let saved = world.run(&["salvage", "--into", "new"]);
    assert_eq!(saved.code, 8);
    let saved = saved.text();
    assert_eq!(saved.matches("  lost  a text of event").count(), 10, "{saved}");
    assert!(saved.contains("  lost  2 more texts; --json names the event of each"), "{saved}");
}

/// A lost text was called erased, as if a person had asked for that.
#[test]
fn a_lost_text_is_called_lost_and_an_erased_one_erased() {
    let world = World::new();
    say(&world, "the first words");
    say(&world, "the second words");
    let call = serde_json::json!({"session": "s1", "tool":
        {"call": "c1", "tool": "read", "params": {"filePath": "/w/a"}, "output": "the third words"}});
    world.run_with(&["append", "--stdin"], format!("{call}\n")).ok();
    world.run(&["memory", "add", "fact", "the fourth words"]).ok();
    let rows = world.run(&["history", "s1"]).ok();
    let item = rows.lines().find(|line| line.contains("the second")).unwrap().split_whitespace().next();
    world.run(&["erase", item.unwrap(), "--reason", "asked for"]).ok();
    for words in ["the first words", "the third words", "the fourth words"] {
        damage(&world, words);
    }
    assert_eq!(world.run(&["salvage", "--into", "new"]).code, 8);
    let told = |arguments: &[&str]| world.run(&[&["--db", "new"], arguments].concat()).ok();
    for verb in ["context", "history"] {
        let said = told(&[verb, "s1"]);
        assert_eq!(
            (said.matches("lost to damage").count(), said.matches("  erased").count()),
            (2, 1),
            "{said}"
        );
    }
    let stats = told(&["stats", "s1"]);
    assert!(stats.contains("\nlost        2") && stats.contains("\nerased      1"), "{stats}");
    assert_eq!(told(&["history", "s1", "state:lost"]).lines().count(), 2);
    assert_eq!(told(&["history", "s1", "state:erased"]).lines().count(), 1);
    let memory = told(&["memory", "list", "--session", "s1"]);
    assert!(!memory.contains("erased"), "{memory}");
    told(&["audit", "-o", "report.json"]);
    let report = std::fs::read_to_string(world.path("report.json")).unwrap();
    let state = |name: &str| report.matches(&format!("\"state\": \"{name}\"")).count();
    assert_eq!((state("damaged"), state("erased")), (2, 1), "{report}");
}

/// A world with an encrypted store of three commits, and the file of its key.
fn sealed(world: &World) -> Option<PathBuf> {
    world.run(&["init", "--encrypt"]).ok();
    say(world, "the first zebra");
    say(world, "the second zebra");
    say(world, "the third zebra");
    let folder = world.path("home/.config/acpdb/keys").read_dir().ok()?;
    let mut files = folder.map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|end| end == "store-key"))
}

/// Changes a bit in the spine of a commit.
fn damage_commit(world: &World, number: usize) {
    let path = world.path("store/log").read_dir().unwrap().map(|file| file.unwrap().path()).min().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let frames = bytes.windows(4).enumerate().filter(|(_, window)| *window == b"ACPF");
    let (at, _) = frames.into_iter().nth(number).unwrap();
    bytes[at + 170] ^= 1;
    std::fs::write(&path, bytes).unwrap();
}

fn assert_hidden(world: &World, folder: &str) {
    for (path, bytes) in contents(&world.path(folder)) {
        assert!(!bytes.windows(5).any(|part| part == b"zebra"), "{}", path.display());
    }
}

#[test]
fn an_encrypted_store_is_salvaged_with_its_key() {
    let world = World::new();
    let key = sealed(&world).unwrap();
    let key = key.to_str().unwrap();
    damage_commit(&world, 2);
    let verified = world.run(&["verify"]);
    assert!(verified.code == 3 && verified.text().contains("salvage --into NEW"), "{}", verified.text());

    let alone = world.run(&["salvage", "--into", "alone"]);
    assert_eq!(alone.code, 8);
    let said = alone.text();
    assert_eq!(said.matches("  lost  event").count(), 1, "{said}");
    assert!(said.ends_with(&format!("The same key opens the new store: {key}.\n")), "{said}");
    let shown = world.run(&["--db", "alone", "context", "s1"]).ok();
    assert_eq!(shown.matches("\n  the ").count(), 2, "{shown}");
    world.run(&["--db", "alone", "verify", "--deep"]).ok();
    assert_hidden(&world, "alone");
    // It goes on as any other store.
    let line = serde_json::json!({"session": "s1", "message": {"role": "user", "text": "the fourth zebra"}});
    world.run_with(&["--db", "alone", "append", "--stdin"], format!("{line}\n")).ok();
    world.run(&["--db", "alone", "key", "rotate"]).ok();
    assert_eq!(world.run(&["--db", "alone", "context", "s1"]).ok().matches("\n  the ").count(), 3);
    world.run(&["--db", "alone", "erase", "--session", "s1", "--shred", "--reason", "asked for"]).ok();
    world.run(&["--db", "alone", "context", "s1"]).says(7, &[]);

    // Without the key nothing is made; a file of it is taken from anywhere.
    let elsewhere = world.path("elsewhere.key");
    std::fs::rename(key, &elsewhere).unwrap();
    world.run(&["salvage", "--into", "none"]).says(9, &["which was not given", "--key-file"]);
    assert!(!world.path("none").exists() && !world.path("none.partial").exists());
    let told = elsewhere.to_str().unwrap();
    let with = world.run(&["--key-file", told, "salvage", "--into", "with"]).text();
    assert!(with.contains(&format!("The same key opens the new store: {told}.")), "{with}");
    world.run(&["--key-file", told, "--db", "with", "context", "s1"]).ok();
}

#[test]
fn a_lost_file_of_keys_is_named_by_a_salvage() {
    let world = World::new();
    sealed(&world).unwrap();
    let files = world.path("store/keys").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let file = files.max().unwrap();
    std::fs::remove_file(&file).unwrap();
    let name = format!("keys/{}", file.file_name().unwrap().to_str().unwrap());
    let alone = world.run(&["salvage", "--into", "alone"]);
    assert_eq!(alone.code, 8);
    let said = alone.text();
    assert!(said.contains(&format!("  lost  the events that {name} opens: there is no such file")), "{said}");
    assert!(said.contains("Put the files of keys back from a copy of the folder keys"), "{said}");
    std::fs::remove_dir_all(world.path("store/keys")).unwrap();
    world.run(&["salvage", "--into", "none"]).says(9, &["there is no such file"]);
}

/// The user has given the right key, and was told to give it.
#[test]
fn a_damaged_file_of_the_own_key_is_named_with_the_remedy() {
    let world = World::new();
    sealed(&world).unwrap();
    let name = format!("store/keys/{}.key", "0".repeat(32));
    let mut bytes = std::fs::read(world.path(&name)).unwrap();
    bytes[100] ^= 1;
    std::fs::write(world.path(&name), bytes).unwrap();
    let remedies =
        [name.as_str(), "is damaged", "put it back from a copy of the folder keys", "made with --keys"];
    for words in [&["salvage", "--into", "new"][..], &["sessions"]] {
        let refused = world.run(words);
        refused.says(9, &remedies);
        assert!(!refused.err.contains("--key-file"), "{}", refused.err);
    }
}

#[test]
fn a_passphrase_opens_what_it_salvaged() {
    let world = World::new();
    let with = |arguments: &[&str]| {
        let mut command = world.command();
        command.args(arguments).env("ACPDB_PASSPHRASE", "a crossing of horses");
        crate::world::finish(command, b"")
    };
    with(&["init", "--encrypt", "--passphrase"]).ok();
    let mut command = world.command();
    command.args(["append", "--stdin"]).env("ACPDB_PASSPHRASE", "a crossing of horses");
    crate::world::finish(command, crate::world::FEED.as_bytes()).ok();
    let said = with(&["salvage", "--into", "new"]).ok();
    assert!(said.contains("Nothing is lost.\nThe same key opens the new store: the passphrase.\n"), "{said}");
    world.run(&["salvage", "--into", "other"]).says(9, &["ACPDB_PASSPHRASE"]);
    with(&["--db", "new", "list"]).ok();
}
