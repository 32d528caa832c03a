//! One session has one price in every mouth, and days are days of one clock, in rows as in conditions.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::World;

fn line(session: &str, uuid: &str, parent: Option<&str>, at: &str, kind: &str, message: &Value) -> Value {
    json!({
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": session, "timestamp": at, "cwd": "/w", "version": "2.1.332",
        "userType": "external", "isSidechain": false, "message": message,
    })
}

fn prompt(session: &str, uuid: &str, at: &str) -> Value {
    line(session, uuid, None, at, "user", &json!({"role": "user", "content": format!("work {session}")}))
}

fn answer(session: &str, (uuid, parent): (&str, &str), at: &str, model: &str, usage: &Value) -> Value {
    let message = json!({
        "id": format!("msg_{uuid}"), "type": "message", "role": "assistant", "model": model,
        "content": [{"type": "text", "text": uuid}], "usage": usage,
    });
    let mut line = line(session, uuid, Some(parent), at, "assistant", &message);
    line["requestId"] = json!(format!("req_{uuid}"));
    line
}

fn file(world: &World, path: &str, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let path = format!("home/.claude/projects/w/{path}");
    std::fs::create_dir_all(world.path(&path).parent().unwrap()).unwrap();
    world.write(&path, text);
}

/// Sessions with all that made bills differ: a subagent, a fork with copied requests, a faster tier, several inferences in one
/// answer, web searches, and counts that no request can have.
fn told() -> World {
    let world = World::new();
    let (sonnet, opus) = ("claude-sonnet-4-5-20250929", "claude-opus-4-6");
    let plain = json!({"input_tokens": 1000, "cache_read_input_tokens": 5000, "output_tokens": 300});
    let fast =
        json!({"input_tokens": 1000, "output_tokens": 1000, "service_tier": "standard", "speed": "fast"});
    let parts = json!({
        "input_tokens": 5, "cache_read_input_tokens": 240_500, "cache_creation_input_tokens": 1400, "output_tokens": 500,
        "iterations": [
            {"type": "message", "input_tokens": 2, "output_tokens": 300, "cache_read_input_tokens": 120_000,
             "cache_creation_input_tokens": 500},
            {"type": "message", "input_tokens": 3, "output_tokens": 200, "cache_read_input_tokens": 120_500,
             "cache_creation_input_tokens": 900},
        ],
    });
    let searched =
        json!({"input_tokens": 100, "output_tokens": 10, "server_tool_use": {"web_search_requests": 5}});
    let impossible = json!({"input_tokens": 1, "output_tokens": 18_446_744_073_709_551_615_u64});
    let main = [
        prompt("main", "p", "2026-05-04T10:00:00Z"),
        answer("main", ("a1", "p"), "2026-05-04T10:00:01Z", sonnet, &plain),
        answer("main", ("a2", "a1"), "2026-05-04T10:00:02Z", sonnet, &parts),
        answer("main", ("a3", "a2"), "2026-05-04T10:00:03Z", opus, &fast),
        answer("main", ("a4", "a3"), "2026-05-04T10:00:04Z", sonnet, &searched),
    ];
    file(&world, "main.jsonl", &main);
    let mut copied: Vec<Value> = main[..3].to_vec();
    for line in &mut copied {
        line["sessionId"] = json!("fork");
    }
    copied.push(answer("fork", ("b1", "a2"), "2026-05-04T11:00:00Z", sonnet, &plain));
    file(&world, "fork.jsonl", &copied);
    let mut side = vec![
        prompt("main", "sp", "2026-05-04T10:00:02Z"),
        answer("main", ("s1", "sp"), "2026-05-04T10:00:03Z", "claude-haiku-4-5", &plain),
    ];
    for line in &mut side {
        (line["isSidechain"], line["agentId"]) = (json!(true), json!("abc"));
    }
    file(&world, "main/subagents/agent-abc.jsonl", &side);
    let odd = [
        prompt("odd", "op", "2026-05-04T12:00:00Z"),
        answer("odd", ("o1", "op"), "2026-05-04T12:00:01Z", sonnet, &plain),
        answer("odd", ("o2", "o1"), "2026-05-04T12:00:02Z", sonnet, &impossible),
    ];
    file(&world, "odd.jsonl", &odd);
    assert!(world.run(&["import", "-q"]).code % 8 == 0);
    world
}

fn asked(world: &World, zone: &str, arguments: &[&str]) -> Value {
    let mut command = world.command();
    command.env("TZ", zone).args(arguments).args(["--json", "-q"]);
    let ran = crate::world::finish(command, b"");
    assert!([0, 8].contains(&ran.code), "{arguments:?}: {ran:?}");
    serde_json::from_slice(&ran.out).unwrap_or(Value::Null)
}

