//! Chains of memory, drawn: items with the items that replaced them, oldest first.
//!
//! ```text
//! tooling/package_manager
//! ○ p1  #12  2026-01-31  npm    superseded by p2 (key)
//! ● p2  #40  2026-02-02  pnpm   current 0.80
//! ```

use std::collections::BTreeSet;

use acpdb_engine::fold::memory::MemoryEdge;
use acpdb_engine::ids::StreamId;
use acpdb_engine::{MemoryScope, Store};
use serde_json::{Value, json};

use super::lines::{clip, one_line, pad};
use super::memory_rows::{RememberedItem, RowWords as _};
use super::memory_scope::{GivenScope, ScopeMemory, all_of, miss, scopes};
use super::{Code, Failure, Global, Output, describe, store_path};
use crate::args::MemoryKey;
use crate::several::{self, ReadStores};

/// A member of a chain: an item, or an id that only edges name.
struct ChainRow {
    id: String,
    row: Option<RememberedItem>,
}

/// The chain that one name leads to.
struct NamedChain {
    /// The store's name, where there are several.
    store: Option<String>,
    title: String,
    members: Vec<ChainRow>,
    edges: Vec<(MemoryEdge, Option<String>)>,
}

/// `acpdb memory history KEY`.
pub(crate) fn of_scope(
    global: &Global,
    asked: &GivenScope<'_>,
    args: &MemoryKey,
    output: &mut Output,
) -> Result<Code, Failure> {
    let stores = ReadStores::open(global, output)?;
    let Some(store) = stores.only() else { return of_several(&stores, global, asked, args, output) };
    if all_of(store, asked, output)?.len() > 1 {
        return history(global, &args.key, None, output);
    }
    let opened = ScopeMemory::new(store, global, asked, output)?;
    let chains = chains(&opened, &args.key);
    if chains.is_empty() {
        return Err(miss(&opened.rows(), &args.key));
    }
    print(&chains, output)
}

/// The chains of several stores, each with its store: of all projects, or of the one that is named.
fn of_several(
    stores: &ReadStores,
    global: &Global,
    asked: &GivenScope<'_>,
    args: &MemoryKey,
    output: &mut Output,
) -> Result<Code, Failure> {
    let moment = several::moment(global)?;
    let (told, code) = stores.each(output, |store| {
        let Some(end) = several::end(store, moment)? else { return Ok((Vec::new(), Vec::new())) };
        let scopes = match asked.project {
            Some(project) => vec![MemoryScope::project(project)],
            None => scopes(store, None)?,
        };
        let at = (end, moment.unwrap_or_else(super::at::now));
        in_scopes(&scopes, &args.key, &|scope| ScopeMemory::at(store, scope, at))
    })?;
    let (mut found, mut rows) = (Vec::new(), Vec::new());
    for (place, (chains, others)) in told {
        let store = stores.label(place).map(str::to_owned);
        found.extend(chains.into_iter().map(|chain| NamedChain { store: store.clone(), ..chain }));
        rows.extend(others);
    }
    if found.is_empty() {
        return Err(miss(&rows, &args.key));
    }
    print(&found, output)?;
    Ok(code)
}

/// Over all projects and sessions, or one session's.
fn history(global: &Global, key: &str, session: Option<&str>, output: &mut Output) -> Result<Code, Failure> {
    let store = store_path::read(global, output)?;
    let (found, rows) = everywhere(&store, global, key, session)?;
    if found.is_empty() {
        return Err(miss(&rows, key));
    }
    print(&found, output)
}

/// The chain of `history --chain`; `None` if no memory has an item of that name.
pub(crate) fn of_chain(
    store: &Store,
    global: &Global,
    name: &str,
    session: Option<&str>,
    output: &mut Output,
) -> Result<Option<Code>, Failure> {
    let (found, _) = everywhere(store, global, name, session)?;
    if found.is_empty() { Ok(None) } else { print(&found, output).map(Some) }
}

/// The chains through a name over all projects and sessions, each once; if there are none, all items instead.
fn everywhere(
    store: &Store,
    global: &Global,
    key: &str,
    session: Option<&str>,
) -> Result<(Vec<NamedChain>, Vec<RememberedItem>), Failure> {
    in_scopes(&scopes(store, session)?, key, &|scope| ScopeMemory::of(store, global, scope))
}

fn in_scopes<'s>(
    scopes: &[MemoryScope],
    key: &str,
    open: &dyn Fn(&MemoryScope) -> Result<ScopeMemory<'s>, Failure>,
) -> Result<(Vec<NamedChain>, Vec<RememberedItem>), Failure> {
    let mut found = Vec::new();
    let mut rows = Vec::new();
    let mut drawn = BTreeSet::new();
    for scope in scopes {
        let opened = open(scope)?;
        for chain in chains(&opened, key) {
            // A session also sees the chains of its project.
            let items: Vec<_> =
                chain.members.iter().filter_map(|member| Some(member.row.as_ref()?.item)).collect();
            if drawn.insert(items) {
                found.push(chain);
            }
        }
        if found.is_empty() {
            rows.extend(opened.rows());
        }
    }
    Ok((found, rows))
}

