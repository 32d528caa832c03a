//! Invented bodies of the kinds that agents produce: parameters, outputs of tools, source text, prose, hosts' records.

/// A small generator of numbers; its seed is fixed, so the samples are always the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % sides.max(1)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.get(self.roll(from.len())).copied().unwrap_or("")
    }

    fn hex(&mut self, digits: usize) -> String {
        (0..digits)
            .map(|_| char::from_digit(u32::try_from(self.roll(16)).unwrap_or(0), 16).unwrap_or('0'))
            .collect()
    }

    fn uuid(&mut self) -> String {
        format!("{}-{}-4{}-a{}-{}", self.hex(8), self.hex(4), self.hex(3), self.hex(3), self.hex(12))
    }

    fn token(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789";
        (0..length)
            .map(|_| char::from(LETTERS.get(self.roll(LETTERS.len())).copied().unwrap_or(b'x')))
            .collect()
    }

    fn time(&mut self) -> String {
        let (month, day, hour) = (1 + self.roll(12), 1 + self.roll(28), self.roll(24));
        format!(
            "202{}-{month:02}-{day:02}T{hour:02}:{:02}:{:02}.{:03}Z",
            4 + self.roll(4),
            self.roll(60),
            self.roll(60),
            self.roll(1000)
        )
    }
}

const NOUNS: &[&str] = &[
    "session", "config", "user", "request", "response", "message", "token", "event", "index", "parser",
    "client", "server", "store", "file", "path", "buffer", "handler", "context", "option", "error", "result",
    "value", "state", "query", "cache", "route", "model", "test", "worker", "queue", "task", "logger",
    "record", "schema", "service", "builder", "reader", "writer", "account", "order",
];
const VERBS: &[&str] = &[
    "get", "set", "load", "parse", "read", "write", "update", "create", "delete", "find", "handle", "render",
    "build", "check", "resolve", "validate", "format", "init", "open", "close", "send", "fetch", "merge",
    "apply", "register", "convert",
];
const EXTENSIONS: &[&str] =
    &["ts", "tsx", "rs", "py", "go", "js", "md", "json", "java", "test.ts", "toml", "yaml", "css", "sh"];
const FOLDERS: &[&str] = &[
    "src",
    "lib",
    "tests",
    "internal",
    "cmd",
    "app",
    "packages/core",
    "components",
    "utils",
    "services",
    "api",
    "docs",
    "scripts",
    "config",
    "hooks",
    "types",
    "pages",
    "models",
    "server/routes",
    "__tests__",
];
const ROOTS: &[&str] = &[
    "/home/dev/project",
    "/Users/dev/code/app",
    "/workspace/repo",
    "/home/user/work/service",
    "/Users/name/projects/web",
    "/tmp/repo",
    "/app",
];
const TOOLS: &[&str] = &[
    "Read",
    "Edit",
    "Bash",
    "Grep",
    "Glob",
    "Write",
    "TodoWrite",
    "Task",
    "read",
    "edit",
    "bash",
    "grep",
    "glob",
    "shell_command",
    "exec_command",
    "apply_patch",
    "write_file",
    "read_file",
    "view",
];
const BRANCHES: &[&str] = &["main", "master", "develop", "feature/login", "fix/parser"];
const MODELS: &[&str] = &[
    "claude-sonnet-4-5-20250929",
    "claude-opus-4-5-20251101",
    "claude-opus-4-6",
    "claude-haiku-4-5-20251001",
    "gpt-5-codex",
    "gpt-5.3-codex",
    "gpt-4o",
    "gemini-2.5-pro",
    "gemini-3-pro-preview",
];

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}

fn camel(dice: &mut Dice) -> String {
    format!("{}{}", dice.pick(VERBS), capital(dice.pick(NOUNS)))
}

fn snake(dice: &mut Dice) -> String {
    format!("{}_{}", dice.pick(VERBS), dice.pick(NOUNS))
}

fn file(dice: &mut Dice) -> String {
    format!("{}/{}.{}", dice.pick(FOLDERS), dice.pick(NOUNS), dice.pick(EXTENSIONS))
}

fn whole_path(dice: &mut Dice) -> String {
    format!("{}/{}", dice.pick(ROOTS), file(dice))
}