fn micros(value: &Value) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "dollars of a test")]
    value.as_f64().map_or(-1, |dollars| (dollars * 1e6).round() as i64)
}

fn rows(bill: &Value) -> BTreeMap<String, i64> {
    let items = bill["items"].as_array().unwrap().iter();
    items.map(|row| (row["key"].as_str().unwrap().to_owned(), micros(&row["total"]))).collect()
}

/// The dollars of a page's requests: of the session and of its subagents.
fn on_page(world: &World, session: &str) -> i64 {
    world.run(&["export", "html", session, "-o", "page.html", "--force", "-q"]).ok();
    let page = std::fs::read_to_string(world.path("page.html")).unwrap();
    let from = page.split_once("<script type=\"application/json\" id=\"data\">").unwrap().1;
    let data: Value = serde_json::from_str(from.split_once("</script>").unwrap().0).unwrap();
    let mut sum = 0;
    let sessions = data["sessions"].as_array().cloned().unwrap_or_else(|| vec![data.clone()]);
    for session in sessions {
        for request in session["requests"].as_array().unwrap() {
            sum += micros(&request[7]).max(0);
        }
    }
    sum
}

/// The dollars of each session in the list of `acpdb ui`; those of subagents stand with their session.
fn in_browser(world: &World) -> BTreeMap<String, i64> {
    let mut command = world.command();
    command.args(["ui", "--listen", "127.0.0.1:0", "-q"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (host, token) = line.trim().strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{token}data HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    server.kill().unwrap();
    server.wait().unwrap();
    read.unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let data: Value = serde_json::from_str(body).unwrap();
    let tops = data["rows"].as_array().unwrap().iter().filter(|row| row[16] == false);
    tops.map(|row| (row[0].as_str().unwrap().to_owned(), micros(&row[11]))).collect()
}

/// Adds the tokens that the spans in a value tell.
fn add(value: &Value, sums: &mut [u64; 3]) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| add(value, sums)),
        Value::Object(members) => {
            let names = ["input_tokens", "output_tokens", "cache_read.input_tokens"];
            for (name, sum) in names.iter().zip(&mut *sums) {
                if members.get("key").and_then(Value::as_str) == Some(&format!("gen_ai.usage.{name}")) {
                    *sum += members["value"]["intValue"].as_str().map_or(0, |text| text.parse().unwrap());
                }
            }
            members.values().for_each(|value| add(value, sums));
        }
        _ => {}
    }
}

/// Tokens of input, of output and from the cache, in the spans of all sessions.
fn spans(world: &World) -> [u64; 3] {
    world.run(&["export", "otlp-json", "-o", "spans.jsonl", "--force", "-q"]).ok();
    let mut sums = [0; 3];
    for line in std::fs::read_to_string(world.path("spans.jsonl")).unwrap().lines() {
        add(&serde_json::from_str(line).unwrap(), &mut sums);
    }
    sums
}

fn tokens(row: &Value) -> [u64; 3] {
    ["input", "output", "cache_read"].map(|name| row["tokens"][name].as_u64().unwrap())
}

