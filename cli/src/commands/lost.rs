//! `acpdb lost`: what compactions took out of a context, and how it comes back.

use acpdb_live::lost::TOKENS_MAX;
use acpdb_query::lost::{LostAt, LostKind, LostRow, lost};
use serde::Serialize;

use super::again::{opening, resuming};
use super::lines::{clip_path, cut, one_line};
use super::{Code, Failure, Global, Output, describe, find, search};
use crate::args::LostArgs;

/// A row, with the ways back.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    row: &'a LostRow,
    /// The query by which the tool `recall` returns its text.
    recall: &'a str,
    show: String,
}

/// The answer, for programs.
#[derive(Serialize)]
struct LostResult<'a> {
    session: &'a str,
    host: &'a str,
    compactions: &'a [LostAt],
    items: Vec<Listed<'a>>,
    /// The command by which the host opens the session.
    opens: Option<String>,
    /// The command that writes it as it was before the newest compaction.
    resumes: Option<String>,
}

fn listed(row: &LostRow) -> Listed<'_> {
    Listed { row, recall: &row.item, show: format!("acpdb show '{}'", row.item) }
}

pub(crate) fn run(global: &Global, args: &LostArgs, output: &mut Output) -> Result<Code, Failure> {
    let (store, session, view) = find::opened(global, args.session.name(global), output)?;
    let found = lost(&store, &view, &session)?;
    if args.index {
        let index = found.index(TOKENS_MAX).unwrap_or_default();
        if index.is_empty() {
            output.note(format!("no compaction took anything of {}", session.name));
        } else {
            let index = output.recorded(index.trim_end(), super::EscapeLevel::Text).into_owned();
            output.line(index)?;
        }
        return Ok(Code::Ok);
    }
    let limit = args.limit.unwrap_or(usize::MAX);
    let of = |kind: LostKind| found.rows.iter().filter(move |row| row.kind == kind);
    let resumes = found.compactions.last().map(|last| resuming(&session, last.seq.before().get()));
    if output.json {
        let answer = LostResult {
            session: &session.name,
            host: &session.host,
            compactions: &found.compactions,
            items: LostKind::ALL.into_iter().flat_map(|kind| of(kind).take(limit)).map(listed).collect(),
            opens: opening(&session),
            resumes,
        };
        return output.json_object("acpdb.lost/1", &answer);
    }
    let title = acpdb_query::titles::title_of(&store, &session, None)?;
    search::heading(&one_line(&session.name), &session, title.as_deref(), output)?;
    let Some(last) = found.compactions.last() else {
        output.note("no compaction took anything out of its context");
        return Ok(Code::Ok);
    };
    output.line(format!(
        "{} took {}, ~{} tokens; the newest is {} in turn {}",
        describe::count(found.compactions.len() as u64, "compaction"),
        describe::count(found.items(), "item"),
        describe::tokens(found.tokens()),
        last.seq,
        last.turn
    ))?;
    for kind in LostKind::ALL {
        let count = of(kind).count();
        if count == 0 {
            continue;
        }
        let more = if count > limit { format!(" ({limit} of {count})") } else { String::new() };
        output.line(format!("\n{}{more}", output.paint(describe::BOLD, kind.heading())))?;
        for row in of(kind).take(limit) {
            print(row, output)?;
        }
    }
    let way = of(LostKind::File).chain(&found.rows).next().map_or("ID", |row| &row.item);
    output.line("")?;
    ways(way, found.rows.iter().any(|row| row.is_hidden), output)?;
    for command in opening(&session).into_iter().chain(resumes) {
        let line = output.recorded(&command, super::EscapeLevel::Line).into_owned();
        output.styled(describe::DIM, line)?;
    }
    Ok(Code::Ok)
}

fn ways(item: &str, has_hidden: bool, output: &mut Output) -> Result<(), Failure> {
    output
        .styled(describe::DIM, format!("acpdb show '{item}'   (the model: the tool recall with {item})"))?;
    if has_hidden {
        output.styled(
            describe::DIM,
            format!("acpdb context restore '{item}'   (it is hidden, and in the context)"),
        )?;
    }
    Ok(())
}

fn print(row: &LostRow, output: &mut Output) -> Result<(), Failure> {
    let state = row.state.as_deref().map(|state| format!("{:<8} ", one_line(state))).unwrap_or_default();
    let count = if row.count > 1 { format!("  {}x", row.count) } else { String::new() };
    let tail = format!("{count}  {}", describe::tokens(row.tokens));
    let item = format!("{:<7}", row.item);
    let room = output.room(item.len() + state.len() + tail.len() + 10).max(20);
    let text = clip_path(&one_line(&row.text), room);
    let (item, tail) = (output.paint(describe::SEQ, &item), output.paint(describe::DIM, &tail));
    output.line(cut(&format!("  {item} t{:<4} {state}{text}{tail}", row.turn), output))
}
