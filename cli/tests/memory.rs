//! `acpdb memory` as a user sees it: output, refusals, and memory files of real projects.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

mod done;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use done::{Done, finish};

struct Shell {
    folder: TempDir,
}

impl Shell {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn run(&self, args: &[&str], stdin: &str) -> Done {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command.arg("--db").arg(self.folder.path().join("store")).args(args);
        command.env_remove("ACPDB_PATH").env("COLUMNS", "160");
        finish(&mut command, stdin)
    }

    /// The output of a command that ends well.
    fn out(&self, args: &[&str]) -> String {
        let done = self.run(args, "");
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
        done.out
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.out(&[args, &["--json"]].concat())).unwrap()
    }

    /// The items of a list.
    fn items(&self, args: &[&str]) -> Vec<Value> {
        self.json(args)["items"].as_array().unwrap().clone()
    }

    fn head(&self) -> Value {
        self.json(&["info"])["head"].clone()
    }

    fn refuses(&self, args: &[&str], code: i32, part: &str) {
        let before = self.head();
        let done = self.run(args, "");
        let shown: Vec<&str> = args.iter().map(|arg| arg.get(..40).unwrap_or(arg)).collect();
        assert_eq!(done.code, code, "{shown:?}: {}", done.err);
        assert!(done.err.contains(part), "{shown:?}: {}", done.err);
        assert_eq!(self.head(), before, "{shown:?} recorded something");
    }

    /// A session of project `p` in which the user says these things.
    fn said(&self, texts: &[&str]) {
        let lines: Vec<String> = (texts.iter())
            .map(|text| {
                let message = serde_json::json!({"role": "user", "text": text});
                serde_json::json!({"session": "s1", "project": "p", "message": message}).to_string()
            })
            .collect();
        let done = self.run(&["append", "--stdin"], &lines.join("\n"));
        assert_eq!(done.code, 0, "{done:?}");
    }
}

fn field<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// Each line without the seq and the day, which say nothing here.
fn drawn(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| {
            let words = line.split_whitespace();
            let is_day = |word: &str| word.len() == 11 && word.as_bytes()[4] == b'-' && word.ends_with('Z');
            let dull = |word: &&str| word.starts_with('#') || is_day(word);
            words.filter(|word| !dull(word)).collect::<Vec<_>>().join(" ")
        })
        .collect()
}

#[test]
fn what_is_remembered_can_be_listed_superseded_retracted_and_restored() {
    let shell = Shell::new();
    let add = |args: &[&str]| shell.out(&[&["memory", "add"], args, &["--project", "p"]].concat());
    add(&["fact", "The API listens on 8080", "--subject", "api"]);
    add(&["preference", "package_manager", "npm"]);
    let before = shell.head().to_string();
    let said = add(&["preference", "package_manager", "pnpm"]);
    assert_eq!(
        drawn(&said),
        ["recorded: preference p2 tooling/package_manager = pnpm", "in the place of p1: npm"]
    );
    add(&["decision", "Use React for frontend", "--rationale", "known", "--alternative", "Vue"]);
    add(&["note", "look at the logs"]);

    let ids = |args: &[&str]| -> Vec<String> {
        let items = shell.items(&[&["memory", "list"], args].concat());
        items.iter().map(|item| field(item, "id").to_owned()).collect()
    };
    assert_eq!(ids(&[]), ["f1", "p2", "d1", "n1"]);
    assert_eq!(ids(&["--all"]), ["f1", "p1", "p2", "d1", "n1"]);
    assert_eq!(ids(&["--kind", "preference", "--all"]), ["p1", "p2"]);
    assert_eq!(ids(&["--at", &format!("#{before}")]), ["f1", "p1"]);
    for name in ["package_manager", "tooling/package_manager"] {
        assert_eq!(shell.out(&["memory", "get", name]), "pnpm\n");
        assert_eq!(
            drawn(&shell.out(&["memory", "history", name])),
            ["tooling/package_manager", "○ p1 npm superseded by p2 (key)", "● p2 pnpm current 0.80"]
        );
    }

    // An equal value is a reinforcement.
    assert!(add(&["preference", "package_manager", "PNPM"]).contains("reinforced"));
    assert_eq!(ids(&["--kind", "preference"]), ["p2"]);

    add(&["decision", "Use Vue for dashboards"]);
    let said = shell.out(&["memory", "supersede", "d1", "d2", "--reason", "lighter"]);
    assert!(said.contains("holds now: decision d2"), "{said}");
    assert_eq!(
        drawn(&shell.out(&["memory", "history", "d1"])),
        [
            "decision d1",
            "○ d1 Use React for frontend superseded by d2 (link): lighter",
            "● d2 Use Vue for dashboards current 0.80",
        ]
    );
    shell.refuses(&["memory", "supersede", "d2", "d1"], 2, "already took the place");

    shell.out(&["memory", "retract", "package_manager", "--reason", "no longer"]);
    assert_eq!(shell.run(&["memory", "get", "package_manager"], "").code, 7);
    shell.refuses(&["memory", "retract", "p2"], 2, "already retracted");

    // Undone, one step after the other: by key, by id, by place.
    assert!(shell.out(&["memory", "restore", "package_manager"]).contains("holds again: preference p2"));
    // It named the item in whose place p1 had been at first.
    let again = shell.out(&["memory", "restore", "p1"]);
    assert!(again.contains("holds again: preference p1") && again.contains("in the place of p2"), "{again}");
    assert_eq!(shell.out(&["memory", "get", "package_manager"]), "npm\n");
    let place = shell.items(&["memory", "list", "--all"]).into_iter().find(|item| field(item, "id") == "d1");
    shell.out(&["memory", "restore", field(&place.unwrap(), "item")]);
    assert_eq!(ids(&["--kind", "decision"]), ["d1", "d2"]);
    shell.refuses(&["memory", "restore", "d1"], 2, "nothing to restore");
    assert_eq!(shell.run(&["memory", "restore", "nothing"], "").code, 7);
}

