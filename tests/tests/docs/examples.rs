//! Every example of the help and of the pages is typed into a shell, beside the store of the demo, and must end well.
//!
//! An example is left out only if it bears a mark that a reader sees: `needs a build with ..` where this build lacks it.
//! An example that goes on `until interrupted` is stopped once it has begun. The test prints the examples that it left
//! out, with the reason.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use acpdb_tests::binary::root;

use super::pages;
use super::world::World;

/// The words behind an example that this build may not know.
const NEEDS: &str = "needs a build with";
/// The words behind an example that does not end.
const ENDLESS: &str = "until interrupted";

/// A line that is typed, and the words beside it.
struct Example {
    line: String,
    about: String,
}

fn example(line: &str) -> Example {
    let (typed, about) = line.split_once("   ").unwrap_or((line, ""));
    // In a block of shell, the purpose of a line stands behind it as a comment.
    Example { line: typed.trim_end().to_owned(), about: about.trim().to_owned() }
}

/// The examples of each verb's help, as the reference of all has them: groups of one verb and its own verbs together.
fn of_help() -> Vec<(String, Vec<Example>)> {
    let text = std::fs::read_to_string(root().join("tests/tests/cli/reference.md")).unwrap();
    let mut groups: Vec<(String, Vec<Example>)> = vec![("acpdb".to_owned(), Vec::new())];
    for line in text.lines() {
        if let Some(verb) = line.strip_prefix("## ") {
            groups.push((verb.to_owned(), Vec::new()));
        } else if let Some(line) = line.strip_prefix("  ").filter(|line| line.starts_with("acpdb ")) {
            groups.last_mut().unwrap().1.push(example(line));
        }
    }
    groups.retain(|(_, examples)| !examples.is_empty());
    groups
}

/// Commands in blocks of shell.
fn of_page(page: &Path) -> Vec<Example> {
    let text = std::fs::read_to_string(page).unwrap();
    let blocks = super::blocks(&text).into_iter().filter(|(language, ..)| language == "sh");
    let lines = blocks.flat_map(|(.., block)| block.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| line.starts_with("acpdb ")).map(|line| example(&line)).collect()
}