fn sentence(dice: &mut Dice) -> String {
    let (noun, other, verb) = (dice.pick(NOUNS), dice.pick(NOUNS), dice.pick(VERBS));
    let (name, at) = (camel(dice), file(dice));
    match dice.roll(28) {
        0 => format!("Let me {verb} the {noun} first to understand how the {other} works."),
        1 => format!("Now I'll {verb} the {noun} in `{at}`."),
        2 => {
            format!("The {noun} is not what I expected: `{name}` returns the {other} instead of the {noun}.")
        }
        3 => format!("All tests pass. The {noun} has been updated and the {other} works as expected."),
        4 => format!("I've added a test for `{name}` that covers the case where the {noun} is missing."),
        5 => format!("I need to look at the existing {noun} implementation before making changes."),
        6 => format!("Can you {verb} the {noun} so that it doesn't {verb} the {other} twice?"),
        7 => format!("This change makes sure that the {noun} is only used when there is a {other}."),
        8 => format!(
            "There are a few issues here. First, the {noun} should not be null. Second, the {other} is never closed."
        ),
        9 => format!(
            "Good, the build succeeds. Let me run the tests to verify that everything works correctly."
        ),
        10 => format!(
            "Looking at the code, I can see that `{name}` is called from `{at}` with the wrong {noun}."
        ),
        11 => format!(
            "The error message says that the {noun} could not be found, which means the {other} was not created."
        ),
        12 => format!(
            "Here's a summary of what was changed:\n\n1. **{}** - updated to handle the new {other}\n2. **{name}** - now returns an error\n3. Added tests for both cases",
            capital(noun)
        ),
        13 => format!(
            "You should {verb} the {noun} and then {verb} the {other}. If this is not possible, please let me know."
        ),
        14 => format!("Perfect! Now let me update the {noun} to use the new {other}:"),
        15 => format!(
            "**{} {noun}**\n\nI'm thinking about how the {other} should be handled. The user wants the {noun} to be simple.",
            capital(verb)
        ),
        16 => format!("please fix the failing {noun} tests and make sure the {other} still works"),
        17 => {
            format!("- [ ] {} the {noun}\n- [x] {} the {other}\n", capital(verb), capital(dice.pick(VERBS)))
        }
        18 => format!(
            "I'll help you with that. Let me start by exploring the codebase to find the relevant files."
        ),
        19 => format!("The file {at} has been updated successfully."),
        20 => format!(
            "This is because the {noun} and the {other} are different from each other, so we would have to change both of them."
        ),
        21 => format!(
            "What would you like me to do next? I could also {verb} the {noun} if that would be helpful."
        ),
        22 => format!(
            "## {} {}\n\nThe following section describes how the {noun} is used with the {other}.\n",
            capital(noun),
            capital(other)
        ),
        23 => format!(
            "| Name | Type | Description |\n|------|------|-------------|\n| `{noun}` | string | The {noun} of the {other} |\n"
        ),
        24 => format!(
            "However, there's one more thing: when the {noun} already exists, the {other} should be replaced without asking."
        ),
        25 => format!("For example:\n\n```bash\nnpm run build\nnpm test -- --watch={noun}\n```\n"),
        26 => format!(
            "I don't think that's right. It looks like the {noun} was removed from the {other} in a previous commit."
        ),
        _ => format!("The {noun} should be able to {verb} the {other} without any additional configuration."),
    }
}

fn prose(dice: &mut Dice) -> String {
    let count = 1 + dice.roll(6);
    let sentences: Vec<String> = (0..count).map(|_| sentence(dice)).collect();
    sentences.join(dice.pick(&[" ", "\n\n", "\n"]))
}

