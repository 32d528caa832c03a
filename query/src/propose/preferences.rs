//! Preferences that a message states: the first name of each key that the speaker uses or likes.

use super::says::is_said;
use super::scan::{Gap, TokenScan};
use super::table::{PreferenceTable, TableHit};

/// The first name that counts for each rule of the table, in the table's order.
///
/// `is_corrected` says whether a hit belongs to a correction.
pub(super) fn find<'p>(
    scan: &TokenScan<'_>,
    table: &'p PreferenceTable,
    is_corrected: impl Fn(&TableHit<'_>) -> bool,
) -> Vec<TableHit<'p>> {
    let hits = table.names_in(scan);
    let mut first: Vec<Option<TableHit<'p>>> = vec![None; table.rules.len()];
    for hit in &hits {
        let counts = || is_said(scan, hit, &hits) && !is_denied(scan, hit.start) && !is_corrected(hit);
        if let Some(slot) = first.get_mut(hit.number).filter(|slot| slot.is_none())
            && counts()
        {
            *slot = Some(hit.clone());
        }
    }
    first.into_iter().flatten().collect()
}

/// Whether the name at `index` stands just after a word that turns it down.
fn is_denied(scan: &TokenScan<'_>, index: usize) -> bool {
    // `don't use "npm"`: up to three quotation marks may stand before the name.
    let mut before = index;
    for _ in 0..3 {
        let is_quote = before.checked_sub(1).and_then(|last| scan.token(last)).is_some_and(|token| {
            matches!(token.text, "\"" | "'" | "`" | "“" | "”" | "‘" | "’" | "*" | "(")
                && scan.gap(before) == Gap::None
        });
        if !is_quote {
            break;
        }
        before -= 1;
    }
    let ends_with = |end: usize, phrase: &str, tokens: usize| {
        end.checked_sub(tokens).is_some_and(|start| scan.phrase(start, phrase) == Some(end))
    };
    let is_denied_before = |end: usize| {
        [("not", 1), ("never", 1), ("don't", 3), ("dont", 1), ("instead of", 2), ("rather than", 2)]
            .iter()
            .any(|(phrase, tokens)| ends_with(end, phrase, *tokens))
    };
    let verb = before.checked_sub(1).filter(|verb| scan.is_one_of(*verb, &["use", "using", "like", "want"]));
    is_denied_before(before) || verb.is_some_and(is_denied_before)
}
