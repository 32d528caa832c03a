//! One truth in every mouth: does each way of asking about a session say the same of each item?
//!
//! ```text
//! context, explain, stats, rows, page, requests, transcripts --ask--> Testimony (JSON and bytes) --judge--> complaints
//! ```
//!
//! The judge shares no code with the code that it judges: it reads JSON, and looks for texts in bytes. So that it can,
//! an item is known by *marks*, texts that occur in no other item. [`ask`] is the part that knows whom to ask.

pub mod ask;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// A request, or a transcript.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// Its name in complaints.
    pub name: String,
    /// The bytes sent.
    pub bytes: Vec<u8>,
    /// The parts that it reports as left out: how many, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// Whether it is for people, and has room for everything.
    pub is_transcript: bool,
    /// Whether every conclusion applies at once; else each item's newest `served` row says how it was sent.
    pub is_eager: bool,
    /// The seq up to which changes of an item's content show; every change shows of items that are not named.
    pub as_of: BTreeMap<String, u64>,
}

/// All answers about one session at one point.
#[derive(Clone, Debug, Default)]
pub struct Testimony {
    /// `context --json`.
    pub context: Value,
    /// `context --recorded --json`.
    pub recorded: Value,
    /// `stats SESSION --json`.
    pub stats: Value,
    /// `explain ID --json` of every item.
    pub explained: Vec<Value>,
    /// `export jsonl`, a value a line.
    pub records: Vec<Value>,
    /// `export html`.
    pub page: String,
    /// The context in other forms.
    pub sent: Vec<Sent>,
    /// Summaries of completed tasks, by the event that evicted the items behind each.
    pub summaries: BTreeMap<String, String>,
}

/// Something said, or not said.
fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or(u64::MAX)
}

fn flag(value: &Value, field: &str) -> bool {
    value.get(field) == Some(&Value::Bool(true))
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Every string in a JSON value, those in strings that are JSON included, with a line feed between.
fn strings(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
            if text.starts_with(['{', '[', '"'])
                && let Ok(inner) = serde_json::from_str::<Value>(text)
            {
                strings(&inner, out);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        Value::Object(fields) => {
            for (name, field) in fields {
                out.push_str(name);
                out.push('\n');
                strings(field, out);
            }
        }
        _ => {}
    }
}

/// The words that a reader of a text finds in it, JSON taken apart.
fn read(text: &str) -> String {
    let mut out = text.to_owned();
    out.push('\n');
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        strings(&value, &mut out);
    }
    out
}

/// Length of a mark in bytes.
const MARK_BYTES: std::ops::RangeInclusive<usize> = 12..=200;
/// Bytes that are searched for marks, about: of a long session only some items are looked for.
const SEARCHED_BYTES: usize = 600_000_000;
/// Lines of a text that are looked at for marks.
const MARK_LINES: usize = 400;

