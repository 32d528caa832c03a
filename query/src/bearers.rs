//! The streams that can match a filter, by the names that the index knows: files, and ids of calls.
//!
//! ```text
//! file:src/auth.rs  ->  names that end in `src/auth.rs`  ->  their streams, and those with events that the index does not have yet
//! ```
//!
//! The index only says where to look: every event is judged as in a pass over the whole log, so the answer does not depend on it.

use std::collections::BTreeSet;

use acpdb_engine::ids::StreamId;
use acpdb_engine::index::{NameKind, from_its_end};
use acpdb_engine::{Error, Store};

use crate::filter::{Expr, Filter, Term};

/// Names that are asked of the index before it is given up.
const NAMED_COUNT_MAX: usize = 4096;
/// Above one stream in so many, all streams are read: looking at single frames costs several times as much as reading on.
const SHARE: usize = 8;

/// The streams outside of which nothing matches, in order. `None`: the streams are not known, or too many.
///
/// # Errors
/// If the log cannot be read.
pub(crate) fn bearers(store: &Store, filter: &Filter) -> Result<Option<Vec<StreamId>>, Error> {
    let Some(found) = filter.expr.as_ref().map(|expr| of(store, expr)).transpose()?.flatten() else {
        return Ok(None);
    };
    let is_few = found.len() <= 1 || found.len() * SHARE <= store.stream_count()?;
    Ok(Some(found.into_iter().collect()).filter(|_| is_few))
}

fn of(store: &Store, expr: &Expr) -> Result<Option<BTreeSet<StreamId>>, Error> {
    match expr {
        Expr::Term(Term::File(globs)) => {
            let ends = globs.patterns().iter().map(|pattern| end_of(pattern).map(from_its_end));
            named(store, NameKind::File, ends)
        }
        Expr::Term(Term::Call(globs)) => {
            let beginnings = globs.patterns().iter().map(|pattern| beginning_of(pattern).map(str::to_owned));
            named(store, NameKind::Call, beginnings)
        }
        Expr::Term(Term::In(streams)) => Ok(Some((**streams).clone())),
        Expr::Term(_) | Expr::Not(_) => Ok(None),
        Expr::All(all) => {
            let mut fewest: Option<BTreeSet<StreamId>> = None;
            for expr in all {
                let found = of(store, expr)?;
                fewest = match (fewest, found) {
                    (Some(known), Some(found)) => Some(known.intersection(&found).copied().collect()),
                    (known, found) => known.or(found),
                };
            }
            Ok(fewest)
        }
        Expr::Any(any) => {
            let mut all = BTreeSet::new();
            for expr in any {
                let Some(found) = of(store, expr)? else { return Ok(None) };
                all.extend(found);
            }
            Ok(Some(all))
        }
    }
}

/// The streams that know a name which begins with one of these. `None`: some beginning is not known, or too common.
fn named(
    store: &Store,
    kind: NameKind,
    beginnings: impl Iterator<Item = Option<String>>,
) -> Result<Option<BTreeSet<StreamId>>, Error> {
    let Some(beginnings) = beginnings.collect::<Option<BTreeSet<String>>>() else { return Ok(None) };
    let mut all = BTreeSet::new();
    let mut last: Option<&str> = None;
    // In order, so that a beginning comes behind a shorter beginning of itself.
    for beginning in &beginnings {
        if last.is_some_and(|last| beginning.starts_with(last)) {
            continue;
        }
        last = Some(beginning);
        let Some(found) = store.bearers(kind, beginning, NAMED_COUNT_MAX)? else { return Ok(None) };
        all.extend(found);
    }
    Ok(Some(all))
}

/// The end that a path must have to fit a pattern; `None` if any end may fit.
fn end_of(pattern: &str) -> Option<&str> {
    let end = pattern.rsplit(['*', '?']).next()?;
    // `src/**` fits the files in the folder, `**/auth.rs` a bare `auth.rs` as well.
    let end = if end.len() < pattern.len() { end.trim_start_matches('/') } else { end };
    Some(end).filter(|end| !end.is_empty())
}