#[test]
fn a_session_has_one_price_in_every_mouth() {
    let world = told();
    let bill = asked(&world, "UTC", &["cost", "--by", "session"]);
    let by_session = rows(&bill);
    assert_eq!(by_session.len(), 3, "{bill}");
    assert_eq!(by_session.values().sum::<i64>(), micros(&bill["sum"]["total"]), "{bill}");
    assert_eq!(bill["copies"], 2, "the fork's copies are told: {bill}");
    assert!(bill["unpriced"].to_string().contains("output"), "an impossible count is named: {bill}");
    let listed = asked(&world, "UTC", &["sessions"]);
    for session in listed["items"].as_array().unwrap() {
        let id = session["id"].as_str().unwrap();
        let want = by_session[id];
        assert_eq!(micros(&session["cost"]), want, "sessions: {id}");
        let own = asked(&world, "UTC", &["cost", "--session", id]);
        assert_eq!(micros(&own["sum"]["total"]), want, "cost --session: {id}");
        assert_eq!(on_page(&world, id), want, "page: {id}");
        let dollars = session["cost"].as_f64().unwrap();
        for (filter, found) in [
            (format!("cost:>={:.6}", dollars - 0.000_002), true),
            (format!("cost:>{:.6}", dollars + 0.000_002), false),
        ] {
            let listed = asked(&world, "UTC", &["sessions", &filter]).to_string();
            assert_eq!(listed.contains(&format!("\"id\":\"{id}\"")), found, "{filter}: {id}");
        }
    }
    for by in ["hour", "block", "day", "week", "month", "project", "host", "model"] {
        let bill = asked(&world, "UTC", &["cost", "--by", by]);
        assert_eq!(rows(&bill).values().sum::<i64>(), by_session.values().sum::<i64>(), "{by}");
    }
    let home = asked(&world, "UTC", &[]);
    assert_eq!(micros(&home["cost"]), micros(&bill["sum"]["total"]), "{home}");
    for newest in home["newest"].as_array().unwrap() {
        assert_eq!(micros(&newest["cost"]), by_session[newest["id"].as_str().unwrap()], "home: {newest}");
    }
    assert_eq!(in_browser(&world), by_session, "ui");
    let index = asked(&world, "UTC", &["export", "html", "--all", "-o", "pages", "--force"]);
    assert_eq!(micros(&index["cost"]), micros(&bill["sum"]["total"]), "index: {index}");
    assert_eq!(spans(&world), tokens(&bill["sum"]), "{bill}");
    // The tour is of one file, with its parts as one request.
    let tour = asked(&world, "UTC", &["demo", "home/.claude/projects/w/odd.jsonl"]);
    assert_eq!(micros(&tour["money"]["dollars"]), by_session["odd"], "{tour}");
    let main = "home/.claude/projects/w/main.jsonl";
    let tour = asked(&world, "UTC", &["demo", main]);
    assert!([0, 8].contains(&world.run(&["--db", "alone", "import", main, "-q"]).code));
    let own = asked(&world, "UTC", &["--db", "alone", "cost"]);
    assert_eq!(micros(&tour["money"]["dollars"]), micros(&own["sum"]["total"]), "{tour}");
    // The tour counts requests that have a price.
    let count = |name: &str| own["sum"][name].as_u64().unwrap();
    assert_eq!(tour["money"]["requests"], count("requests") - count("requests_unpriced"), "{tour}");
}

/// A session of copied requests alone cost `-`, and its host was said to record none; a bill of one session counted the copies of all.
#[test]
fn copies_are_told_of_the_sessions_that_are_asked_for() {
    let world = told();
    let main = std::fs::read_to_string(world.path("home/.claude/projects/w/main.jsonl")).unwrap();
    let lines: Vec<Value> = main.lines().take(3).map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut resumed = lines.clone();
    for line in &mut resumed {
        line["sessionId"] = json!("resumed");
    }
    file(&world, "resumed.jsonl", &resumed);
    assert!(world.run(&["import", "-q"]).code % 8 == 0);
    // The fork was read first: the session that it was made of has the copies.
    for (asked_for, count) in [(&["cost"][..], 4), (&["cost", "-s", "fork"], 0), (&["cost", "-s", "main"], 2)]
    {
        assert_eq!(asked(&world, "UTC", asked_for)["copies"], count, "{asked_for:?}");
    }
    let ran = world.run(&["cost", "-s", "resumed"]);
    ran.says(0, &["2 copied requests, and none of its own"]);
    let list = world.run(&["sessions"]).text();
    let row = list.lines().find(|line| line.starts_with("resumed"));
    assert!(row.is_some_and(|row| row.contains("copied")), "{list}");
}

/// Rows were days of UTC, while a condition asked for local days.
#[test]
fn rows_and_conditions_read_one_clock() {
    let world = World::new();
    let usage = json!({"input_tokens": 1000, "output_tokens": 10});
    let mut lines = vec![prompt("s", "p", "2026-03-07T00:00:00Z")];
    // A request stands every fifty minutes of the days on which zones change their clocks.
    let mut last = "p".to_owned();
    for (from, minutes) in
        [(1_772_841_600_i64, 3 * 1440), (1_775_174_400, 3 * 1440), (1_793_404_800, 3 * 1440)]
    {
        for minute in (0..minutes).step_by(50) {
            let at = jiff::Timestamp::from_second(from + minute * 60).unwrap().to_string();
            let uuid = format!("a{from}-{minute}");
            lines.push(answer("s", (&uuid, &last), &at, "claude-sonnet-4-5-20250929", &usage));
            last = uuid;
        }
    }
    file(&world, "s.jsonl", &lines);
    world.run(&["import", "-q"]).ok();
    for zone in ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Europe/Berlin"] {
        let days = asked(&world, zone, &["cost", "--by", "day"]);
        let mut by_month: BTreeMap<String, u64> = BTreeMap::new();
        for row in days["items"].as_array().unwrap() {
            let day: jiff::civil::Date = row["key"].as_str().unwrap().parse().unwrap();
            let (from, to) = (format!("since:{day}"), format!("until:{day}"));
            let within = asked(&world, zone, &["cost", &from, &to]);
            assert_eq!(within["sum"]["requests"], row["requests"], "{zone} {day}");
            *by_month.entry(format!("{}", day.strftime("%Y-%m"))).or_default() +=
                row["requests"].as_u64().unwrap();
        }
        let months = asked(&world, zone, &["cost", "--by", "month"]);
        let told = months["items"].as_array().unwrap().iter();
        let told: BTreeMap<String, u64> = told
            .map(|row| (row["key"].as_str().unwrap().to_owned(), row["requests"].as_u64().unwrap()))
            .collect();
        assert_eq!(told, by_month, "{zone}");
        // A block begins with an hour of the local clock, and no other begins within five hours.
        let blocks = asked(&world, zone, &["cost", "--by", "block"]);
        let zoned = jiff::tz::TimeZone::get(zone).unwrap();
        let starts = blocks["items"].as_array().unwrap().iter().map(|row| {
            let at: jiff::civil::DateTime = format!("{}:00", row["key"].as_str().unwrap()).parse().unwrap();
            at
        });
        let mut starts: Vec<_> = starts.collect();
        starts.sort();
        for pair in starts.windows(2) {
            let seconds = pair[1].to_zoned(zoned.clone()).unwrap().timestamp().as_second()
                - pair[0].to_zoned(zoned.clone()).unwrap().timestamp().as_second();
            // A clock that is set back names an hour twice.
            assert!(seconds >= 4 * 3600, "{zone}: {pair:?}");
        }
        let sum = |bill: &Value| bill["sum"]["requests"].as_u64().unwrap();
        assert_eq!((sum(&blocks), sum(&months)), (sum(&days), sum(&days)), "{zone}");
    }
}