fn code_line(dice: &mut Dice) -> String {
    let (noun, other) = (dice.pick(NOUNS), dice.pick(NOUNS));
    let (camel_name, snake_name, class) = (camel(dice), snake(dice), capital(noun));
    let number = dice.roll(100);
    match dice.roll(62) {
        0 => format!("import {{ {class} }} from '../{}/{noun}';", dice.pick(FOLDERS)),
        1 => format!("import {{ describe, it, expect, beforeEach, vi }} from 'vitest';"),
        2 => format!(
            "export async function {camel_name}({noun}: string, options: {class}Options = {{}}): Promise<{class} | undefined> {{"
        ),
        3 => format!("  const {noun} = await {camel_name}({other});"),
        4 => format!("  if (!{noun}) {{\n    throw new Error(`{} not found: ${{{other}}}`);\n  }}", class),
        5 => format!("    return {noun}.{other}.map((item) => item.{other});"),
        6 => format!(
            "export interface {class}Config {{\n  {other}: string;\n  {noun}?: number;\n  enabled: boolean;\n}}"
        ),
        7 => format!(
            "    it('should {} the {noun} when the {other} is empty', async () => {{",
            dice.pick(VERBS)
        ),
        8 => format!(
            "      expect(result.{noun}).toBe({number});\n      expect(result.{other}).toEqual([]);\n    }});"
        ),
        9 => format!(
            "  }} catch (error) {{\n    console.error('Failed to {}:', error);\n    process.exit(1);\n  }}",
            dice.pick(VERBS)
        ),
        10 => format!("const {noun} = useState<{class} | null>(null);"),
        11 => format!(
            "      <div className=\"flex items-center justify-between px-4 py-2 text-sm\">\n        {{{noun}}}\n      </div>"
        ),
        12 => format!("pub fn {snake_name}(&self, {noun}: &str) -> Result<{class}, Error> {{"),
        13 => format!(
            "    let {noun} = self.{other}.get(&{noun}).ok_or_else(|| anyhow!(\"missing {other}\"))?;"
        ),
        14 => format!(
            "#[derive(Debug, Clone, PartialEq, Eq)]\npub struct {class} {{\n    pub {other}: String,\n    pub {noun}: Option<u64>,\n}}"
        ),
        15 => format!(
            "    match {noun} {{\n        Some({other}) => {other}.into_iter().collect(),\n        None => Vec::new(),\n    }}"
        ),
        16 => format!("use std::collections::HashMap;\nuse std::path::{{Path, PathBuf}};"),
        17 => format!(
            "    #[test]\n    fn {snake_name}_works() {{\n        assert_eq!({noun}.len(), {number});\n    }}"
        ),
        18 => format!(
            "impl {class} {{\n    pub fn new({other}: impl Into<String>) -> Self {{\n        Self {{ {other}: {other}.into() }}\n    }}"
        ),
        19 => {
            format!("def {snake_name}(self, {noun}: str, {other}: Optional[int] = None) -> Dict[str, Any]:")
        }
        20 => format!(
            "    \"\"\"Return the {noun} for the given {other}.\n\n    Args:\n        {noun}: The {noun} to use.\n    \"\"\""
        ),
        21 => format!(
            "        if {noun} is None:\n            raise ValueError(f\"{noun} must not be None: {{{other}}}\")"
        ),
        22 => format!("import os\nimport sys\nimport json\nfrom typing import Any, Dict, List, Optional"),
        23 => format!("    for {noun} in self.{other}:\n        self.{snake_name}({noun})"),
        24 => format!(
            "class {class}({}Base):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)",
            capital(other)
        ),
        25 => format!(
            "func (s *{class}) {}(ctx context.Context, {noun} string) (*{class}, error) {{",
            capital(&camel_name)
        ),
        26 => format!(
            "\tif err != nil {{\n\t\treturn nil, fmt.Errorf(\"failed to {} {noun}: %w\", err)\n\t}}",
            dice.pick(VERBS)
        ),
        27 => format!("\t{noun}, err := s.{other}.{}(ctx, {noun})", capital(&camel_name)),
        28 => format!("\tt.Run(\"{noun} {other}\", func(t *testing.T) {{\n\t\tt.Parallel()"),
        29 => format!("package {noun}\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\t\"os\"\n\t\"strings\"\n)"),
        30 => format!("\t\tt.Fatalf(\"{camel_name}() error = %v\", err)"),
        31 => format!("// {} {} the {noun} of the {other}.", capital(&camel_name), dice.pick(VERBS)),
        32 => format!("  // TODO: {} this when the {noun} is ready", dice.pick(VERBS)),
        33 => format!("  \"{noun}\": \"{other}\",\n  \"version\": \"1.{number}.0\",\n  \"dependencies\": {{"),
        34 => format!(
            "  \"scripts\": {{\n    \"build\": \"tsc -p tsconfig.json\",\n    \"test\": \"vitest run\",\n    \"lint\": \"eslint src --ext .ts,.tsx\"\n  }},"
        ),
        35 => format!(
            "[dependencies]\n{noun} = \"0.{number}\"\nserde = {{ version = \"1.0\", features = [\"derive\"] }}"
        ),
        36 => format!("{noun}:\n  - name: {other}\n    run: npm ci\n    with:\n      node-version: 20"),
        37 => format!(
            "            '{noun}': {{\n                'type': 'string',\n                'description': 'The {noun} of the {other}',\n            }},"
        ),
        38 => format!(
            "  /**\n   * {} the {noun}.\n   * @param {other} - the {other} to use\n   * @returns the {noun}, or undefined if there is none\n   */",
            capital(dice.pick(VERBS))
        ),
        39 => format!("  private readonly {noun} = new Map<string, {class}>();"),
        40 => format!("    this.{noun}.set({other}.id, {other});\n    return this.{noun}.get({other}.id);"),
        41 => format!(
            "  switch ({noun}.type) {{\n    case '{other}':\n      break;\n    default:\n      return null;\n  }}"
        ),
        42 => "  }\n}\n".to_owned(),
        43 => "    })\n  })\n})".to_owned(),
        44 => format!("    if len({noun}) == 0 {{\n        return nil\n    }}"),
        45 => format!("        let mut {noun} = Vec::with_capacity({other}.len());"),
        46 => format!(
            "    async with self.{noun}.{other}() as {noun}:\n        await {noun}.{}()",
            dice.pick(VERBS)
        ),
        47 => format!(
            "app.get('/api/{noun}/:id', async (req, res) => {{\n  res.status(200).json({{ {noun}, success: true }});\n}});"
        ),
        48 => format!(
            "SELECT id, name, created_at FROM {noun}s WHERE {other}_id = $1 ORDER BY created_at DESC LIMIT {number};"
        ),
        49 => format!(
            "#!/bin/bash\nset -euo pipefail\n\nif [ -z \"${{{}:-}}\" ]; then\n  echo \"{noun} is not set\" >&2\n  exit 1\nfi",
            noun.to_uppercase()
        ),
        50 => format!("\tdefer {noun}.Close()"),
        51 => format!(
            "    fn from({noun}: {class}Error) -> Self {{\n        Error::{class}({noun}.to_string())\n    }}"
        ),
        52 => {
            format!("    self.assertEqual(result['{noun}'], {number})\n    self.assertTrue(result.{other})")
        }
        53 => format!("    @pytest.fixture\n    def {noun}(self):\n        return {class}({other}=True)"),
        54 => format!("module.exports = {{ {camel_name}, {noun} }};"),
        55 => format!("const {noun} = require('{other}');"),
        56 => format!(
            "  return (\n    <>\n      <{class} key={{{other}.id}} onClick={{() => {camel_name}({other})}} />\n    </>\n  );"
        ),
        57 => format!(
            "export const {} = {{\n  name: '{noun}',\n  description: '{}',\n  required: true,\n}};",
            noun.to_uppercase(),
            sentence(dice)
        ),
        58 => format!(
            ".{noun} {{\n  display: flex;\n  padding: {number}px;\n  background-color: var(--{other}-color);\n}}"
        ),
        59 => "".to_owned(),
        60 => format!("    let Some({noun}) = {other}.{noun}() else {{\n        return Ok(());\n    }};"),
        _ => format!("    {noun}.{camel_name}({other}, {number});"),
    }
}

