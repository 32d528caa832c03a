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

/// A prompt that held a token was erased with all its words, though the scan knew which bytes were the token.
#[test]
fn what_a_scan_finds_is_erased_and_the_rest_of_each_text_stays() {
    let world = World::new();
    let token = |end: &str| format!("ghp_{}{end}", "0123456789abcdefghijklmnopqrstuvwx");
    let (one, two) = (token("Yz"), token("Zy"));
    let prompt = format!("why is the build red? the key is {one}, and later {two}. tell me");
    let said = |session: &str, text: &str| {
        format!("{}\n", serde_json::json!({"session": session, "message": {"role": "user", "text": text}}))
    };
    let params = serde_json::json!({"command": format!("curl -H 'Authorization: token {one}' https://x")});
    let tool = serde_json::json!({"call": "c1", "tool": "bash", "params": params, "output": format!("sent {two}\nthe answer is 42")});
    let called = format!("{}\n", serde_json::json!({"session": "s1", "tool": tool}));
    // The same prompt in two sessions: each keeps its rest.
    let feed = [said("s1", &prompt), said("s2", &prompt), called, said("s2", "harmless")].concat();
    world.run_with(&["append", "--stdin"], feed).ok();
    let would = world.run(&["erase", "--from-scan", "--dry-run"]);
    assert!(would.code == 0 && would.err.contains("3 texts would get a mark"), "{would:?}");
    world.run(&["scan"]).says(1, &["all at once"]);
    let done = world.run(&["erase", "--from-scan", "--reason", "leaked", "--by", "ada"]);
    assert!(done.code == 0 && done.err.contains("3 texts got a mark"), "{done:?}");
    world.run(&["scan"]).says(0, &["no secrets of a known form"]);
    for session in ["s1", "s2"] {
        let context = world.run(&["context", session]).ok();
        assert!(
            context.contains(
                "why is the build red? the key is [40 bytes erased], and later [40 bytes erased]. tell me"
            ),
            "{context}"
        );
    }
    let context = world.run(&["context", "s1"]).ok();
    assert!(context.contains("the answer is 42") && !context.contains("curl"), "{context}");
    // It is proven by one command, into which the secret is not typed.
    let gone = world.run_with(&["scan", "--for", "-"], format!("{one}\r\n\n{two}\n"));
    assert!(gone.code == 0 && gone.text().starts_with("not in "), "{gone:?}");
    world.run(&["verify", "--deep"]).ok();
    world.run_with(&["append", "--stdin"], said("s3", &prompt)).ok();
    assert_eq!(world.run_with(&["scan", "--for", "-"], format!("{one}\n")).code, 0, "nor does it come again");
}

/// `--whole` erases as before.
#[test]
fn the_whole_texts_of_a_scan_are_erased_where_that_is_asked_for() {
    let world = World::new();
    let text = format!("the key is ghp_{}, keep it", "0123456789abcdefghijklmnopqrstuvwxYz");
    let line = serde_json::json!({"session": "s1", "message": {"role": "user", "text": text}});
    world.run_with(&["append", "--stdin"], format!("{line}\n")).ok();
    world.run(&["erase", "--from-scan", "--whole", "--reason", "r"]).ok();
    assert!(!world.run(&["context", "s1"]).ok().contains("keep it"));
    world.run(&["erase", "#3", "--whole", "--reason", "r"]).says(2, &["--whole"]);
}