/// The mark of each face (item, `input` or `output`): a line that occurs in no other face.
fn marks(records: &[Value]) -> BTreeMap<(String, &'static str), String> {
    let mut owners: BTreeMap<String, Option<(String, &'static str)>> = BTreeMap::new();
    for record in records {
        for face in ["input", "output"] {
            let text = read(text(record, face));
            let owner = (self::text(record, "item").to_owned(), face);
            for line in text.lines().map(str::trim).take(MARK_LINES) {
                if !MARK_BYTES.contains(&line.len()) {
                    continue;
                }
                match owners.get_mut(line) {
                    None => drop(owners.insert(line.to_owned(), Some(owner.clone()))),
                    Some(known) if known.as_ref() != Some(&owner) => *known = None,
                    Some(_) => {}
                }
            }
        }
    }
    let mut found = BTreeMap::new();
    for (line, owner) in &owners {
        let Some(owner) = owner else { continue };
        if !found.contains_key(owner) {
            found.insert(owner.clone(), line.clone());
        }
    }
    // A line may be part of another face's line: then it marks nothing.
    let all: Vec<(String, String)> = records
        .iter()
        .flat_map(|record| ["input", "output"].map(|face| (text(record, "item"), face, text(record, face))))
        .map(|(item, face, text)| (format!("{item} {face}"), read(text)))
        .collect();
    let bytes: usize = all.iter().map(|(_, text)| text.len()).sum::<usize>().max(1);
    let every = (found.len() * bytes).div_ceil(SEARCHED_BYTES).max(1);
    let mut place = 0;
    found.retain(|_, _| {
        place += 1;
        place % every == 0
    });
    found.retain(|(item, face), line| {
        let own = format!("{item} {face}");
        all.iter().all(|(other, text)| *other == own || !text.contains(line.as_str()))
    });
    found
}

/// The contradictions between the ways of asking, in sentences; empty if they tell one truth.
pub fn judge(said: &Testimony) -> Vec<String> {
    let mut complaints = Vec::new();
    rows(said, &mut complaints);
    sums(said, &mut complaints);
    page(said, &mut complaints);
    recorded(said, &mut complaints);
    let marks = marks(&said.records);
    for sent in &said.sent {
        bytes(said, sent, &marks, &mut complaints);
    }
    complaints
}

/// The rows of `context`, `explain` and the exported items.
fn rows(said: &Testimony, out: &mut Vec<String>) {
    let shown: BTreeMap<&str, &Value> =
        list(&said.context, "items").iter().map(|item| (text(item, "item"), item)).collect();
    let records: BTreeMap<&str, &Value> = said.records.iter().map(|it| (text(it, "item"), it)).collect();
    if records.len() != said.explained.len() {
        out.push(format!("{} items are exported, {} explained", records.len(), said.explained.len()));
    }
    for explained in &said.explained {
        let id = text(explained, "item");
        let Some(record) = records.get(id) else {
            out.push(format!("{id} is explained, and not exported"));
            continue;
        };
        let in_context = flag(explained, "in_context");
        if in_context != shown.contains_key(id) || in_context != flag(record, "in_context") {
            out.push(format!("{id}: explain says in_context {in_context}, context and export do not"));
        }
        let others = shown.get(id).map(|row| ("context", *row)).into_iter().chain([("export", *record)]);
        for (name, other) in others {
            for field in [
                "state",
                "cause",
                "rule",
                "superseded_by",
                "tokens",
                "tokens_shown",
                "turn",
                "status",
                "pinned",
            ] {
                if explained.get(field) != other.get(field) {
                    out.push(format!(
                        "{id}: explain says {field} {:?}, {name} {:?}",
                        explained.get(field),
                        other.get(field)
                    ));
                }
            }
        }
        let whole = text(explained, "state") == "whole";
        if flag(explained, "visible") != (whole && in_context) {
            out.push(format!("{id}: visible is not what its state says"));
        }
        if let Some(last) = list(record, "states").last()
            && (text(last, "output") != text(explained, "state")
                || number(last, "tokens_shown") != number(explained, "tokens_shown"))
        {
            out.push(format!("{id}: the newest exported state is {last}"));
        }
        if let Some(row) = shown.get(id) {
            let faces = ["input", "output"].map(|face| row.get(face).filter(|face| !face.is_null()));
            let sum: u64 = faces.into_iter().flatten().map(|face| number(face, "tokens_shown")).sum();
            if sum != number(row, "tokens_shown") {
                out.push(format!(
                    "{id}: its faces show {sum} tokens, its row {}",
                    number(row, "tokens_shown")
                ));
            }
        }
    }
}

/// Tokens and counts.
fn sums(said: &Testimony, out: &mut Vec<String>) {
    let context = &said.context;
    let sum = |field: &str| list(context, "items").iter().map(|item| number(item, field)).sum::<u64>();
    let total = said.stats.get("total").cloned().unwrap_or_default();
    let freed: u64 = list(&said.stats, "items").iter().map(|kind| number(kind, "freed")).sum();
    let count: u64 = list(&said.stats, "items").iter().map(|kind| number(kind, "count")).sum();
    for (what, one, other) in [
        ("tokens shown, of items and context", sum("tokens_shown"), number(context, "tokens_shown")),
        ("tokens as recorded, of items and context", sum("tokens"), number(context, "tokens_whole")),
        (
            "tokens shown, of context and stats",
            number(context, "tokens_shown"),
            number(&total, "tokens_shown"),
        ),
        (
            "tokens as recorded, of context and stats",
            number(context, "tokens_whole"),
            number(&total, "tokens_whole"),
        ),
        (
            "tokens freed, of context and stats",
            number(context, "tokens_freed"),
            number(&total, "tokens_freed"),
        ),
        ("tokens freed, of stats by kind and in all", freed, number(&total, "tokens_freed")),
        (
            "tokens freed and shown, and those recorded",
            number(context, "tokens_freed").saturating_add(number(context, "tokens_shown")),
            number(context, "tokens_whole"),
        ),
    ] {
        if one != other {
            out.push(format!("{what}: {one} and {other}"));
        }
    }
    let touched = |record: &&Value| {
        let concluded = |state: &Value| !text(state, "cause").is_empty();
        list(record, "states").iter().any(concluded) || !list(record, "edges").is_empty()
    };
    let touched = said.records.iter().filter(touched).count() as u64;
    if count > touched {
        out.push(format!("stats count {count} items, of {touched} that something was ever concluded about"));
    }
}

/// The data of the page.
fn page(said: &Testimony, out: &mut Vec<String>) {
    let start = "<script type=\"application/json\" id=\"data\">";
    let data = said.page.split_once(start).and_then(|(_, rest)| rest.split_once("</script>"));
    let data: Value = data.and_then(|(data, _)| serde_json::from_str(data).ok()).unwrap_or_default();
    // The first is the session that the page is of; its subagents follow.
    let data = data.pointer("/sessions/0").cloned().unwrap_or_default();
    let explained: BTreeMap<(u64, u64), &Value> = said
        .explained
        .iter()
        .filter_map(|item| {
            let (seq, part) = text(item, "item")
                .trim_start_matches('#')
                .split_once('.')
                .map_or_else(|| (text(item, "item").trim_start_matches('#'), "1"), |(seq, part)| (seq, part));
            Some(((seq.parse().ok()?, part.parse().ok()?), item))
        })
        .collect();
    let items = list(&data, "items");
    if items.len() != explained.len() {
        out.push(format!("the page has {} items, {} are explained", items.len(), explained.len()));
    }
    for row in items {
        let at = |place: usize| row.get(place).and_then(Value::as_u64).unwrap_or_default();
        let Some(explained) = explained.get(&(at(0), at(1))) else {
            out.push(format!("the page has #{}.{}, which is not explained", at(0), at(1)));
            continue;
        };
        let id = text(explained, "item");
        let Some(point) = row.get(13).and_then(Value::as_array).and_then(|points| points.last()) else {
            out.push(format!("{id}: the page does not say where it stands"));
            continue;
        };
        let of = |place: usize| point.get(place).and_then(Value::as_u64).unwrap_or(99);
        let states = ["whole", "tombstone", "summary", "shortened", "gone", "absent"];
        let state = usize::try_from(of(3)).ok().and_then(|state| states.get(state).copied());
        if (of(1) & 1 == 1) != flag(explained, "in_context") || state != Some(text(explained, "state")) {
            out.push(format!("{id}: the page says {point}, explain {}", text(explained, "state")));
        }
        let recorded = row.get(10).cloned().unwrap_or_default();
        let both = |pair: &Value| {
            let of = |place: usize| pair.get(place).and_then(Value::as_u64).unwrap_or_default();
            of(0).saturating_add(of(1))
        };
        let shown = point.get(4).and_then(|hidden| hidden.get(2)).map_or_else(|| both(&recorded), both);
        let expected = number(explained, "tokens_shown");
        if flag(explained, "in_context") && shown != expected {
            out.push(format!("{id}: the page shows {shown} tokens, explain {expected}"));
        }
    }
}

/// The host's own items, without conclusions of acpdb.
fn recorded(said: &Testimony, out: &mut Vec<String>) {
    let ids =
        |value: &Value| list(value, "items").iter().map(|it| text(it, "item").to_owned()).collect::<Vec<_>>();
    if ids(&said.context) != ids(&said.recorded) {
        out.push("recorded and current do not have the same items in the same order".to_owned());
    }
    let records: BTreeMap<&str, &Value> = said.records.iter().map(|it| (text(it, "item"), it)).collect();
    for item in list(&said.recorded, "items") {
        let id = text(item, "item");
        let hosts = matches!(text(item, "cause"), "erased" | "lost" | "cleared_by_host");
        if hosts || text(item, "state") == "gone" {
            continue;
        }
        if !matches!(text(item, "state"), "whole" | "absent") {
            out.push(format!(
                "{id}: recorded as {}, because of {:?}",
                text(item, "state"),
                item.get("cause")
            ));
        }
        for face in ["input", "output"] {
            let had = item.get(face).and_then(|face| face.get("text")).and_then(Value::as_str);
            let kept = records.get(id).and_then(|record| record.get(face)).and_then(Value::as_str);
            if had.is_some() && kept.is_some() && had != kept {
                out.push(format!("{id}: the {face} that the host had is not the one that was recorded"));
            }
        }
    }
    let hosts = |item: &Value| matches!(text(item, "cause"), "erased" | "lost" | "cleared_by_host");
    if number(&said.recorded, "tokens_freed") > 0 && !list(&said.recorded, "items").iter().any(hosts) {
        out.push("what was recorded is freed of tokens".to_owned());
    }
}

/// Whether a text is there line by line: transcripts may set lines off.
fn has_lines(haystack: &str, text: &str) -> bool {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).all(|line| haystack.contains(line))
}

