//! A damaged store is saved: the texts lost, those that a backup gives back, and the program's words about both.

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
fn a_backup_gives_back_what_damage_took() {
    let world = World::new();
    say(&world, "the first words");
    say(&world, "the second words");
    world.run(&["backup", "copy"]).ok();
    say(&world, "the third words");
    damage(&world, "the first words");
    damage(&world, "the third words");
    world.run(&["verify"]).says(3, &[]);

    let alone = world.run(&["salvage", "--into", "alone"]);
    assert_eq!(alone.code, 8);
    let alone = alone.text();
    assert!(alone.contains("acpdb salvage --into ANOTHER --backup BACKUP"), "{alone}");
    assert_eq!(alone.matches("  lost  a text of event").count(), 2, "{alone}");

    let both = world.run(&["salvage", "--into", "both", "--backup", "copy"]);
    assert_eq!(both.code, 8, "the third words are lost: the backup is older");
    let both = both.text();
    assert!(both.contains("  found 0 events and 1 text in a backup, each put in its place"), "{both}");
    assert_eq!(both.matches("  lost  a text of event").count(), 1, "{both}");
    let shown = world.run(&["--db", "both", "context", "s1"]).text();
    assert!(shown.contains("the first words") && shown.contains("the second words"), "{shown}");
    world.run(&["--db", "both", "verify", "--deep"]).ok();
}

