//! Several stores are read as one: the same answers as one store that holds everything, each row with its store.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::world::World;

/// Sessions of Claude Code with requests; the last one begins with the first one's, as a copy.
fn sessions() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for number in 0..6_u32 {
        let id = format!("session-{number}");
        let folder = format!("/srv/p{}", number % 2);
        let mut lines = Vec::new();
        let mut parent = Value::Null;
        for turn in 0..3_u32 {
            let day = format!("2026-0{}-1{}T1{turn}", 1 + number % 3, number);
            let (asks, answers) = (format!("{id}-u{turn}"), format!("{id}-a{turn}"));
            let head = |kind: &str, uuid: &str, parent: &Value, second: u32| {
                json!({
                    "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": id, "cwd": folder, "version": "2.1.300",
                    "timestamp": format!("{day}:00:{second:02}Z"), "userType": "external", "isSidechain": false,
                })
            };
            let mut ask = head("user", &asks, &parent, 0);
            ask["message"] = json!({"role": "user", "content": format!("the parser of {id}, step {turn}")});
            let mut answer = head("assistant", &answers, &json!(asks), 1);
            answer["requestId"] = json!(format!("req-{answers}"));
            answer["message"] = json!({
                "id": format!("msg_{answers}"), "type": "message", "role": "assistant", "model": "claude-opus-4-6",
                "content": [{"type": "text", "text": format!("word{} is done in {id}", turn + number)}],
                "usage": {"input_tokens": 1000 + number, "output_tokens": 10 * (turn + 1)},
            });
            parent = json!(answers);
            lines.push(ask);
            lines.push(answer);
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        all.push((id, text));
    }
    all
}

/// A world with a store that has all sessions, and three that have some; one session is in two of them.
fn worlds() -> World {
    let world = World::new();
    for (number, (id, text)) in sessions().into_iter().enumerate() {
        world.write(&format!("{id}.jsonl"), text);
        let mut stores = vec!["all".to_owned(), format!("team/s{}", number % 3)];
        if number == 4 {
            stores.push("team/s2".to_owned());
        }
        for store in stores {
            world.run(&["--db", &store, "import", &format!("{id}.jsonl")]).ok();
        }
    }
    world
}

fn json_of(world: &World, db: &[&str], arguments: &[&str]) -> Value {
    let mut words: Vec<&str> = db.iter().flat_map(|db| ["--db", db]).collect();
    words.extend(arguments);
    words.extend(["--json", "-q"]);
    let ran = world.run(&words);
    assert_eq!(ran.code, 0, "{words:?}: {}{}", ran.text(), ran.err);
    serde_json::from_str(&ran.text()).unwrap()
}

const TEAM: &[&str] = &["team"];
const NAMED: &[&str] = &["team/s0", "team/s1", "team/s2"];

/// The fields of each row, as a set: seqs differ from store to store.
fn fields(answer: &Value, names: &[&str]) -> BTreeSet<String> {
    let items = answer["items"].as_array().unwrap().iter();
    items.map(|item| names.iter().map(|name| format!("{}|", item[*name])).collect()).collect()
}

fn count(answer: &Value) -> usize {
    answer["items"].as_array().unwrap().len()
}

#[test]
fn several_stores_answer_as_one_that_holds_everything() {
    let world = worlds();
    for (db, questions) in [(TEAM, usize::MAX), (NAMED, 2)] {
        for (arguments, names) in [
            (&["sessions"][..], &["id", "title", "tokens", "turns", "cost"][..]),
            (&["sessions", "project:p1"], &["id", "title", "cost"]),
            (&["sessions", "cost:>0.015"], &["id", "cost"]),
            (&["search", "word3"], &["session", "text", "matches", "title"]),
            (&["search", "parser", "session:session-4"], &["session", "title"]),
            (&["history", "actor:assistant"], &["session", "text", "kind", "turn"]),
            (&["cost", "--by", "session"], &["key", "total", "requests", "title"]),
            (&["cost", "--by", "month", "--waste"], &["key", "total", "requests", "tokens"]),
            (&["cost", "--by", "project", "project:p0"], &["key", "total"]),
        ]
        .into_iter()
        .take(questions)
        {
            let (one, many) = (json_of(&world, &["all"], arguments), json_of(&world, db, arguments));
            assert_eq!(fields(&one, names), fields(&many, names), "{arguments:?}");
            assert!(count(&one) > 0, "{arguments:?}");
            if arguments[0] != "cost" {
                assert!(
                    fields(&many, &["store"]).iter().all(|store| store.starts_with("\"s")),
                    "{arguments:?}"
                );
                assert_eq!(fields(&one, &["store"]), BTreeSet::from(["null|".to_owned()]));
            }
        }
        let sum = |db: &[&str]| json_of(&world, db, &["cost"])["sum"]["total"].clone();
        assert_eq!(sum(&["all"]), sum(db), "a request in two stores counts once");
        let cost = |db: &[&str]| json_of(&world, db, &[])["cost"].clone();
        assert_eq!(cost(&["all"]), cost(db));
    }
    let by_session = json_of(&world, TEAM, &["cost", "--by", "session"]);
    let stores = fields(&by_session, &["key", "store"]);
    assert!(stores.contains("\"session-4\"|\"s1, s2\"|"), "{stores:?}");
}