/// Of a host that records the output of its requests alone it said "nothing of - (0.0 %) went to stale items".
#[test]
fn what_stale_items_cost_is_not_known_without_input() {
    let world = World::new();
    let usage = json!({"output_tokens": 300});
    let answer = answer("main", ("a1", "p"), "2026-05-04T10:00:01Z", "claude-sonnet-4-5-20250929", &usage);
    file(&world, "main.jsonl", &[prompt("main", "p", "2026-05-04T10:00:00Z"), answer]);
    world.run(&["import", "--quiet"]).ok();
    let told = "what went to stale items is not known: no request tells its input";
    let said = world.run(&["cost", "--waste"]).ok();
    assert!(said.contains(told), "{said}");
}

/// A request without a time was paid on the day of the import, one of a clock that was ahead in a year to come.
#[test]
fn requests_are_paid_on_days_that_were() {
    let world = World::new();
    let usage = json!({"input_tokens": 100, "output_tokens": 10});
    let sonnet = "claude-sonnet-4-5-20250929";
    let mut undated = answer("s", ("a2", "a1"), "", sonnet, &usage);
    undated.as_object_mut().unwrap().remove("timestamp");
    let lines = [
        prompt("s", "p", "2026-05-04T10:00:00Z"),
        answer("s", ("a1", "p"), "2026-05-04T10:00:01Z", sonnet, &usage),
        undated,
        answer("s", ("a3", "a2"), "2199-01-01T00:00:00Z", sonnet, &usage),
    ];
    file(&world, "s.jsonl", &lines);
    world.run(&["import", "-q"]).ok();
    let bill = asked(&world, "UTC", &["cost"]);
    let days: Vec<(&str, u64)> = bill["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["key"].as_str().unwrap(), row["requests"].as_u64().unwrap()))
        .collect();
    assert_eq!(days.first(), Some(&("2026-05-04", 2)), "{bill}");
    assert!(days.len() == 2 && days.iter().all(|(day, _)| !day.starts_with("2199")), "{bill}");
}

/// Sums began anew only where they fell, though the host had been started again; and a model's name without its date was another model.
#[test]
fn sums_of_a_host_are_those_of_its_starts_and_of_its_models() {
    let world = World::new();
    let usage = json!({"input_tokens": 100, "output_tokens": 10});
    let sum = |start: u64, name: &str, input: u64, output: u64| {
        json!({"type": "cost-state", "sessionId": "s", "startTime": start,
               "modelUsage": {name: {"inputTokens": input, "outputTokens": output}}})
    };
    let sonnet = "claude-sonnet-4-5-20250929";
    let lines = [
        prompt("s", "p", "2026-05-04T10:00:00Z"),
        answer("s", ("a1", "p"), "2026-05-04T10:00:01Z", sonnet, &usage),
        sum(1, "claude-sonnet-4-5", 300, 30),
        sum(1, "claude-sonnet-4-5", 500, 50),
        sum(2, "claude-sonnet-4-5", 700, 70),
    ];
    file(&world, "s.jsonl", &lines);
    world.run(&["import", "-q"]).ok();
    let bill = asked(&world, "UTC", &["cost"]);
    assert_eq!(tokens(&bill["sum"]), [1200, 120, 0], "{bill}");
}
