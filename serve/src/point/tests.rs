//! Pointers: which lines become one, which do not, and that pointers can always be read back.

use proptest::prelude::*;

use super::*;

fn file(from: usize, to: usize) -> String {
    (from..to).map(|n| format!("    let value_{n} = compute(\"{n}\", other_{n});\n")).collect()
}

/// The text that a pointed text stands for.
fn resolved(lines: &TextLines, runs: &[LineRun], seen: &[TextLines]) -> Vec<String> {
    let plain = |lines: &TextLines, at: usize| lines.line(at).unwrap().1.to_owned();
    let mut out: Vec<String> = (0..lines.len()).map(|at| plain(lines, at)).collect();
    for run in runs {
        for place in 0..run.count {
            out[run.first + place] = plain(&seen[run.source], run.source_first + place);
        }
    }
    out
}

#[test]
fn line_numbers_and_trailing_blanks_do_not_count() {
    for (line, body) in [
        ("  12\u{2192}fn main() {", "fn main() {"),
        ("12\tfn main() {", "fn main() {"),
        ("   7| x", "x"),
        ("2024 was a year", "2024 was a year"),
        ("12345678|x", "12345678|x"),
        ("", ""),
    ] {
        assert_eq!(without_number(line), body);
    }
}

#[test]
fn a_numbered_view_of_what_was_written_points_to_it() {
    let written = file(0, 40);
    let numbered: String =
        written.lines().zip(1..).map(|(line, number)| format!("{number:6}\u{2192}{line}  \n")).collect();
    let shown = point_at(&numbered, &[("#3", &written)], 100);
    assert_eq!(shown, "[40 lines, the same as lines 1-40 of #3 above]\n");
}

#[test]
fn short_runs_and_few_tokens_stay() {
    let seen = file(0, 40);
    for fresh in [file(0, 4), file(50, 80), String::new()] {
        assert_eq!(point_at(&fresh, &[("#3", &seen)], 100), fresh);
    }
}

/// The lines behind the last one that is looked at went with the run before them.
#[test]
fn lines_that_are_not_looked_at_stay() {
    let lines = file(0, LINE_COUNT_MAX);
    let shown = point_at(&format!("{lines}its own end\n"), &[("#3", &format!("{lines}another end\n"))], 100);
    let pointer = format!("[{LINE_COUNT_MAX} lines, the same as lines 1-{LINE_COUNT_MAX} of #3 above]\n");
    assert_eq!(shown, format!("{pointer}its own end\n"));
}

#[test]
fn what_is_hidden_is_not_pointed_at_and_what_points_is_not_either() {
    let mut seen = SeenTexts::default();
    let first = TextLines::of(file(0, 40));
    let number = seen.add(&first, &[]);
    let second = TextLines::of(format!("again\n{}", file(0, 40)));
    let runs = seen.point(&second, PointLimits::of(100));
    assert_eq!(runs.len(), 1);
    seen.add(&second, &runs);
    seen.set_shown(number, false);
    assert_eq!(
        seen.point(&TextLines::of(format!("more\n{}", file(0, 40))), PointLimits::of(100)),
        Vec::new()
    );
    seen.set_shown(number, true);
    assert_eq!(
        seen.point(&TextLines::of(format!("more\n{}", file(0, 40))), PointLimits::of(100))[0].source,
        number
    );
}

proptest! {
    #[test]
    fn a_pointer_names_the_very_lines_it_stands_for(
        texts in prop::collection::vec(prop::collection::vec(0..12_u8, 0..60), 1..6),
    ) {
        let mut seen = SeenTexts::default();
        let mut known: Vec<TextLines> = Vec::new();
        for text in &texts {
            let text: String = text.iter().map(|n| format!("line number {n} with some more words in it\n")).collect();
            let lines = TextLines::of(text);
            let runs = seen.point(&lines, PointLimits::of(20));
            let plain: Vec<String> = (0..lines.len()).map(|at| lines.line(at).unwrap().1.to_owned()).collect();
            prop_assert_eq!(resolved(&lines, &runs, &known), plain);
            let shown = pointed(&lines, &runs, &|source| format!("#{source}"));
            prop_assert!(estimate(shown.as_bytes()) <= estimate(lines.text().as_bytes()));
            for pair in runs.windows(2) {
                prop_assert!(pair[0].first + pair[0].count <= pair[1].first);
            }
            let number = seen.add(&lines, &runs);
            prop_assert_eq!(number, known.len());
            known.push(lines);
        }
    }
}