fn code(dice: &mut Dice, lines: usize) -> String {
    let lines: Vec<String> = (0..lines).map(|_| code_line(dice)).collect();
    lines.join("\n")
}

fn numbered(dice: &mut Dice) -> String {
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

fn listing(dice: &mut Dice) -> String {
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

fn run(dice: &mut Dice) -> String {
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

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn parameters(dice: &mut Dice) -> String {
    let path = whole_path(dice);
    match dice.roll(16) {
        0 => format!("{{\"file_path\":\"{path}\"}}"),
        1 => format!(
            "{{\"file_path\":\"{path}\",\"offset\":{},\"limit\":{}}}",
            dice.roll(900),
            10 * (1 + dice.roll(30))
        ),
        2 => {
            let (old, new) = (code(dice, 3), code(dice, 4));
            format!(
                "{{\"replace_all\":false,\"file_path\":\"{path}\",\"old_string\":{},\"new_string\":{}}}",
                quoted(&old),
                quoted(&new)
            )
        }
        3 => {
            let (old, new) = (code(dice, 2), code(dice, 3));
            format!(
                "{{\"filePath\":\"{path}\",\"oldString\":{},\"newString\":{}}}",
                quoted(&old),
                quoted(&new)
            )
        }
        4 => format!(
            "{{\"command\":\"cd {} && npm test 2>&1 | tail -20\",\"description\":\"Run the {} tests\",\"timeout\":120000}}",
            dice.pick(ROOTS),
            dice.pick(NOUNS)
        ),
        5 => format!(
            "{{\"command\":\"git diff HEAD~1 --stat && git log --oneline -5\",\"description\":\"Show recent changes\"}}"
        ),
        6 => format!(
            "{{\"pattern\":\"{}\",\"path\":\"{}\",\"output_mode\":\"content\",\"-n\":true,\"glob\":\"*.ts\"}}",
            camel(dice),
            dice.pick(ROOTS)
        ),
        7 => format!("{{\"pattern\":\"**/*.{}\"}}", dice.pick(EXTENSIONS)),
        8 => {
            let text = code(dice, 12);
            format!("{{\"file_path\":\"{path}\",\"content\":{}}}", quoted(&text))
        }
        9 => {
            let todos: Vec<String> = (0..4)
                .map(|n| {
                    format!(
                        "{{\"content\":\"{} the {}\",\"status\":\"{}\",\"activeForm\":\"{} the {}\"}}",
                        capital(dice.pick(VERBS)),
                        dice.pick(NOUNS),
                        ["completed", "in_progress", "pending", "pending"].get(n).unwrap_or(&"pending"),
                        capital(dice.pick(VERBS)),
                        dice.pick(NOUNS)
                    )
                })
                .collect();
            format!("{{\"todos\":[{}]}}", todos.join(","))
        }
        10 => format!(
            "{{\"description\":\"Explore {}\",\"prompt\":{},\"subagent_type\":\"Explore\"}}",
            dice.pick(NOUNS),
            quoted(&prose(dice))
        ),
        11 => format!(
            "{{\"command\":[\"bash\",\"-lc\",\"rg -n '{}' {}\"],\"workdir\":\"{}\"}}",
            camel(dice),
            dice.pick(FOLDERS),
            dice.pick(ROOTS)
        ),
        12 => format!(
            "{{\"cmd\":\"sed -n '1,{}p' {}\",\"workdir\":\"{}\",\"yield_time_ms\":1000,\"max_output_tokens\":12000}}",
            10 * (1 + dice.roll(30)),
            file(dice),
            dice.pick(ROOTS)
        ),
        13 => {
            let text = code(dice, 5);
            let lines: Vec<String> = text.lines().map(|line| format!("+{line}")).collect();
            format!("*** Begin Patch\n*** Update File: {path}\n@@\n{}\n*** End Patch\n", lines.join("\n"))
        }
        14 => format!(
            "{{\"plan\":[{{\"status\":\"completed\",\"step\":\"{}\"}},{{\"status\":\"in_progress\",\"step\":\"{}\"}}],\"explanation\":\"\"}}",
            sentence(dice).replace(['"', '\n'], " "),
            sentence(dice).replace(['"', '\n'], " ")
        ),
        _ => format!(
            "{{\"url\":\"https://docs.example.com/{}/{}\",\"prompt\":\"How to {} the {}?\"}}",
            dice.pick(NOUNS),
            dice.pick(NOUNS),
            dice.pick(VERBS),
            dice.pick(NOUNS)
        ),
    }
}

fn usage(dice: &mut Dice) -> String {
    let (read, write) = (dice.roll(90_000), dice.roll(9000));
    format!(
        "\"usage\":{{\"input_tokens\":{},\"cache_creation_input_tokens\":{write},\"cache_read_input_tokens\":{read},\"cache_creation\":{{\"ephemeral_5m_input_tokens\":{write},\"ephemeral_1h_input_tokens\":0}},\"output_tokens\":{},\"service_tier\":\"standard\",\"inference_geo\":\"not_available\"}}",
        dice.roll(20),
        dice.roll(400)
    )
}

fn record(dice: &mut Dice) -> String {
    let (uuid, parent, session, time) = (dice.uuid(), dice.uuid(), dice.uuid(), dice.time());
    let (root, branch, model) = (dice.pick(ROOTS), dice.pick(BRANCHES), dice.pick(MODELS));
    let (tool, call) = (dice.pick(TOOLS), dice.token(24));
    let version = format!("2.{}.{}", dice.roll(2), dice.roll(80));
    let common = format!(
        "{{\"parentUuid\":\"{parent}\",\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"{root}\",\"sessionId\":\"{session}\",\"version\":\"{version}\",\"gitBranch\":\"{branch}\",\"slug\":\"quiet-{}-{}\"",
        dice.pick(VERBS),
        dice.pick(NOUNS)
    );
    match dice.roll(16) {
        0 | 1 => format!(
            "{common},\"message\":{{\"model\":\"{model}\",\"id\":\"msg_01{}\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"toolu_01{call}\",\"name\":\"{tool}\",\"input\":{},\"caller\":{{\"type\":\"direct\"}}}}],\"stop_reason\":null,\"stop_sequence\":null,{}}},\"requestId\":\"req_011{}\",\"type\":\"assistant\",\"uuid\":\"{uuid}\",\"timestamp\":\"{time}\"}}",
            dice.token(22),
            parameters(dice),
            usage(dice),
            dice.token(21)
        ),
        2 => format!(
            "{common},\"message\":{{\"model\":\"{model}\",\"id\":\"msg_01{}\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":{}}}],\"stop_reason\":\"end_turn\",\"stop_sequence\":null,{}}},\"requestId\":\"req_011{}\",\"type\":\"assistant\",\"uuid\":\"{uuid}\",\"timestamp\":\"{time}\"}}",
            dice.token(22),
            quoted(&prose(dice)),
            usage(dice),
            dice.token(21)
        ),
        3 => format!(
            "{common},\"message\":{{\"model\":\"{model}\",\"id\":\"msg_01{}\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{{\"type\":\"thinking\",\"thinking\":{},\"signature\":\"{}\"}}],\"stop_reason\":null,\"stop_sequence\":null,{}}},\"requestId\":\"req_011{}\",\"type\":\"assistant\",\"uuid\":\"{uuid}\",\"timestamp\":\"{time}\"}}",
            dice.token(22),
            quoted(&prose(dice)),
            dice.token(64),
            usage(dice),
            dice.token(21)
        ),
        4 | 5 => {
            let output = run(dice);
            format!(
                "{common},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"toolu_01{call}\",\"type\":\"tool_result\",\"content\":{},\"is_error\":false}}]}},\"uuid\":\"{uuid}\",\"timestamp\":\"{time}\",\"toolUseResult\":{{\"stdout\":{},\"stderr\":\"\",\"interrupted\":false,\"isImage\":false,\"noOutputExpected\":false}},\"sourceToolAssistantUUID\":\"{parent}\"}}",
                quoted(&output),
                quoted(&output)
            )
        }
        6 => {
            let (path, old, new) = (whole_path(dice), code(dice, 2), code(dice, 3));
            format!(
                "{common},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"toolu_01{call}\",\"type\":\"tool_result\",\"content\":\"The file {path} has been updated successfully.\"}}]}},\"uuid\":\"{uuid}\",\"timestamp\":\"{time}\",\"toolUseResult\":{{\"filePath\":\"{path}\",\"oldString\":{},\"newString\":{},\"originalFile\":null,\"structuredPatch\":[{{\"oldStart\":{},\"oldLines\":7,\"newStart\":{},\"newLines\":9,\"lines\":[\"  \",\"-  \",\"+  \"]}}],\"userModified\":false,\"replaceAll\":false}},\"sourceToolAssistantUUID\":\"{parent}\"}}",
                quoted(&old),
                quoted(&new),
                dice.roll(300),
                dice.roll(300)
            )
        }
        7 => format!(
            "{common},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":{}}},\"uuid\":\"{uuid}\",\"timestamp\":\"{time}\",\"thinkingMetadata\":{{\"level\":\"high\",\"disabled\":false,\"triggers\":[]}},\"todos\":[],\"permissionMode\":\"default\"}}",
            quoted(&sentence(dice))
        ),
        8 => format!(
            "{common},\"type\":\"progress\",\"data\":{{\"type\":\"hook_progress\",\"hookEvent\":\"PostToolUse\",\"hookName\":\"PostToolUse:{tool}\",\"command\":\"callback\"}},\"parentToolUseID\":\"toolu_01{call}\",\"toolUseID\":\"toolu_01{call}\",\"timestamp\":\"{time}\",\"uuid\":\"{uuid}\"}}"
        ),
        9 => format!(
            "{{\"type\":\"file-history-snapshot\",\"messageId\":\"{uuid}\",\"snapshot\":{{\"messageId\":\"{parent}\",\"trackedFileBackups\":{{\"{}\":{{\"backupFileName\":\"{}@v2\",\"version\":2,\"backupTime\":\"{time}\"}}}},\"timestamp\":\"{time}\"}},\"isSnapshotUpdate\":true}}",
            file(dice),
            dice.hex(16)
        ),
        10 => format!(
            "{common},\"type\":\"system\",\"subtype\":\"turn_duration\",\"durationMs\":{},\"timestamp\":\"{time}\",\"uuid\":\"{uuid}\",\"isMeta\":false}}",
            dice.roll(200_000)
        ),
        11 => format!(
            "{{\"timestamp\":\"{time}\",\"type\":\"response_item\",\"payload\":{{\"type\":\"function_call\",\"name\":\"{}\",\"arguments\":{},\"call_id\":\"call_{call}\"}}}}",
            dice.pick(&["exec_command", "shell_command", "update_plan", "write_stdin"]),
            quoted(&parameters(dice))
        ),
        12 => format!(
            "{{\"timestamp\":\"{time}\",\"type\":\"response_item\",\"payload\":{{\"type\":\"function_call_output\",\"call_id\":\"call_{call}\",\"output\":{}}}}}",
            quoted(&run(dice))
        ),
        13 => {
            let (a, b, c, d) = (dice.roll(900_000), dice.roll(900_000), dice.roll(9000), dice.roll(4000));
            format!(
                "{{\"timestamp\":\"{time}\",\"type\":\"event_msg\",\"payload\":{{\"type\":\"token_count\",\"info\":{{\"total_token_usage\":{{\"input_tokens\":{a},\"cached_input_tokens\":{b},\"output_tokens\":{c},\"reasoning_output_tokens\":{d},\"total_tokens\":{a}}},\"last_token_usage\":{{\"input_tokens\":{b},\"cached_input_tokens\":{a},\"output_tokens\":{d},\"reasoning_output_tokens\":{c},\"total_tokens\":{b}}},\"model_context_window\":258400}},\"rate_limits\":{{\"limit_id\":\"codex\",\"limit_name\":null,\"primary\":{{\"used_percent\":{}.0,\"window_minutes\":300,\"resets_at\":17{}}},\"secondary\":{{\"used_percent\":{}.0,\"window_minutes\":10080,\"resets_at\":17{}}},\"credits\":null,\"plan_type\":null}}}}}}",
                dice.roll(100),
                dice.roll(99_999_999),
                dice.roll(100),
                dice.roll(99_999_999)
            )
        }
        14 => format!(
            "{{\"timestamp\":\"{time}\",\"type\":\"response_item\",\"payload\":{{\"type\":\"reasoning\",\"summary\":[{{\"type\":\"summary_text\",\"text\":{}}}],\"content\":null,\"encrypted_content\":\"gAAAAAB{}\"}}}}",
            quoted(&sentence(dice)),
            dice.token(60)
        ),
        _ => format!(
            "{{\"type\":\"tool.execution_complete\",\"data\":{{\"toolCallId\":\"toolu_{call}\",\"success\":true,\"result\":{{\"content\":{},\"detailedContent\":\"\"}},\"toolTelemetry\":{{\"properties\":{{\"command\":\"view\"}},\"metrics\":{{\"resultLength\":{}}}}}}},\"id\":\"{uuid}\",\"timestamp\":\"{time}\",\"parentId\":\"{parent}\"}}",
            quoted(&listing(dice)),
            dice.roll(4000)
        ),
    }
}

/// All samples, always the same.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let mut dice = Dice(0x5eed_0ac9_db00_0001);
    let mut samples = Vec::new();
    for _ in 0..900 {
        samples.push(parameters(&mut dice).into_bytes());
        samples.push(record(&mut dice).into_bytes());
        samples.push(record(&mut dice).into_bytes());
        samples.push(prose(&mut dice).into_bytes());
        samples.push(run(&mut dice).into_bytes());
        samples.push(listing(&mut dice).into_bytes());
        samples.push(numbered(&mut dice).into_bytes());
        let lines = 8 + dice.roll(30);
        samples.push(code(&mut dice, lines).into_bytes());
    }
    samples
}
