//! The screen of `acpdb demo`: the content of a session, its stale part and the reasons, then and now, and that the store is sound.
//!
//! At most 40 lines of 100 columns, so that all of it is in view.

use std::path::{Path, PathBuf};

use acpdb_engine::fold::memory::kind_label;
use acpdb_engine::verify::{Verdict, VerifyReport};
use acpdb_engine::{Store, store::StreamName};
use acpdb_query::cost::{BilledRequest, PriceTable};
use acpdb_query::propose::{SessionProposal, of_session};
use acpdb_query::{ChainReport, HalfTime, StatsReport};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use super::lines::{about, clip, one_line};
use super::{Failure, Global, Output, describe, history};

/// Most rules that are shown.
const RULE_COUNT_MAX: usize = 5;
/// Most members of a chain that are shown.
const MEMBER_COUNT_MAX: usize = 4;
/// Longest bar, in columns.
const BAR_WIDTH: usize = 30;
/// Widest screen, in columns.
const WIDTH_MAX: usize = 100;
/// Heights of a spark line, lowest first.
const SPARKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The origin of the session.
#[derive(Debug, serde::Serialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub(crate) enum SessionSource {
    /// The user named it.
    File {
        #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
        path: PathBuf,
    },
    /// The most telling of the newest sessions in the usual places.
    Found {
        #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
        path: PathBuf,
        #[serde(flatten)]
        looked: NewestSessions,
    },
    /// The session comes with the program.
    Bundled { asked: bool },
}

/// The newest sessions together, of which one is shown.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct NewestSessions {
    pub(crate) sessions: u64,
    pub(crate) tokens_whole: u64,
    pub(crate) tokens_shown: u64,
    pub(crate) tokens_freed: u64,
}

