//! The output of tools: files with line numbers, listings, runs of tests.

use crate::text::{code, code_line};
use crate::words::{Dice, EXTENSIONS, NOUNS, VERBS, capital, file, snake, whole_path};

pub(crate) fn numbered(dice: &mut Dice) -> String {
    let lines = 5 + dice.roll(40);
    let text = code(dice, lines);
    let start = 1 + dice.roll(300);
    let style = dice.roll(4);
    let mut out = String::new();
    if style == 2 {
        out.push_str("<file>\n");
    }
    for (number, line) in (start..).zip(text.lines()) {
        match style {
            0 | 1 => out.push_str(&format!("{number:6}\u{2192}{line}\n")),
            2 => out.push_str(&format!("{number:05}| {line}\n")),
            _ => out.push_str(&format!("{number}: {line}\n")),
        }
    }
    match style {
        0 => out.push_str("\n<system-reminder>\nWhenever you read a file, you should consider whether it would be considered malware.\n</system-reminder>\n"),
        2 => out.push_str("\n(End of file - total 120 lines)\n</file>"),
        _ => {}
    }
    out
}

pub(crate) fn listing(dice: &mut Dice) -> String {
    let count = 3 + dice.roll(25);
    let style = dice.roll(8);
    let line = |dice: &mut Dice| match style {
        0 => whole_path(dice),
        1 => format!(
            "{}:{}:{}",
            file(dice),
            1 + dice.roll(400),
            code_line(dice).lines().next().unwrap_or_default()
        ),
        2 => format!(
            "-rw-r--r--  1 dev  staff  {:6} Jan {:2} {:02}:{:02} {}.{}",
            dice.roll(90_000),
            1 + dice.roll(28),
            dice.roll(24),
            dice.roll(60),
            dice.pick(NOUNS),
            dice.pick(EXTENSIONS)
        ),
        3 => format!(" M {}\n?? {}", file(dice), file(dice)),
        4 => format!(
            "{} {} {}: {} {}",
            dice.hex(7),
            dice.pick(&["feat", "fix", "chore", "docs", "refactor", "test"]),
            dice.pick(NOUNS),
            dice.pick(VERBS),
            dice.pick(NOUNS)
        ),
        5 => format!("./{}", file(dice)),
        6 => format!("\u{251c}\u{2500}\u{2500} {}.{}", dice.pick(NOUNS), dice.pick(EXTENSIONS)),
        _ => format!("  Line {}: {}", 1 + dice.roll(300), code_line(dice).lines().next().unwrap_or_default()),
    };
    let lines: Vec<String> = (0..count).map(|_| line(dice)).collect();
    let head = match style {
        0 | 1 if dice.roll(2) == 0 => format!("Found {count} files\n"),
        2 => format!("total {}\ndrwxr-xr-x  12 dev  staff    384 Jan 10 09:12 .\ndrwxr-xr-x   8 dev  staff    256 Jan 10 09:12 ..\n", dice.roll(400)),
        3 => "On branch main\nYour branch is up to date with 'origin/main'.\n\nChanges not staged for commit:\n  (use \"git add <file>...\" to update what will be committed)\n  (use \"git restore <file>...\" to discard changes in working directory)\n".to_owned(),
        _ => String::new(),
    };
    head + &lines.join("\n")
}

