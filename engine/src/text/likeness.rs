//! Names that were perhaps meant, for messages that say so.
//!
//! Comparing two names costs the product of their lengths, and a name that is asked for comes from anywhere, such as from a model. So only
//! the beginnings of names are compared.

use super::first_bytes;

/// The bytes of a name that are compared.
const COMPARED_BYTES_MAX: usize = 256;

/// How like two names are, 0 to 1: letters in common, and more for the same beginning (Jaro and Winkler).
pub fn likeness(left: &str, right: &str) -> f64 {
    let [left, right] = [left, right].map(|name| first_bytes(name, COMPARED_BYTES_MAX));
    strsim::jaro_winkler(left, right)
}

/// The share of letters that stay, 0 to 1, where one name becomes the other by the fewest edits (Damerau and Levenshtein).
pub fn kept_share(left: &str, right: &str) -> f64 {
    let [left, right] = [left, right].map(|name| first_bytes(name, COMPARED_BYTES_MAX));
    strsim::normalized_damerau_levenshtein(left, right)
}

/// The name that is most like `asked`, if one is like it by more than `least` (of 1): perhaps the name that was meant.
///
/// # Examples
/// ```
/// use acpdb_engine::text::likeness::nearest;
///
/// assert_eq!(nearest(["pager", "color"], "colour", 0.7), Some("color"));
/// assert_eq!(nearest(["pager"], "colour", 0.7), None);
/// ```
pub fn nearest<N: AsRef<str>>(names: impl IntoIterator<Item = N>, asked: &str, least: f64) -> Option<N> {
    nearest_by(names, least, |name| likeness(name, asked))
}

/// As [`nearest`], by a likeness of the caller's.
pub fn nearest_by<N: AsRef<str>>(
    names: impl IntoIterator<Item = N>,
    least: f64,
    likeness: impl Fn(&str) -> f64,
) -> Option<N> {
    let names = names.into_iter().map(|name| (likeness(name.as_ref()), name));
    let near = names.filter(|(likeness, _)| *likeness > least);
    near.max_by(|left, right| left.0.total_cmp(&right.0)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_costs_no_more_than_its_beginning() {
        // If all of the names were compared, these were twenty thousand million comparisons.
        let names: Vec<String> = (0..200).map(|number| format!("{number}{}", "b".repeat(10_000))).collect();
        let asked = "7b".to_owned() + &"b".repeat(10_000);
        assert_eq!(nearest(&names, &asked, 0.9).map(|name| name.get(..2)), Some(Some("7b")));
        assert!(kept_share(&asked, "a") < 0.1);
        assert!(likeness(&"é".repeat(10_000), "é") > 0.0, "a letter of two bytes is never cut");
    }
}
