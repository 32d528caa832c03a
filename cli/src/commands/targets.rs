//! Targets of acts on a context, as users type them.
//!
//! A target is a hash (`r_a1b2c`), a range (`812..840`, `r_a1b2c..e_4c5d6`), a pattern (`start...end`), an item (`#812.2`, and `812.2` or `@812.2`, as a shell takes `#` for
//! a comment), the id of a call, or the beginning of a hash or of such an id. Agents type hashes and patterns, and the engine
//! decides them; a text counts as a call's id only if it is neither. Other forms are those of `explain`.

use acpdb_engine::command::{Target, range_ends};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::store::StreamName;
use acpdb_engine::text::{HashTarget, Pattern};
use acpdb_engine::{Store, View};

use super::Failure;

/// The session of an act, in which typed words have a meaning.
pub(crate) struct Typed<'a> {
    pub(crate) store: &'a Store,
    pub(crate) session: &'a StreamName,
    /// The session before the act.
    pub(crate) view: View,
    pub(crate) head: Seq,
}

impl Typed<'_> {
    pub(crate) fn is_call(&self, text: &str) -> bool {
        !self.view.state().calls_by_host_id(text, Seq::MAX).is_empty()
    }

    /// The target of a text here, as [`acpdb_query::find`] finds it.
    pub(crate) fn read(&self, text: &str) -> Result<Target, Failure> {
        let target = target(text, &|text| self.is_call(text), self.head)?;
        match &target {
            Target::Item(item) if self.view.state().find(*item).is_none() => {
                // The end of a call means the call. The engine refuses an item that does not exist, or that is another session's.
                let found = acpdb_query::find(self.store, &item.to_string(), Some(self.session)).ok();
                let call = found.and_then(|it| it.view.state().item_id(it.ix?));
                Ok(call.map_or(target, Target::Item))
            }
            Target::Shown(text) if !is_typed(text) && Pattern::parse(text).is_none() && !text.is_empty() => {
                let found =
                    acpdb_query::find(self.store, text, Some(self.session)).map_err(super::find::failure)?;
                Ok(Target::Item(found.item))
            }
            _ => Ok(target),
        }
    }
}

/// An item's id for a shell, which would take `#` for the beginning of a comment.
pub(crate) fn bare(item: impl std::fmt::Display) -> String {
    item.to_string().trim_start_matches('#').to_owned()
}

/// Whether a text is a hash in a form that no other name has.
pub(crate) fn is_hash(text: &str) -> bool {
    HashTarget::parse(text.trim()).is_some_and(|hash| !hash.is_doubtful())
}

/// Whether a text is in a form that agents type; the engine decides it.
fn is_typed(text: &str) -> bool {
    text.contains("...") || is_hash(text) || range_ends(text).is_some()
}

/// The item that `#812`, `@812` or `812` names. Bare digits above the newest seq may be a hash or a host's id.
fn numbered(text: &str, head: Seq) -> Result<Option<ItemId>, Failure> {
    let plain = text.trim();
    let is_marked = plain.starts_with(['#', '@']);
    match plain.strip_prefix('@').unwrap_or(plain).parse::<ItemId>() {
        Ok(item) if is_marked || item.seq <= head => Ok(Some(item)),
        Err(error) if plain.starts_with('#') && range_ends(plain).is_none() => {
            Err(Failure::usage(format!("{text:?} is no item: {error}")))
        }
        _ => Ok(None),
    }
}

/// The target of a text: a number means an item, the exact id of a call means the call, any other text its meaning for an agent.
fn target(text: &str, is_call: &dyn Fn(&str) -> bool, head: Seq) -> Result<Target, Failure> {
    if let Some(item) = numbered(text, head)? {
        return Ok(Target::Item(item));
    }
    if !is_typed(text) && is_call(text) {
        Ok(Target::Call(text.to_owned()))
    } else {
        Ok(Target::Shown(text.to_owned()))
    }
}

/// Splits `TARGET=SUMMARY`. A `=` before the dots of a pattern belongs to the pattern: it is split at the first `=` after them.
pub(crate) fn split_summary<'t>(text: &'t str, is_call: &dyn Fn(&str) -> bool) -> (&'t str, Option<&'t str>) {
    let halves = |from: usize| {
        let place = text.get(from..).and_then(|rest| rest.find('=')).map(|place| from + place);
        match place {
            Some(place) => (text.get(..place).unwrap_or_default(), text.get(place + 1..)),
            None => (text, None),
        }
    };
    let (name, summary) = halves(0);
    let is_number = matches!(numbered(name, Seq::MAX), Ok(Some(_)));
    let is_name = is_number
        || range_ends(name).is_some()
        || name.starts_with('#')
        || HashTarget::parse(name.trim()).is_some()
        || is_call(name);
    match text.find("...") {
        Some(dots) if !is_name => halves(dots),
        _ => (name, summary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_items_calls_hashes_or_patterns() {
        let is_call = |text: &str| text == "call_1" || text == "r_a1b2c";
        let kind = |text: &str| match target(text, &is_call, Seq(900)) {
            Ok(Target::Item(item)) => format!("item {item}"),
            Ok(Target::Call(call)) => format!("call {call}"),
            Ok(Target::Auto(text) | Target::Shown(text)) => format!("shown {text}"),
            Err(failure) => format!("error {}", failure.message),
        };
        for (text, meant) in [
            ("#812", "item #812"),
            ("#812.2", "item #812.2"),
            // A shell takes `#812` for a comment. Without its sign it was a text that matches nothing, and no error was shown.
            ("812", "item #812"),
            ("812.2", "item #812.2"),
            ("@812", "item #812"),
            ("@901", "item #901"),
            ("901", "shown 901"),
            ("812..840", "shown 812..840"),
            ("r_a1b2c..#840", "shown r_a1b2c..#840"),
            ("call_1", "call call_1"),
            ("call_2", "shown call_2"),
            ("r_a1b2c", "shown r_a1b2c"),
            ("start...end", "shown start...end"),
        ] {
            assert_eq!(kind(text), meant);
        }
        assert!(kind("#x").starts_with("error "), "{}", kind("#x"));
    }

    #[test]
    fn a_summary_follows_the_first_sign_that_is_not_of_the_pattern() {
        let is_call = |text: &str| text == "call_1";
        for (text, name, summary) in [
            ("r_a1b2c=a = b", "r_a1b2c", Some("a = b")),
            ("#8=x...y=z", "#8", Some("x...y=z")),
            ("8=x...y=z", "8", Some("x...y=z")),
            ("@8.2=s", "@8.2", Some("s")),
            ("call_1=s", "call_1", Some("s")),
            ("let a = 1...the end=short", "let a = 1...the end", Some("short")),
            ("a...b", "a...b", None),
            ("r_a1b2c", "r_a1b2c", None),
            ("r_a1b2c=", "r_a1b2c", Some("")),
        ] {
            assert_eq!(split_summary(text, &is_call), (name, summary), "{text}");
        }
    }
}