#[test]
fn what_cannot_be_remembered_is_refused_and_nothing_is_recorded() {
    let shell = Shell::new();
    shell.out(&["memory", "add", "fact", "known", "--project", "p"]);
    shell.out(&["memory", "add", "fact", "elsewhere", "--project", "q"]);
    let far = shell.items(&["memory", "list", "--project", "q"]);
    let far = field(&far[0], "item");
    let long = "x".repeat(100_000);
    let too_long: Vec<&str> = std::iter::repeat_n(long.as_str(), 12).collect();
    let cases: [(&[&str], &str); 18] = [
        (&["add", "preference", "", "pnpm"], "needs a key"),
        (&["add", "preference", "package_manager", ""], "needs a value"),
        (&["add", "preference", "package_manager", " \t"], "needs a value"),
        (&["add", "fact", ""], "needs a value"),
        (&["add", "fact", "x", "--confidence", "1.01"], "not between 0 and 1"),
        (&["add", "fact", "x", "--confidence=-0.1"], "not between 0 and 1"),
        (&["add", "fact", "x", "--confidence", "NaN"], "not between 0 and 1"),
        (&["add", "fact", "x", "--confidence", "much"], "no number"),
        (&["add", "fact", "x", "--lifespan", "week"], "unknown lifespan"),
        (&["add", "fact", "x", "--category", "weather"], "unknown fact category"),
        (&["add", "opinion", "x"], "no kind of memory"),
        (&["add", "preference", "a\u{7}b", "v"], "control characters"),
        (&["add", "preference", "a\nb", "v"], "control characters"),
        (&["supersede", "f1", "f1"], "cannot supersede itself"),
        (&["add", "fact", "x", "--replaces", far], "is a memory item of"),
        (&["supersede", "f1", far], "is a memory item of"),
        (&["supersede", far, "f1"], "is a memory item of"),
        (&[&["add", "fact"], too_long.as_slice()].concat(), "1048576"),
    ];
    for (args, part) in cases {
        shell.refuses(&[&["memory"], args, &["--project", "p"]].concat(), 2, part);
    }
    for args in
        [&["supersede", "f1", "f9"][..], &["add", "fact", "x", "--replaces", "f9"], &["retract", "f9"]]
    {
        shell.refuses(&[&["memory"], args, &["--project", "p"]].concat(), 7, "no memory item");
    }
}

