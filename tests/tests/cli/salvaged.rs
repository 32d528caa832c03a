//! A damaged store is saved: what is lost, and the program's words about it.

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
fn a_folder_inside_the_damaged_store_is_refused() {
    let world = World::fed();
    for inside in ["store/new", "nowhere/../store/new"] {
        let refused = world.run(&["doctor", "salvage", "--into", inside]);
        refused.says(2, &["/new", "which is only read", "name a folder beside it"]);
    }
    assert!(!world.path("new").exists());
}

/// A backup that was killed had its name already: it passed for a whole one, or stood in the way of the next.
#[test]
fn what_an_interrupted_copy_left_is_removed_by_the_next() {
    let world = World::fed();
    for verb in [&["doctor", "salvage", "--into", "new"][..], &["backup", "new"]] {
        std::fs::create_dir_all(world.path("new.partial/log")).unwrap();
        std::fs::write(world.path("new.partial/tail"), "").unwrap();
        world.run(verb).ok();
        assert!(!world.path("new.partial").exists());
        std::fs::remove_dir_all(world.path("new")).unwrap();
        // A file that is no part of a copy is the user's.
        std::fs::create_dir(world.path("new.partial")).unwrap();
        std::fs::write(world.path("new.partial/tail"), "").unwrap();
        std::fs::write(world.path("new.partial/mine"), "").unwrap();
        world.run(verb).says(2, &["new.partial", "needs a folder that is empty"]);
        assert!(world.path("new.partial/tail").exists() && !world.path("new").exists());
        std::fs::remove_dir_all(world.path("new.partial")).unwrap();
    }
}

/// A salvage into a file read the whole store before it failed, and left a copy of it.
#[test]
fn a_file_in_the_place_of_a_copy_is_refused_at_once() {
    let world = World::fed();
    std::fs::write(world.path("new"), "mine").unwrap();
    for verb in [&["doctor", "salvage", "--into", "new"][..], &["backup", "new"]] {
        world.run(verb).says(2, &["new", "there is a file of this name"]);
        assert!(!world.path("new.partial").exists());
    }
    assert_eq!(std::fs::read(world.path("new")).unwrap(), b"mine");
}

/// A link to an empty folder, as to a disk for backups, stays a link.
#[test]
fn a_copy_may_be_named_by_a_link_to_an_empty_folder() {
    let world = World::fed();
    std::fs::create_dir(world.path("disk")).unwrap();
    std::os::unix::fs::symlink(world.path("disk"), world.path("new")).unwrap();
    world.run(&["backup", "new"]).ok();
    assert!(world.path("new").is_symlink() && world.path("disk/acpdb.json").exists());
    world.run(&["--db", "new", "verify"]).ok();
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
    let saved = world.run(&["doctor", "salvage", "--into", "new"]);
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
    assert_eq!(world.run(&["doctor", "salvage", "--into", "new"]).code, 8);
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
    told(&["export", "audit", "-o", "report.json"]);
    let report = std::fs::read_to_string(world.path("report.json")).unwrap();
    let state = |name: &str| report.matches(&format!("\"state\": \"{name}\"")).count();
    assert_eq!((state("damaged"), state("erased")), (2, 1), "{report}");
}
