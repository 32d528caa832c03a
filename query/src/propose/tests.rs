//! Tables: the finds of each pattern, and texts that look like finds and must not be found.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use acpdb_engine::event::MemoryKind;
use acpdb_engine::ids::Seq;
use acpdb_engine::testing::memory::{Bench, preference, record};

mod corrected;

/// The proposals of a message of `role`, given the memory in `bench`; one line a proposal.
fn proposals(bench: &Bench, role: Role, text: &str) -> String {
    let found = bench.view(|view| propose(role, text, view));
    let mut lines = String::new();
    for proposal in found {
        let item = &proposal.item;
        let place = item.key.as_deref().or(item.subject.as_deref()).unwrap_or("-");
        write!(
            lines,
            "{} {}/{place} = {} .{:02}",
            proposal.rule.label(),
            item.category,
            item.value,
            item.confidence
        )
        .unwrap();
        for old in &proposal.supersedes {
            write!(lines, " supersedes {}", old.id).unwrap();
        }
        if let Some(equal) = &proposal.reinforces {
            write!(lines, " reinforces {}", equal.id).unwrap();
        }
        if proposal.ask {
            lines.push_str(" ask");
        }
        writeln!(lines, " <{}>", &text[proposal.start..proposal.end]).unwrap();
        assert!(text.contains(proposal.sentence.as_str()) && !proposal.sentence.is_empty(), "{text:?}");
    }
    lines
}

/// One line a text: its proposals to an empty memory.
fn check(role: Role, texts: &[&str], expected: &Expect) {
    let bench = Bench::default();
    let mut table = String::new();
    for text in texts {
        let found = proposals(&bench, role, text);
        let found = if found.is_empty() { "nothing\n".to_owned() } else { found };
        write!(table, "{text:?}: {found}").unwrap();
    }
    expected.assert_eq(&table);
}

fn check_corrections(texts: &[&str], expected: &Expect) {
    let mut table = String::new();
    for text in texts {
        let found: Vec<String> = (corrections(text).into_iter())
            .map(|found| {
                let from = found.from.as_deref().unwrap_or("?");
                format!("{from} -> {} <{}>", found.to, &text[found.start..found.end])
            })
            .collect();
        let found = if found.is_empty() { "nothing".to_owned() } else { found.join("; ") };
        writeln!(table, "{text:?}: {found}").unwrap();
    }
    expected.assert_eq(&table);
}

