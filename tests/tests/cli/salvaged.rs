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
