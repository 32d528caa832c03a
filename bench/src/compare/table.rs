//! Figures as tables: all engines side by side, then acpdb's ratios with their targets, met or missed.

use std::path::Path;

use super::engine::Kind;
use super::{Compare, picture};
use crate::Outcome;
use crate::measure::{self, middle};

/// The head of the file with all tables.
const RESULTS: &str = "# All rows of the last run\n\n`acpdb-bench compare --docs` writes this file, and the first rows of docs/COMPARE.md, which \
    says what the rows mean.\n\n";
/// Marks of the few rows that come first.
const FIRST: (&str, &str) = ("<!-- first:begin -->", "<!-- first:end -->");

/// A row: its name, its unit, and values by engine.
struct Row {
    name: String,
    unit: &'static str,
    values: Vec<(&'static str, Vec<f64>)>,
}

/// The measured figures.
pub(crate) struct Figures {
    engines: Vec<&'static str>,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl Figures {
    pub(crate) fn new(kinds: &[Kind]) -> Self {
        Self { engines: kinds.iter().map(|kind| kind.name).collect(), rows: Vec::new(), notes: Vec::new() }
    }

    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            eprintln!("{note}");
            self.notes.push(note);
        }
    }

    /// Adds the value of one round.
    pub(crate) fn add(&mut self, name: &str, unit: &'static str, engine: &'static str, value: f64) {
        let known = self.rows.iter().position(|row| row.name == name);
        let place = known.unwrap_or_else(|| {
            self.rows.push(Row { name: name.to_owned(), unit, values: Vec::new() });
            self.rows.len() - 1
        });
        let Some(row) = self.rows.get_mut(place) else { return };
        match row.values.iter_mut().find(|(known, _)| *known == engine) {
            Some((_, values)) => values.push(value),
            None => row.values.push((engine, vec![value])),
        }
    }

    /// The median, if it was measured.
    pub(super) fn get(&self, name: &str, engine: &str) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.name == name)?;
        let (_, values) = row.values.iter().find(|(known, _)| *known == engine)?;
        Some(middle(values.clone())).filter(|value| value.is_finite())
    }
}

/// Three significant digits.
pub(super) fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

fn cell(values: &[f64]) -> String {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let least = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let most = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match finite.len() {
        0 => String::new(),
        1 => figure(least),
        _ => format!("{} [{}-{}]", figure(middle(finite)), figure(least), figure(most)),
    }
}

/// The conditions of the measurement.
fn head(compare: &Compare) -> String {
    let mut chosen = if compare.quick { " --quick" } else { "" }.to_owned();
    if let [size] = compare.sizes.as_slice() {
        chosen.push_str(&format!(" --events {size}"));
    }
    format!(
        "`cargo run --release -p acpdb-bench -- compare{chosen}`: disk rows on {}, memory rows on {}; {}. Median \
         [least-most] of the rounds. An empty cell: the engine has no way to do that.\n",
        measure::file_system(&std::fs::canonicalize(&compare.folder).unwrap_or_default()),
        measure::file_system(&compare.scratch),
        measure::machine()
    )
}

pub(crate) fn render(figures: &Figures, compare: &Compare) -> String {
    let mut text = head(compare);
    text.push_str(&targets(figures, compare));
    text.push_str(&format!(
        "\n| | {} |\n|---|{}\n",
        figures.engines.join(" | "),
        "---|".repeat(figures.engines.len())
    ));
    for row in &figures.rows {
        let cells = figures.engines.iter().map(|engine| {
            let values = row.values.iter().find(|(known, _)| known == engine);
            values.map(|(_, values)| cell(values)).unwrap_or_default()
        });
        let unit = if row.unit.is_empty() { String::new() } else { format!(", {}", row.unit) };
        text.push_str(&format!("| {}{unit} | {} |\n", row.name, cells.collect::<Vec<_>>().join(" | ")));
    }
    if !figures.notes.is_empty() {
        text.push_str("\nNotes:\n");
        figures.notes.iter().for_each(|note| text.push_str(&format!("- {note}\n")));
    }
    text
}

const LOG: &str = "acpdb log + index";
const STORE: &str = "acpdb store";
const RAW: &str = "raw file";
const SQLITE: &str = "SQLite tuned";
const REDB: &str = "redb alone";