/// The content of the screen.
#[derive(Debug)]
pub(crate) struct Tour {
    source: SessionSource,
    session: String,
    host: String,
    title: Option<String>,
    turns: u32,
    prompts: u32,
    stats: StatsReport,
    chain: Option<ChainReport>,
    half_time: HalfTime,
    verified: VerifyReport,
    money: Option<Money>,
    memory: Vec<WorthRemembering>,
    next: Vec<(String, &'static str)>,
}

/// A sentence of the session that is worth telling to later ones.
#[derive(Clone, Debug, serde::Serialize)]
struct WorthRemembering {
    item: String,
    kind: &'static str,
    category: String,
    key: Option<String>,
    value: String,
    sentence: String,
}

impl WorthRemembering {
    fn of(found: SessionProposal) -> Self {
        let SessionProposal { source, proposal, .. } = found;
        let (item, sentence) = (proposal.item, proposal.sentence);
        Self {
            item: source.to_string(),
            kind: kind_label(item.kind),
            category: item.category,
            key: item.key,
            value: item.value,
            sentence,
        }
    }
}

/// Cost of a session, with its subagents.
#[derive(Clone, Debug, serde::Serialize)]
struct Money {
    requests: u64,
    dollars: f64,
    prices: String,
}

/// Cost of a session; `None` where no request of it has a price.
fn money(store: &Store, session: &StreamName) -> Result<Option<Money>, Failure> {
    // A built-in table that cannot be used would be a fault of the program: costs are unknown then.
    let Ok(table) = PriceTable::built_in() else { return Ok(None) };
    let told = acpdb_query::cost::requests(store, store.head()?)?;
    let own = told.all.iter().filter(|request| told.root(request.stream) == session.id);
    let price = |request: &BilledRequest| {
        let price = table.price(request.model.as_deref()?, request.at)?;
        let dollars = price.dollars(&request.usage, request.tier.as_deref())?.total();
        // Parts of a request and hosts' sums cost something, and are no requests.
        Some((u64::from(request.counts()), dollars))
    };
    let prices: Vec<(u64, f64)> = own.filter_map(price).collect();
    let dollars = (prices.iter().map(|(_, dollars)| dollars).sum::<f64>() * 1e6).round() / 1e6;
    let requests: u64 = prices.iter().map(|(count, _)| count).sum();
    Ok((!prices.is_empty()).then_some(Money { requests, dollars, prices: table.checked }))
}

/// Looks at an imported session. `keep` is the folder of the store that stays, if one stays.
pub(crate) fn look(
    store: &Store,
    session: &StreamName,
    source: SessionSource,
    verified: VerifyReport,
    keep: Option<&Path>,
    global: &Global,
) -> Result<Tour, Failure> {
    let view = store.view(session.id)?;
    let stats = acpdb_query::stats([(session.host.as_str(), &view)]);
    let chain = acpdb_query::chain::showpiece(&view, &session.name, MEMBER_COUNT_MAX);
    let half_time = acpdb_query::half_time(&view);
    let (turns, prompts, title) = {
        let (fold, at) = (view.state(), view.at());
        (fold.turn(at).get(), fold.prompt_count(at), fold.info(at).and_then(|info| info.title.clone()))
    };
    let title = acpdb_query::titles::title_of(store, session, title.as_deref())?;
    let next = next(keep, global, &source, &short_name(store, session), chain.as_ref());
    let money = money(store, session)?;
    let memory = of_session(store, session.id)?.into_iter().map(WorthRemembering::of).collect();
    let (session, host) = (session.name.clone(), session.host.clone());
    Ok(Tour {
        source,
        session,
        host,
        title,
        turns,
        prompts,
        stats,
        chain,
        half_time,
        verified,
        money,
        memory,
        next,
    })
}

/// The shortest prefix of a session's id, of 8 or 16 characters, that still names it; else the whole id.
fn short_name(store: &Store, session: &StreamName) -> String {
    let short = |length: usize| session.name.chars().take(length).collect::<String>();
    let names_it = |name: &String| store.find_stream(name).is_ok_and(|found| found.id == session.id);
    [8, 16].map(short).into_iter().find(names_it).unwrap_or_else(|| session.name.clone())
}

/// Commands that work without changes.
fn next(
    keep: Option<&Path>,
    global: &Global,
    source: &SessionSource,
    session: &str,
    chain: Option<&ChainReport>,
) -> Vec<(String, &'static str)> {
    let program = program();
    let Some(keep) = keep else {
        let kept = |file: &str| format!("{program} demo{file} --keep .acpdb");
        let kept_words = "the same, in a store that stays here";
        return match source {
            SessionSource::File { path } => {
                let path = quoted(&path.to_string_lossy());
                vec![
                    (kept(&format!(" {path}")), kept_words),
                    (format!("{program} import {path}"), "read it into your own store"),
                    (format!("{program} --help"), "context, history, explain, stats, memory, verify"),
                ]
            }
            SessionSource::Found { .. } => vec![
                (kept(""), kept_words),
                (format!("{program} import"), "read the sessions of every host on this machine"),
                (format!("{program} --help"), "context, history, explain, stats, memory, verify"),
            ],
            // There may be nothing to import here: the next commands ask the store that stays.
            SessionSource::Bundled { .. } => vec![
                (kept(" --bundled"), kept_words),
                (format!("{program} --db .acpdb context"), "then: what the model should see now, and why"),
                (
                    format!("{program} --db .acpdb search clampLimit"),
                    "where it was said, and whether it is still seen",
                ),
                (format!("{program} --db .acpdb export html -o demo.html"), "a page to look at in a browser"),
                (format!("{program} import --help"), "how to read sessions of your own"),
            ],
        };
    };
    let found_anyway = keep == Path::new(".acpdb") && global.db.is_none();
    let db = if found_anyway { String::new() } else { format!(" --db {}", quoted(&keep.to_string_lossy())) };
    let mut next = vec![(
        format!("{program}{db} context {}", quoted(session)),
        "what the model should see now, with what stands in for the rest",
    )];
    if let Some(chain) = chain {
        let item = quoted(&chain.item);
        next.push((format!("{program}{db} history --chain {item}"), "the chain above, with every edge"));
        let hidden = chain.members.iter().find(|member| member.rule.is_some());
        let hidden = quoted(hidden.map_or(&chain.item, |member| &member.item));
        next.push((format!("{program}{db} explain {hidden}"), "why it is not in the context"));
    } else {
        next.push((format!("{program}{db} history"), "everything that was ever in it"));
        next.push((format!("{program}{db} stats"), "what is saved, by rule"));
    }
    next.push((format!("{program}{db} export html -o demo.html"), "a page to look at in a browser"));
    next
}

/// The command that starts this program again.
fn program() -> String {
    let called = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    if called.components().count() < 2 {
        return "acpdb".to_owned();
    }
    let here = std::env::current_dir().unwrap_or_default();
    let short = called.strip_prefix(&here).unwrap_or(&called);
    quoted(&short.to_string_lossy())
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+=,%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A title and a text behind it, in as many lines as it needs. `plain` is the title without its style.
fn wrapped(title: &str, plain: &str, text: &str, output: &mut Output) -> Result<(), Failure> {
    let indent = if plain.is_empty() { 0 } else { plain.width() + 2 };
    let room = output.room(indent).max(1);
    let mut lead = format!("{title}{}", " ".repeat(indent - plain.width()));
    for line in crate::args::wrapped(text, room) {
        output.line(format!("{lead}{}", clip(&line, room)))?;
        lead = " ".repeat(indent);
    }
    Ok(())
}

impl Tour {
    pub(crate) fn is_sound(&self) -> bool {
        self.verified.verdict() == Verdict::Sound
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        json!({
            "schema": "acpdb.demo/1",
            "source": self.source,
            "session": self.session,
            "host": self.host,
            "title": self.title,
            "turns": self.turns,
            "prompts": self.prompts,
            "calls": self.stats.total.calls,
            "superseded": self.stats.total.superseded,
            "tokens": self.stats.total.tokens,
            "tokens_whole": self.stats.total.tokens_whole,
            "tokens_shown": self.stats.total.tokens_shown,
            "tokens_freed": self.stats.total.tokens_freed,
            "items": self.stats.items,
            "chain": self.chain,
            "half_time": {"half": self.half_time.half, "now": self.half_time.now},
            "money": self.money,
            "memory": self.memory,
            "verify": self.verified,
            "next": self.next.iter().map(|(command, _)| command).collect::<Vec<_>>(),
        })
    }

    /// For people.
    pub(crate) fn draw(
        &self,
        store: &Store,
        session: &StreamName,
        output: &mut Output,
    ) -> Result<(), Failure> {
        let terminal_width = output.width;
        output.width = output.width.min(WIDTH_MAX);
        let drawn = self.draw_narrow(store, session, output);
        output.width = terminal_width;
        drawn
    }

    fn draw_narrow(&self, store: &Store, session: &StreamName, output: &mut Output) -> Result<(), Failure> {
        self.heading(output)?;
        output.line("")?;
        self.rules(output)?;
        output.line("")?;
        self.one_chain(store, session, output)?;
        output.line("")?;
        self.then_and_now(output)?;
        output.line("")?;
        if let Some(Money { requests, dollars, prices }) = &self.money {
            let title = output.paint(describe::BOLD, "Money");
            let count = describe::count(*requests, "request");
            output.line(format!(
                "{title}  {} for {count}, by prices of {prices}",
                super::describe::dollars(*dollars)
            ))?;
            output.line("")?;
        }
        self.remembered(output)?;
        self.soundness(output)?;
        output.line("")?;
        let title = output.paint(describe::BOLD, "Try next");
        output.line(title)?;
        let width = self.next.iter().map(|(command, _)| command.width()).max().unwrap_or_default();
        for (command, words) in &self.next {
            // A command that is cut would not work, so only its explanation may be cut.
            let room = output.room(width + 4);
            let words =
                if room >= 16 { output.paint(describe::DIM, &clip(words, room)) } else { String::new() };
            let blanks = " ".repeat(width - command.width());
            let command = output.paint(describe::SEQ, command);
            output.line(format!("  {command}{blanks}  {words}").trim_end())?;
        }
        Ok(())
    }

    /// The first thing that later sessions could be told, in its own words.
    fn remembered(&self, output: &mut Output) -> Result<(), Failure> {
        let Some(first) = self.memory.first() else { return Ok(()) };
        let title = output.paint(describe::BOLD, "Memory");
        let things = describe::count(self.memory.len() as u64, "thing");
        output.line(format!(
            "{title}  {things} said here that later sessions could be told: acpdb memory propose"
        ))?;
        let place = first
            .key
            .as_ref()
            .map_or_else(|| first.category.clone(), |key| format!("{}/{key}", first.category));
        let lead = format!(
            "  {}  {} {} = {}, as in: ",
            first.item,
            first.kind,
            one_line(&place),
            one_line(&first.value)
        );
        let words = clip(&one_line(&first.sentence), output.room(lead.width()));
        output.line(clip(&format!("{lead}{words}"), output.width))?;
        output.line("")
    }

    fn heading(&self, output: &mut Output) -> Result<(), Failure> {
        let source = match &self.source {
            SessionSource::File { path } => format!("{}, {}", self.host, path.display()),
            SessionSource::Found { path, looked: NewestSessions { sessions: ..=1, .. } } => {
                format!("your newest session, {}, {}", self.host, path.display())
            }
            SessionSource::Found { path, looked } => {
                let count = looked.sessions;
                format!("the most telling of your {count} newest sessions, {}, {}", self.host, path.display())
            }
            SessionSource::Bundled { asked: true } => "the bundled session".to_owned(),
            SessionSource::Bundled { asked: false } => {
                "no session of yours was found; this is the bundled one".to_owned()
            }
        };
        let title = self.title.as_deref().map_or_else(|| self.session.clone(), one_line);
        output.styled(describe::BOLD, clip(&one_line(&title), output.width))?;
        output.styled(describe::DIM, clip(&one_line(&source), output.width))?;
        let total = &self.stats.total;
        let prompts = if self.prompts > 0 {
            format!(", {}", describe::count(self.prompts.into(), "prompt"))
        } else {
            String::new()
        };
        let text = format!(
            "{} in {}{prompts}; ~{} tokens recorded, and nothing of it is ever lost",
            describe::count(total.calls, "call"),
            describe::count(self.turns.into(), "turn"),
            describe::tokens(total.tokens)
        );
        wrapped("", "", &text, output)
    }

    fn rules(&self, output: &mut Output) -> Result<(), Failure> {
        let total = &self.stats.total;
        let title = output.paint(describe::BOLD, "Stale");
        if total.superseded == 0 && total.tokens_freed == 0 {
            return output.line(format!("{title}  nothing was superseded in this session"));
        }
        let share = percent(total.tokens_freed, total.tokens_whole);
        let text = format!(
            "{} superseded: the context would hold ~{} of ~{} tokens, {share}% less",
            describe::count(total.superseded, "item"),
            describe::tokens(total.tokens_shown),
            describe::tokens(total.tokens_whole)
        );
        wrapped(&title, "Stale", &text, output)?;
        if let SessionSource::Found { looked: looked @ NewestSessions { sessions: 2.., .. }, .. } =
            &self.source
        {
            let text = format!(
                "all {} together: ~{} of ~{} tokens, {}% less",
                looked.sessions,
                describe::tokens(looked.tokens_shown),
                describe::tokens(looked.tokens_whole),
                percent(looked.tokens_freed, looked.tokens_whole)
            );
            wrapped("     ", "     ", &text, output)?;
        }
        let rows: Vec<_> = self.stats.items.iter().filter(|row| row.count > 0 || row.freed > 0).collect();
        let most = rows.iter().map(|row| row.freed).max().unwrap_or_default();
        let heading = format!("  {:<18}{:>6}{:>9}", "by rule", "items", "freed");
        output.styled(describe::DIM, clip(&heading, output.width))?;
        let bar_room = output.room(38).min(BAR_WIDTH);
        for row in rows.iter().take(RULE_COUNT_MAX) {
            let bar = output.paint(describe::SEQ, &"█".repeat(scaled(row.freed, most, bar_room)));
            let freed = describe::tokens(row.freed);
            output.line(format!("  {:<18}{:>6}{freed:>9}  {bar}", row.kind.label(), row.count).trim_end())?;
        }
        Ok(())
    }

    fn one_chain(&self, store: &Store, session: &StreamName, output: &mut Output) -> Result<(), Failure> {
        let title = output.paint(describe::BOLD, "One chain");
        let Some(chain) = &self.chain else {
            return output.line(format!("{title}  there is none to show"));
        };
        let words = "  what superseded what, oldest first: ○ stays in history, ● is in the context";
        let words = clip(words, output.room(9));
        output.line(format!("{title}{}", output.paint(describe::DIM, &words)))?;
        let view = store.view(session.id)?;
        let mut shown = chain.clone();
        // A short chain is shown as a whole.
        let skipped = shown.members.len().saturating_sub(MEMBER_COUNT_MAX);
        shown.members.drain(..skipped);
        // One reason for each member is enough here: the first edge is the edge that hides.
        let mut told = std::collections::BTreeSet::new();
        shown.edges.retain(|edge| !edge.released && told.insert(edge.old.clone()));
        if skipped > 0 {
            output
                .styled(describe::DIM, format!("… {} before", describe::count(skipped as u64, "member")))?;
        }
        history::draw(&shown, &|row| about(&view, row), output)
    }

    fn then_and_now(&self, output: &mut Output) -> Result<(), Failure> {
        let HalfTime { half, now, turns } = &self.half_time;
        let title = output.paint(describe::BOLD, "Time travel");
        let words = clip("  the same log, read at two points", output.room(11));
        output.line(format!("{title}{}", output.paint(describe::DIM, &words)))?;
        for (name, point) in [("half time", half), ("now", now)] {
            let place = format!("t{} {}", point.turn.get(), point.seq);
            let text = format!(
                "  {name:<10}{place:<12}  ~{} tokens, without supersession ~{}",
                describe::tokens(point.shown),
                describe::tokens(point.whole)
            );
            output.line(clip(&text, output.width))?;
        }
        if turns.len() < 3 {
            return Ok(());
        }
        let room = output.room(26).clamp(4, 60);
        let most = turns.iter().map(|turn| turn.whole).max().unwrap_or_default();
        let whole: Vec<u64> = turns.iter().map(|turn| turn.whole).collect();
        let shown: Vec<u64> = turns.iter().map(|turn| turn.shown).collect();
        for (name, values, style) in [("without", whole, describe::DIM), ("with", shown, describe::GOOD)] {
            let line = output.paint(style, &sparks(&values, most, room));
            output.line(format!("  {name:<10}{line}"))?;
        }
        Ok(())
    }

    fn soundness(&self, output: &mut Output) -> Result<(), Failure> {
        let report = &self.verified;
        let title = output.paint(describe::BOLD, "Verify");
        let (style, verdict) = match report.verdict() {
            Verdict::Sound => (describe::GOOD, "sound"),
            Verdict::Damaged => (describe::BAD, "damaged"),
            Verdict::TailLost => (describe::BAD, "acknowledged events are missing"),
            Verdict::Contradicted => (describe::BAD, "contradicted"),
            Verdict::Unreadable => (describe::BAD, "cannot be read"),
        };
        let text = format!(
            ": {} and {} bodies, every digest and link checked, {} on disk",
            describe::count(report.events, "event"),
            report.bodies,
            describe::bytes(report.bytes)
        );
        let text = clip(&text, output.room(8 + verdict.len()));
        let verdict = output.paint(style, verdict);
        output.line(format!("{title}  {verdict}{text}"))
    }
}

/// `part` of `whole` in percent, rounded.
fn percent(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).saturating_add(whole / 2).checked_div(whole).unwrap_or_default()
}

/// `part` of `most` in columns: 0 only if `part` is 0.
fn scaled(part: u64, most: u64, columns: usize) -> usize {
    let scaled = part.saturating_mul(columns as u64).checked_div(most).unwrap_or_default();
    let scaled = usize::try_from(scaled).unwrap_or(columns);
    if part > 0 { scaled.clamp(1, columns.max(1)) } else { 0 }
}

/// A row of figures as bars of eight heights, at most `room` bars: each bar stands for the last figure of its share.
fn sparks(values: &[u64], most: u64, room: usize) -> String {
    let count = values.len().min(room);
    let spark = |place: usize| {
        let end = ((place + 1) * values.len()).checked_div(count).unwrap_or_default();
        let value = end.checked_sub(1).and_then(|last| values.get(last)).copied().unwrap_or_default();
        let height = value.saturating_mul(7).checked_div(most).unwrap_or_default();
        SPARKS.get(usize::try_from(height).unwrap_or(7)).copied().unwrap_or('█')
    };
    (0..count).map(spark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_become_bars() {
        assert_eq!(sparks(&[0, 1, 2, 3, 4, 5, 6, 7], 7, 20), "▁▂▃▄▅▆▇█");
        assert_eq!(sparks(&[0, 0, 7, 7], 7, 2), "▁█");
        assert_eq!(sparks(&[], 0, 10), "");
        assert_eq!(sparks(&[0, 0], 0, 10), "▁▁");
        assert_eq!(
            [scaled(0, 10, 30), scaled(1, 1000, 30), scaled(10, 10, 30), scaled(5, 0, 30)],
            [0, 1, 30, 1]
        );
        assert_eq!([percent(1, 3), percent(2, 3), percent(0, 0)], [33, 67, 0]);
    }

    #[test]
    fn words_are_quoted_for_a_shell_where_they_need_it() {
        for (word, shown) in
            [("abc-1.x", "abc-1.x"), ("#12", "'#12'"), ("it's", r"'it'\''s'"), ("", "''"), ("a b", "'a b'")]
        {
            assert_eq!(quoted(word), shown);
        }
    }
}
