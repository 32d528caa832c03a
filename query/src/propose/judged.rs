//! The detectors judged on talk that they were not written for: the kinds of sentences that recorded sessions are full of.
//!
//! Matches have something to remember; near-misses share the words and mean nothing of the kind. The figures stand in
//! docs/RULES.md, and this test counts them.

use acpdb_engine::event::{MemoryKind, Role};
use acpdb_engine::testing::memory::{Bench, record};

use super::*;

/// Texts of a user, each with the item to remember.
const USER_MATCHES: &[(&str, &str)] = &[
    ("We use pnpm in this monorepo.", "package_manager=pnpm"),
    ("please use yarn, the lock file is checked in", "package_manager=yarn"),
    ("I always use bun for new services.", "package_manager=bun"),
    ("This repo uses npm, so leave the lock file alone.", "package_manager=npm"),
    ("We've switched to pnpm last month.", "package_manager=pnpm"),
    ("the team moved to yarn. No.", "package_manager=yarn"),
    ("We moved to bun and are happy.", "package_manager=bun"),
    ("Use `pnpm` here, never anything else.", "package_manager=pnpm"),
    ("I'd prefer yarn over the others", "package_manager=yarn"),
    ("let's use bun instead", "package_manager=bun"),
    ("We're using pnpm everywhere.", "package_manager=pnpm"),
    ("Everything is green. Use npm from now on.", "package_manager=npm"),
    ("I prefer vitest, it starts faster.", "test_framework=vitest"),
    ("we use jest and prettier", "test_framework=jest formatter=prettier"),
    ("Please always use mocha for the unit tests", "test_framework=mocha"),
    ("our project uses ava with typescript", "test_framework=ava language=typescript"),
    ("I like biome better than the old pair.", ""),
    ("We should use biome for formatting.", "formatter=biome"),
    ("use prettier on save", "formatter=prettier"),
    ("I want to use eslint, nothing else", "formatter=eslint"),
    ("Write the parser in typescript.", "language=typescript"),
    ("build me a small site with javascript, please", "language=javascript"),
    ("I use Helix.", "editor=Helix"),
    ("I've switched to Zed, so mind the settings folder", "editor=Zed"),
    ("I'm using nvim over ssh", "editor=Neovim"),
    ("I am using nvim on the server", "editor=Neovim"),
    ("we like Emacs here", "editor=Emacs"),
    ("I prefer tabs.", "indentation=tabs"),
    ("Use tabs for indentation, please.", "indentation=tabs"),
    ("always 4 spaces in python files", "indentation=4 spaces"),
    ("Use 2 spaces.", "indentation=2 spaces"),
    ("We use tabs in all source files.", "indentation=tabs"),
    ("I like functional style, small pure pieces.", "paradigm=functional"),
    ("prefer object-oriented code here", "paradigm=object-oriented"),
    ("My name is Ingrid.", "User's name is Ingrid"),
    ("Hello, I'm Tomás, new on the team", "User's name is Tomás"),
    ("I am Priya Raman and I look after billing.", "User's name is Priya Raman"),
    ("I'm a backend developer at a bank.", "User is a backend developer"),
    ("I am an accountant, so explain it simply", "User is a accountant|User is an accountant"),
    ("The deadline is Friday.", "Deadline on Friday"),
    ("it's due on Monday, no later", "Deadline on Monday"),
    ("demo on Thursday, we need something to show", "Event on Thursday"),
    ("I'm presenting on Tuesday", "Presentation on Tuesday"),
    ("not npm, use pnpm", "package_manager=pnpm"),
    ("switch from jest to vitest", "test_framework=vitest"),
    ("instead of eslint, use biome", "formatter=biome"),
    ("use bun instead of yarn", "package_manager=bun"),
];

