//! Pointing at birth: lines of a new output that the model still sees elsewhere become a short pointer, before the
//! output is first sent.
//!
//! ```text
//! seen     | a b c d e f g h ..|            seed: 5 equal lines, as they read without line numbers and trailing blanks
//! new      x y | a b c d e f g h | z   -->  x y [8 lines, the same as lines 1-8 of #12 above] z
//! ```
//!
//! Sent text does not change, so a pointer costs no rewrite. Pointers only name text that stands in full: never another
//! pointer. When the text that they name is hidden, they are text again (hiding rewrites the bytes that follow anyway).
//!
//! Lines are compared as text, never by hash alone. Pure; the order of everything is that of the texts given.

use std::fmt::Write as _;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use acpdb_engine::fold::Policy;
use acpdb_engine::text::tokens::estimate;

/// Equal lines that make a place worth a look.
const SEED_LINES: usize = 5;
/// Places that are looked at for a seed, the newest first.
const PLACE_COUNT_MAX: usize = 6;
/// Estimated tokens of a pointer.
pub const POINTER_TOKENS: u32 = 20;
/// Bytes from which on an output that is the same as another one is one pointer.
const WHOLE_BYTES_MIN: usize = 200;
/// Lines of a text that are looked at; later lines stay as they are.
const LINE_COUNT_MAX: usize = 200_000;

/// Limits for the pointers of one output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PointLimits {
    /// Estimated tokens that each must save.
    pub tokens_min: u32,
    /// Most of them.
    pub count_max: u32,
}

impl PointLimits {
    /// Limits for a hook: six pointers, each of which saves so many tokens.
    pub const fn of(tokens_min: u32) -> Self {
        Self { tokens_min, count_max: 6 }
    }

    /// The limits of a policy; `None` if it has no pointers, or no rule of its own acts.
    pub fn of_policy(policy: &Policy) -> Option<Self> {
        let serve = &policy.serve;
        let limits = Self { tokens_min: serve.pointing_tokens_min, count_max: serve.pointers_max };
        (policy.automatic && serve.pointing).then_some(limits)
    }
}

/// A text as lines to compare. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TextLines {
    inner: Arc<LineTable>,
}

#[derive(Debug)]
struct LineTable {
    text: String,
    lines: Vec<HashedLine>,
    /// Where the lines end; later ones are not looked at.
    end: usize,
}

#[derive(Clone, Copy, Debug)]
struct HashedLine {
    /// Where the line begins in the text, as recorded.
    start: u32,
    /// Where the compared part begins and ends.
    from: u32,
    to: u32,
    hash: u64,
}

impl HashedLine {
    /// The compared part of the line.
    fn compared<'t>(&self, text: &'t str) -> Option<&'t str> {
        text.get(self.from as usize..self.to as usize)
    }
}

/// Places are numbers of four bytes: there are many lines, and no body is longer.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl TextLines {
    /// Cuts a text into lines. Cost: O(bytes).
    pub fn of(text: impl Into<String>) -> Self {
        let text = text.into();
        let mut lines = Vec::new();
        let mut start = 0;
        for piece in text.split_inclusive('\n').take(LINE_COUNT_MAX) {
            let body = without_number(piece.trim_end());
            let end = start + piece.trim_end().len();
            let from = end - body.len();
            lines.push(HashedLine {
                start: place(start),
                from: place(from),
                to: place(end),
                hash: hash_of(body),
            });
            start += piece.len();
        }
        Self { inner: Arc::new(LineTable { text, lines, end: start }) }
    }

    /// The text as it was given.
    pub fn text(&self) -> &str {
        &self.inner.text
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.inner.lines.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.inner.lines.is_empty()
    }

    /// The lines as they are compared: without the number in front and without trailing blanks.
    pub fn compared(&self) -> impl Iterator<Item = &str> {
        self.inner.lines.iter().filter_map(|line| line.compared(&self.inner.text))
    }

    fn line(&self, at: usize) -> Option<(&HashedLine, &str)> {
        let line = self.inner.lines.get(at)?;
        Some((line, line.compared(&self.inner.text)?))
    }

    /// Estimated tokens of lines.
    fn tokens(&self, first: usize, count: usize) -> u32 {
        let start = |at: usize| self.inner.lines.get(at).map(|line| line.start as usize);
        let tokens = (first..first.saturating_add(count)).filter_map(|at| {
            let end = start(at + 1).unwrap_or(self.inner.end);
            self.inner.text.get(start(at)?..end).map(|line| estimate(line.as_bytes()))
        });
        tokens.fold(0, u32::saturating_add)
    }

    fn seed(&self, at: usize) -> Option<u64> {
        use std::hash::Hasher as _;
        let lines = self.inner.lines.get(at..at.checked_add(SEED_LINES)?)?;
        let mut hasher = FxHasher::default();
        for line in lines {
            hasher.write_u64(line.hash);
        }
        Some(hasher.finish())
    }
}