/// "Not npm, use pnpm", said in a session, ends with pnpm in npm's place.
#[test]
fn what_a_session_says_is_proposed_with_its_sentence_and_accepted_by_number() {
    let shell = Shell::new();
    shell.said(&[
        "We use npm here.",
        "Please: not npm, use pnpm. Thanks!",
        "I'm Dana. The deadline is Friday.",
    ]);
    let found = shell.items(&["memory", "propose", "s1"]);
    let sentences: Vec<&str> = found.iter().map(|item| field(item, "sentence")).collect();
    assert!(sentences.contains(&"We use npm here."), "{sentences:?}");
    let text = shell.out(&["memory", "propose", "s1"]);
    assert!(text.contains("preference tooling/package_manager = npm"), "{text}");
    assert!(text.contains("We use npm here."), "{text}");
    shell.refuses(&["memory", "propose", "s1", "--accept", "99"], 2, "no number of a proposal");
    shell.refuses(&["memory", "propose", "s1", "--accept", "0"], 2, "no number of a proposal");

    shell.out(&["memory", "propose", "s1", "--accept", "1"]);
    assert_eq!(shell.out(&["memory", "get", "package_manager", "--session", "s1"]), "npm\n");
    let rest = shell.items(&["memory", "propose", "s1"]);
    assert_eq!(rest.len(), found.len() - 1, "what was accepted is proposed no more");
    let correction = rest.iter().find(|item| field(item, "rule") == "correction").unwrap();
    assert_eq!(field(correction, "sentence"), "Please: not npm, use pnpm.");
    shell.out(&["memory", "propose", "s1", "--accept", "all"]);
    assert_eq!(
        drawn(&shell.out(&["memory", "history", "tooling/package_manager", "--session", "s1"])),
        ["tooling/package_manager", "○ p1 npm superseded by p2 (key)", "● p2 pnpm current 0.90"]
    );
    assert_eq!(shell.items(&["memory", "propose", "s1"]), Vec::<Value>::new());
    let facts: Vec<String> = (shell.items(&["memory", "list", "--session", "s1", "--kind", "fact"]).iter())
        .map(|item| format!("{} {}", field(item, "value"), field(item, "lifespan")))
        .collect();
    assert_eq!(facts, ["User's name is Dana permanent", "Deadline on Friday session"]);
}

#[test]
fn the_context_shows_what_is_remembered_and_restores_it_by_its_place() {
    let shell = Shell::new();
    shell.said(&["hello"]);
    for value in ["npm", "pnpm"] {
        shell.out(&["memory", "add", "preference", "package_manager", value, "--session", "s1"]);
    }
    let memory = |shell: &Shell| -> Vec<String> {
        let context = shell.json(&["context", "s1"]);
        let rows = context["memory"].as_array().unwrap().clone();
        rows.iter().map(|row| field(row, "value").to_owned()).collect()
    };
    assert_eq!(memory(&shell), ["pnpm"]);
    let text = shell.out(&["context", "s1"]);
    assert!(
        text.contains("memory: 1 item") && text.contains("preference tooling/package_manager: pnpm"),
        "{text}"
    );
    let all = shell.items(&["memory", "list", "--session", "s1", "--all"]);
    let npm = field(&all[0], "item");
    let reply = shell.out(&["context", "restore", npm, "--session", "s1"]);
    assert_eq!(reply, "Restored 1 memory item(s)\n");
    assert_eq!(memory(&shell), ["npm"]);
    shell.refuses(&["context", "restore", npm, "--session", "s1"], 2, "nothing to restore");
    shell.refuses(&["context", "restore", npm, "#3", "--session", "s1"], 2, "some are not");
}

/// The session in docs/RULES.md is printed as it stands there.
#[test]
fn the_rules_show_what_is_printed() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/RULES.md");
    let rules = std::fs::read_to_string(path).unwrap();
    let shell = Shell::new();
    let mut printed = String::new();
    let example = rules.split("```console\n").skip(1).find(|block| block.contains("acpdb memory")).unwrap();
    let example = example.split("```").next().unwrap();
    for command in example.lines().filter_map(|line| line.strip_prefix("$ acpdb ")) {
        let args: Vec<&str> = command.split(' ').map(|arg| arg.trim_matches('\'')).collect();
        printed.extend(["$ acpdb ", command, "\n", &shell.out(&args)]);
    }
    assert_eq!(printed, example);
}

