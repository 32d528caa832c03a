//! `acpdb statusline`: one line for Claude Code, whose JSON about the session comes on standard input.
//!
//! ```text
//! ctx 42% of 200k · $0.53 · today $3.10 · 12k stale · compacted: 142 items, 48k
//! host's JSON ---------^     store: bills, the session's view, its last compaction
//! ```
//!
//! A host shows nothing of a program that fails. So each fault leaves its parts out, and the line ends well.

use std::io::Read as _;
use std::path::Path;

use acpdb_engine::Store;
use acpdb_engine::ids::Micros;
use acpdb_engine::store::StreamName;
use acpdb_live::files::{self, FileMode};
use acpdb_live::journal;
use acpdb_query::cost::{self, BillFilter, BilledRequest, By};
use acpdb_query::lost::last_compaction;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use super::lines::clip;
use super::{Code, Failure, Global, Output, describe, store_path};

/// The parts if none are chosen.
const TEMPLATE: &str = "{context} · {session} · {today} · {stale} · {lost}";
/// The text between parts.
const BETWEEN: &str = " · ";
/// Widest line.
const WIDTH_MAX: usize = 80;
/// Longest JSON of a host that is read.
const INPUT_BYTES_MAX: u64 = 1 << 20;
/// How long the sum of a day is taken as it is, though more was recorded.
const TODAY_AGE_MAX: i64 = 60_000_000;
/// Most stores whose sums of a day are kept.
const KEPT_COUNT_MAX: usize = 64;
/// The file that keeps the sums of a day, beside the journal of hooks.
const TODAY: &str = "today.json";

pub(crate) fn run(global: &Global, output: &mut Output) -> Result<Code, Failure> {
    let mut text = String::new();
    // Without the host's JSON, the newest session is told.
    let _ = std::io::stdin().lock().take(INPUT_BYTES_MAX).read_to_string(&mut text);
    let told: Value = serde_json::from_str(&text).unwrap_or_default();
    let template = global.settings.statusline.as_deref();
    let parts = StatusParts::of(global, &told);
    let line = parts.line(template.unwrap_or(TEMPLATE), width());
    output.line(line)?;
    Ok(Code::Ok)
}

fn width() -> usize {
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    set.unwrap_or(WIDTH_MAX).clamp(20, WIDTH_MAX)
}

/// The parts of the line; `None` is not known.
#[derive(Default, Debug)]
struct StatusParts {
    context: Option<String>,
    session: Option<String>,
    today: Option<String>,
    stale: Option<String>,
    lost: Option<String>,
}

impl StatusParts {
    fn of(global: &Global, told: &Value) -> Self {
        let number = |path: &str| told.pointer(path).and_then(Value::as_f64);
        let mut parts = Self {
            context: context(told),
            session: number("/cost/total_cost_usd").filter(|sum| *sum > 0.0).map(describe::dollars),
            ..Self::default()
        };
        // The line has no room for errors; hooks tell of them.
        let _ = parts.add(global, told);
        parts
    }

    /// Adds what the store knows.
    fn add(&mut self, global: &Global, told: &Value) -> Result<(), Failure> {
        // Which store is meant is not known.
        if global.settings.unread.is_some() {
            return Ok(());
        }
        let text = |path: &str| told.pointer(path).and_then(Value::as_str);
        let folder = text("/workspace/current_dir").or(text("/cwd")).map(Path::new);
        let apart = super::hook::entered(global, folder).map_err(Failure::usage)?;
        let found = store_path::find_unasked(&apart)?;
        if !acpdb_engine::store::is_store(&found.folder) {
            return Ok(());
        }
        let store = store_path::builder(&found.folder, &apart)?.read_only().open()?;
        self.today = today(&store, &found.folder, global)?;
        let name = match text("/session_id") {
            Some(session) => store.find_stream(session)?,
            None => store.find_stream("latest")?,
        };
        self.session(&store, &name)
    }