/// The chains through the items that a name means; items of one key that no edge joins (retracted, then recorded anew) are one
/// chain.
fn chains(opened: &ScopeMemory<'_>, name: &str) -> Vec<NamedChain> {
    let rows = opened.rows();
    let mut groups: Vec<(StreamId, String, Vec<&RememberedItem>)> = Vec::new();
    for row in opened.named(&rows, name) {
        let title =
            if row.key.is_some() { row.place() } else { format!("{} {}", row.label(), one_line(&row.id)) };
        match groups.iter_mut().find(|(stream, known, _)| *stream == row.stream && *known == title) {
            Some((_, _, group)) => group.push(row),
            None => groups.push((row.stream, title, vec![row])),
        }
    }
    let texts = |body| opened.text(body);
    opened.read(|view| {
        groups
            .into_iter()
            .filter_map(|(stream, title, group)| {
                let (_, memory) = view.stream(stream)?;
                let mut chain = NamedChain { store: None, title, members: Vec::new(), edges: Vec::new() };
                let mut known = BTreeSet::new();
                let mut drawn = BTreeSet::new();
                for row in group {
                    if drawn.contains(&row.item) {
                        continue;
                    }
                    let Some(item) = memory.all().into_iter().find(|item| item.item() == row.item) else {
                        continue;
                    };
                    let linked = memory.chain(&item);
                    for member in linked.members {
                        let item = member.item.map(|item| item.item());
                        drawn.extend(item);
                        if known.insert((item, member.id.clone())) {
                            let row =
                                member.item.map(|item| RememberedItem::new(view, stream, &item, &texts));
                            chain.members.push(ChainRow { id: member.id, row });
                        }
                    }
                    // Those of this chain differ from each other.
                    let before = chain.edges.len();
                    for edge in linked.edges {
                        let earlier = chain.edges.get(..before).unwrap_or_default();
                        if !earlier.iter().any(|(known, _)| *known == edge) {
                            let reason = edge.reason.and_then(texts);
                            chain.edges.push((edge, reason));
                        }
                    }
                }
                Some(chain)
            })
            .collect()
    })
}

fn print(chains: &[NamedChain], output: &mut Output) -> Result<Code, Failure> {
    if output.json {
        let chains: Vec<Value> = chains
            .iter()
            .map(|chain| {
                let items: Vec<Value> =
                    chain.members.iter().map(|member| json!({"id": member.id, "item": member.row})).collect();
                let edges: Vec<Value> = chain
                    .edges
                    .iter()
                    .map(|(edge, reason)| {
                        let [old, new] =
                            [edge.old_item, edge.new_item].map(|item| item.map(|item| item.to_string()));
                        describe::with(
                            json!(edge),
                            json!({"time": describe::time(edge.said), "reason": reason, "old_item": old, "new_item": new}),
                        )
                    })
                    .collect();
                several::with_store(
                    json!({"title": chain.title, "items": items, "edges": edges}),
                    chain.store.as_deref(),
                )
            })
            .collect();
        return output.json_items("acpdb.memory_history/1", &chains);
    }
    for (number, chain) in chains.iter().enumerate() {
        if number > 0 {
            output.line("")?;
        }
        draw(chain, output)?;
    }
    Ok(Code::Ok)
}

fn draw(chain: &NamedChain, output: &mut Output) -> Result<(), Failure> {
    let store = chain.store.as_ref().map(|store| format!("{store}: ")).unwrap_or_default();
    output.styled(describe::BOLD, format!("{store}{}", chain.title))?;
    let widest = |width: &dyn Fn(&RememberedItem) -> usize| {
        chain.members.iter().filter_map(|member| member.row.as_ref()).map(width).max().unwrap_or_default()
    };
    let ids = chain
        .members
        .iter()
        .map(|member| one_line(&member.id).chars().count())
        .max()
        .unwrap_or_default()
        .min(32);
    let seqs = widest(&|row| row.item.to_string().len());
    let stands = 34;
    let room = output.room(ids + seqs + stands + 20).max(20);
    let values = widest(&|row| row.text().chars().count()).min(room);
    for member in &chain.members {
        let id = pad(&clip(&one_line(&member.id), ids), ids);
        let Some(row) = &member.row else {
            output.styled(describe::DIM, format!("◌ {id}  not recorded"))?;
            continue;
        };
        let by: Vec<String> = chain
            .edges
            .iter()
            // A revision has the id of the item that it revises.
            .filter(|(edge, _)| edge.old_item.map_or(edge.old == member.id, |old| old == row.item))
            .filter(|(edge, _)| edge.hides())
            .map(|(edge, reason)| {
                let why = reason.as_ref().map(|reason| format!(": {}", one_line(reason))).unwrap_or_default();
                format!("{} ({}){why}", one_line(&edge.new), rule(edge))
            })
            .collect();
        let standing = if by.is_empty() { row.stands() } else { format!("superseded by {}", by.join(", ")) };
        let (mark, style) =
            if row.holds() { ('●', describe::GOOD) } else { ('○', anstyle::Style::new()) };
        let seq = output.paint(describe::SEQ, &pad(&row.item.to_string(), seqs));
        let mark = output.paint(style, &mark.to_string());
        let value = pad(&clip(&row.text(), values), values);
        let standing = output.paint(if row.holds() { describe::GOOD } else { describe::DIM }, &standing);
        output.line(format!("{mark} {id}  {seq}  {}  {value}  {standing}", row.day()).trim_end())?;
    }
    for (edge, _) in chain.edges.iter().filter(|(edge, _)| !edge.hides()) {
        let why = match edge.released {
            Some(seq) => format!("released by {seq}"),
            None => "would close a circle; hides nothing".to_owned(),
        };
        let text = format!("  {} → {}: {why}", one_line(&edge.old), one_line(&edge.new));
        output.styled(describe::DIM, &text)?;
    }
    Ok(())
}

/// The reason of an edge, in a word.
fn rule(edge: &MemoryEdge) -> String {
    match serde_json::to_value(edge.rule) {
        Ok(Value::String(rule)) => rule,
        _ => String::new(),
    }
}