/// The folders of memory files: one that is made here, and the folder of recorded ones if `ACPDB_RECORDINGS` names it.
fn folders(made: &Path) -> Vec<PathBuf> {
    let day = |number: usize| format!("2025-{:02}-{:02}T09:00:00+00:00", 1 + number / 28, 1 + number % 28);
    let preference = |number: usize, key: &str, value: Option<&str>, previous: Option<&str>| {
        let (ts, commit) = (day(number), format!("{number:012x}"));
        json!({"ts": ts, "commit": commit, "category": "tooling", "key": key, "value": value, "previous": previous})
    };
    for (name, ends_removed) in
        [("preferences-gemini-cli-package-json", false), ("preferences-gemini-cli-core-package-json", true)]
    {
        let version = |number: usize| format!("1.{number}.0");
        let mut lines = Vec::new();
        for number in 0..60_usize {
            let previous = number.checked_sub(1).map(version);
            lines.push(preference(number, "version", Some(&version(number)), previous.as_deref()));
            if number % 7 == 0 {
                let runner = format!("node --test {number}");
                lines.push(preference(number, "scripts/test", Some(&runner), None));
            }
        }
        if ends_removed {
            lines.push(preference(60, "version", None, Some(&version(59))));
        }
        write(&made.join(format!("{name}.jsonl")), &lines);
    }
    let decision = |number: usize, replaces: Vec<String>, superseded_by: Vec<String>| {
        let status = if superseded_by.is_empty() { "Active" } else { "Superseded" };
        let (id, title) = (format!("rfc-{number:04}"), format!("Layout of the cache, version {number}"));
        let created = format!("{:02}-Mar-2024", 1 + number % 28);
        json!({"id": id, "title": title, "status": status, "category": "Process", "topic": null, "created": created,
            "replaces": replaces, "superseded_by": superseded_by})
    };
    let id = |number: usize| format!("rfc-{number:04}");
    // A chain of seven, linked from one side or the other, and decisions that stand alone.
    let chain = (1..=7).map(|number| {
        let replaces = if number > 1 && number % 2 == 0 { vec![id(number - 1)] } else { Vec::new() };
        let superseded_by = if number % 2 == 0 && number < 7 { vec![id(number + 1)] } else { Vec::new() };
        decision(number, replaces, superseded_by)
    });
    let alone = (20..40).map(|number| decision(number, Vec::new(), Vec::new()));
    write(&made.join("decisions-peps.jsonl"), &chain.chain(alone).collect::<Vec<_>>());
    let recorded = std::env::var_os("ACPDB_RECORDINGS").map(|folder| PathBuf::from(folder).join("memory"));
    std::iter::once(made.to_owned()).chain(recorded).collect()
}

