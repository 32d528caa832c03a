//! Exports as another program meets them: whole files or none, and rows that agree with what acpdb itself says.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A folder with the bundled session in a store.
fn world() -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().unwrap();
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo-session.jsonl");
    let done = run(folder.path(), &["import", &session.to_string_lossy()]);
    assert!(done.status.success(), "{done:?}");
    folder
}

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
    command.current_dir(folder).args(args).env("ACPDB_PATH", "store").env("ACPDB_ANY_FILE_SYSTEM", "1");
    command.output().unwrap()
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_file_that_exists_is_kept_unless_forced_and_nothing_else_is_left() {
    let world = world();
    let file = world.path().join("out");
    std::fs::write(&file, "precious").unwrap();
    for format in ["html", "jsonl", "otlp-json"] {
        let refused = run(world.path(), &["export", format, "-o", "out"]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("out exists"), "{refused:?}");
        assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    }
    let missing = run(world.path(), &["export", "html", "no-such", "-o", "other"]);
    assert_eq!(missing.status.code(), Some(7), "{missing:?}");
    assert_eq!(names(world.path()), [file.clone(), world.path().join("store")], "no temporary file stays");
    let done = run(world.path(), &["export", "html", "-o", "out", "--force", "--json"]);
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(said["schema"], "acpdb.exported/1");
    assert_eq!(said["bytes"].as_u64(), Some(std::fs::metadata(&file).unwrap().len()));
    for (args, code) in [
        (["export", "html", "-o", "."], 2),
        (["export", "html", "-o", "no/such/folder"], 1),
        (["export", "html", "--json", "-q"], 2),
    ] {
        assert_eq!(run(world.path(), &args).status.code(), Some(code), "{args:?}");
    }
}

#[test]
fn the_picture_of_a_simulation_shows_its_figures_and_loads_nothing() {
    let world = world();
    let args = ["simulate", "--all", "--policy", "acp", "--policy", "economy", "--html", "page.html"];
    let done = run(world.path(), &[&args[..], &["--json"]].concat());
    assert!(done.status.success(), "{done:?}");
    let page = std::fs::read_to_string(world.path().join("page.html")).unwrap();
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    let rows = said["items"].as_array().unwrap();
    assert_eq!(rows.len(), 6, "two policies in three modes");
    assert_eq!(page.matches("<figure>").count(), rows.len());
    let figures: Vec<&str> = page.split("<figure>").skip(1).collect();
    let mut rewrites = 0;
    for (row, figure) in rows.iter().zip(figures) {
        let (policy, mode) = (row["policy"].as_str().unwrap(), row["mode"].as_str().unwrap());
        let price = format!("{:.3}", row["price_ratio"].as_f64().unwrap());
        let cells = format!("<tr><td>{policy}</td><td>{mode}</td><td>{price}</td>");
        assert!(page.contains(&cells), "{cells}");
        assert!(figure.contains(&format!(": {policy}, {mode}</figcaption>")), "{figure:.200}");
        // Marks of warm rewrites. The picture is of the dearest session, the figures are of all.
        let marks = figure.matches("class=\"rebase\"").count() - figure.matches(", cold</title>").count();
        assert!(marks <= usize::try_from(row["rewrites"].as_u64().unwrap()).unwrap(), "{policy}, {mode}");
        rewrites += marks;
    }
    assert!(rewrites > 0, "no rebase is marked anywhere");
    for forbidden in ["http:", "https:", "<script", "src=", "href=", "url("] {
        assert!(!page.contains(forbidden), "{forbidden} in the page");
    }
    assert!(page.contains("default-src 'none'"));
    let again = run(world.path(), &args);
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    assert!(String::from_utf8_lossy(&again.stderr).contains("page.html exists"), "{again:?}");
}

#[test]
fn lines_hold_what_history_says_with_texts_and_reasons() {
    let world = world();
    assert!(run(world.path(), &["export", "jsonl", "-o", "out"]).status.success());
    let rows = lines(&world.path().join("out"));
    let history: Value =
        serde_json::from_slice(&run(world.path(), &["history", "--session", "latest", "--json"]).stdout)
            .unwrap();
    let sessions: Value = serde_json::from_slice(&run(world.path(), &["sessions", "--json"]).stdout).unwrap();
    let main = sessions["items"][0]["id"].as_str().unwrap();
    let own: Vec<&Value> = rows.iter().filter(|row| row["session"] == main).collect();
    let history = history["items"].as_array().unwrap();
    assert_eq!(own.len(), history.len());
    for (row, item) in own.into_iter().zip(history) {
        for (name, value) in item.as_object().unwrap() {
            assert_eq!(row[name], *value, "{name} of {}", item["item"]);
        }
        assert!(!row["reason"].as_str().unwrap().is_empty());
        assert_eq!(row["edges"].as_array().unwrap().is_empty(), item["superseded_by"].is_null());
        let last = row["states"].as_array().unwrap().last().unwrap();
        assert_eq!(last["tokens_shown"], item["tokens_shown"], "{row}");
        assert_eq!(last["output"], item["state"]);
    }
}