/// A line without the number that a tool put in front of it.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start_matches(' ');
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if digits == 0 || digits > 7 {
        return line;
    }
    let Some(rest) = rest.get(digits..) else { return line };
    ["\u{2192}", "\t", "| ", "|", ": "].iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(line)
}

fn hash_of(line: &str) -> u64 {
    use std::hash::Hasher as _;
    let mut hasher = FxHasher::default();
    hasher.write(line.as_bytes());
    hasher.finish()
}

/// A run of lines that stands elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineRun {
    /// Its first line in the new text, from 0.
    pub first: usize,
    /// How many lines.
    pub count: usize,
    /// The text it stands in: the number that [`SeenTexts::add`] gave.
    pub source: usize,
    /// Its first line there.
    pub source_first: usize,
    /// Estimated tokens that a pointer saves.
    pub saved: u32,
}

#[derive(Debug)]
struct PointedText {
    lines: TextLines,
    /// Lines that stand there in full, not as a pointer.
    literal: Vec<bool>,
    shown: bool,
}

/// Texts that the model sees.
#[derive(Default, Debug)]
pub struct SeenTexts {
    sources: Vec<PointedText>,
    /// Most lines stand in one place.
    seeds: FxHashMap<u64, SmallVec<[(u32, u32); 2]>>,
    wholes: FxHashMap<u64, Vec<u32>>,
}

impl SeenTexts {
    /// A text that is sent, with the runs that stand in it as pointers; returns its number. Cost: O(lines).
    pub fn add(&mut self, lines: &TextLines, runs: &[LineRun]) -> usize {
        let number = self.sources.len();
        let mut literal = vec![true; lines.len()];
        for run in runs {
            let end = run.first.saturating_add(run.count).min(literal.len());
            if let Some(pointed) = literal.get_mut(run.first..end) {
                pointed.fill(false);
            }
        }
        let packed = place(number);
        for at in 0..lines.len() {
            let in_full = literal.get(at..at + SEED_LINES).is_some_and(|seed| seed.iter().all(|it| *it));
            if let Some(seed) = lines.seed(at).filter(|_| in_full) {
                let places = self.seeds.entry(seed).or_default();
                // Places in texts that are hidden meanwhile take room, too.
                if places.len() == 4 * PLACE_COUNT_MAX {
                    places.remove(0);
                }
                places.push((packed, place(at)));
            }
        }
        if runs.is_empty() && lines.text().len() > WHOLE_BYTES_MIN {
            self.wholes.entry(hash_of(lines.text())).or_default().push(packed);
        }
        self.sources.push(PointedText { lines: lines.clone(), literal, shown: true });
        number
    }

    /// The text is hidden, or seen again.
    pub fn set_shown(&mut self, source: usize, shown: bool) {
        if let Some(source) = self.sources.get_mut(source) {
            source.shown = shown;
        }
    }

    /// The runs of a text became text again.
    pub fn resolve(&mut self, source: usize) {
        if let Some(source) = self.sources.get_mut(source) {
            source.literal.fill(true);
        }
    }

    /// Runs of a new text that the model sees elsewhere, in order; as `limits` allow.
    ///
    /// Cost: O(lines), times the places that share a seed.
    pub fn point(&self, new: &TextLines, limits: PointLimits) -> Vec<LineRun> {
        if let Some(whole) = self.whole(new) {
            return vec![whole];
        }
        let mut runs = Vec::new();
        let mut at = 0;
        while at + SEED_LINES <= new.len() && runs.len() < limits.count_max as usize {
            let found = self.longest(new, at).filter(|run| run.saved >= limits.tokens_min);
            at += found.map_or(1, |run| run.count);
            runs.extend(found);
        }
        runs
    }

    /// The same text as a whole.
    fn whole(&self, new: &TextLines) -> Option<LineRun> {
        if new.text().len() <= WHOLE_BYTES_MIN {
            return None;
        }
        let places = self.wholes.get(&hash_of(new.text()))?;
        let source = places.iter().rev().find(|place| {
            let source = self.sources.get(**place as usize);
            source.is_some_and(|source| source.shown && source.lines.text() == new.text())
        })?;
        let tokens: u32 = estimate(new.text().as_bytes());
        let saved = tokens.checked_sub(POINTER_TOKENS)?;
        Some(LineRun { first: 0, count: new.len(), source: *source as usize, source_first: 0, saved })
    }