fn write(file: &Path, lines: &[Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(file, text).unwrap();
}

fn records(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The most often set preference of a file: its name, its values in order, and whether it was removed at the end.
fn longest_preference(records: &[Value]) -> (String, Vec<String>, bool) {
    let mut by_key: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for record in records {
        let name = format!("{}/{}", field(record, "category"), field(record, "key"));
        by_key.entry(name).or_default().push(record);
    }
    let (name, records) = by_key.into_iter().max_by_key(|(_, records)| records.len()).unwrap();
    let mut values: Vec<String> = Vec::new();
    let mut held = None;
    for record in &records {
        let value = record["value"].as_str();
        if let Some(value) = value.filter(|value| held != Some(*value)) {
            values.push(value.to_owned());
        }
        held = value;
    }
    (name, values, held.is_none())
}

/// The longest path of links among decisions, oldest first.
fn longest_path(records: &[Value]) -> Vec<String> {
    let known: Vec<&str> = records.iter().map(|record| field(record, "id")).collect();
    let mut newer: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in records {
        let id = field(record, "id").to_owned();
        for new in record["superseded_by"].as_array().unwrap() {
            newer.entry(id.clone()).or_default().push(new.as_str().unwrap().to_owned());
        }
        for old in record["replaces"].as_array().unwrap() {
            newer.entry(old.as_str().unwrap().to_owned()).or_default().push(id.clone());
        }
    }
    let mut paths: Vec<Vec<String>> = known.iter().map(|id| vec![(*id).to_owned()]).collect();
    let mut longest = paths[0].clone();
    while let Some(path) = paths.pop() {
        for new in newer.get(path.last().unwrap()).into_iter().flatten() {
            if known.contains(&new.as_str()) && !path.contains(new) {
                paths.push([path.clone(), vec![new.clone()]].concat());
            }
        }
        if path.len() > longest.len() {
            longest = path;
        }
    }
    longest
}

/// Imports a file twice; the second import adds nothing.
fn import(shell: &Shell, file: &Path, project: &str) {
    let file = file.to_str().unwrap();
    shell.out(&["memory", "import", file, "--project", project]);
    let head = shell.head();
    let again = shell.json(&["memory", "import", file, "--project", project]);
    assert_eq!((&again["events"], shell.head()), (&Value::from(0), head), "{file} twice");
}

#[test]
fn the_longest_chain_of_each_file_is_drawn_whole_and_in_order() {
    let made = tempfile::tempdir().unwrap();
    for folder in folders(made.path()) {
        the_longest_chains_are_drawn(&folder);
    }
}

fn the_longest_chains_are_drawn(folder: &Path) {
    for name in ["preferences-gemini-cli-package-json", "preferences-gemini-cli-core-package-json"] {
        let file = folder.join(format!("{name}.jsonl"));
        let (key, values, is_removed) = longest_preference(&records(&file));
        assert!(values.len() > 50, "{key}");
        let shell = Shell::new();
        import(&shell, &file, "p");
        let chains = shell.items(&["memory", "history", &key]);
        assert_eq!(chains.len(), 1);
        let members: Vec<&Value> =
            chains[0]["items"].as_array().unwrap().iter().map(|member| &member["item"]).collect();
        let found: Vec<&str> = members.iter().map(|item| field(item, "value")).collect();
        assert_eq!(found, values, "{key}");
        let current = members.iter().filter(|item| field(item, "standing") == "current").count();
        assert_eq!(current, usize::from(!is_removed), "{key}");
        let last = members.last().unwrap();
        assert_eq!(field(last, "standing"), if is_removed { "retracted" } else { "current" });

        let text = shell.out(&["memory", "history", &key]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines.len()), (key.as_str(), values.len() + 1));
        for (line, value) in lines[1..].iter().zip(&values) {
            assert!(line.contains(&format!("{key}@2")), "{line}");
            let start: String = value.chars().take(12).collect();
            assert!(line.contains(&start), "{line} has {value}");
        }
        assert_eq!(lines.iter().filter(|line| line.starts_with('●')).count(), current);
    }

    let file = folder.join("decisions-peps.jsonl");
    let path = longest_path(&records(&file));
    assert!(path.len() >= 5, "{path:?}");
    let shell = Shell::new();
    import(&shell, &file, "p");
    let text = shell.out(&["memory", "history", &path[0]]);
    let places: Vec<usize> = (path.iter())
        .map(|id| text.lines().position(|line| line.split_whitespace().nth(1) == Some(id.as_str())).unwrap())
        .skip(1)
        .collect();
    assert!(places.is_sorted(), "{text}");
    let last = text.lines().last().unwrap();
    assert!(last.starts_with('●') && last.contains(path.last().unwrap()), "{text}");
    assert_eq!(text.matches('●').count(), 1, "{text}");
}

#[test]
fn an_export_imported_into_a_new_store_gives_what_was_there() {
    let made = tempfile::tempdir().unwrap();
    for folder in folders(made.path()) {
        exports_give_what_was_there(&folder);
    }
}

fn exports_give_what_was_there(folder: &Path) {
    for name in
        ["preferences-gemini-cli-package-json", "preferences-gemini-cli-core-package-json", "decisions-peps"]
    {
        let shell = Shell::new();
        import(&shell, &folder.join(format!("{name}.jsonl")), "p");
        let list = |shell: &Shell, all: bool| -> Vec<Vec<String>> {
            let args: &[&str] = if all { &["memory", "list", "--all"] } else { &["memory", "list"] };
            let mut rows: Vec<Vec<String>> = (shell.items(args).iter())
                .map(|item| {
                    let fields =
                        ["id", "kind", "category", "key", "value", "standing", "created", "lifespan"];
                    fields.iter().map(|name| item[name].to_string()).collect()
                })
                .collect();
            rows.sort();
            rows
        };
        for all in [false, true] {
            let args: &[&str] = if all { &["memory", "export", "--all"] } else { &["memory", "export"] };
            let file = shell.folder.path().join("export.jsonl");
            std::fs::write(&file, shell.out(args)).unwrap();
            let copy = Shell::new();
            import(&copy, &file, "p");
            assert_eq!(list(&copy, false), list(&shell, false), "{name}");
            if all {
                assert_eq!(list(&copy, true), list(&shell, true), "{name}");
            }
        }
    }
}

/// An item that a session was told to remember for its project stayed in the session when it came by `append`; so did a permanent item. A value that
/// was said again in other letters replaced itself.
#[test]
fn memory_goes_to_the_stream_of_its_lifespan_by_every_door() {
    let shell = Shell::new();
    let line = |session: &str, memory: Value| {
        let line = serde_json::json!({"session": session, "project": "shop", "memory": memory});
        let done = shell.run(&["append", "--stdin"], &line.to_string());
        assert_eq!(done.code, 0, "{done:?}");
    };
    let editor = |value: &str| serde_json::json!({"kind": "preference", "category": "tooling", "key": "editor", "value": value});
    line("s1", editor("vim"));
    line(
        "s1",
        serde_json::json!({"kind": "fact", "value": "the build runs at night", "lifespan": "project"}),
    );
    line(
        "s1",
        serde_json::json!({"kind": "fact", "value": "the user is left-handed", "lifespan": "permanent"}),
    );
    line("s1", serde_json::json!({"kind": "fact", "value": "only for now", "lifespan": "session"}));
    let message =
        serde_json::json!({"session": "s2", "project": "shop", "message": {"role": "user", "text": "hello"}});
    assert_eq!(shell.run(&["append", "--stdin"], &message.to_string()).code, 0);
    let values = |args: &[&str]| -> Vec<String> {
        let items = shell.items(&[&["memory", "list"], args].concat());
        items.iter().map(|item| field(item, "value").to_owned()).collect()
    };
    // Another session of the project sees the items of the project and of the user, and so does the project.
    let shared = ["vim", "the build runs at night", "the user is left-handed"];
    assert_eq!(values(&["--session", "s2"]), shared);
    assert_eq!(values(&["--project", "shop"]), shared);
    // The same value in other letters is the same value.
    line("s2", editor("VIM"));
    assert_eq!(values(&["--project", "shop", "--all"]), shared);
    let held = shell.items(&["memory", "list", "--project", "shop", "--kind", "preference"]);
    assert!(held[0]["reinforced"].is_string(), "{held:?}");
    line("s2", editor("helix"));
    assert_eq!(shell.out(&["memory", "get", "editor", "--project", "shop"]).trim(), "helix");
    assert_eq!(shell.run(&["verify", "--deep"], "").code, 0);
}

/// The first item ever remembered, permanent and for a project, was recorded, and then there was "no project".
#[test]
fn a_permanent_fact_can_be_the_first_of_all() {
    let shell = Shell::new();
    let done = shell
        .run(&["memory", "add", "fact", "tea", "not", "coffee", "--lifespan", "permanent", "-p", "p"], "");
    assert_eq!(done.code, 0, "{done:?}");
    for args in [&["memory", "list"][..], &["memory", "list", "-p", "p"]] {
        let items = shell.items(args);
        assert_eq!(items.iter().map(|item| field(item, "value")).collect::<Vec<_>>(), ["tea not coffee"]);
    }
    assert_eq!(shell.out(&["memory", "get", "f1"]).trim(), "tea not coffee");
    shell.refuses(&["memory", "list", "-p", "q"], 7, "no project");
}

/// Lines without the schema's name were taken for another program's, of which four in six were left out without a word.
#[test]
fn every_line_of_a_memory_file_is_recorded_or_named() {
    let shell = Shell::new();
    let file = shell.folder.path().join("mine.jsonl");
    let lines = [
        r#"{"kind":"fact","value":"one","lifespan":"project","confidence":0.5,"who":"ann"}"#,
        r#"{"kind":"preference","category":"tooling","key":"editor","value":"vim"}"#,
        "",
        r#"{"kind":"preference","value":"no key"}"#,
        r#"{"kind":"decision","value":"two","rationale":"why not"}"#,
        r#"{"kind":"decision"}"#,
        r#"{"kind":"wish","value":"no kind of memory"}"#,
        "not json",
        r#"{"kind":"note","value":"three","lifespan":"permanent"}"#,
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let path = file.to_str().unwrap();
    let done = shell.run(&["memory", "import", path, "--project", "p"], "");
    assert_eq!(done.code, 8, "{done:?}");
    for (number, reason) in
        [(4, "needs a key"), (6, "no value"), (7, "unknown variant `wish`"), (8, "expected")]
    {
        let named = done.err.lines().find(|line| line.contains(&format!("line {number} was not recorded")));
        assert!(named.is_some_and(|line| line.contains(reason)), "line {number}: {}", done.err);
    }
    assert_eq!(done.err.matches("was not recorded").count(), 4, "{}", done.err);
    let items = shell.items(&["memory", "list", "--project", "p"]);
    assert_eq!(
        items.iter().map(|item| field(item, "value")).collect::<Vec<_>>(),
        ["one", "vim", "two", "three"]
    );
    assert_eq!((&items[0]["extra"]["who"], &items[0]["confirmed"]), (&Value::from("ann"), &Value::from(0.5)));
    let head = shell.head();
    assert_eq!(shell.run(&["memory", "import", path, "--project", "p"], "").code, 8);
    assert_eq!(shell.head(), head, "again adds nothing");
    // Of another program's file, too.
    let foreign = shell.folder.path().join("foreign.jsonl");
    std::fs::write(&foreign, "{\"id\":\"x-1\",\"title\":\"kept\",\"status\":\"Final\",\"replaces\":[],\"superseded_by\":[]}\n{\"id\":\"x-2\"}\n").unwrap();
    let done = shell.run(&["memory", "import", foreign.to_str().unwrap(), "--project", "q"], "");
    assert!(done.code == 8 && done.err.contains("line 2 was not recorded as memory: neither"), "{done:?}");
}

/// A replaced decision could not be found by its id, and `--chain` knew nothing of memory.
#[test]
fn what_was_superseded_is_found_by_its_id_and_by_its_chain() {
    let shell = Shell::new();
    shell.said(&["hello"]);
    let add = ["memory", "add", "decision", "--project", "p"];
    shell.out(&[&add[..], &["SQLite for the cache"]].concat());
    shell.out(&[&add[..], &["files for the cache", "--replaces", "d1"]].concat());
    let done = shell.run(&["memory", "get", "d1", "--project", "p"], "");
    assert_eq!((done.out.trim(), done.code), ("SQLite for the cache", 0), "{done:?}");
    assert!(done.err.contains("d1 does not hold: it is superseded"), "{done:?}");
    let chain = shell.out(&["history", "--chain", "d1"]);
    assert_eq!(chain, shell.out(&["memory", "history", "d1"]));
    assert!(chain.contains("SQLite for the cache") && chain.contains("superseded by d2"), "{chain}");
    assert_eq!(
        chain.lines().skip(1).collect::<Vec<_>>(),
        shell.out(&["history", "--chain", "d2"]).lines().skip(1).collect::<Vec<_>>()
    );
    let item = shell.items(&["memory", "list", "--project", "p"])[0]["item"].as_str().unwrap().to_owned();
    assert!(shell.out(&["history", "--chain", &item]).contains("files for the cache"));
    assert_eq!(shell.json(&["history", "--chain", "d1"])["schema"], "acpdb.memory_history/1");
    shell.refuses(&["history", "--chain", "d9"], 7, "no item is called \"d9\"");
}

/// A revision has the id of the item that it revises, and the history said of the item that holds that it was superseded by itself.
#[test]
fn of_the_revisions_of_one_id_only_the_last_one_is_current() {
    let shell = Shell::new();
    for value in ["SQLite", "Postgres", "acpdb"] {
        let file = shell.folder.path().join("one.jsonl");
        std::fs::write(&file, format!(r#"{{"id":"d1","kind":"decision","value":"use {value}"}}"#)).unwrap();
        shell.out(&["memory", "import", file.to_str().unwrap(), "--project", "a"]);
    }
    let history = shell.out(&["memory", "history", "d1", "-p", "a"]);
    let lines: Vec<&str> = history.lines().filter(|line| line.contains("use ")).collect();
    for (line, part) in [
        ("SQLite", "superseded by d1 (revised)"),
        ("Postgres", "superseded by d1 (revised)"),
        ("acpdb", "current"),
    ] {
        let found = lines.iter().find(|it| it.contains(&format!("use {line}"))).unwrap();
        assert!(found.contains(part) && found.matches("revised").count() < 2, "{history}");
    }
}