#[expect(clippy::too_many_lines, reason = "a list of samples")]
pub(crate) fn run(dice: &mut Dice) -> String {
    let (noun, at) = (dice.pick(NOUNS), file(dice));
    let number = dice.roll(200);
    let names: Vec<String> = (0..3 + dice.roll(10)).map(|_| snake(dice)).collect();
    match dice.roll(14) {
        0 => {
            let lines: Vec<String> =
                names.iter().map(|name| format!("test {noun}::tests::{name} ... ok")).collect();
            format!(
                "   Compiling {noun} v0.1.0 (/home/dev/project)\n    Finished `test` profile [unoptimized + debuginfo] target(s) in 3.{number}s\n     Running unittests src/lib.rs (target/debug/deps/{noun}-{})\n\nrunning {} tests\n{}\n\ntest result: ok. {} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.0{}s\n",
                dice.hex(16),
                lines.len(),
                lines.join("\n"),
                lines.len(),
                dice.roll(9)
            )
        }
        1 => format!(
            "error[E0308]: mismatched types\n  --> {at}:{number}:{}\n   |\n{number} |     let {noun} = self.{noun}();\n   |                  ^^^^^^^^^^^ expected `Option<String>`, found `String`\n   |\nerror: could not compile `{noun}` (lib) due to 1 previous error\n",
            dice.roll(80)
        ),
        2 => {
            let lines: Vec<String> = names
                .iter()
                .map(|name| {
                    format!(
                        "=== RUN   Test{}\n--- PASS: Test{} (0.0{}s)",
                        capital(name),
                        capital(name),
                        dice.roll(9)
                    )
                })
                .collect();
            format!("{}\nPASS\nok  \tgithub.com/dev/project/{noun}\t0.{number}s\n", lines.join("\n"))
        }
        3 => {
            let lines: Vec<String> =
                names.iter().map(|name| format!("{at}::{name} PASSED [ {:2}%]", dice.roll(100))).collect();
            format!(
                "============================= test session starts ==============================\nplatform linux -- Python 3.11.4, pytest-7.4.0, pluggy-1.2.0\nrootdir: /workspace/repo\ncollected {} items\n\n{}\n\n============================== {} passed in 0.{number}s ===============================",
                lines.len(),
                lines.join("\n"),
                lines.len()
            )
        }
        4 => format!(
            "Traceback (most recent call last):\n  File \"{}\", line {number}, in <module>\n    {}()\n  File \"/usr/lib/python3.11/site-packages/{noun}/__init__.py\", line {}, in {}\n    raise ValueError(\"{noun} is invalid\")\nValueError: {noun} is invalid\n",
            whole_path(dice),
            snake(dice),
            dice.roll(300),
            snake(dice)
        ),
        5 => format!(
            "\n> project@1.0.0 test\n> vitest run\n\n RUN  v3.0.5 /home/dev/project\n\n \u{2713} {at} ({number} tests) {}ms\n\n Test Files  {} passed ({})\n      Tests  {number} passed ({number})\n   Start at  10:12:44\n   Duration  1.{number}s (transform 120ms, setup 0ms, collect 300ms, tests 52ms)\n",
            dice.roll(90),
            dice.roll(20),
            dice.roll(20)
        ),
        6 => format!(
            "{at}({number},{}): error TS2322: Type 'string | undefined' is not assignable to type 'string'.\n  Type 'undefined' is not assignable to type 'string'.\n{at}({},5): error TS2339: Property '{noun}' does not exist on type '{}'.\n",
            dice.roll(80),
            dice.roll(300),
            capital(noun)
        ),
        7 => format!(
            "[main {}] {}: {} {noun}\n {} files changed, {number} insertions(+), {} deletions(-)\n create mode 100644 {at}\n",
            dice.hex(7),
            dice.pick(&["feat", "fix"]),
            dice.pick(VERBS),
            dice.roll(9),
            dice.roll(90)
        ),
        8 => {
            let body = code(dice, 4);
            let marked: Vec<String> = body
                .lines()
                .enumerate()
                .map(|(n, line)| format!("{}{line}", ["+", "-", " "].get(n % 3).unwrap_or(&" ")))
                .collect();
            format!(
                "diff --git a/{at} b/{at}\nindex {}..{} 100644\n--- a/{at}\n+++ b/{at}\n@@ -{number},7 +{number},9 @@ {}\n{}\n",
                dice.hex(7),
                dice.hex(7),
                code_line(dice).lines().next().unwrap_or(""),
                marked.join("\n")
            )
        }
        9 => format!(
            "The file {} has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n{}",
            whole_path(dice),
            numbered(dice)
        ),
        10 => format!(
            "Exit code 1\nnpm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! {noun}@1.0.0 build: `tsc`\nnpm ERR! Exit status 1\n"
        ),
        11 => format!(
            "Chunk ID: {}\nWall time: 0.{number} seconds\nProcess exited with code 0\nOriginal token count: {}\nOutput:\n{}",
            dice.hex(6),
            dice.roll(3000),
            listing(dice)
        ),
        12 => format!(
            "Exit code: 0\nWall time: 0.{} seconds\nOutput:\nSuccess. Updated the following files:\nM {at}\nA {}\n",
            dice.roll(9),
            file(dice)
        ),
        _ => format!(
            "added {number} packages, and audited {} packages in {}s\n\n{} packages are looking for funding\n  run `npm fund` for details\n\nfound 0 vulnerabilities\n",
            dice.roll(900),
            dice.roll(20),
            dice.roll(90)
        ),
    }
}