#[test]
fn events_of_several_stores_stand_in_order_of_time_and_come_in_pages() {
    let world = worlds();
    let lines = |arguments: &[&str]| -> Vec<Value> {
        let text = world.run(&[&["--db", "team", "-q", "--json"], arguments].concat()).ok();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let key = |line: &Value| {
        let time = line["host_time"].as_str().or(line["recorded_at"].as_str()).map(str::to_owned);
        (time, line["store"].as_str().map(str::to_owned), line["seq"].as_u64())
    };
    for verb in [&["log"][..], &["log", "--texts"], &["log", "--reverse"], &["log", "kind:message"]] {
        let all = lines(verb);
        assert!(all.len() > 6, "{verb:?}");
        let keys: Vec<_> = all.iter().map(key).collect();
        if verb[0] == "log" {
            let mut sorted = keys.clone();
            sorted.sort();
            if verb.contains(&"--reverse") {
                sorted.reverse();
            }
            assert_eq!(keys, sorted, "{verb:?}");
        }
        let (mut paged, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut words = [verb, &["--limit", "5"]].concat();
            let cursor = after.clone().unwrap_or_default();
            if after.is_some() {
                words.extend(["--after", &cursor]);
            }
            let mut page = lines(&words);
            let next = page.pop_if(|last| last.get("next_cursor").is_some());
            paged.extend(page);
            let Some(next) = next else { break };
            after = next["next_cursor"].as_str().map(str::to_owned);
        }
        assert_eq!(paged, all, "{verb:?}");
    }
    assert_eq!(lines(&["log", "-n", "3"]), lines(&["log"]).split_off(lines(&["log"]).len() - 3));
    let (mut paged, mut after) = (Vec::new(), String::new());
    for page in 0..4 {
        let mut words = vec!["sessions", "--limit", "2"];
        if page > 0 {
            words.extend(["--after", after.as_str()]);
        }
        let mut answer = json_of(&world, TEAM, &words);
        paged.append(answer["items"].as_array_mut().unwrap());
        match answer["next_cursor"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(json_of(&world, TEAM, &["sessions"])["items"].as_array().unwrap(), &paged);
}

#[test]
fn a_verb_about_one_thing_takes_the_store_that_has_it() {
    let world = worlds();
    let run = |arguments: &[&str]| world.run(&[&["--db", "team"], arguments].concat());
    // A session that one store has; the newest of all; a seq that each has.
    assert!(run(&["context", "session-5"]).ok().contains("session-5"));
    assert_eq!(run(&["context", "s2:session-5"]).ok(), run(&["context", "--session", "session-5"]).ok());
    let newest = run(&["context"]);
    assert!(newest.err.contains("of 3 stores, s2"), "{}", newest.err);
    assert!(newest.ok().contains("session-5"));
    run(&["show", "3"]).says(2, &["is in 3 stores", "s0:3 or s1:3 or s2:3"]);
    run(&["explain", "session-4"]).says(2, &["is in 2 stores", "s1:session-4 or s2:session-4"]);
    let alone = world.run(&["--db", "team/s1", "show", "3", "--json"]).ok();
    let shown = |id: &str| run(&["show", id, "--json"]).ok().replace(",\"store\":\"s1\"}", "}");
    assert_eq!((shown("s1:3"), shown("s1:#3")), (alone.clone(), alone));
    assert_eq!(run(&["log", "s1:session-1"]).ok(), world.run(&["--db", "team/s1", "log", "session-1"]).ok());
    run(&["context", "s1:session-1", "--at", "s0:#3"]).says(2, &["names another store"]);
    let at = run(&["context", "s1:session-1", "--at", "s1:#3"]).ok();
    assert_eq!(at, world.run(&["--db", "team/s1", "context", "session-1", "--at", "#3"]).ok());
    run(&["sessions", "--at", "t2"]).says(2, &["is a point of one store", "s0:t2"]);
    run(&["context", "nothing-of-this-name"]).says(7, &["nothing-of-this-name"]);
    // The name of a store in each form of an option, and in points.
    for words in
        [&["log", "--session=s1:session-1"][..], &["log", "-ss1:session-1"], &["log", "-s", "s1:session-1"]]
    {
        let one = world.run(&["--db", "team/s1", "log", "-s", "session-1"]).ok();
        assert_eq!(run(words).ok(), one, "{words:?}");
    }
    let one = world.run(&["--db", "team/s1", "diff", "3", "9", "-s", "session-1"]).ok();
    assert_eq!(run(&["diff", "s1:3", "s1:9", "-s", "s1:session-1"]).ok(), one);
    run(&["diff", "s1:3", "s0:9"]).says(2, &["names another store"]);
    // An answer for programs says whose it is.
    let answer: Value = serde_json::from_str(&run(&["stats", "session-5", "--json", "-q"]).ok()).unwrap();
    assert_eq!(answer["store"], "s2");
}

/// A session that is nowhere was left out of the question in silence, so that the answer was about everything.
#[test]
fn a_session_that_is_named_is_found_or_the_answer_is_none() {
    let world = worlds();
    let run = |arguments: &[&str]| world.run(&[&["--db", "team"], arguments].concat());
    for verb in ["sessions", "log", "cost", "history"] {
        run(&[verb, "-s", "nowhere"]).says(7, &["no session \"nowhere\" in these stores"]);
        let newest = run(&[verb, "-s", "latest", "--json", "-q"]).ok();
        assert_eq!(newest, run(&[verb, "-s", "s2:session-5", "--json", "-q"]).ok(), "{verb}");
        assert_eq!(newest, run(&[verb, "latest", "--json", "-q"]).ok(), "{verb}");
    }
    run(&["search", "parser", "-s", "nowhere"]).says(7, &["no session"]);
    // A session that only one store knows, as a condition.
    for verb in ["sessions", "log", "cost", "history"] {
        let ran = run(&[verb, "session:session-5"]);
        assert!(ran.code == 0 && !ran.err.contains("left out"), "{verb}: {}", ran.err);
        run(&[verb, "session:nowhere"]).says(7, &["nowhere"]);
    }
    let over = run(&["sessions", "--limit", "1", "--json", "-q"]).ok();
    let next = serde_json::from_str::<Value>(&over).unwrap()["next_cursor"].as_str().unwrap().to_owned();
    let fewer = world.run(&["--db", "team/s0", "--db", "team/s1", "sessions", "--after", &next]);
    fewer.says(2, &["is not in this answer"]);
}

/// Stores whose names are words of conditions or of times.
#[test]
fn a_condition_is_no_name_of_a_store() {
    let world = World::new();
    for (id, store) in [("session-0", "all/host"), ("session-1", "all/tool"), ("session-2", "all/14")] {
        let (_, text) = sessions().into_iter().find(|(name, _)| name == id).unwrap();
        world.write("one.jsonl", text);
        world.run(&["--db", store, "import", "one.jsonl"]).ok();
    }
    let count = |arguments: &[&str]| {
        let ran = world.run(&[&["--db", "all", "--json", "-q"], arguments].concat()).ok();
        count(&serde_json::from_str(&ran).unwrap())
    };
    assert_eq!(count(&["sessions", "host:claude-code"]), 3);
    // Today's time, which may be yet to come.
    assert!([0, 3].contains(&count(&["sessions", "--at", "14:05"])));
    assert_eq!(count(&["sessions", "-s", "host:session-0"]), 1);
}

/// The chains of a key and what stands out were answers of one store alone.
#[test]
fn memory_is_answered_from_all_stores() {
    let world = World::new();
    for (store, values) in
        [("team/a", ["npm", "pnpm", "npm", "pnpm"]), ("team/b", ["yarn", "bun", "yarn", "bun"])]
    {
        for value in values {
            let add =
                ["--db", store, "memory", "add", "preference", "tooling/manager", value, "--project", "/w"];
            world.run(&add).ok();
        }
    }
    let asked = |arguments: &[&str]| {
        let ran = world.run(&[&["--db", "team", "--json"], arguments].concat());
        serde_json::from_str::<Value>(&ran.ok()).unwrap()
    };
    let chains = asked(&["memory", "history", "tooling/manager"]);
    let alone = |store: &str| {
        let ran = world.run(&["--db", store, "--json", "memory", "history", "tooling/manager"]);
        serde_json::from_str::<Value>(&ran.ok()).unwrap()["items"].as_array().unwrap().clone()
    };
    let both: Vec<Value> = ["a", "b"]
        .into_iter()
        .flat_map(|store| {
            alone(&format!("team/{store}")).into_iter().map(move |mut chain| {
                chain["store"] = json!(store);
                chain
            })
        })
        .collect();
    assert_eq!(chains["items"], json!(both));
    assert!(
        world
            .run(&["--db", "team", "memory", "history", "tooling/manager"])
            .ok()
            .contains("a: tooling/manager")
    );
    world.run(&["--db", "team", "memory", "history", "nothing/such"]).says(7, &[]);
    let insights = asked(&["memory", "insights"]);
    let stores: Vec<&str> =
        insights["items"].as_array().unwrap().iter().map(|item| item["store"].as_str().unwrap()).collect();
    assert!(stores.contains(&"a") && stores.contains(&"b"), "{insights}");
    assert!(world.run(&["--db", "team", "memory", "insights"]).ok().contains("changed again and again"));
    world.run(&["--db", "team", "memory", "get", "tooling/manager"]).says(2, &["works with one store"]);
}

#[test]
fn what_cannot_be_read_does_not_silence_the_others() {
    let world = worlds();
    let run = |arguments: &[&str]| world.run(&[&["--db", "team", "--db", "missing"], arguments].concat());
    for verb in
        [&["sessions"][..], &["memory", "list"], &["log", "parser"], &["search", "parser"], &["cost"], &[]]
    {
        run(verb).says(8, &["missing is left out"]);
    }
    run(&["show", "s1:3"]).ok();
    run(&["context", "session-5"]).ok();
    // A torn copy of a store.
    let mut copy = std::process::Command::new("cp");
    assert!(
        copy.arg("-a").arg(world.path("team/s1")).arg(world.path("team/torn")).status().unwrap().success()
    );
    let segment = world.path("team/torn/log/000000000001.seg");
    std::fs::write(&segment, vec![0; 8192]).unwrap();
    assert!([3, 8].contains(&world.run(&["--db", "team", "sessions"]).code));
    assert!(world.run(&["--db", "team", "sessions"]).text().contains("session-5"));
}

/// Codex names no request, and a store derives its own keys; an answer that one store has only the beginning of was taken for all of it.
#[test]
fn a_request_that_two_stores_hold_counts_once_whoever_told_more() {
    let world = World::new();
    let (_, text) = sessions().swap_remove(3);
    let beginning: String = text.lines().take(4).map(|line| format!("{line}\n")).collect();
    world.write("whole.jsonl", &text);
    world.write("beginning.jsonl", beginning);
    let mut codex = format!(
        "{}\n",
        json!({"timestamp": "2026-05-04T10:00:00.000Z", "type": "session_meta", "payload": {
            "id": "0199-codex", "timestamp": "2026-05-04T10:00:00.000Z", "cwd": "/srv/p", "originator": "codex_cli_rs",
            "cli_version": "0.46.0"}})
    );
    for turn in 1..4_u64 {
        let at = format!("2026-05-04T10:00:0{turn}.000Z");
        let usage = json!({"input_tokens": 1000 * turn, "cached_input_tokens": 0, "output_tokens": 10 * turn,
            "reasoning_output_tokens": 0, "total_tokens": 1010 * turn});
        for line in [
            json!({"timestamp": at, "type": "turn_context", "payload": {"cwd": "/srv/p", "model": "gpt-5-codex"}}),
            json!({"timestamp": at, "type": "response_item", "payload": {"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": format!("answer {turn}")}]}}),
            json!({"timestamp": at, "type": "event_msg", "payload": {"type": "token_count", "info": {
                "total_token_usage": usage, "last_token_usage": {"input_tokens": 1000, "cached_input_tokens": 0,
                "output_tokens": 10, "reasoning_output_tokens": 0, "total_tokens": 1010}, "model_context_window": 272_000}}}),
        ] {
            codex.push_str(&format!("{line}\n"));
        }
    }
    world.write("codex.jsonl", codex);
    for (store, file) in
        [("a", "whole.jsonl"), ("b", "beginning.jsonl"), ("a", "codex.jsonl"), ("b", "codex.jsonl")]
    {
        world.run(&["--db", store, "import", file]).ok();
    }
    let cost = |db: &[&str]| json_of(&world, db, &["cost", "--by", "host"]);
    let one = cost(&["a"]);
    assert_eq!(count(&one), 2);
    for db in [&["a", "b"][..], &["b", "a"]] {
        let both = cost(db);
        assert_eq!((&both["items"], &both["sum"]), (&one["items"], &one["sum"]), "{db:?}");
        assert!(both["copies"].as_u64() > Some(0));
    }
}

#[test]
fn verbs_that_need_no_store_take_several_without_a_word() {
    let world = worlds();
    for arguments in
        [&["config", "list"][..], &["completions", "zsh"], &["attach", "--status"], &["demo", "--bundled"]]
    {
        world.run(&[&["--db", "team"], arguments].concat()).ok();
    }
    world.run(&["--db", "team/s1", "--db", "team/../team/s1", "info"]).ok();
    world.run(&["--db", "team/s1", "backup", "team/old"]).ok();
    world.run(&["--db", "team/s1", "import", "session-0.jsonl"]).ok();
    world.run(&["--db", "team", "show", "old:3"]).ok();
}

#[test]
fn a_verb_that_records_or_looks_at_a_store_wants_one() {
    let world = worlds();
    let before = crate::world::contents(&world.path("team"));
    for arguments in [
        &["import", "session-0.jsonl"][..],
        &["append", "--stdin"],
        &["verify"],
        &["doctor", "seal"],
        &["context", "discard", "3"],
        &["memory", "add", "fact", "x"],
        &["rewind", "1"],
        &["init"],
    ] {
        let ran = world.run(&[&["--db", "team"], arguments].concat());
        ran.says(2, &["works with one store", "s0, s1, s2", "--db"]);
        let mut named = world.command();
        named.env("ACPDB_PATH", "team/s0:team/s1").args(arguments);
        crate::world::finish(named, b"").says(2, &["works with one store", "s0, s1"]);
    }
    // A host that waits gets its answer all the same.
    world.run_with(&["--db", "team", "hook", "claude"], "{}").ok();
    assert_eq!(crate::world::contents(&world.path("team")), before);
}

#[test]
fn places_are_found_in_every_form_and_what_is_wrong_is_told() {
    let world = worlds();
    let ids = |answer: &Value| fields(answer, &["id", "store"]);
    let all = ids(&json_of(&world, TEAM, &["sessions"]));
    // The variable, as other lists of paths; the same store twice is one; a copy is left out.
    let mut named = world.command();
    named.env("ACPDB_PATH", "team/s0:team/s1:team/../team/s2:team/s1").args(["sessions", "--json", "-q"]);
    let answer = crate::world::finish(named, b"").ok();
    assert_eq!(ids(&serde_json::from_str(&answer).unwrap()), all);
    world.run(&["--db", "team/s1", "backup", "team/old"]).ok();
    world.run(&["--db", "team/s1", "import", "session-0.jsonl"]).ok();
    let ran = world.run(&["--db", "team", "sessions"]);
    assert!(ran.err.contains("old is left out"), "{}", ran.err);
    // A store that went on from a copy is a fork.
    world.run(&["--db", "team/old", "import", "session-5.jsonl"]).ok();
    let ran = world.run(&["--db", "team", "sessions"]);
    assert!(ran.err.contains("went on apart") && ran.code == 0, "{}", ran.err);
    // One that cannot be read is left out, and the code says so.
    std::fs::remove_file(world.path("team/s0/acpdb.json")).unwrap();
    std::fs::create_dir(world.path("team/s0/acpdb.json")).unwrap();
    let ran = world.run(&["--db", "team", "sessions"]);
    ran.says(8, &["s0 is left out"]);
    assert!(ran.text().contains("s1"), "{}", ran.text());
    // A folder with one store only is that store.
    std::fs::create_dir_all(world.path("one")).unwrap();
    std::fs::rename(world.path("team/s2"), world.path("one/.acpdb")).unwrap();
    world.run(&["--db", "one", "show", "3"]).ok();
    world.run(&["--db", "one", "doctor", "seal"]).says(2, &["one/.acpdb"]);
}