/// A text is found wherever it stands: in messages, parameters and their escapes, ids, sealed segments, and files that no event names.
#[test]
fn a_text_that_is_sought_is_found_wherever_it_stands() {
    let world = World::new();
    let sought = "zebra \"4711\"\nürban";
    let plain = "zebra-4711-urban";
    let line = |value: serde_json::Value| format!("{value}\n");
    let feed = [
        line(
            serde_json::json!({"session": "s1", "message": {"role": "user", "text": format!("a {plain} b")}}),
        ),
        line(
            serde_json::json!({"session": "s1", "tool": {"call": "c1", "tool": "x", "params": {"deep": serde_json::json!({"q": plain}).to_string()}, "output": "y"}}),
        ),
        line(
            serde_json::json!({"session": format!("id-{plain}"), "message": {"role": "user", "text": "harmless"}}),
        ),
    ];
    world.run_with(&["append", "--stdin"], feed.concat()).ok();
    let found = |text: &str| {
        let ran = world.run_with(&["--json", "scan", "--for", "-"], format!("{text}\n"));
        let told: serde_json::Value = serde_json::from_str(&ran.text()).unwrap();
        assert_eq!(ran.code == 0, told["found_count"] == 0, "{told}");
        told
    };
    let told = found(plain);
    let events: std::collections::BTreeSet<u64> =
        told["found"].as_array().unwrap().iter().filter_map(|place| place["seq"].as_u64()).collect();
    assert!(events.len() >= 3, "a message, a call and a session: {told}");
    assert_eq!(found("nothing of the kind")["found_count"], 0);
    assert_eq!(found(sought.split('\n').next().unwrap())["found_count"], 0);
    world.run(&["seal", "--all"]).ok();
    assert!(found("a zebra-4711-urban b")["found_count"].as_u64().unwrap() > 0, "in a sealed segment");
    world.write("store/stray", "..unnamed-by-any-event..");
    let told = found("unnamed-by-any-event");
    assert_eq!(
        (&told["found"][0]["file"], &told["found"][0]["offset"]),
        (&"stray".into(), &2.into()),
        "{told}"
    );
    world.run_with(&["scan", "--for", "-"], "\n\n").says(2, &["nothing is sought"]);
    world.run_with(&["scan", "--for", "-"], "ab\n").says(2, &["shorter than 4 bytes"]);
}

/// A session that came with an erased text had another text in its place; when its file grew, the hosts' records of the lines before were told
/// again, and brought the text back.
#[test]
fn an_erased_text_does_not_come_back_in_a_record_that_is_told_later() {
    let prompt = format!("the first prompt with {SECRET}");
    let line = |session: &str, uuid: &str, kind: &str, message: serde_json::Value| serde_json::json!({"type": kind, "uuid": uuid, "sessionId": session, "cwd": "/w", "timestamp": "2026-01-01T00:00:00Z", "message": message});
    let records = |session: &str, more: bool| {
        let mut all = vec![
            line(session, "u1", "user", serde_json::json!({"role": "user", "content": prompt})),
            line(
                session,
                "a1",
                "assistant",
                serde_json::json!({"id": "m1", "role": "assistant", "model": "claude-opus-4", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": format!("echo {SECRET}")}}]}),
            ),
            line(
                session,
                "u2",
                "user",
                serde_json::json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": format!("it is {SECRET}")}]}),
            ),
        ];
        all[2]["toolUseResult"] =
            serde_json::json!({"stdout": format!("it is {SECRET}"), "stderr": "", "interrupted": false});
        if more {
            all.push(line(session, "u3", "user", serde_json::json!({"role": "user", "content": "and on"})));
        }
        all
    };
    let text =
        |records: &[serde_json::Value]| records.iter().map(|line| format!("{line}\n")).collect::<String>();
    // The same records with other blanks and another order of keys.
    let other = |records: &[serde_json::Value]| {
        let spaced = |line: &serde_json::Value| {
            let fields: Vec<String> = line
                .as_object()
                .unwrap()
                .iter()
                .rev()
                .map(|(name, value)| format!("{name:?} : {value}"))
                .collect();
            format!("{{ {} }}\n", fields.join(" , "))
        };
        records.iter().map(spaced).collect::<String>()
    };
    let world = World::new();
    world.write("s1.jsonl", text(&records("s1", false)));
    world.run(&["import", "s1.jsonl"]).ok();
    // The prompt follows the opening of its session and of its turn.
    for item in ["#4", "t1"] {
        world.run(&["erase", item, "--reason", "leaked", "--by", "ada"]).ok();
    }
    let gone = || {
        let ran = world.run_with(&["scan", "--for", "-"], format!("{SECRET}\n"));
        assert_eq!(ran.code, 0, "{}", ran.text());
    };
    gone();
    for (number, session) in ["s1", "s2", "s3"].into_iter().enumerate() {
        for more in [false, true, true] {
            let records = records(session, more);
            let told = if number == 1 { other(&records) } else { text(&records) };
            world.write("again.jsonl", told);
            world.run(&["import", "again.jsonl"]).ok();
            gone();
            world.write("again.jsonl", other(&records));
            world.run(&["import", "again.jsonl"]).ok();
            gone();
        }
    }
    let before = world.run(&["--json", "info"]).ok();
    world.write("again.jsonl", text(&records("s3", true)));
    world.run(&["import", "again.jsonl"]).ok();
    let head = |told: &str| serde_json::from_str::<serde_json::Value>(told).unwrap()["head"].clone();
    assert_eq!(head(&world.run(&["--json", "info"]).ok()), head(&before), "told again, it is known");
}