/// The store of the demo, with the other things that the examples name: files, an act, a task, a setting.
fn prepared() -> World {
    let world = World::new();
    for folder in [
        ".claude/projects/shop",
        ".local/share/bash-completion/completions",
        ".local/share/man/man1",
        ".zfunc",
        ".config/fish/completions",
    ] {
        std::fs::create_dir_all(world.path("home").join(folder)).unwrap();
    }
    // The tester's own services are left alone.
    world.stands_in_for("systemctl", "echo active");
    world.stands_in_for("launchctl", "exit 0");
    for agent in ["claude", "codex", "my-agent"] {
        world.stands_in_for(agent, "exit 0");
    }
    let session = world.path(super::world::SESSION);
    std::fs::copy(session, world.path("home/.claude/projects/shop/session.jsonl")).unwrap();
    let says = r#"{"session":"e38a074a-4e13-5065-90bf-50e0880d827b","host":"claude-code","message":{"role":"user","text":"I prefer pnpm here."}}"#;
    world.write("events.jsonl", format!("{says}\n"));
    world.write("agent-context-pruning.jsonc", "{ // as the plug-in has it\n\"enabled\": true }\n");
    world.write("decisions.jsonl", r#"{"kind":"decision","value":"pages of fifty"}"#);
    world.write("tasks.json", r#"{"tasks":[{"id":"4","content":"Sort the list","status":"in_progress"}]}"#);
    for line in [
        "acpdb demo --bundled --keep .acpdb",
        "acpdb context discard g_a8834",
        "acpdb context discard g_4a763",
        "acpdb undo",
        "mkdir ~/team && acpdb demo --bundled --keep ~/team/.acpdb",
        "acpdb backup ~/backups/monday",
        "acpdb backup file://$HOME/backups/disk",
        "mkdir ~/laptop && acpdb demo --bundled --keep ~/laptop/.acpdb",
        r#"echo '{"tasks":[{"id":"3","content":"Pages","status":"in_progress"}]}' | acpdb task update"#,
        r#"echo '{"tasks":[{"id":"3","status":"completed","result_summary":"pages work and are tested"}]}' | acpdb task update"#,
        "acpdb append --stdin < events.jsonl",
        "acpdb context --format anthropic > request.json",
        "acpdb context --format openai > next.json",
        "acpdb context --format openai --at t70 > first.json",
        "acpdb config set pager less",
        "acpdb verify --head > ~/links",
        "acpdb key new",
        "acpdb key show > auditor.key",
        "acpdb checkpoint sign",
        "acpdb checkpoint export > now.note",
        "cp now.note last-month.note",
        "acpdb checkpoint prove '#297' -o event.tlog-proof",
        "acpdb checkpoint prove --from last-month.note -o grown.json",
        "printf 'quorum none\\n' > witnesses.txt",
        "acpdb --db ~/vault init --encrypt",
    ] {
        let ran = type_into(&world, line);
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
    }
    world
}

/// Types a line where the nearest store is the demo's.
fn type_into(world: &World, line: &str) -> super::world::Ran {
    let output = world.typed(line).env_remove("ACPDB_PATH").stdin(Stdio::null()).output().unwrap();
    let code = output.status.code().unwrap_or(-1);
    super::world::Ran { code, out: output.stdout, err: String::from_utf8_lossy(&output.stderr).into_owned() }
}

/// Begins a command that does not end, and stops it once it has said something.
fn begins(world: &World, line: &str) -> bool {
    let mut command = world.typed(&format!("exec {line}"));
    let mut child =
        command.env_remove("ACPDB_PATH").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = String::new();
    let read = BufReader::new(child.stdout.take().unwrap()).read_line(&mut first);
    child.kill().unwrap();
    let _ = child.wait();
    read.is_ok() && !first.is_empty()
}

/// The outcomes of examples.
#[derive(Default)]
struct Tried {
    count: usize,
    failed: Vec<String>,
    left_out: Vec<String>,
}

impl Tried {
    fn with(mut self, other: Self) -> Self {
        self.count += other.count;
        self.failed.extend(other.failed);
        self.left_out.extend(other.left_out);
        self
    }

    /// Tries the examples of a group, one after the other in one copy of `prepared`.
    fn group(&mut self, prepared: &World, group: &str, examples: &[Example]) {
        if examples.is_empty() {
            return;
        }
        let world = prepared.copied();
        for Example { line, about } in examples {
            self.count += 1;
            if about.contains(ENDLESS) {
                if !begins(&world, line) {
                    self.failed.push(format!("{group}: {line}: says nothing"));
                }
                continue;
            }
            let ran = type_into(&world, line);
            if about.contains(NEEDS) && ran.err.contains("was built without") {
                self.left_out.push(format!("{line}: {about}"));
            } else if ran.code != 0 {
                self.failed.push(format!("{group}: {line}: exit {}: {}", ran.code, ran.err.trim()));
            }
        }
    }
}

/// `policy set search=on` stood in the help for long, and no such key was ever known: examples were parsed, not run.
#[test]
fn every_example_works_as_it_is_typed() {
    let mut groups = of_help();
    for page in pages() {
        let examples = of_page(&page);
        groups.push((page.file_name().unwrap().to_string_lossy().into_owned(), examples));
    }
    // Each group has a world of its own, so as many as there are cores are tried at once.
    let prepared = prepared();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let tried = std::thread::scope(|scope| {
        let begun: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| {
                    let mut tried = Tried::default();
                    while let Some((group, examples)) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                        tried.group(&prepared, group, examples);
                    }
                    tried
                })
            })
            .collect();
        begun.into_iter().map(|worker| worker.join().unwrap()).reduce(Tried::with).unwrap()
    });
    let Tried { count, failed, left_out } = tried;
    println!("{count} examples, {} left out:", left_out.len());
    for line in &left_out {
        println!("  {line}");
    }
    assert!(count > 100, "examples that were found: {count}");
    // The screens.
    assert!(left_out.len() <= 2, "{left_out:?}");
    assert!(failed.is_empty(), "{} of {count} fail:\n{}", failed.len(), failed.join("\n"));
}