#[test]
fn a_backup_that_is_none_of_this_store_is_refused() {
    let world = World::fed();
    world.run(&["--db", "other", "append", "--stdin"]).ok();
    let refused = world.run(&["salvage", "--into", "new", "--backup", "other"]);
    refused.says(2, &["other", "it holds store"]);
    let missing = world.run(&["salvage", "--into", "new", "--backup", "nowhere"]);
    missing.says(7, &["there is no store: ", "nowhere is not there", "--backup names a folder"]);
    world.write("file", "no folder");
    let plain = world.run(&["salvage", "--into", "new", "--backup", "file"]);
    plain.says(1, &["file", "--backup names a folder"]);
    for inside in ["store/new", "other/new", "nowhere/../store/new"] {
        let refused = world.run(&["salvage", "--into", inside, "--backup", "other"]);
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

/// A store that is not encrypted is given no key, whatever a folder beside it is.
#[test]
fn an_encrypted_folder_is_no_backup_of_a_plain_store() {
    let world = World::fed();
    world.run(&["--db", "other", "init", "--encrypt"]).ok();
    world.run(&["salvage", "--into", "new", "--backup", "other"]).says(2, &["other", "it holds store"]);
}

/// A world with an encrypted store of three commits, two of them in a backup without keys, and the file of its key.
fn sealed(world: &World) -> Option<PathBuf> {
    world.run(&["init", "--encrypt"]).ok();
    say(world, "the first zebra");
    say(world, "the second zebra");
    world.run(&["backup", "copy"]).ok();
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
    let both = world.run(&["salvage", "--into", "both", "--backup", "copy"]).ok();
    assert!(
        both.contains("found 1 event and 0 texts in a backup") && both.contains("Nothing is lost."),
        "{both}"
    );
    for (folder, texts) in [("alone", 2), ("both", 3)] {
        let shown = world.run(&["--db", folder, "context", "s1"]).ok();
        assert_eq!(shown.matches("\n  the ").count(), texts, "{shown}");
        world.run(&["--db", folder, "verify", "--deep"]).ok();
        assert_hidden(&world, folder);
    }
    // It goes on as any other store.
    let line = serde_json::json!({"session": "s1", "message": {"role": "user", "text": "the fourth zebra"}});
    world.run_with(&["--db", "both", "append", "--stdin"], format!("{line}\n")).ok();
    world.run(&["--db", "both", "key", "rotate"]).ok();
    assert_eq!(world.run(&["--db", "both", "context", "s1"]).ok().matches("\n  the ").count(), 4);
    world.run(&["--db", "both", "erase", "--session", "s1", "--shred", "--reason", "asked for"]).ok();
    world.run(&["--db", "both", "context", "s1"]).says(7, &[]);

    // Without the key nothing is made; a file of it is taken from anywhere.
    let elsewhere = world.path("elsewhere.key");
    std::fs::rename(key, &elsewhere).unwrap();
    world.run(&["salvage", "--into", "none"]).says(9, &["which was not given", "--key-file"]);
    assert!(!world.path("none").exists() && !world.path("none.partial").exists());
    let told = elsewhere.to_str().unwrap();
    let with = world.run(&["--key-file", told, "salvage", "--into", "with", "--backup", "copy"]).ok();
    assert!(with.contains(&format!("The same key opens the new store: {told}.")), "{with}");
    world.run(&["--key-file", told, "--db", "with", "context", "s1"]).ok();
}

#[test]
fn a_lost_file_of_keys_is_named_by_a_salvage_and_found_in_a_backup() {
    let world = World::new();
    sealed(&world).unwrap();
    world.run(&["backup", "keyed", "--keys"]).ok();
    let files = world.path("store/keys").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let file = files.max().unwrap();
    std::fs::remove_file(&file).unwrap();
    let name = format!("keys/{}", file.file_name().unwrap().to_str().unwrap());
    let alone = world.run(&["salvage", "--into", "alone", "--backup", "copy"]);
    assert_eq!(alone.code, 8);
    let said = alone.text();
    assert!(said.contains(&format!("  lost  the events that {name} opens: there is no such file")), "{said}");
    assert!(said.contains("Put the files of keys back from a copy of the folder keys"), "{said}");
    let found = world.run(&["salvage", "--into", "found", "--backup", "keyed"]).ok();
    assert!(
        found.contains(&format!("  found 1 file of keys in a backup: {name}\nNothing is lost.")),
        "{found}"
    );
    // The files of an older backup open by the key that `key rotate` left beside the settings.
    world.run(&["key", "rotate"]).ok();
    let rotated = world.run(&["salvage", "--into", "rotated", "--backup", "keyed"]).ok();
    assert!(rotated.contains("  found 1 file of keys in a backup"), "{rotated}");
    let shown = world.run(&["--db", "rotated", "context", "s1"]).ok();
    assert_eq!(shown.matches("\n  the ").count(), 3, "{shown}");
    // With no keys of its own at all, it is opened by those of the backup.
    std::fs::remove_dir_all(world.path("store/keys")).unwrap();
    world.run(&["salvage", "--into", "none"]).says(9, &["there is no such file"]);
    world.run(&["salvage", "--into", "again", "--backup", "keyed"]).ok();
    let shown = world.run(&["--db", "again", "context", "s1"]).ok();
    assert_eq!(shown.matches("\n  the ").count(), 3, "{shown}");
}

/// The user has given the right key, and was told to give it.
#[test]
fn a_damaged_file_of_the_own_key_is_named_with_the_remedy() {
    let world = World::new();
    let key = sealed(&world).unwrap();
    world.run(&["backup", "keyed", "--keys"]).ok();
    let name = format!("store/keys/{}.key", "0".repeat(32));
    let mut bytes = std::fs::read(world.path(&name)).unwrap();
    bytes[100] ^= 1;
    std::fs::write(world.path(&name), bytes).unwrap();
    let remedies =
        [name.as_str(), "is damaged", "put it back from a copy of the folder keys", "made with --keys"];
    for words in
        [&["salvage", "--into", "new"][..], &["sessions"], &["salvage", "--into", "new", "--backup", "copy"]]
    {
        let refused = world.run(words);
        refused.says(9, &remedies);
        assert!(!refused.err.contains("--key-file"), "{}", refused.err);
    }
    world.run(&["--key-file", key.to_str().unwrap(), "salvage", "--into", "new", "--backup", "keyed"]).ok();
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
