//! A damaged store is saved: the texts lost, those that a backup gives back, and the program's words about both.

use crate::world::World;

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
    refused.says(2, &["other", "it holds store", "acpdb merge"]);
    let missing = world.run(&["salvage", "--into", "new", "--backup", "nowhere"]);
    missing.says(7, &["nowhere is not an acpdb store", "--backup names a folder"]);
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
