//! A kind of a host's facts is told in five places: what the host says, what is kept, the row that joins the two, what the
//! fold does with it, and who makes it.
//!
//! ```text
//! entry/fact/X.rs   the fact's struct, and all that is asked of it
//! event/X.rs        the event's struct, and all that is asked of it
//! event/mod.rs      its row
//! fold/apply/intake.rs
//! an importer, or a call of the session's handle
//! ```

use std::io;

use super::source::{CRATES, files, is_word, root};
use super::{production, report};

/// The list of kinds.
const LIST: &str = "engine/src/event/mod.rs";
/// The file in which the fold takes each kind.
const FOLD: &str = "engine/src/fold/apply/intake.rs";
/// Where facts and events have their structs.
const FACTS: &str = "engine/src/entry/fact/";
const EVENTS: &str = "engine/src/event/";

/// A row of the list: the event's name, and the fact's.
struct Row<'a> {
    event: &'a str,
    fact: &'a str,
}

fn rows(list: &str) -> Vec<Row<'_>> {
    let row = |line| {
        let words: Vec<&str> = str::split_whitespace(line).collect();
        match words.as_slice() {
            [_, event, _, "from", fact] => Some(Row { event, fact: fact.trim_end_matches(',') }),
            _ => None,
        }
    };
    list.lines().filter_map(row).collect()
}

fn has_word(code: &str, word: &str) -> bool {
    code.match_indices(word)
        .any(|(at, _)| !code[..at].ends_with(is_word) && !code[at + word.len()..].starts_with(is_word))
}

#[test]
fn a_kind_of_a_hosts_facts_is_told_in_five_places() -> io::Result<()> {
    let list = std::fs::read_to_string(root().join(LIST))?;
    let rows = rows(&list);
    assert!(rows.len() >= 20, "the list in {LIST} was not found");
    let all = files()?;
    let code: Vec<(String, String)> = CRATES.iter().flat_map(|folder| production(&all, folder)).collect();
    let mut findings = Vec::new();
    for Row { event, .. } in &rows {
        let among = |folder: &str, needle: String| -> usize {
            let inside = code.iter().filter(|(path, _)| path.starts_with(folder));
            inside.map(|(_, code)| code.matches(&needle).count()).sum()
        };
        // A fact has a list of fields, or says how it is kept.
        for (folder, needles) in [
            (EVENTS, vec![format!("impl EventKind for {event} ")]),
            (FACTS, vec![format!("fields!({event} {{"), format!("type Kept = event::{event};")]),
        ] {
            let count: usize = needles.iter().map(|needle| among(folder, needle.clone())).sum();
            if count != 1 {
                findings.push(format!("{folder} does not have `{}` once", needles.join("` or `")));
            }
        }
    }
    // A file that tells most kinds is one that a new kind has to be written into.
    for (path, code) in &code {
        let told = rows.iter().filter(|row| {
            ["Payload::", "Fact::", "fact::"].iter().any(|from| {
                has_word(code, &format!("{from}{}", row.event))
                    || has_word(code, &format!("{from}{}", row.fact))
            })
        });
        let told = told.count();
        if path != FOLD && told * 3 > rows.len() * 2 {
            findings.push(format!("{path} tells {told} of {} kinds", rows.len()));
        }
    }
    // The kind that nothing but its places names. It was in eleven files when each question had a list of its own.
    let spare: Vec<&str> = code
        .iter()
        .filter(|(_, code)| has_word(code, "MessageAbandoned"))
        .map(|(path, _)| path.as_str())
        .collect();
    let wanted = [
        "engine/src/entry/fact/message.rs",
        "engine/src/event/message.rs",
        LIST,
        FOLD,
        "engine/src/store/session_message.rs",
    ];
    let more = spare.iter().filter(|path| !wanted.contains(path));
    // An importer names what it tells.
    let more = more.filter(|path| !path.starts_with("hosts/src/import/"));
    findings.extend(more.map(|path| format!("{path} names MessageAbandoned")));
    report(
        findings,
        "ask the kind: a method of `Kind` (engine/src/event/kind.rs) or of `HostFact` (engine/src/entry/fact/mod.rs).",
    );
    Ok(())
}
