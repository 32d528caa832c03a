//! Chance with a fixed seed, and the words that samples are made of.

/// A small generator of numbers; its seed is fixed, so the samples are always the same.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % sides.max(1)
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.get(self.roll(from.len())).copied().unwrap_or("")
    }

    pub(crate) fn hex(&mut self, digits: usize) -> String {
        (0..digits)
            .map(|_| char::from_digit(u32::try_from(self.roll(16)).unwrap_or(0), 16).unwrap_or('0'))
            .collect()
    }

    pub(crate) fn uuid(&mut self) -> String {
        format!("{}-{}-4{}-a{}-{}", self.hex(8), self.hex(4), self.hex(3), self.hex(3), self.hex(12))
    }

    pub(crate) fn token(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789";
        (0..length)
            .map(|_| char::from(LETTERS.get(self.roll(LETTERS.len())).copied().unwrap_or(b'x')))
            .collect()
    }

    pub(crate) fn time(&mut self) -> String {
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

pub(crate) const NOUNS: &[&str] = &[
    "session", "config", "user", "request", "response", "message", "token", "event", "index", "parser",
    "client", "server", "store", "file", "path", "buffer", "handler", "context", "option", "error", "result",
    "value", "state", "query", "cache", "route", "model", "test", "worker", "queue", "task", "logger",
    "record", "schema", "service", "builder", "reader", "writer", "account", "order",
];
pub(crate) const VERBS: &[&str] = &[
    "get", "set", "load", "parse", "read", "write", "update", "create", "delete", "find", "handle", "render",
    "build", "check", "resolve", "validate", "format", "init", "open", "close", "send", "fetch", "merge",
    "apply", "register", "convert",
];
pub(crate) const EXTENSIONS: &[&str] =
    &["ts", "tsx", "rs", "py", "go", "js", "md", "json", "java", "test.ts", "toml", "yaml", "css", "sh"];
pub(crate) const FOLDERS: &[&str] = &[
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
pub(crate) const ROOTS: &[&str] = &[
    "/home/dev/project",
    "/Users/dev/code/app",
    "/workspace/repo",
    "/home/user/work/service",
    "/Users/name/projects/web",
    "/tmp/repo",
    "/app",
];
pub(crate) const TOOLS: &[&str] = &[
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
pub(crate) const BRANCHES: &[&str] = &["main", "master", "develop", "feature/login", "fix/parser"];
pub(crate) const MODELS: &[&str] = &[
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

pub(crate) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}

pub(crate) fn camel(dice: &mut Dice) -> String {
    format!("{}{}", dice.pick(VERBS), capital(dice.pick(NOUNS)))
}

pub(crate) fn snake(dice: &mut Dice) -> String {
    format!("{}_{}", dice.pick(VERBS), dice.pick(NOUNS))
}

pub(crate) fn file(dice: &mut Dice) -> String {
    format!("{}/{}.{}", dice.pick(FOLDERS), dice.pick(NOUNS), dice.pick(EXTENSIONS))
}

pub(crate) fn whole_path(dice: &mut Dice) -> String {
    format!("{}/{}", dice.pick(ROOTS), file(dice))
}
