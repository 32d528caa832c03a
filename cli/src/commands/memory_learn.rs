//! Suggestions for memory: `acpdb memory propose` from messages, `acpdb memory insights` from the history of items.

use acpdb_engine::MemoryScope;
use acpdb_engine::fold::memory::{MemoryInsights, kind_label, lifespan_label};
use acpdb_engine::ids::StreamId;
use acpdb_query::propose::{self as proposals, SessionProposal};
use serde_json::{Value, json};

use super::lines::{clip, one_line};
use super::memory_scope::{GivenScope, by_edge, each_store, said};
use super::{Code, Failure, Global, Output, describe, store_path};
use crate::args::MemoryPropose;
use crate::several::{self, ReadStores};

/// Most proposals that are listed.
const PROPOSAL_COUNT_MAX: usize = 1000;

fn proposal_json(number: usize, proposal: &SessionProposal) -> Value {
    let SessionProposal { source, role, proposal } = proposal;
    let ids =
        |known: &[proposals::ReferencedItem]| known.iter().map(|known| known.id.clone()).collect::<Vec<_>>();
    json!({
        "number": number,
        "source": source.to_string(),
        "role": role,
        "rule": proposal.rule,
        "kind": proposal.item.kind,
        "category": proposal.item.category,
        "key": proposal.item.key,
        "subject": proposal.item.subject,
        "value": proposal.item.value,
        "confidence": f64::from(proposal.item.confidence) / 100.0,
        "lifespan": proposal.item.lifespan,
        "supersedes": ids(&proposal.supersedes),
        "reinforces": proposal.reinforces.as_ref().map(|known| known.id.clone()),
        "ask": proposal.ask,
        "start": proposal.start,
        "end": proposal.end,
        "sentence": proposal.sentence,
    })
}

pub(crate) fn propose(global: &Global, args: &MemoryPropose, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let open = if args.accept.is_empty() { store_path::read } else { store_path::write };
    let store = open(global, output)?;
    let session = super::session::default_session_noted(&store, args.session.name(global), output)?;
    let mut found = proposals::of_session(&store, session.id)?;
    if found.len() > PROPOSAL_COUNT_MAX {
        output.note(format!("the first {PROPOSAL_COUNT_MAX} of {} proposals", found.len()));
        found.truncate(PROPOSAL_COUNT_MAX);
    }
    if !args.accept.is_empty() {
        let chosen = chosen(&args.accept, &found)?;
        let scope = MemoryScope::session(session.id);
        let mut receipts = Vec::new();
        for proposal in &chosen {
            let command = proposals::acceptance(&store, session.id, proposal)?;
            receipts.push(store.remember(&scope, &command)?);
        }
        for receipt in &receipts {
            let what = if receipt.item.is_some() { "recorded" } else { "known already: reinforced" };
            said(&store, global, &scope, receipt, (what, by_edge), output)?;
        }
        return Ok(Code::Ok);
    }
    if output.json {
        let items: Vec<Value> =
            found.iter().zip(1..).map(|(proposal, number)| proposal_json(number, proposal)).collect();
        return output.json_items("acpdb.memory_propose/1", &items);
    }
    if found.is_empty() {
        output.note("the messages suggest nothing to remember");
    }
    for (proposal, number) in found.iter().zip(1..) {
        let SessionProposal { source, proposal, .. } = proposal;
        let item = &proposal.item;
        let place = match &item.key {
            Some(key) => format!("{}/{key}", item.category),
            None => item.category.clone(),
        };
        let seq = output.paint(describe::SEQ, &source.to_string());
        let value = clip(&one_line(&item.value), output.room(40).max(20));
        let kind = kind_label(item.kind);
        output.line(format!("{number:>3}  {seq}  {kind} {} = {value}", one_line(&place)))?;
        let mut effects: Vec<String> = Vec::new();
        effects.extend(proposal.reinforces.iter().map(|known| format!("reinforces {}", one_line(&known.id))));
        effects.extend(proposal.supersedes.iter().map(|known| format!("supersedes {}", one_line(&known.id))));
        if proposal.ask {
            effects.push("changed often: ask first".to_owned());
        }
        let lifespan = item.lifespan.map(lifespan_label).unwrap_or_default();
        let effects = if effects.is_empty() { String::new() } else { format!(", {}", effects.join(", ")) };
        let about = format!(
            "{}, {lifespan}, {:.2}{effects}",
            proposal.rule.label(),
            f64::from(item.confidence) / 100.0
        );
        output.styled(describe::DIM, format!("     {about}: {}", clip(&one_line(&proposal.sentence), 70)))?;
    }
    if !found.is_empty() {
        output.flush()?;
        output.note(format!("record them: acpdb memory propose {} --accept NUMBER.. (or all)", session.name));
    }
    Ok(Code::Ok)
}

