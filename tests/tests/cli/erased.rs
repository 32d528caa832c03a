//! Exports of a session of which something was erased: they say that it is gone, and do not hold the erased text.

use crate::world::World;

const SECRET: &str = "xq7Zp0vLk3WnRt9yBd2mHs5f";

fn call(session: &str, call: &str, output: &str) -> String {
    let tool = format!(
        "{{\"call\":\"{call}\",\"tool\":\"read\",\"params\":{{\"filePath\":\"/w/{call}.rs\"}},\"output\":\"{output}\"}}"
    );
    format!("{{\"session\":\"{session}\",\"turn\":true,\"tool\":{tool}}}\n")
}

/// Pages, lines and spans are made from views; a text that they took from anywhere else would outlive its erasure in them.
#[test]
fn no_export_shows_what_was_erased_and_each_says_that_it_was() {
    let world = World::new();
    let long = format!("token = {SECRET}\\n{}", "and so on, ".repeat(40));
    let mut feed = call("s1", "call-1", &long);
    feed.push_str(&call("s1", "call-2", "harmless, and it stays"));
    world.run_with(&["append", "--stdin"], feed).ok();
    let export = |format: &str| {
        let name = format!("out.{format}");
        world.run(&["export", format, "s1", "--force", "-o", &name]).ok();
        std::fs::read(world.path(&name)).unwrap()
    };
    let holds =
        |bytes: &[u8], words: &str| bytes.windows(words.len()).any(|window| window == words.as_bytes());
    let formats = ["html", "jsonl", "otlp-json"];
    for format in formats {
        let bytes = export(format);
        assert!(holds(&bytes, "call-1"), "{format}");
        // Spans name the call, and hold no texts.
        assert_eq!(
            holds(&bytes, SECRET),
            format != "otlp-json",
            "{format}: the search finds it while it is there"
        );
    }
    world.run(&["erase", "call-1", "--by", "ada", "--reason", "it leaked"]).ok();
    for format in formats {
        let bytes = export(format);
        assert!(!holds(&bytes, SECRET), "{format} shows what was erased");
        assert!(holds(&bytes, "call-1"), "{format} says nothing of the call");
        assert!(holds(&bytes, "call-2"), "{format} left out the other one");
        if format != "otlp-json" {
            assert!(holds(&bytes, "harmless, and it stays"), "{format} left out the other one's text");
            assert!(holds(&bytes, "erased"), "{format} does not say that it was erased");
        }
    }
    // As of a time before it was erased: the export says that there was something; its text is gone there, too.
    for format in formats {
        let name = format!("then.{format}");
        world.run(&["export", format, "s1", "--at", "t2", "--force", "-o", &name]).ok();
        assert!(!holds(&std::fs::read(world.path(&name)).unwrap(), SECRET), "{format} at t2");
    }
}

/// A file of the log that is put back from a copy brings back texts erased since, and nothing said so.
#[test]
fn an_erased_text_that_can_be_read_again_is_found() {
    let world = World::new();
    let line =
        format!("{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"token {SECRET}\"}}}}\n");
    world.run_with(&["append", "--stdin"], line).ok();
    let path = world.path("store/log/000000000001.seg");
    let at = |bytes: &[u8]| bytes.windows(SECRET.len()).position(|window| window == SECRET.as_bytes());
    let before = std::fs::read(&path).unwrap();
    let begins = at(&before).unwrap();
    let item = world.run(&["log", "--texts", "--session", "s1", "--json"]).ok();
    let seq = item.split("\"seq\":").nth(1).and_then(|rest| rest.split([',', '}']).next()).unwrap();
    let item = format!("#{seq}");
    world.run(&["erase", &item, "--by", "ada", "--reason", "it leaked"]).ok();
    world.assert_sound();
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(at(&bytes), None);
    // The salt and the text.
    let body = begins - 16 - "token ".len()..begins + SECRET.len();
    bytes[body.clone()].copy_from_slice(&before[body]);
    std::fs::write(&path, bytes).unwrap();
    let found = world.run(&["verify", "--deep"]);
    assert_eq!(found.code, 3, "{}", found.text());
    let found = found.text();
    assert!(found.contains("sound, but what was erased can be read"), "{found}");
    assert!(found.contains("is on record as erased, and is there"), "{found}");
    // The advice once named an item of no store, which an erasure by it would have taken.
    assert!(found.contains(&format!("erase '{item}' --by NAME")), "{found}");
    world.run(&["erase", &item, "--by", "ada", "--reason", "again"]).ok();
    world.assert_sound();
}
