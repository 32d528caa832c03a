//! Which check a command line runs: a test, a build, a linter, by program, subcommand and operands.
//!
//! ```text
//! cd web && FOO=1 npx jest src/a.test.ts --verbose 2>&1 | tail -20
//!    |        |    |    |        |                          |
//!  folder   told  left name    operand                   operand: another filter shows another part
//! ```
//!
//! A command line that does more than one thing is no check.

use crate::is_among;

/// A check.
pub(super) struct RegistryCheck {
    /// How its key prints: `cargo test`.
    pub(super) name: String,
    /// The words that tell it from other runs of the same program, in order.
    pub(super) operands: Vec<String>,
    /// The folder that the command line goes to first.
    pub(super) folder: Option<String>,
}

/// Programs whose first operand tells their work, and the operands that are checks.
const BY_SUBCOMMAND: &[(&str, &[&str])] = &[
    ("bazel", &["build", "test"]),
    ("bun", &["test"]),
    ("cargo", &["bench", "build", "check", "clippy", "doc", "fmt", "miri", "nextest", "test"]),
    ("cmake", &["--build"]),
    ("composer", &["test"]),
    ("deno", &["check", "lint", "test"]),
    ("dotnet", &["build", "test"]),
    ("go", &["build", "test", "vet"]),
    ("gradle", &["build", "check", "lint", "test"]),
    ("gradlew", &["build", "check", "lint", "test"]),
    ("mix", &["compile", "test"]),
    ("mvn", &["compile", "package", "test", "verify"]),
    ("mvnw", &["compile", "package", "test", "verify"]),
    ("npm", &["t", "test"]),
    ("pnpm", &["build", "lint", "test", "typecheck"]),
    ("ruff", &["check", "format"]),
    ("swift", &["build", "test"]),
    ("yarn", &["build", "lint", "test", "typecheck"]),
    ("zig", &["build", "test"]),
];

/// Programs that are a check with any operands.
const ALWAYS: &str = "
    ctest eslint flake8 golangci-lint jest make mocha mypy ninja phpunit pylint pyright pytest rspec
    rubocop tox tsc vitest";

/// Words that run another program.
const RUNNERS: &[&[&str]] = &[
    &["bundle", "exec"],
    &["npm", "exec", "--"],
    &["npx"],
    &["pnpm", "exec"],
    &["poetry", "run"],
    &["python", "-m"],
    &["python3", "-m"],
    &["time"],
    &["uv", "run"],
];

/// Beginnings of names of scripts that are checks, for `npm run NAME` and the like.
const SCRIPTS: &[&str] = &["build", "check", "compile", "lint", "test", "tsc", "type"];

/// Options that change how much is printed, and nothing else.
const QUIET: &[&str] = &["--nocapture", "--no-color", "--quiet", "--verbose", "-q", "-qq", "-v", "-vv"];

/// Characters that make a part of a command line more than one plain command.
const MORE_THAN_PLAIN: &[char] = &[';', '&', '<', '>', '(', ')', '$', '`', '\n', '\r'];

/// The check that a command line runs, if it runs one and does nothing else.
pub(super) fn check(command: &str) -> Option<RegistryCheck> {
    let mut line = command.trim();
    let mut folder = None;
    if let Some((path, rest)) = line.strip_prefix("cd ").and_then(|rest| rest.split_once("&&")) {
        folder = Some(path.trim().to_owned());
        line = rest.trim();
    }
    let (line, filter) = match line.split_once('|') {
        Some((line, filter)) => (line, Some(filter)),
        None => (line, None),
    };
    let line = line.trim().trim_end_matches("2>&1");
    let is_plain = |text: &str| !text.contains(MORE_THAN_PLAIN);
    if !is_plain(line) || !folder.iter().all(|path| is_plain(path)) || !filter.is_none_or(is_plain) {
        return None;
    }
    // Quotes stay with their words: they only have to be the same.
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_setting = |word: &&&str| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    let settings = words.iter().take_while(is_setting).count();
    let (settings, mut rest) = words.split_at_checked(settings)?;
    while let Some(runner) = RUNNERS.iter().find(|runner| rest.starts_with(runner)) {
        rest = rest.get(runner.len()..)?;
    }
    let (program, rest) = rest.split_first()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let (name, operands) = named(program, rest)?;
    let operands = settings.iter().chain(operands).filter(|word| !QUIET.contains(word));
    let operands =
        operands.map(|word| (*word).to_owned()).chain(filter.map(|text| format!("| {}", text.trim())));
    Some(RegistryCheck { name, operands: operands.collect(), folder })
}

/// The name of the check that a program with these words runs, and its operands.
fn named<'w>(program: &str, words: &'w [&'w str]) -> Option<(String, &'w [&'w str])> {
    if is_among(ALWAYS, program) {
        return Some((program.to_owned(), words));
    }
    let (first, rest) = words.split_first()?;
    if matches!(program, "npm" | "pnpm" | "yarn" | "bun" | "deno") && matches!(*first, "run" | "task") {
        let (script, rest) = rest.split_first()?;
        let is_check = SCRIPTS.iter().any(|begin| script.starts_with(begin));
        return is_check.then(|| (format!("{program} run {script}"), rest));
    }
    let (_, checks) = BY_SUBCOMMAND.iter().find(|(known, _)| *known == program)?;
    checks.contains(first).then(|| (format!("{program} {first}"), rest))
}

fn is_name(text: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && text.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::check;

    /// The name and the operands of each command line's check.
    #[test]
    fn checks_are_known_by_what_they_run() {
        for (command, expected) in [
            ("cargo test", "cargo test"),
            ("cargo test -p engine --quiet", "cargo test: -p engine"),
            (
                "RUSTFLAGS=-Dwarnings cargo clippy --all-targets",
                "cargo clippy: RUSTFLAGS=-Dwarnings --all-targets",
            ),
            ("cd /w/web && npm test 2>&1 | tail -20", "npm test: | tail -20 in /w/web"),
            ("npm run test:unit -- src/a", "npm run test:unit: -- src/a"),
            ("npx jest src/a.test.ts --verbose", "jest: src/a.test.ts"),
            ("./node_modules/.bin/tsc --noEmit", "tsc: --noEmit"),
            ("python -m pytest tests/test_a.py -q", "pytest: tests/test_a.py"),
            ("uv run pytest", "pytest"),
            ("./gradlew test", "gradlew test"),
            ("go vet ./...", "go vet: ./..."),
            ("make", "make"),
            ("make release", "make: release"),
        ] {
            let found = check(command).unwrap_or_else(|| panic!("{command} is a check"));
            let mut said = found.name;
            if !found.operands.is_empty() {
                said = format!("{said}: {}", found.operands.join(" "));
            }
            if let Some(folder) = found.folder {
                said = format!("{said} in {folder}");
            }
            assert_eq!(said, expected, "{command}");
        }
    }

    #[test]
    fn what_does_something_else_is_no_check() {
        for command in [
            "",
            "cargo",
            "cargo run",
            "cargo add serde",
            "npm install",
            "npm run dev",
            "git status",
            "cargo test && git commit -am done",
            "cargo test; echo $?",
            "cargo test > out.txt",
            "for i in 1 2; do cargo test; done",
            "cd $(mktemp -d) && make",
            "echo cargo test",
        ] {
            assert!(check(command).is_none(), "{command}");
        }
    }
}