    fn session(&mut self, store: &Store, name: &StreamName) -> Result<(), Failure> {
        let view = store.view(name.id)?;
        let tokens = view.state().tokens(view.at());
        // Summaries that are longer than the texts that they replace free nothing.
        let stale = tokens.whole.saturating_sub(tokens.shown);
        self.stale = (stale > 0).then(|| format!("{} stale", describe::tokens(stale)));
        if self.context.is_none() && tokens.whole > 0 {
            self.context = Some(format!("ctx ~{}", describe::tokens(tokens.whole)));
        }
        let last = last_compaction(store, &view, name)?;
        self.lost = last.map(|last| {
            let items = describe::count(last.items, "item");
            format!("compacted: {items}, {}", describe::tokens(last.tokens))
        });
        Ok(())
    }

    fn part(&self, name: &str) -> Option<&Option<String>> {
        Some(match name {
            "context" => &self.context,
            "session" => &self.session,
            "today" => &self.today,
            "stale" => &self.stale,
            "lost" => &self.lost,
            _ => return None,
        })
    }

    /// The line by a template. A piece between two dots goes if its part is not known, and the last ones go if there is no room.
    fn line(&self, template: &str, width: usize) -> String {
        let mut pieces: Vec<String> =
            template.split(BETWEEN).filter_map(|piece| self.filled(piece)).collect();
        while pieces.len() > 1 && pieces.join(BETWEEN).width() > width {
            pieces.pop();
        }
        clip(&pieces.join(BETWEEN), width)
    }

    fn filled(&self, piece: &str) -> Option<String> {
        let mut out = String::new();
        let mut rest = piece;
        while let Some((before, behind)) = rest.split_once('{') {
            out.push_str(before);
            let named = behind.split_once('}').and_then(|(name, rest)| Some((self.part(name)?, rest)));
            if let Some((part, behind)) = named {
                out.push_str(part.as_ref()?);
                rest = behind;
            } else {
                // A brace of the user's own.
                out.push('{');
                rest = behind;
            }
        }
        out.push_str(rest);
        // A template may come from anywhere; a line is one line.
        let out: String = out.chars().map(|sign| if sign.is_control() { ' ' } else { sign }).collect();
        Some(out)
    }
}

/// The used part of the context, as the host tells it.
fn context(told: &Value) -> Option<String> {
    let number = |path: &str| told.pointer(path).and_then(Value::as_f64);
    let size = number("/context_window/context_window_size").filter(|size| *size > 0.0);
    let used = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"]
        .iter()
        .filter_map(|name| number(&format!("/context_window/current_usage/{name}")))
        .sum::<f64>();
    let of = size.map(|size| format!(" of {}", describe::tokens(whole(size)))).unwrap_or_default();
    let percent = number("/context_window/used_percentage")
        .or_else(|| Some(100.0 * used / size?).filter(|percent| *percent > 0.0))?;
    Some(format!("ctx {percent:.0}%{of}"))
}

/// A number of tokens, as JSON of others may hold it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is bounded before")]
fn whole(number: f64) -> u64 {
    if number.is_finite() { number.clamp(0.0, 1e12) as u64 } else { 0 }
}

/// The sum of a day in a store, as it is kept.
#[derive(Serialize, Deserialize, PartialEq)]
struct Kept {
    store: String,
    day: String,
    head: u64,
    at: i64,
    dollars: f64,
}