    fn longest(&self, new: &TextLines, at: usize) -> Option<LineRun> {
        let places = self.seeds.get(&new.seed(at)?)?;
        let shown = places
            .iter()
            .rev()
            .filter(|(source, _)| self.sources.get(*source as usize).is_some_and(|source| source.shown));
        let mut best: Option<LineRun> = None;
        for (source, source_first) in shown.take(PLACE_COUNT_MAX) {
            let (source, source_first) = (*source as usize, *source_first as usize);
            let Some(known) = self.sources.get(source) else { continue };
            let mut count = 0;
            while let Some(((line, text), (other, seen))) =
                new.line(at + count).zip(known.lines.line(source_first + count))
            {
                let literal = known.literal.get(source_first + count).copied().unwrap_or_default();
                if !literal || line.hash != other.hash || text != seen {
                    break;
                }
                count += 1;
            }
            if count >= SEED_LINES && best.is_none_or(|best| count > best.count) {
                best = Some(LineRun { first: at, count, source, source_first, saved: 0 });
            }
        }
        if let Some(run) = &mut best {
            // A run that is shorter than a pointer saves nothing.
            run.saved = new.tokens(run.first, run.count).saturating_sub(POINTER_TOKENS);
        }
        best
    }
}

/// The text with its runs as pointers; `label` names a source, such as `#812`.
pub fn pointed(text: &TextLines, runs: &[LineRun], label: &dyn Fn(usize) -> String) -> String {
    let mut out = String::new();
    let mut at = 0;
    for run in runs {
        let Some(start) = text.inner.lines.get(run.first).map(|line| line.start as usize) else { continue };
        out.push_str(text.inner.text.get(at..start).unwrap_or_default());
        let (first, last) = (run.source_first + 1, run.source_first + run.count);
        let _ = writeln!(
            out,
            "[{} lines, the same as lines {first}-{last} of {} above]",
            run.count,
            label(run.source)
        );
        let next = text.inner.lines.get(run.first + run.count);
        at = next.map_or(text.inner.end, |line| line.start as usize);
    }
    out.push_str(text.inner.text.get(at..).unwrap_or_default());
    out
}

/// Whether an output is nothing but one pointer, as [`pointed`] writes it; numbers in front of lines do not count.
///
/// The model was shown no content by such an output: it is no newer view of the text to which it points.
///
/// ```
/// use acpdb_serve::point::is_pointer;
///
/// assert!(is_pointer(b"1\t[60 lines, the same as lines 1-60 of Read src/a.rs above]\n"));
/// assert!(!is_pointer(b"$ cat\n[60 lines, the same as lines 1-60 of Read src/a.rs above]\n"));
/// ```
pub fn is_pointer(output: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(output.trim_ascii_end()) else { return false };
    if text.contains('\n') {
        return false;
    }
    let Some(rest) = without_number(text).strip_prefix('[') else { return false };
    let count = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    count.len() < rest.len() && count.starts_with(" lines, the same as lines ") && text.ends_with(" above]")
}

/// A fresh output as a hook can show it: pointers in place of lines that stand in `seen` (label and text, oldest first).
///
/// The output itself if nothing is to be saved.
///
/// ```
/// use acpdb_serve::point::point_at;
///
/// let file: String = (0..60).map(|n| format!("let value_{n} = compute_the_value({n});\n")).collect();
/// let fresh = format!("$ cat main.rs\n{file}done\n");
/// let shown = point_at(&fresh, &[("#12", file.as_str())], 100);
/// assert_eq!(shown, "$ cat main.rs\n[60 lines, the same as lines 1-60 of #12 above]\ndone\n");
/// ```
pub fn point_at(fresh: &str, seen: &[(&str, &str)], tokens_min: u32) -> String {
    let mut known = SeenTexts::default();
    for (_, text) in seen {
        // Its number is not needed.
        let _ = known.add(&TextLines::of(*text), &[]);
    }
    let fresh = TextLines::of(fresh);
    let runs = known.point(&fresh, PointLimits::of(tokens_min));
    pointed(&fresh, &runs, &|source| {
        seen.get(source).map_or_else(String::new, |(label, _)| (*label).to_owned())
    })
}

#[cfg(test)]
mod tests;