/// Texts of an assistant, each with the item to remember.
const ASSISTANT_MATCHES: &[(&str, &str)] = &[
    ("Let's go with one table per tenant.", "one table per tenant"),
    ("I'll use PostgreSQL.", "PostgreSQL"),
    ("For the queue we'll use RabbitMQ.", "RabbitMQ"),
    ("After the benchmark I decided to keep the cache in memory.", "keep the cache in memory"),
    ("The approach is optimistic locking with a version column.", "optimistic locking with a version column"),
    ("So the solution is to retry with a longer pause.", "to retry with a longer pause"),
    ("I'll use a typed error enum instead of strings.", "a typed error enum instead of strings"),
    ("We'll use cursor based pages for the list.", "cursor based pages for the list"),
    ("Let's go with Svelte for the dashboard.", "Svelte for the dashboard"),
    ("I'll use a mutex to guard the map.", "a mutex to guard the map"),
    ("OK. Decided to split the worker from the server.", "split the worker from the server"),
    ("The approach will be one migration per release.", "one migration per release"),
    ("The solution will be a small proxy in front.", "a small proxy in front"),
    ("We'll use feature flags for the rollout.", "feature flags for the rollout"),
    ("I'll use exponential backoff here.", "exponential backoff here"),
    ("Let's go with the smaller image.", "the smaller image"),
    ("I'll use integer cents for money.", "integer cents for money"),
    ("We'll use one lock file for the workspace.", "one lock file for the workspace"),
];

/// Texts of a user with nothing to remember.
const USER_NEAR: &[&str] = &[
    "The settings page should use tabs in the header.",
    "I like the tabs at the top of the panel, keep them.",
    "Errors and Suggestions tabs each need an Add button",
    "use tabs for the three sections of the dialog",
    "When I use the browser with many tabs it gets slow",
    "the Remediate tab shows the list, other tabs always show a badge",
    "Always open links in new tabs",
    "please use tabs on the settings screen instead of a sidebar",
    "leave 2 spaces between the columns",
    "I use 3 terminal tabs and one window",
    "run npm install before you use the command",
    "how do I use npm here?",
    "Should we use pnpm?",
    "can't use yarn on that machine",
    "If we use bun the build breaks.",
    "npm prints a warning when using the proxy",
    "Using npm fails with a 404 from the registry.",
    "I don't want to use yarn",
    "tools like npm write a lock file",
    "The README says users use npm or yarn.",
    "they use pnpm at my old job",
    "I used npm for this yesterday and it hung",
    "we use npm scripts to start the server",
    "use the npm registry mirror for the download",
    "I like npm's audit output",
    "the error mentions npm, use the log to find out why",
    "Use this script, it calls yarn internally.",
    "always check what npm installed",
    "I would like npm to stop printing this",
    "it uses jest mocks from the other package",
    "we use jest.config.js from the template",
    "use the prettier-plugin for tables",
    "Why does eslint always complain about this line",
    "I like that eslint found the bug",
    "is it possible to use vitest with this?",
    "what would it take to use typescript?",
    "use typescript-eslint rules from the base config",
    "the typescript compiler always runs first",
    "I always get javascript errors in the console",
    "use the javascript file in dist",
    "He said he prefers Emacs",
    "open it in Vim and see if colours are right, like before",
    "use Vim keybindings in the demo",
    "the docs describe Helix, Zed and others like it",
    "I like how Zed looks",
    "the helix structure of the molecule is used as a logo",
    "they'd use yarn if they could",
    "unless you use bun this will not start",
    "Without npm, how would people use it",
    "check whether we use mocha somewhere",
    "Suppose we use pnpm, would the cache still work",
    "I'm sure it was working",
    "I'm Using the wrong key, sorry",
    "I am sorry, I meant the other file",
    "I'm looking to change a flight",
    "I'm not traveling tomorrow",
    "I'm happy with that",
    "I am on the train",
    "I'm a bit tired today",
    "I'm a little lost in this code",
    "I'm in Berlin this week",
    "I'm Dana's colleague and she is away",
    "my name is not important",
    "the name is taken from the header",
    "my user name is empty after login",
    "this is due to a change of plans",
    "the crash is due on every start",
    "a family emergency came up, I missed a meeting",
    "Reduce the size of the demo gifs",
    "the demo store has two sessions",
    "due to the storm the flight was late",
    "deadline exceeded, says the server",
    "presentation layer and data layer should not mix",
    "the meeting notes are in docs",
    "not sure, but it may work",
    "do not stop, use your judgement",
    "Not now, but soon",
    "instead of a table it shows a list",
    "Pass the value down instead of deriving it again",
    "change the title to something shorter",
    "switch to the other branch",
    "Actually, I only need the first page",
    "no, that is all for now",
    "No, I do not want insurance",
    "actually it works fine",
    "Users have no idea what actually happens",
    "the page uses a functional component",
    "always write functional tests for the API",
    "I like the object you built",
    "use an object-oriented database client library",
];