#[test]
fn spans_are_the_same_each_time_and_their_links_lead_somewhere() {
    let world = world();
    for name in ["one", "two"] {
        assert!(run(world.path(), &["export", "otlp-json", "-o", name]).status.success());
    }
    let read = |name: &str| std::fs::read(world.path().join(name)).unwrap();
    assert_eq!(read("one"), read("two"));
    let mut spans = Vec::new();
    for line in lines(&world.path().join("one")) {
        let of_line = line["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        spans.extend(of_line.iter().cloned());
    }
    let is_hex = |value: &Value, length: usize| {
        let text = value.as_str().unwrap();
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let ids: HashSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), spans.len());
    let traces: HashSet<&str> = spans.iter().map(|span| span["traceId"].as_str().unwrap()).collect();
    assert_eq!(traces.len(), 1, "a subagent is in the trace of the session that started it");
    let mut links = 0;
    for span in &spans {
        assert!(is_hex(&span["traceId"], 32) && is_hex(&span["spanId"], 16), "{span}");
        assert!(span["parentSpanId"].as_str().is_none_or(|parent| ids.contains(parent)), "{span}");
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(
            time("startTimeUnixNano") <= time("endTimeUnixNano") && time("startTimeUnixNano") > 0,
            "{span}"
        );
        for link in span["links"].as_array().into_iter().flatten() {
            links += 1;
            assert!(ids.contains(link["spanId"].as_str().unwrap()), "{link}");
        }
    }
    assert_eq!(links, 42, "a link for each call that was superseded");
    let roots = spans.iter().filter(|span| span.get("parentSpanId").is_none()).count();
    assert_eq!(roots, 1);
    let text = String::from_utf8(read("one")).unwrap();
    assert!(!text.contains("gen_ai.tool.call.arguments"), "texts are not in it unless asked for");
}

#[test]
#[cfg(not(feature = "sqlite"))]
fn a_format_that_was_left_out_says_how_it_is_had() {
    let world = world();
    let done = run(world.path(), &["export", "sqlite", "-o", "out"]);
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("built without SQLite") && said.contains("--features sqlite"), "{said}");
}

/// The lines of items; others are of events.
#[cfg(any(feature = "sqlite", feature = "parquet"))]
fn items(world: &Path) -> Vec<Value> {
    assert!(run(world, &["export", "jsonl", "-o", "lines"]).status.success());
    let items: Vec<Value> =
        lines(&world.join("lines")).into_iter().filter(|line| line["item"].is_string()).collect();
    assert!(items.len() > 100, "{}", items.len());
    items
}

#[test]
#[cfg(feature = "sqlite")]
fn tables_agree_with_the_lines() {
    let world = world();
    let lines = items(world.path());
    assert!(run(world.path(), &["export", "sqlite", "-o", "base"]).status.success());
    let base = rusqlite::Connection::open(world.path().join("base")).unwrap();
    let mut statement = base.prepare("select * from items order by rowid").unwrap();
    let columns: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
    let mut rows = statement.query([]).unwrap();
    let mut count = 0;
    while let Some(row) = rows.next().unwrap() {
        let line = &lines[count];
        count += 1;
        for (number, column) in columns.iter().enumerate().filter(|(_, column)| *column != "stream") {
            let name = match column.as_str() {
                "time_us" => "time",
                "finished_us" => "finished_time",
                column => column,
            };
            let expected: Value = match &line[name] {
                Value::Bool(is_so) => i64::from(*is_so).into(),
                Value::Array(list) => serde_json::to_string(list).unwrap().into(),
                value => value.clone(),
            };
            let found = match row.get_unwrap(number) {
                rusqlite::types::Value::Null => Value::Null,
                rusqlite::types::Value::Integer(value) => value.into(),
                rusqlite::types::Value::Text(text) => text.into(),
                other => panic!("a cell of another kind: {other:?}"),
            };
            assert_eq!(found, expected, "{column} of {}", line["item"]);
        }
    }
    assert_eq!(count, lines.len());
    let count = |sql: &str| base.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    for (table, name) in [("edges", "edges"), ("states", "states")] {
        let all: usize = lines.iter().map(|line| line[name].as_array().unwrap().len()).sum();
        assert_eq!(count(&format!("select count(*) from {table}")), i64::try_from(all).unwrap(), "{table}");
    }
    assert_eq!(
        count(
            "select count(*) from edges left join items on items.stream = edges.stream and item = old where item is null"
        ),
        0
    );
}

/// A cell as the lines have it. The library's own way to JSON is behind a feature that the program does not build.
#[cfg(feature = "parquet")]
fn json(field: &parquet::record::Field) -> Value {
    use parquet::record::Field;
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => (*value).into(),
        Field::Int(value) => (*value).into(),
        Field::Long(value) | Field::TimestampMicros(value) => (*value).into(),
        Field::UInt(value) => (*value).into(),
        Field::ULong(value) => (*value).into(),
        Field::Str(value) => value.as_str().into(),
        other => panic!("a cell of another kind: {other}"),
    }
}

#[test]
#[cfg(feature = "parquet")]
fn columns_agree_with_the_lines() {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    let world = world();
    let lines = items(world.path());
    assert!(run(world.path(), &["export", "parquet", "-o", "table"]).status.success());
    let table = SerializedFileReader::new(std::fs::File::open(world.path().join("table")).unwrap()).unwrap();
    let mut count = 0;
    for (row, line) in table.get_row_iter(None).unwrap().zip(&lines) {
        count += 1;
        for (name, field) in row.unwrap().get_column_iter().filter(|(name, _)| *name != "stream") {
            let expected: Value = match &line[name.as_str()] {
                Value::Array(list) => serde_json::to_string(list).unwrap().into(),
                value => value.clone(),
            };
            assert_eq!(json(field), expected, "{name} of {}", line["item"]);
        }
    }
    assert_eq!(count, lines.len());
}