/// The comparison of a target.
enum Against {
    /// acpdb's figure to that of another engine, at most.
    Most(&'static str, f64),
    /// The same, at least.
    Least(&'static str, f64),
    /// acpdb's own figure, at most.
    OwnMost(f64),
    /// The same, at least.
    OwnLeast(f64),
}

fn targets(figures: &Figures, compare: &Compare) -> String {
    use Against::{Least, Most, OwnLeast, OwnMost};
    let mut goals: Vec<(String, &str, Against)> = vec![
        ("disk: flushes a commit".into(), LOG, OwnMost(1.05)),
        ("disk: device KB a commit".into(), LOG, Most(RAW, 1.2)),
        ("disk: device KB a commit".into(), LOG, Most(SQLITE, 0.4)),
        ("disk: device KB a commit".into(), LOG, Most(REDB, 0.15)),
        ("disk: p50".into(), LOG, Most(RAW, 1.15)),
        ("disk: p50".into(), LOG, Most(SQLITE, 0.6)),
        ("memory: processor time of the caller".into(), LOG, OwnMost(4.0)),
        ("memory: processor time of the caller".into(), LOG, Most(SQLITE, 0.25)),
        ("memory: p99".into(), LOG, OwnMost(50.0)),
        ("memory: commits a second".into(), LOG, OwnLeast(70.0)),
        ("memory: commits a second".into(), LOG, Least(SQLITE, 3.4)),
        ("8 threads, flush 100 us: commits a flush".into(), LOG, OwnLeast(6.0)),
        ("8 threads, flush 100 us: commits a second".into(), LOG, OwnLeast(35.0)),
        ("8 threads, flush 100 us: p99".into(), LOG, OwnMost(300.0)),
        ("8 threads, flush 4 ms: commits a flush".into(), LOG, OwnLeast(7.5)),
        ("16 processes / 16 threads".into(), LOG, OwnLeast(0.6)),
    ];
    for size in &compare.sizes {
        let large = *size >= 1_000_000;
        let mut goal = |name: &str, engine, against| goals.push((format!("{size}: {name}"), engine, against));
        goal("bulk, index included", LOG, Least(SQLITE, if large { 3.0 } else { 3.5 }));
        goal("bulk, index included", LOG, Least(RAW, 0.7));
        goal("own bytes to device / payload", LOG, OwnMost(1.2));
        goal("disk beyond payload", LOG, OwnMost(400.0));
        goal("disk / payload", LOG, Most(SQLITE, 1.0));
        goal("open", LOG, OwnMost(5.0));
        goal("reader's own memory", LOG, OwnMost(32.0));
        goal("index made anew, a million", LOG, OwnMost(5.0));
        goal("replay, decoded", LOG, OwnLeast(2.0));
        goal("replay, verified", LOG, OwnLeast(0.8));
        goal("sealed, beyond 350 B an event / bodies", LOG, OwnMost(0.4));
        goal("sealed, beyond 350 B an event / bodies, 30% repeats", LOG, OwnMost(0.32));
        for how in ["live", "after bulk"] {
            let mut goal =
                |name: &str, engine, against| goals.push((format!("{size}, {how}: {name}"), engine, against));
            goal("get", LOG, Most(SQLITE, 0.6));
            goal("digest", LOG, Most(SQLITE, 0.4));
            goal("last 200", LOG, Most(SQLITE, if large { 0.35 } else { 0.5 }));
            goal("chain", STORE, Most(SQLITE, if large { 0.35 } else { 0.5 }));
        }
        let unindexed = figures.get(&format!("{size}: events not indexed then"), STORE).unwrap_or(0.0);
        let mut goal = |name: &str, engine, against| goals.push((format!("{size}: {name}"), engine, against));
        goal("open and list after a kill", STORE, OwnMost(20.0 + unindexed / 100.0));
    }
    let mut text = "\n| acpdb | measured | target | met |\n|---|---|---|---|\n".to_owned();
    let (mut met_count, mut count) = (0, 0);
    for (name, engine, against) in goals {
        let (measured, target, met) = match against {
            Most(other, limit) | Least(other, limit) => {
                let least = matches!(against, Least(..));
                let ratio = figures.get(&name, engine).zip(figures.get(&name, other));
                let ratio = ratio.map(|(own, other)| own / other);
                let met = ratio.map(|ratio| if least { ratio >= limit } else { ratio <= limit });
                let sign = if least { ">=" } else { "<=" };
                (ratio.map(|ratio| format!("{}x", figure(ratio))), format!("{sign} {limit}x {other}"), met)
            }
            OwnMost(limit) | OwnLeast(limit) => {
                let least = matches!(against, OwnLeast(_));
                let value = figures.get(&name, engine);
                let met = value.map(|value| if least { value >= limit } else { value <= limit });
                let sign = if least { ">=" } else { "<=" };
                (value.map(figure), format!("{sign} {}", figure(limit)), met)
            }
        };
        let Some((measured, met)) = measured.zip(met) else { continue };
        count += 1;
        met_count += usize::from(met);
        let met = if met { "yes" } else { "**no**" };
        text.push_str(&format!("| {name} ({engine}) | {measured} | {target} | {met} |\n"));
    }
    text.push_str(&format!("\n{met_count} of {count} targets met.\n"));
    text
}

/// Writes all tables into their file, the first rows between their marks in the comparison page of this checkout, if there is one, and the
/// picture beside it.
pub(crate) fn write_docs(text: &str, figures: &Figures, compare: &Compare) -> Outcome<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let path = docs.join("COMPARE.md");
    let Ok(mut page) = std::fs::read_to_string(&path) else { return Ok(()) };
    if let Some(size) = compare.pictured()
        && let Some(picture) = picture::svg(figures, size)
    {
        std::fs::write(docs.join("pictures/compare.svg"), picture)?;
        let first = format!("{}\n{}\n", head(compare), picture::table(figures, size).trim());
        page = between(&page, FIRST, &first).ok_or("the comparison page has no marks for its first rows")?;
    }
    std::fs::write(path, page)?;
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("RESULTS.md"), format!("{RESULTS}{text}"))?;
    Ok(())
}

/// The page with another text between two marks.
fn between(page: &str, (begin, end): (&str, &str), text: &str) -> Option<String> {
    let (before, rest) = page.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n{text}{end}{after}"))
}