/// Texts of an assistant with nothing to remember.
const ASSISTANT_NEAR: &[&str] = &[
    "I'll use the Read tool to look at the file.",
    "I'll use grep to find all callers.",
    "I'll use it as a starting point.",
    "Let me see. I'll use ripgrep here.",
    "I'll use your template for that.",
    "We'll use this to check the result.",
    "I'll use a subagent to explore the code.",
    "I'll use git to see what changed.",
    "Should I say the approach is fine?",
    "Either approach is fine.",
    "A better approach is to measure the element.",
    "One possible solution is a bigger cache.",
    "Another solution is to wait.",
    "The user decided to stop here.",
    "They decided to drop the column in 2019.",
    "I haven't decided to do that.",
    "It was decided to ship without it.",
    "If we'll use threads, the lock matters.",
    "Once I'll use the index, it gets faster.",
    "Let's go without a framework",
    "Let's go through the list.",
    "Do you think we'll use that again?",
    "Upstream decided to rename the crate.",
    "I'll use TodoWrite to track the steps.",
    "I'll use the search command on the whole tree.",
    "I'll use these.",
    "No solution is perfect.",
    "undecided to this day",
    "The right approach isn't clear yet.",
    "I'll use curl to fetch the page.",
    "When they'll use it is open.",
    "We'll use what is there.",
];

/// More talk: a line is speaker, text, and the item to remember, if there is one, with tabs between them.
const TALK: &str = include_str!("talk.tsv");

fn row(line: &str) -> (Role, &str, &str) {
    let fields: Vec<&str> = line.split('\t').collect();
    let [speaker, text, expected] = fields[..] else { panic!("{line}") };
    (if speaker == "user" { Role::User } else { Role::Assistant }, text, expected)
}

/// The proposals, in a line.
fn suggested(role: Role, text: &str) -> String {
    let found = Bench::default().view(|view| propose(role, text, view));
    let shown = found.iter().map(|proposal| match &proposal.item.key {
        Some(key) => format!("{key}={}", proposal.item.value),
        None => proposal.item.value.clone(),
    });
    let mut shown: Vec<String> = shown.collect();
    shown.sort();
    shown.join(" ")
}