/// The proposals that `--accept` names, in order, each once.
fn chosen(accept: &[String], found: &[SessionProposal]) -> Result<Vec<SessionProposal>, Failure> {
    if accept.iter().any(|text| text == "all") {
        return Ok(found.to_vec());
    }
    let mut numbers = std::collections::BTreeSet::new();
    for text in accept.iter().flat_map(|text| text.split(',')).filter(|text| !text.is_empty()) {
        // A text that is no number of the list is refused below.
        let number = text.trim().parse::<usize>().ok().filter(|number| (1..=found.len()).contains(number));
        let wrong = || {
            let failure = Failure::usage(format!("--accept: {text:?} is no number of a proposal"));
            failure.hint(format!("there are {}; give numbers from the list, or all", found.len()))
        };
        numbers.insert(number.ok_or_else(wrong)?);
    }
    Ok(numbers.into_iter().filter_map(|number| found.get(number - 1).cloned()).collect())
}

/// The insights into the memory of a stream, with the stream's name.
type Insight = (StreamId, String, MemoryInsights);

pub(crate) fn insights(
    global: &Global,
    asked: &GivenScope<'_>,
    output: &mut Output,
) -> Result<Code, Failure> {
    let stores = ReadStores::open(global, output)?;
    let (found, code) = each_store(&stores, global, asked, output, |store, scopes, open| {
        let names = describe::StreamNames::new(store);
        let mut all: Vec<Insight> = Vec::new();
        for (_, scope) in &scopes {
            all.extend(open(scope)?.read(|view| {
                let insights = view.streams().map(|(layer, memory)| {
                    (layer.stream, names.full(layer.stream), memory.insights(view.now()))
                });
                insights.collect::<Vec<_>>()
            }));
        }
        // Items of no project are seen from each, and told once.
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|(stream, ..)| seen.insert(*stream));
        Ok((all, scopes.len()))
    })?;
    let is_of_many = stores.count() > 1 || found.iter().any(|(_, (_, scopes))| *scopes > 1);
    let all: Vec<(usize, Insight)> = found
        .into_iter()
        .flat_map(|(place, (all, _))| all.into_iter().map(move |one| (place, one)))
        .collect();
    if output.json {
        let item = |(place, (stream, name, insights)): &(usize, Insight)| {
            let item = describe::with(json!(insights), json!({"stream": stream, "name": name}));
            several::with_store(item, stores.label(*place))
        };
        output.json_items("acpdb.memory_insights/1", &all.iter().map(item).collect::<Vec<Value>>())?;
        return Ok(code);
    }
    let ids = |list: &[String]| list.iter().map(|id| one_line(id)).collect::<Vec<_>>();
    let mut any = false;
    for (place, (_, name, insights)) in &all {
        let mut heading = is_of_many.then(|| one_line(&stores.qualified(*place, name)));
        let mut section = |title: &str, lines: Vec<String>| -> Result<(), Failure> {
            if lines.is_empty() {
                return Ok(());
            }
            any = true;
            if let Some(heading) = heading.take() {
                output.line(heading)?;
            }
            output.styled(describe::BOLD, title)?;
            lines.into_iter().try_for_each(|line| output.line(format!("  {line}")))
        };
        let unstable = insights.unstable.iter().map(|it| {
            format!(
                "{}/{}: {} times ({})",
                one_line(&it.category),
                one_line(&it.key),
                it.supersessions,
                ids(&it.items).join(" → ")
            )
        });
        section("changed again and again", unstable.collect())?;
        let returned = insights.returned.iter().map(|it| {
            format!(
                "{}/{}: {} has the value of {} again",
                one_line(&it.category),
                one_line(&it.key),
                one_line(&it.again),
                one_line(&it.before)
            )
        });
        section("came back to an earlier value", returned.collect())?;
        section(
            "decided again and again",
            insights.reversed.iter().map(|it| ids(&it.items).join(" → ")).collect(),
        )?;
        let contradicted = insights.contradicted.iter().map(|it| {
            format!("{} {}: {}", one_line(&it.category), one_line(&it.subject), ids(&it.items).join(" → "))
        });
        section("contradicted", contradicted.collect())?;
        section("older than 30 days and never confirmed", ids(&insights.unconfirmed))?;
    }
    if !any {
        output.note("nothing stands out");
    }
    Ok(code)
}