/// The dollars of all sessions today.
fn today(store: &Store, root: &Path, global: &Global) -> Result<Option<String>, Failure> {
    let now = crate::clock::now();
    let zone = jiff::tz::TimeZone::system();
    let Ok(moment) = jiff::Timestamp::from_microsecond(now.0) else { return Ok(None) };
    let day = moment.to_zoned(zone.clone()).date();
    let Ok(midnight) = day.to_zoned(zone.clone()) else { return Ok(None) };
    let from = Micros(midnight.timestamp().as_microsecond());
    let head = store.head()?;
    let path = journal::path(&crate::settings::variable).map(|path| path.with_file_name(TODAY));
    let day = day.to_string();
    let root = root.to_string_lossy().into_owned();
    // A file that is not there keeps nothing.
    let kept = path.as_ref().and_then(|path| std::fs::read(path).ok());
    // Nor does one that is damaged.
    let kept: Vec<Kept> = kept.and_then(|kept| serde_json::from_slice(&kept).ok()).unwrap_or_default();
    let is_good = |kept: &&Kept| {
        // Micros are far from the ends of their range.
        let age = now.0.saturating_sub(kept.at);
        kept.store == root
            && kept.day == day
            && (kept.head == head.get() || (0..TODAY_AGE_MAX).contains(&age))
    };
    let dollars = if let Some(kept) = kept.iter().find(is_good) {
        kept.dollars
    } else {
        let requests = cost::requests(store, head)?;
        let is_of = |request: &BilledRequest| request.at.is_some_and(|at| at >= from && at <= now);
        let table = super::prices::in_use(global, None)?;
        let bill = cost::bill(
            &requests,
            By::Host,
            &table,
            &BillFilter { wanted: &is_of, stale: None, within: None, zone },
        );
        let dollars = bill.sum.total;
        // Agents with other stores have lines of their own.
        let others = kept.into_iter().filter(|kept| kept.day == day && kept.store != root);
        let others: Vec<Kept> = others.take(KEPT_COUNT_MAX - 1).collect();
        let mut all = vec![Kept { store: root, day, head: head.get(), at: now.0, dollars }];
        all.extend(others);
        if let (Some(path), Ok(bytes)) = (path, serde_json::to_vec(&all)) {
            // Without the file the next line takes longer.
            let _ = files::replace(&path, &bytes, FileMode::Kept);
        }
        dollars
    };
    Ok((dollars > 0.0).then(|| format!("today {}", describe::dollars(dollars))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> StatusParts {
        StatusParts {
            context: Some("ctx 42% of 200k".to_owned()),
            session: Some("$0.53".to_owned()),
            today: Some("today $3.10".to_owned()),
            stale: Some("12k stale".to_owned()),
            lost: Some("compacted: 142 items, 48k".to_owned()),
        }
    }

    #[test]
    fn the_line_fits_and_leaves_out_what_is_not_known() {
        for (template, width, want) in [
            (TEMPLATE, 80, "ctx 42% of 200k · $0.53 · today $3.10 · 12k stale · compacted: 142 items, 48k"),
            (TEMPLATE, 60, "ctx 42% of 200k · $0.53 · today $3.10 · 12k stale"),
            (TEMPLATE, 10, "ctx 42% o…"),
            ("{stale} · mine", 80, "12k stale · mine"),
            ("({stale}) {other} {", 80, "(12k stale) {other} {"),
            ("a\nb", 80, "a b"),
            ("", 80, ""),
        ] {
            assert_eq!(parts().line(template, width), want, "{template} {width}");
        }
        let few = StatusParts { context: None, stale: None, ..parts() };
        assert_eq!(few.line(TEMPLATE, 80), "$0.53 · today $3.10 · compacted: 142 items, 48k");
        assert_eq!(StatusParts::default().line(TEMPLATE, 80), "");
    }

    #[test]
    fn the_context_is_told_as_the_host_tells_it() {
        let check = |json: &str, want: Option<&str>| {
            let told: Value = serde_json::from_str(json).unwrap();
            assert_eq!(context(&told).as_deref(), want, "{json}");
        };
        check(
            r#"{"context_window":{"used_percentage":42.4,"context_window_size":200000}}"#,
            Some("ctx 42% of 200k"),
        );
        check(
            r#"{"context_window":{"context_window_size":1000000,"current_usage":{"input_tokens":50000,"cache_read_input_tokens":50000}}}"#,
            Some("ctx 10% of 1M"),
        );
        check(r#"{"context_window":{"used_percentage":7}}"#, Some("ctx 7%"));
        check(r#"{"context_window":{"used_percentage":null,"context_window_size":200000}}"#, None);
        check("{}", None);
    }
}