/// Whether an item is hidden with a completed task in a context that shows its changes up to a seq.
///
/// Its newest cause does not tell: where a change waits, the item may have been sent as hidden for an earlier reason, such
/// as a newer output of the task while it went on. Then the eviction and the summary wait together, and nothing is lost by
/// that.
fn is_hidden_with_task(record: Option<&Value>, as_of: Option<u64>) -> bool {
    let states = record.map_or(&[][..], |record| list(record, "states"));
    let then = states.iter().rev().find(|state| as_of.is_none_or(|seq| number(state, "seq") <= seq));
    then.is_some_and(|then| {
        flag(then, "in_context")
            && text(then, "cause") == "evicted"
            && matches!(text(then, "output"), "tombstone" | "summary" | "gone")
    })
}

/// The bytes of a request or a transcript.
fn bytes(
    said: &Testimony,
    sent: &Sent,
    marks: &BTreeMap<(String, &'static str), String>,
    out: &mut Vec<String>,
) {
    let name = &sent.name;
    let raw = String::from_utf8_lossy(&sent.bytes).into_owned();
    let haystack = if sent.is_transcript { raw } else { read(&raw) };
    let left_out = |reason: &str| sent.left_out.get(reason).copied().unwrap_or_default();
    let shown: BTreeMap<&str, &Value> =
        list(&said.context, "items").iter().map(|item| (text(item, "item"), item)).collect();
    let records: BTreeMap<&str, &Value> = said.records.iter().map(|it| (text(it, "item"), it)).collect();
    let mut evicted: BTreeSet<(&str, &str)> = BTreeSet::new();
    for explained in &said.explained {
        let id = text(explained, "item");
        let kind = text(explained, "kind");
        let served = list(explained, "served").last().map(|row| text(row, "state"));
        let state = if sent.is_eager { Some(text(explained, "state")) } else { served };
        let state = match (flag(explained, "in_context"), state) {
            (false, _) => "gone",
            (true, Some(state)) => state,
            // It was never sent: then it is sent as it is.
            (true, None) => text(explained, "state"),
        };
        if is_hidden_with_task(records.get(id).copied(), sent.as_of.get(id).copied()) {
            let mut said = list(explained, "sentences").iter().filter_map(Value::as_str);
            evicted.extend(said.find_map(|said| {
                said.strip_prefix("It was evicted in ")?.split_once(" with its completed task ")
            }));
        }
        let is_open = text(explained, "status") == "pending";
        // Items for which a provider has no place are told by reason, not one by one.
        let is_special = matches!(kind, "reasoning" | "opaque" | "media" | "result" | "injected");
        if let Some(mark) = marks.get(&(id.to_owned(), "output")) {
            let is_there = haystack.contains(mark.as_str());
            let placeholder = shown.get(id).and_then(|row| row.get("output")).map(|face| text(face, "text"));
            let in_placeholder = placeholder.is_some_and(|text| text.contains(mark.as_str()));
            match state {
                "whole" if !is_there && !is_open && (!is_special || sent.is_transcript) => {
                    out.push(format!("{name}: {id} is whole, and not in it: {mark:?}"));
                }
                "tombstone" | "summary" | "gone" | "shortened"
                    if is_there
                        && !in_placeholder
                        && !(kind == "reasoning" && left_out("change_deferred") > 0) =>
                {
                    out.push(format!("{name}: {id} is {state}, and in it: {mark:?}"));
                }
                _ => {}
            }
        }
        // Transcripts set parameters anew.
        if let Some(mark) = marks.get(&(id.to_owned(), "input"))
            && sent.is_eager
            && !sent.is_transcript
        {
            let is_there = haystack.contains(mark.as_str());
            let face = shown.get(id).and_then(|row| row.get("input"));
            let input = face.map_or("gone", |face| text(face, "state"));
            let in_placeholder = face.is_some_and(|face| read(text(face, "text")).contains(mark.as_str()));
            if input == "whole" && !is_there && !is_open && flag(explained, "in_context") {
                out.push(format!("{name}: the parameters of {id} are whole, and not in it: {mark:?}"));
            }
            if input != "whole" && is_there && !in_placeholder && left_out("unit_kept_whole") == 0 {
                out.push(format!("{name}: the parameters of {id} are {input}, and in it: {mark:?}"));
            }
        }
        // A summary stands in the same bytes.
        if sent.is_eager
            && state == "summary"
            && let Some(summary) = shown.get(id).and_then(|row| row.get("output")).map(|it| text(it, "text"))
            && !has_lines(&haystack, summary)
            && !(kind == "reasoning" && left_out("change_deferred") > 0)
        {
            out.push(format!("{name}: the summary of {id} is not in it: {summary:?}"));
        }
    }
    for (eviction, task) in evicted {
        let Some(summary) = said.summaries.get(eviction) else { continue };
        if !has_lines(&haystack, summary) && left_out("change_deferred") == 0 {
            out.push(format!(
                "{name}: something is hidden by {eviction} with task {task} and its summary is not in it"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A judge that cannot fail judges nothing.
    #[test]
    fn a_lie_is_noticed() {
        let row = |state: &str, tokens: u64| {
            json!({"item": "#2", "kind": "call", "in_context": true, "visible": state == "whole", "state": state,
                "tokens": 9, "tokens_shown": tokens, "input": "the parameters of it", "output": "a text of its own"})
        };
        let faces =
            |tokens: u64| json!({"state": "whole", "tokens_shown": tokens, "text": "a text of its own"});
        let mut item = row("whole", 9);
        item["output"] = faces(9);
        item["input"] = Value::Null;
        let mut record = row("whole", 9);
        record["input"] = Value::Null;
        let sums = json!({"tokens_shown": 9, "tokens_whole": 9, "tokens_freed": 0});
        let mut context = sums.clone();
        context["items"] = json!([item]);
        let point = json!([[2, 1, 0, 0]]);
        let items = json!([[2, 1, 0, 0, 1, 0, -1, -1, "", "", [0, 9], [], [], point]]);
        let data = json!({"sessions": [{"items": items}]});
        let sent = |text: &str| Sent {
            name: "request".to_owned(),
            bytes: json!({"content": text}).to_string().into_bytes(),
            left_out: BTreeMap::new(),
            is_transcript: false,
            is_eager: true,
            as_of: BTreeMap::new(),
        };
        let truth = Testimony {
            recorded: context.clone(),
            context,
            stats: json!({"total": sums, "items": [{"count": 0, "freed": 0}]}),
            explained: vec![row("whole", 9)],
            records: vec![record],
            page: format!("<script type=\"application/json\" id=\"data\">{data}</script>"),
            sent: vec![sent("a text of its own")],
            summaries: BTreeMap::new(),
        };
        assert_eq!(judge(&truth), [""; 0]);
        let lies: [fn(&mut Testimony); 6] = [
            |said| said.sent[0].bytes = b"{}".to_vec(),
            |said| said.explained[0]["state"] = json!("tombstone"),
            |said| said.explained[0]["tokens_shown"] = json!(3),
            |said| said.stats["items"][0]["freed"] = json!(1),
            |said| said.page = said.page.replace("[[2,1,0,0]]", "[[2,0,0,0]]"),
            |said| said.context["items"] = json!([]),
        ];
        for (place, lie) in lies.into_iter().enumerate() {
            let mut said = truth.clone();
            lie(&mut said);
            assert_ne!(judge(&said), [""; 0], "lie {place}");
        }
    }

    /// A task's summary is asked for as soon as something is hidden with the task, and not before.
    #[test]
    fn a_summary_may_wait_as_long_as_what_it_sums_up() {
        let state = |seq: u64, output: &str, cause: &str| json!({"seq": seq, "in_context": true, "output": output, "cause": cause});
        let states =
            [state(2, "whole", ""), state(4, "tombstone", "rolling_prune"), state(6, "tombstone", "evicted")];
        let record = json!({"item": "#2", "states": states});
        for (as_of, is_hidden) in [(Some(2), false), (Some(5), false), (Some(6), true), (None, true)] {
            assert_eq!(is_hidden_with_task(Some(&record), as_of), is_hidden, "{as_of:?}");
        }
        let explained = json!({"item": "#2", "kind": "call", "in_context": true, "state": "tombstone",
            "sentences": ["It was evicted in #6 with its completed task t1."]});
        let said = Testimony {
            explained: vec![explained],
            records: vec![record],
            summaries: BTreeMap::from([("#6".to_owned(), "all is well".to_owned())]),
            ..Testimony::default()
        };
        let complaints = |bytes: &[u8], as_of: u64| {
            let sent = Sent {
                bytes: bytes.to_vec(),
                as_of: BTreeMap::from([("#2".to_owned(), as_of)]),
                ..Sent::default()
            };
            let mut out = Vec::new();
            super::bytes(&said, &sent, &BTreeMap::new(), &mut out);
            out.len()
        };
        assert_eq!([complaints(b"", 5), complaints(b"", 6), complaints(b"all is well", 6)], [0, 1, 0]);
    }
}