#[test]
fn not_x_use_y() {
    check_corrections(
        &[
            "not npm, use pnpm",
            "Please, NOT npm but use Pnpm!",
            "not tabs, but spaces",
            "not npm but yarn",
            // must not match
            "use not-equal to",
            "snow use skis",
            "knot npm, use pnpm",
            "not really, but use it",
            "not npm, used pnpm",
            "not npm or yarn, use pnpm",
            "not that, use this",
        ],
        &expect![[r#"
            "not npm, use pnpm": npm -> pnpm <not npm, use pnpm>
            "Please, NOT npm but use Pnpm!": npm -> pnpm <NOT npm but use Pnpm>
            "not tabs, but spaces": tabs -> spaces <not tabs, but spaces>
            "not npm but yarn": npm -> yarn <not npm but yarn>
            "use not-equal to": nothing
            "snow use skis": nothing
            "knot npm, use pnpm": nothing
            "not really, but use it": nothing
            "not npm, used pnpm": nothing
            "not npm or yarn, use pnpm": nothing
            "not that, use this": nothing
        "#]],
    );
}

#[test]
fn change_x_to_y() {
    check_corrections(
        &[
            "change from X to Y",
            "please switch npm to pnpm.",
            "change color to blue and switch from a to b",
            "change\n from x  to\ty",
            // must not match
            "exchange a to b",
            "switch to pnpm",
            "change it to this",
            "change a into b",
            "changed npm to pnpm",
        ],
        &expect![[r#"
            "change from X to Y": x -> y <change from X to Y>
            "please switch npm to pnpm.": npm -> pnpm <switch npm to pnpm>
            "change color to blue and switch from a to b": color -> blue <change color to blue>; a -> b <switch from a to b>
            "change\n from x  to\ty": x -> y <change
             from x  to	y>
            "exchange a to b": nothing
            "switch to pnpm": nothing
            "change it to this": nothing
            "change a into b": nothing
            "changed npm to pnpm": nothing
        "#]],
    );
}

#[test]
fn instead_of_x() {
    check_corrections(
        &[
            "instead of npm, use pnpm",
            "Instead of VS Code use Neovim.",
            "instead of waiting for CI try local runs, please",
            "use pnpm instead of npm for this",
            "use pnpm instead of npm, use it always",
            "instead of jest, use node.js tests",
            "instead of npm\nuse pnpm",
            // must not match
            "instead of npm, use it",
            "instead of npm. Use pnpm",
            "instead of npm, we have pnpm",
            "use this instead of npm",
            "use pnpm instead npm",
            "instead of, use pnpm",
        ],
        &expect![[r#"
            "instead of npm, use pnpm": npm -> pnpm <instead of npm, use pnpm>
            "Instead of VS Code use Neovim.": vs code -> neovim <Instead of VS Code use Neovim>
            "instead of waiting for CI try local runs, please": waiting for ci -> local runs <instead of waiting for CI try local runs>
            "use pnpm instead of npm for this": npm -> pnpm <use pnpm instead of npm>
            "use pnpm instead of npm, use it always": npm -> pnpm <use pnpm instead of npm>
            "instead of jest, use node.js tests": jest -> node.js tests <instead of jest, use node.js tests>
            "instead of npm\nuse pnpm": npm -> pnpm <instead of npm
            use pnpm>
            "instead of npm, use it": nothing
            "instead of npm. Use pnpm": nothing
            "instead of npm, we have pnpm": nothing
            "use this instead of npm": nothing
            "use pnpm instead npm": nothing
            "instead of, use pnpm": nothing
        "#]],
    );
}

#[test]
fn hints() {
    check_corrections(
        &[
            "I meant the other file.",
            "No, the first one. And then stop",
            "Actually, it is v1.2.3",
            "actually the second",
            "i  meant\tTHIS one\nnot that",
            "No, actually the first",
            "no, switch npm to pnpm. I prefer vitest.",
            // must not match
            "no problem, the first one",
            "factually right",
            "I mean the other file",
            "actually",
            "Actually.",
            "no,",
            "actually\nthe second",
        ],
        &expect![[r#"
            "I meant the other file.": ? -> the other file <I meant the other file>
            "No, the first one. And then stop": ? -> the first one <No, the first one>
            "Actually, it is v1.2.3": ? -> it is v1.2.3 <Actually, it is v1.2.3>
            "actually the second": ? -> the second <actually the second>
            "i  meant\tTHIS one\nnot that": ? -> this one <i  meant	THIS one>
            "No, actually the first": ? -> actually the first <No, actually the first>
            "no, switch npm to pnpm. I prefer vitest.": ? -> switch npm to pnpm <no, switch npm to pnpm>; npm -> pnpm <switch npm to pnpm>
            "no problem, the first one": nothing
            "factually right": nothing
            "I mean the other file": nothing
            "actually": nothing
            "Actually.": nothing
            "no,": nothing
            "actually\nthe second": nothing
        "#]],
    );
}

#[test]
fn names() {
    check(
        Role::User,
        &[
            "My name is Alice.",
            "Hi, I'm Dana. Help me",
            "I am Ana Maria Lopez Garcia",
            "my name is bob, hello",
            "I’m Émile Zola",
            "I'm Jean-Luc O'Neill",
            "my name is Dana I think",
            "my name is Dana\nSmith",
            "I'm Ming",
            // must not match
            "I'm trying",
            "I'm Trying",
            "I'm sorry",
            "I'm Sorry, Dave",
            "I am not Dana",
            "my name is not important",
            "I'm Dana's friend",
            "Miami Dana",
            "I'm 42",
        ],
        &expect![[r#"
            "My name is Alice.": fact personal/name = User's name is Alice .90 <My name is Alice>
            "Hi, I'm Dana. Help me": fact personal/name = User's name is Dana .90 <I'm Dana>
            "I am Ana Maria Lopez Garcia": fact personal/name = User's name is Ana Maria Lopez .90 <I am Ana Maria Lopez>
            "my name is bob, hello": fact personal/name = User's name is bob .90 <my name is bob>
            "I’m Émile Zola": fact personal/name = User's name is Émile Zola .90 <I’m Émile Zola>
            "I'm Jean-Luc O'Neill": fact personal/name = User's name is Jean-Luc O'Neill .90 <I'm Jean-Luc O'Neill>
            "my name is Dana I think": fact personal/name = User's name is Dana .90 <my name is Dana>
            "my name is Dana\nSmith": fact personal/name = User's name is Dana .90 <my name is Dana>
            "I'm Ming": fact personal/name = User's name is Ming .90 <I'm Ming>
            "I'm trying": nothing
            "I'm Trying": nothing
            "I'm sorry": nothing
            "I'm Sorry, Dave": nothing
            "I am not Dana": nothing
            "my name is not important": nothing
            "I'm Dana's friend": nothing
            "Miami Dana": nothing
            "I'm 42": nothing
        "#]],
    );
}

#[test]
fn roles() {
    check(
        Role::User,
        &[
            "I'm a junior developer.",
            "I am an engineer at Acme",
            "i'm a Node.js developer for hire",
            "Actually, I'm a senior developer now.",
            "I'm a designer, not a coder",
            "I'm a tester!",
            // must not match
            "I'm a bit lost",
            "I'm at home",
            "I'm a, well",
            "I am about a mile away",
            "You're a developer",
        ],
        &expect![[r#"
            "I'm a junior developer.": fact personal/role = User is a junior developer .80 <I'm a junior developer>
            "I am an engineer at Acme": fact personal/role = User is a engineer .80 <I am an engineer>
            "i'm a Node.js developer for hire": fact personal/role = User is a Node.js developer .80 <i'm a Node.js developer>
            "Actually, I'm a senior developer now.": fact personal/role = User is a senior developer now .80 <I'm a senior developer now>
            "I'm a designer, not a coder": fact personal/role = User is a designer .80 <I'm a designer>
            "I'm a tester!": fact personal/role = User is a tester .80 <I'm a tester>
            "I'm a bit lost": nothing
            "I'm at home": nothing
            "I'm a, well": nothing
            "I am about a mile away": nothing
            "You're a developer": nothing
        "#]],
    );
}

#[test]
fn dates() {
    check(
        Role::User,
        &[
            "meeting on Tuesday",
            "the deadline is Monday",
            "It's due on 12/24, ok?",
            "due friday",
            "the demo is on 3/4",
            "presentation Wednesday and we are presenting on Thursday",
            "demoing Sunday",
            // must not match
            "deadline soon",
            "overdue Monday",
            "the meeting was on Tuesday",
            "due on 12-24",
            "presenting is Thursday",
            "deadline on Mondays",
            "meeting at 3/4",
        ],
        &expect![[r#"
            "meeting on Tuesday": fact schedule/event = Event on Tuesday .80 <meeting on Tuesday>
            "the deadline is Monday": fact schedule/deadline = Deadline on Monday .80 <deadline is Monday>
            "It's due on 12/24, ok?": fact schedule/deadline = Deadline on 12/24 .80 <due on 12/24>
            "due friday": fact schedule/deadline = Deadline on friday .80 <due friday>
            "the demo is on 3/4": fact schedule/event = Event on 3/4 .80 <demo is on 3/4>
            "presentation Wednesday and we are presenting on Thursday": fact schedule/event = Event on Wednesday .80 <presentation Wednesday>
            fact schedule/presentation = Presentation on Thursday .80 <presenting on Thursday>
            "demoing Sunday": fact schedule/presentation = Presentation on Sunday .80 <demoing Sunday>
            "deadline soon": nothing
            "overdue Monday": nothing
            "the meeting was on Tuesday": nothing
            "due on 12-24": nothing
            "presenting is Thursday": nothing
            "deadline on Mondays": nothing
            "meeting at 3/4": nothing
        "#]],
    );
}

#[test]
fn preference_names() {
    check(
        Role::User,
        &[
            "Please use npm for this.",
            "use pnpm and vitest and prettier with typescript",
            "I like functional style",
            "let's do object-oriented code",
            "I’ve switched to Neovim",
            "we moved to vscode",
            "I always use VS  Code",
            "I use 2 spaces",
            "I prefer tabs. Always 4 spaces in yaml",
            "npm is old. I use yarn, npm no more",
            "I prefer OOP",
            // must not match
            "npm is fine",
            "npm failed",
            "don't use npm",
            "never npm, I prefer it so",
            "use anything rather than jest",
            "I don’t like `tabs`",
            "do not use \"yarn\"",
            "I like unicorns",
            "use typescript-eslint and jest.config.js",
            "I like cavalier zedonk bunny",
            "reuse yarns",
            "I like 200 spaces",
            "please used npm",
        ],
        &expect![[r#"
            "Please use npm for this.": preference tooling/package_manager = npm .70 <npm>
            "use pnpm and vitest and prettier with typescript": preference tooling/package_manager = pnpm .70 <pnpm>
            preference tooling/formatter = prettier .70 <prettier>
            preference tooling/test_framework = vitest .70 <vitest>
            preference tooling/language = typescript .70 <typescript>
            "I like functional style": preference style/paradigm = functional .80 <functional style>
            "let's do object-oriented code": preference style/paradigm = object-oriented .80 <object-oriented>
            "I’ve switched to Neovim": preference tooling/editor = Neovim .70 <Neovim>
            "we moved to vscode": preference tooling/editor = VS Code .70 <vscode>
            "I always use VS  Code": preference tooling/editor = VS Code .70 <VS  Code>
            "I use 2 spaces": preference style/indentation = 2 spaces .80 <2 spaces>
            "I prefer tabs. Always 4 spaces in yaml": preference style/indentation = tabs .80 <tabs>
            "npm is old. I use yarn, npm no more": preference tooling/package_manager = yarn .70 <yarn>
            "I prefer OOP": preference style/paradigm = object-oriented .80 <OOP>
            "npm is fine": nothing
            "npm failed": nothing
            "don't use npm": nothing
            "never npm, I prefer it so": nothing
            "use anything rather than jest": nothing
            "I don’t like `tabs`": nothing
            "do not use \"yarn\"": nothing
            "I like unicorns": nothing
            "use typescript-eslint and jest.config.js": nothing
            "I like cavalier zedonk bunny": nothing
            "reuse yarns": nothing
            "I like 200 spaces": nothing
            "please used npm": nothing
        "#]],
    );
}

#[test]
fn decisions() {
    check(
        Role::Assistant,
        &[
            "Let's go with React for frontend.",
            "Hm. I'll use v1.2 of it. Then stop",
            "OK: we’ll use SQLite\nand more",
            "We decided to split the crate for now.",
            "The approach will be simple. The solution is to wait",
            "THE APPROACH IS this",
            // must not match
            "Let's go without React",
            "I'll reuse it",
            "undecided to go",
            "one approach is this",
            "solution is: wait",
            "I'll use",
            "we'll use.",
            "solutions will be found",
        ],
        &expect![[r#"
            "Let's go with React for frontend.": decision implementation/frontend = React for frontend .80 <Let's go with React for frontend>
            "Hm. I'll use v1.2 of it. Then stop": decision implementation/- = v1.2 of it .80 <I'll use v1.2 of it>
            "OK: we’ll use SQLite\nand more": decision implementation/- = SQLite .80 <we’ll use SQLite>
            "We decided to split the crate for now.": decision implementation/- = split the crate for now .80 <decided to split the crate for now>
            "The approach will be simple. The solution is to wait": decision implementation/- = simple .80 <The approach will be simple>
            decision implementation/- = to wait .80 <solution is to wait>
            "THE APPROACH IS this": nothing
            "Let's go without React": nothing
            "I'll reuse it": nothing
            "undecided to go": nothing
            "one approach is this": nothing
            "solution is: wait": nothing
            "I'll use": nothing
            "we'll use.": nothing
            "solutions will be found": nothing
        "#]],
    );
}

#[test]
fn who_says_it_matters() {
    check(
        Role::User,
        &["we'll use SQLite."],
        &expect![[r#"
        "we'll use SQLite.": nothing
    "#]],
    );
    check(
        Role::Assistant,
        &["My name is Bob. Use npm, not yarn, use pnpm"],
        &expect![[r#"
        "My name is Bob. Use npm, not yarn, use pnpm": nothing
    "#]],
    );
    check(
        Role::Tool,
        &["My name is Bob. I'll use npm."],
        &expect![[r#"
        "My name is Bob. I'll use npm.": nothing
    "#]],
    );
    check(
        Role::System,
        &["My name is Bob. I'll use npm."],
        &expect![[r#"
        "My name is Bob. I'll use npm.": nothing
    "#]],
    );
}

fn with_preferences() -> Bench {
    let mut bench = Bench::default();
    bench.item(preference("p1", "package_manager", "x"), "npm");
    bench.item(preference("p2", "editor", "x"), "VS Code");
    let color =
        acpdb_engine::event::MemoryRecorded { category: "style".into(), ..preference("p3", "color", "x") };
    bench.item(color, "red");
    bench
}

#[test]
fn corrections_are_applied_to_what_is_known() {
    let bench = with_preferences();
    let mut table = String::new();
    for text in [
        "not npm, use pnpm",
        "switch from NPM to yarn",
        "change color to Blue",
        "change red to green",
        "instead of vscode, use nvim",
        "not yarn, use npm",
        "not emacs, but helix",
        "not jest, use vitest",
        "not functional, use object-oriented",
        "change foo to bar",
        "not npm, use pnpm. I like yarn",
        "I prefer npm",
        "I prefer bun",
    ] {
        write!(table, "{text}: {}", proposals(&bench, Role::User, text)).unwrap();
        if !table.ends_with('\n') {
            table.push_str("nothing\n");
        }
    }
    expect![[r#"
        not npm, use pnpm: correction tooling/package_manager = pnpm .90 supersedes p1 <not npm, use pnpm>
        switch from NPM to yarn: correction tooling/package_manager = yarn .90 supersedes p1 <switch from NPM to yarn>
        change color to Blue: correction style/color = blue .90 supersedes p3 <change color to Blue>
        change red to green: correction style/color = green .90 supersedes p3 <change red to green>
        instead of vscode, use nvim: correction tooling/editor = Neovim .90 supersedes p2 <instead of vscode, use nvim>
        not yarn, use npm: correction tooling/package_manager = npm .90 reinforces p1 <not yarn, use npm>
        not emacs, but helix: correction tooling/editor = Helix .90 supersedes p2 <not emacs, but helix>
        not jest, use vitest: correction tooling/test_framework = vitest .90 <not jest, use vitest>
        not functional, use object-oriented: correction style/paradigm = object-oriented .90 <not functional, use object>
        change foo to bar: nothing
        not npm, use pnpm. I like yarn: correction tooling/package_manager = pnpm .90 supersedes p1 <not npm, use pnpm>
        I prefer npm: preference tooling/package_manager = npm .70 reinforces p1 <npm>
        I prefer bun: preference tooling/package_manager = bun .70 supersedes p1 <bun>
    "#]].assert_eq(&table);
}

#[test]
fn a_contradicted_fact_gains_and_an_equal_one_is_confirmed() {
    let mut bench = Bench::default();
    let name = acpdb_engine::event::MemoryRecorded {
        subject: Some("name".into()),
        lifespan: Lifespan::Permanent,
        ..record("f1", MemoryKind::Fact, "personal", "x")
    };
    bench.item(name, "User's name is Dana");
    let mut table = String::new();
    for text in ["My name is Bob", "my name is DANA", "I'm Dana Smith", "I'm a tester"] {
        table.push_str(&proposals(&bench, Role::User, text));
    }
    expect![[r#"
        fact personal/name = User's name is Bob .100 supersedes f1 <My name is Bob>
        fact personal/name = User's name is DANA .90 reinforces f1 <my name is DANA>
        fact personal/name = User's name is Dana Smith .100 supersedes f1 <I'm Dana Smith>
        fact personal/role = User is a tester .80 <I'm a tester>
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_decision_supersedes_the_one_on_its_subject_or_with_its_beginning() {
    let mut bench = Bench::default();
    for (id, text) in [
        ("d1", "React for frontend"),
        ("d2", "Postgres with a read replica in the same region"),
        ("d3", "trunk based development"),
    ] {
        bench.item(record(id, MemoryKind::Decision, "implementation", "x"), text);
    }
    let mut table = String::new();
    for text in [
        "Let's go with Vue for the Frontend.",
        "I'll use postgres with a read replica in the cloud.",
        "I'll use Postgres.",
        "We'll use react for frontend.",
        "Let's go with Go for backend",
        "decided to ship for now",
    ] {
        table.push_str(&proposals(&bench, Role::Assistant, text));
    }
    expect![[r#"
        decision implementation/frontend = Vue for the Frontend .80 supersedes d1 <Let's go with Vue for the Frontend>
        decision implementation/- = postgres with a read replica in the cloud .80 supersedes d2 <I'll use postgres with a read replica in the cloud>
        decision implementation/- = Postgres .80 <I'll use Postgres>
        decision implementation/frontend = react for frontend .80 reinforces d1 <We'll use react for frontend>
        decision implementation/backend = Go for backend .80 <Let's go with Go for backend>
        decision implementation/- = ship for now .80 <decided to ship for now>
    "#]].assert_eq(&table);
}

#[test]
fn an_unstable_key_asks() {
    let mut bench = Bench::default();
    for (id, value) in [("p1", "npm"), ("p2", "yarn"), ("p3", "bun")] {
        bench.item(preference(id, "package_manager", "x"), value);
    }
    expect![[r#"
        preference tooling/package_manager = pnpm .70 supersedes p3 ask <pnpm>
    "#]]
    .assert_eq(&proposals(&bench, Role::User, "I prefer pnpm"));
}

#[test]
fn the_table_is_data() {
    let table: PreferenceTable = serde_json::from_str(
        r#"[{"category": "workflow", "key": "branching", "confidence": 60,
             "values": [{"value": "trunk", "names": ["trunk-based", "Stammentwicklung"]}]}]"#,
    )
    .unwrap();
    let bench = Bench::default();
    let found = bench.view(|view| propose_with(&table, Role::User, "I like STAMMENTWICKLUNG and npm", view));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].item.value.as_str(), found[0].item.confidence), ("trunk", 60));
}

#[test]
fn lengths_are_limited() {
    let long = format!("actually {}", "a".repeat(500));
    assert_eq!(corrections(&long)[0].to.len(), 100);
    let long = format!("I'll use {}", "é".repeat(500));
    let bench = Bench::default();
    let found = bench.view(|view| propose(Role::Assistant, &long, view));
    assert_eq!(found[0].item.value.chars().count(), 200);
    let beyond = format!("{}. My name is Bob", " ".repeat(TEXT_BYTES_MAX));
    assert!(bench.view(|view| propose(Role::User, &beyond, view)).is_empty());
    let many = "i'll use thing\ni'll use other\n".repeat(1000);
    assert_eq!(bench.view(|view| propose(Role::Assistant, &many, view)).len(), 2);
}

/// Words that the patterns are made of, and characters whose case or width is odd.
fn fragment() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "not",
        "use",
        "but",
        "change",
        "from",
        "to",
        "instead of",
        "actually",
        "no,",
        "I meant",
        "I'm",
        "i am",
        "a",
        "my name is",
        "Dana",
        "npm",
        "pnpm",
        "2 spaces",
        "object-oriented",
        "deadline",
        "Monday",
        "1/2",
        "let's go with",
        "I'll use",
        "the approach is",
        ".",
        ",",
        ";",
        "\n",
        "’",
        "'",
        "-",
        "İ",
        "ß",
        "ﬃ",
        "𝕏",
        "\u{301}",
        "\u{feff}",
        "ǅ",
        "K",
        "ſ",
        "don't",
        "VS Code",
        "for",
        "at",
        "\u{2028}",
        "\0",
        "\"",
        "“",
        "”",
        "```",
        "\n```\n",
    ]);
    prop_oneof![4 => words.prop_map(str::to_owned), 1 => any::<String>()]
}

fn text() -> impl Strategy<Value = String> {
    let joint = prop::sample::select(vec!["", " ", "  ", ", ", "\n"]);
    prop::collection::vec((fragment(), joint), 0..30)
        .prop_map(|pieces| pieces.into_iter().map(|(word, joint)| word + joint).collect())
}

proptest! {
    #[test]
    fn any_text_is_read_and_places_lie_in_it(text in text()) {
        let bench = with_preferences();
        for found in corrections(&text) {
            prop_assert!(text.get(found.start..found.end).is_some_and(|range| !range.is_empty()));
            prop_assert!(!found.to.is_empty() && found.to.chars().count() <= 100);
            prop_assert_eq!(found.from.is_none(), found.category == CorrectionCategory::Fact);
        }
        for role in [Role::User, Role::Assistant] {
            for found in bench.view(|view| propose(role, &text, view)) {
                prop_assert!(text.get(found.start..found.end).is_some_and(|range| !range.is_empty()));
                prop_assert!(!found.item.value.trim().is_empty());
                prop_assert!(found.supersedes.is_empty() || found.reinforces.is_none());
            }
        }
    }

    #[test]
    fn tokens_cover_all_but_white_space(text in text()) {
        let scan = TokenScan::new(&text);
        let mut end = 0;
        for index in 0..scan.len() {
            let token = scan.token(index).unwrap();
            prop_assert!(text[end..token.start].chars().all(acpdb_engine::text::is_space));
            prop_assert_eq!(&text[token.start..token.end()], token.text);
            end = token.end();
        }
        prop_assert!(text[end..].chars().all(acpdb_engine::text::is_space));
    }
}

#[test]
fn a_forks_parent_is_read_and_never_written() {
    let mut bench = Bench::default();
    bench.item(preference("p1", "package_manager", "x"), "npm");
    bench.view(|view| {
        let layers = view.layers().iter().cloned();
        let layers = layers.map(|layer| acpdb_engine::fold::memory::MemoryLayer { until: Seq(9), ..layer });
        let none = |_| None;
        let read_only = MemoryView::new(layers.collect(), Seq::MAX, view.now(), &none);
        let found = propose(Role::User, "I prefer pnpm", &read_only);
        assert!(found[0].supersedes.is_empty());
    });
}

/// The quick look never says no if the full comparison says yes.
#[test]
fn a_quick_look_at_a_word_misses_nothing() {
    let begins = super::scan::Begins::of(["let's", "N spaces", "Object-oriented", "élan"].into_iter());
    assert!(["Let", "2", "14", "OBJECT", "Élan", "x"].iter().all(|word| begins.may_begin_with(word)));
    let begins = super::scan::Begins::of(["let's", "N spaces", "a"].into_iter());
    let may: Vec<&str> = ["LETTER", "led", "lot", "7", "77", "7a", "A", "an", "\u{212a}", ""]
        .into_iter()
        .filter(|word| begins.may_begin_with(word))
        .collect();
    assert_eq!(may, ["LETTER", "led", "7", "77", "A", "\u{212a}"]);
}

/// Each name looked through its whole sentence, and each opening of a decision through its clause: a pasted line of 100,000 words took
/// minutes.
#[test]
fn a_line_without_an_end_takes_no_longer_than_its_length() {
    let bench = Bench::default();
    for (role, words) in [
        (Role::User, "always use npm and "),
        (Role::User, "npm "),
        (Role::User, "dana says if "),
        (Role::Assistant, "they decided to "),
        (Role::Assistant, "no we'll use it to "),
    ] {
        let _ = proposals(&bench, role, &words.repeat(40_000));
    }
    let scan = super::scan::TokenScan::new("one two. three\nfour");
    assert_eq!((0..5).map(|index| scan.clause_end(index)).collect::<Vec<_>>(), [2, 2, 2, 4, 5]);
    assert_eq!(
        (0..5).map(|index| scan.sentence_of(index)).collect::<Vec<_>>(),
        [0..3, 0..3, 0..3, 3..4, 4..5]
    );
}