/// Talk about a user interface had become a preference for tabs in two of five sessions.
#[test]
fn detectors_are_right_on_talk_that_they_were_not_written_for() {
    let (mut right, mut wrong, mut missed) = (0, Vec::new(), Vec::new());
    let (mut matches, mut near) = (0, 0);
    let talk: Vec<(Role, &str, &str)> = TALK.lines().map(row).collect();
    let listed = |role: Role, sought: &dyn Fn(&str) -> bool| -> Vec<(&str, &str)> {
        let rows = talk.iter().filter(|(speaker, _, expected)| *speaker == role && sought(expected));
        rows.map(|(_, text, expected)| (*text, *expected)).collect()
    };
    for (role, list) in [(Role::User, USER_MATCHES), (Role::Assistant, ASSISTANT_MATCHES)] {
        for (text, expected) in list.iter().copied().chain(listed(role, &|expected| !expected.is_empty())) {
            matches += usize::from(!expected.is_empty());
            let found = suggested(role, text);
            let mut sorted: Vec<&str> = if role == Role::User && expected.contains('=') {
                expected.split(' ').collect()
            } else {
                vec![expected]
            };
            // Values may hold blanks; only several keys are told apart.
            if expected.matches('=').count() < 2 {
                sorted = vec![expected];
            }
            sorted.sort_unstable();
            let sorted = sorted.join(" ");
            if sorted.split('|').any(|one| one == found) {
                right += usize::from(!expected.is_empty());
            } else if found.is_empty() {
                missed.push(format!("{text} -> {expected}"));
            } else {
                wrong.push(format!("{text} -> {found}"));
            }
        }
    }
    for (role, list) in [(Role::User, USER_NEAR), (Role::Assistant, ASSISTANT_NEAR)] {
        for (text, _) in list.iter().map(|text| (*text, "")).chain(listed(role, &str::is_empty)) {
            near += 1;
            let found = suggested(role, text);
            if !found.is_empty() {
                wrong.push(format!("{text} -> {found}"));
            }
        }
    }
    let figures = format!(
        "{matches} matches: {right} found, {} missed; {near} near-misses: {} wrong",
        missed.len(),
        wrong.len()
    );
    assert!(matches >= 120 && near >= 200, "{figures}");
    // 95 of 100 proposals are right.
    let told = format!("{figures}\nwrong:\n  {}\nmissed:\n  {}", wrong.join("\n  "), missed.join("\n  "));
    assert!(wrong.len() * 19 <= right, "{told}");
    assert!(missed.len() * 5 <= matches, "{told}");
    let page = include_str!("../../../docs/RULES.md");
    assert!(page.contains(&figures), "docs/RULES.md does not say: {told}");
}

/// Two decisions for two databases both held, as neither named a subject.
#[test]
fn things_of_which_there_is_one_contradict_each_other() {
    let shown = |role: Role, decisions: &[(&str, &str)], text: &str| {
        let mut bench = Bench::default();
        for (id, text) in decisions {
            bench.item(record(id, MemoryKind::Decision, "implementation", "x"), text);
        }
        let found = bench.view(|view| propose(role, text, view));
        let line = |proposal: &Proposal| {
            let old: Vec<&str> = proposal.supersedes.iter().map(|known| known.id.as_str()).collect();
            format!("{} > {}", proposal.item.value, old.join(","))
        };
        found.iter().map(line).collect::<Vec<_>>().join("; ")
    };
    for (role, decisions, text, expected) in [
        (Role::Assistant, &[("d1", "PostgreSQL")][..], "I'll use MongoDB.", "MongoDB > d1"),
        (
            Role::Assistant,
            &[("d1", "React for frontend")],
            "Vue would be better for this use case",
            "Vue > d1",
        ),
        (Role::User, &[("d1", "React")], "I think Vue would be better", "Vue > d1"),
        (Role::User, &[("d1", "Use React for frontend")], "Vue is a better fit.", "Vue > d1"),
        (
            Role::Assistant,
            &[("d1", "PostgreSQL for orders")],
            "I'll use MongoDB for logs.",
            "MongoDB for logs > ",
        ),
        (Role::Assistant, &[("d1", "PostgreSQL")], "I'll use Postgres.", "Postgres > "),
        (Role::User, &[], "Vue would be better", ""),
        (Role::User, &[("d1", "React")], "Would Vue be better?", ""),
        (Role::User, &[("d1", "React")], "Not that Vue would be better", ""),
        (Role::User, &[("d1", "React")], "Vue would be better if we had time", ""),
        (Role::User, &[("d1", "PostgreSQL")], "Vue would be better", ""),
    ] {
        assert_eq!(shown(role, decisions, text), expected, "{text}");
    }
}
