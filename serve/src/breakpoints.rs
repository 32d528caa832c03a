//! The places up to which a provider's cache is told to keep a request.
//!
//! ```text
//! items   [turn 1 .. ][turn 2 .. ][turn 3 .. ][turn 4 .. ]
//!                    |  changed in turn 3    |           |       after turns 2, 3 and 4
//! ```
//!
//! Some providers keep a prefix only where they are told to, and read it again only from there. So the ends of the last two turns
//! are named; if a rewrite begins further up, also the last end before it: up to there the cache can still be read.

/// Numbers of items after which a mark pays, first to last. `turns`: the turn of each item, in the order in which they are
/// sent; `first_changed`: the first item that differs from the ones sent before.
///
/// Cost: O(items).
///
/// ```
/// use acpdb_serve::breakpoints::breakpoints;
///
/// assert_eq!(breakpoints(&[1, 1, 2, 3, 3], 5), [3, 5]);
/// assert_eq!(breakpoints(&[1, 1, 2, 3, 3], 2), [2, 3, 5]);
/// ```
pub fn breakpoints<T: PartialEq>(turns: &[T], first_changed: usize) -> Vec<usize> {
    let changes = turns.windows(2).zip(1..).filter(|(pair, _)| pair.first() != pair.last());
    let mut ends: Vec<usize> = changes.map(|(_, end)| end).collect();
    ends.extend((!turns.is_empty()).then_some(turns.len()));
    let mut marks: Vec<usize> = ends.iter().rev().take(2).rev().copied().collect();
    // Behind the first change nothing is in the cache; the last two ends are new then.
    let kept = ends.iter().rev().find(|end| **end <= first_changed);
    if let Some(kept) = kept.filter(|kept| !marks.contains(kept)) {
        marks.insert(0, *kept);
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::breakpoints;

    #[test]
    fn ends_of_turns_are_marked() {
        let none: [usize; 0] = [];
        for (turns, first_changed, marks) in [
            (&[][..], 0, &none[..]),
            (&[1], 0, &[1]),
            (&[1, 1, 1], 3, &[3]),
            (&[1, 2], 2, &[1, 2]),
            (&[1, 2, 3, 4], 4, &[3, 4]),
            (&[1, 2, 3, 4], 3, &[3, 4]),
            (&[1, 2, 3, 4], 2, &[2, 3, 4]),
            (&[1, 2, 2, 3, 4], 2, &[1, 4, 5]),
            (&[1, 2, 3, 4], 0, &[3, 4]),
        ] {
            assert_eq!(breakpoints(turns, first_changed), marks, "{turns:?} {first_changed}");
        }
    }
}