/// The beginning that a name must have to fit a pattern; `None` if any beginning may fit.
fn beginning_of(pattern: &str) -> Option<&str> {
    pattern.split(['*', '?']).next().filter(|beginning| !beginning.is_empty())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use acpdb_engine::Builder;
    use acpdb_engine::entry::{Entry, StreamInfo};
    use acpdb_engine::ids::{Micros, Seq};
    use acpdb_engine::testing::TestTools;

    use super::*;
    use crate::EventsQuestion;

    #[test]
    fn patterns_say_how_a_name_ends_or_begins() {
        for (pattern, end, beginning) in [
            ("src/auth.rs", Some("src/auth.rs"), Some("src/auth.rs")),
            ("**/src/auth.rs", Some("src/auth.rs"), None),
            ("*.rs", Some(".rs"), None),
            ("src/**", None, Some("src/")),
            ("src/?.rs", Some(".rs"), Some("src/")),
            ("**", None, None),
            ("toolu_01*", None, Some("toolu_01")),
        ] {
            assert_eq!((end_of(pattern), beginning_of(pattern)), (end, beginning), "{pattern}");
        }
    }

    fn builder(folder: &tempfile::TempDir) -> Builder {
        Store::builder(folder.path().join("store")).registry(Arc::new(TestTools))
    }

    /// Calls of many sessions, few of which name the same file; enough of them for an index.
    fn fill(store: &Store) {
        for session in 0..40 {
            let info = StreamInfo {
                cwd: Some(format!("/home/dev/app-{session}")),
                ..StreamInfo::session("host", format!("s{session}"))
            };
            let mut entries = Vec::new();
            for number in 0..60 {
                let call = format!("call-{session}-{number}");
                let file = match (session, number) {
                    (3 | 17, 5) => "src/auth.rs".to_owned(),
                    (21, 5) => "src/ä/übung.rs".to_owned(),
                    (30, 5) => format!("src/{}/deep.rs", "long/".repeat(200)),
                    _ => format!("src/file-{}.rs", number % 20),
                };
                entries.push(Entry::tool_started(&call, "read", format!(r#"{{"filePath":"{file}"}}"#)));
                entries.push(Entry::tool_completed(&call, format!("text of {file}")));
            }
            let _ = store.append(&info, entries).unwrap();
        }
        // An end without a start.
        let orphan = Entry::tool_completed("call-orphan-1", "late");
        let _ = store.append(&StreamInfo::session("host", "s39"), vec![orphan]).unwrap();
        // Longer than names in the index may be, and alike up to there.
        for (session, end) in [("s11", "a"), ("s12", "b")] {
            let entry = Entry::tool_started(long_call(end), "read", r#"{"filePath":"x.rs"}"#);
            let _ = store.append(&StreamInfo::session("host", session), vec![entry]).unwrap();
        }
    }

    fn long_call(end: &str) -> String {
        format!("{}{end}", "ü".repeat(300))
    }

    /// The rows and how many events were looked at.
    fn ask(store: &Store, text: &str, reverse: bool) -> (Vec<Seq>, u64) {
        let filter = Filter::parse(text, Micros(0)).unwrap();
        let question = EventsQuestion { filter, reverse, ..EventsQuestion::default() };
        let mut rows = crate::events(store, question).unwrap();
        let found = rows.by_ref().map(|row| row.unwrap().seq).collect();
        (found, rows.scanned().events)
    }

    #[test]
    fn the_index_finds_the_same_events_and_looks_at_few() {
        let folder = tempfile::tempdir().unwrap();
        let open = |index| builder(&folder).index(index).open().unwrap();
        let store = open(true);
        fill(&store);
        assert!(store.wait_for_index(std::time::Duration::from_secs(60)));
        let plain = open(false);
        for (text, count, is_narrow) in [
            ("file:src/auth.rs", 2, true),
            ("file:auth.rs kind:tool", 2, true),
            ("file:/home/dev/app-17/src/auth.rs", 1, true),
            ("file:src/*/übung.rs", 1, true),
            ("file:long/deep.rs", 1, true),
            ("file:nowhere.rs", 0, true),
            ("call:call-39-1", 22, true),
            ("call:call-orphan-1", 1, true),
            // The index had no name of more than 512 bytes, and the call was not found.
            (&format!("call:{}", long_call("b")), 1, true),
            ("call:üü*", 2, true),
            ("(file:auth.rs or call:call-5-7)", 4, true),
            ("file:auth.rs or tool:nothing", 2, false),
            ("not file:auth.rs kind:tool", 4_801, false),
            ("file:file-3.rs", 120, false),
            ("file:src/**", 2_400, false),
            ("file:auth.rs -call:call-3-5", 1, true),
        ] {
            let head = store.head().unwrap().get();
            for reverse in [false, true] {
                let (found, looked) = ask(&store, text, reverse);
                assert_eq!(found, ask(&plain, text, reverse).0, "{text}");
                assert_eq!(found.len(), count, "{text}");
                assert_eq!(looked * 4 < head, is_narrow, "{text}: {looked} of {head}");
            }
        }
    }

    /// Events that were recorded since the index was written are found as well, by a handle that only has the index.
    #[test]
    fn events_that_the_index_does_not_have_yet_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let store = builder(&folder).open().unwrap();
        fill(&store);
        assert!(store.wait_for_index(std::time::Duration::from_secs(60)));
        drop(store);
        let writer = builder(&folder).index(false).open().unwrap();
        let start = Entry::tool_started("new", "read", r#"{"filePath":"src/auth.rs"}"#);
        let _ = writer.append(&StreamInfo::session("host", "s8"), vec![start]).unwrap();
        let reader = builder(&folder).open().unwrap();
        assert_eq!(ask(&reader, "file:auth.rs", false).0.len(), 3);
        assert_eq!(ask(&reader, "file:auth.rs", true).0, ask(&writer, "file:auth.rs", true).0);
    }
}
