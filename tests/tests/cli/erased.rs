//! Exports of a session of which something was erased: that it is gone is said, what it said is not.

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
        // Spans name what was called, and hold no texts.
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
    // As of a time before it was erased: that there was something is said, what it said is gone there, too.
    for format in formats {
        let name = format!("then.{format}");
        world.run(&["export", format, "s1", "--at", "t2", "--force", "-o", &name]).ok();
        assert!(!holds(&std::fs::read(world.path(&name)).unwrap(), SECRET), "{format} at t2");
    }
}
