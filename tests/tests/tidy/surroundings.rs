//! Values that come from the machine: paths as answers show them, variables of the environment and the service that sees none of a shell's.

use std::io;

use super::report;
use super::source::{CRATES, File, code, files, root, without_tests};

/// Members of answers that hold a path of the machine.
const PATH_MEMBERS: &[&str] = &["path", "folder"];
/// Members of these names that hold a text: what an agent named, what a client asked for.
const TEXTS: &[(&str, &str)] = &[
    ("cli/src/commands/audit.rs", r#""path": key.given"#),
    ("cli/src/commands/audit.rs", r#""path": path, "by""#),
    ("cli/src/commands/audit.rs", r#""folder": name.folder"#),
    ("live/src/proxy/record.rs", r#""path": exchange.path"#),
];

fn is_answer(file: &File) -> bool {
    file.is("rs") && !file.is_test() && CRATES.iter().any(|folder| file.path.starts_with(folder))
}

/// Lines of struct fields that hold a path and are serialized as one.
fn serialized_paths(code: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let (mut is_serialized, mut in_struct, mut is_shown) = (false, false, false);
    for (number, line) in code.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("#[derive(") {
            is_serialized = line.contains("Serialize");
        } else if line.contains("struct ") || line.contains("enum ") {
            in_struct = is_serialized && line.ends_with('{');
            is_serialized = false;
        } else if line.starts_with('}') {
            in_struct = false;
        } else if line.starts_with("#[serde(") {
            is_shown = line.contains("serialize_with") || line.contains("skip)");
        } else if in_struct && line.contains(':') {
            let is_path =
                line.split(|c: char| !c.is_alphanumeric()).any(|word| word == "PathBuf" || word == "Path");
            if is_path && !is_shown {
                found.push(number + 1);
            }
            is_shown = false;
        }
    }
    found
}

/// Lines with a member that holds a path, and not what is shown of it.
fn unshown(path: &str, text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        for name in PATH_MEMBERS {
            let member = format!("\"{name}\": ");
            let Some((_, value)) = line.split_once(&member) else { continue };
            let value = value.split([',', '}']).next().unwrap_or_default();
            let is_text = TEXTS.iter().any(|(file, part)| *file == path && line.contains(part));
            if !value.contains("shown") && !value.starts_with('"') && !is_text {
                found.push(number + 1);
            }
        }
    }
    found
}

#[test]
fn paths_in_answers_are_shown_and_not_serialized() -> io::Result<()> {
    let mut findings = Vec::new();
    for file in files()?.iter().filter(|file| is_answer(file)) {
        let text = file.text.as_deref().unwrap_or_default();
        let lines = serialized_paths(&without_tests(&code(text)));
        // `without_tests` keeps lines in their places; what stands in texts is looked at here.
        let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        let lines = lines.into_iter().chain(unshown(&file.path, text.get(..tests).unwrap_or(text)));
        findings.extend(lines.map(|line| format!("{}:{line}", file.path)));
    }
    report(
        findings,
        "a path that is no UTF-8 cannot be serialized, and `json!` panics at it: give `text::paths::shown(path)` to `json!`, and a \
         field `#[serde(serialize_with = \"..::text::paths::serialize_shown\")]`.",
    );
    Ok(())
}

/// Variables that the program reads and a service need not see, each with the reason.
const NOT_FOR_A_SERVICE: &[(&str, &str)] = &[
    ("ALL_PROXY", "of acpdb run"),
    ("ANTHROPIC_BASE_URL", "of acpdb run"),
    ("COPILOT_PROVIDER_BASE_URL", "of acpdb run"),
    ("ENABLE_TOOL_SEARCH", "of acpdb run"),
    ("GOOGLE_GEMINI_BASE_URL", "of acpdb run"),
    ("HTTPS_PROXY", "of acpdb run"),
    ("HTTP_PROXY", "of acpdb run"),
    ("OPENAI_API_BASE", "of acpdb run"),
    ("OPENAI_BASE_URL", "of acpdb run"),
    ("PGPASSFILE", "a database: the service that ships gets it"),
    ("PGPASSWORD", "a password is written to no file: the service is told so"),
    ("PGPORT", "a database: the service that ships gets it"),
    ("PGSSLMODE", "a database: the service that ships gets it"),
    ("PGUSER", "a database: the service that ships gets it"),
    ("PGSSLROOTCERT", "a database: the service that ships gets it"),
    ("AWS_ACCESS_KEY_ID", "a bucket, or a cache of what is there: no service uses one"),
    ("AWS_CA_BUNDLE", "a bucket, or a cache of what is there: no service uses one"),
    ("AWS_CONFIG_FILE", "a bucket, or a cache of what is there: no service uses one"),
    ("AWS_DEFAULT_REGION", "a bucket, or a cache of what is there: no service uses one"),
    ("AWS_ENDPOINT_URL", "a bucket, or a cache of what is there: no service uses one"),
    ("AWS_ENDPOINT_URL_S3", "a bucket, or a cache of what is there: no service uses one"),
    ("AWS_PROFILE", "a bucket, or a cache of what is there: no service uses one"),
    ("AWS_REGION", "a bucket, or a cache of what is there: no service uses one"),
    ("AWS_SECRET_ACCESS_KEY", "a bucket, or a cache of what is there: no service uses one"),
    ("AWS_SESSION_TOKEN", "a bucket, or a cache of what is there: no service uses one"),
    ("AWS_SHARED_CREDENTIALS_FILE", "a bucket, or a cache of what is there: no service uses one"),
    ("XDG_CACHE_HOME", "a bucket, or a cache of what is there: no service uses one"),
    ("ACPDB_COMPLETE", "asked by a shell, for what is typed"),
    ("ACPDB_MCP_TOKEN", "of acpdb mcp"),
    ("ACPDB_PAGER", "of what is shown"),
    ("ACPDB_KEY_FILE", "the service's command names it"),
    ("ACPDB_NEW_PASSPHRASE", "of acpdb key rotate"),
    ("ACPDB_PASSPHRASE", "it would stand in a file; such a store is refused"),
    ("ACPDB_PATH", "the service's command names the store"),
    ("ACPDB_PROXY_TOKEN", "of acpdb proxy"),
    ("ACPDB_SESSION", "of acpdb mcp"),
    ("CLAUDE_CODE_SESSION_ID", "of acpdb mcp"),
    ("COLUMNS", "of what is shown"),
    ("HOME", "systemd or launchd sets it"),
    ("USER", "systemd or launchd sets it"),
    ("NO_COLOR", "of what is shown"),
    ("OPENCODE_CONFIG_DIR", "of acpdb attach"),
    ("PAGER", "of what is shown"),
    ("TERM", "of what is shown"),
    ("TZ", "times are recorded in UTC; the zone is for those that are typed and shown"),
    ("XDG_STATE_HOME", "of the journal of hooks"),
];
/// Names that are read when the program is compiled.
const COMPILED: &[&str] = &["CARGO_"];
/// Where the list of variables stands that a service sees.
const SERVICE: &str = "cli/src/commands/service.rs";
/// How a variable is read: the call, up to its name.
const READS: &[&str] = &[
    "var(",
    "var_os(",
    "path_in(",
    "variable(",
    "env(",
    "set(",
    "folder(",
    "home_of(",
    "env = ",
    "VARIABLE: &str = ",
    "PASSPHRASE: &str = ",
];

/// Names of variables in a text: words of capitals, quoted, that stand behind one of [`READS`] or have several parts.
fn variables(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('"') {
        let rest = &text[at + 1..];
        let Some((word, _)) = rest.split_once('"') else { break };
        let is_name = word.len() > 1
            && !word.starts_with('_')
            && !word.ends_with('_')
            && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        let is_read = READS.iter().any(|read| text[..at].ends_with(read)) || word.contains('_');
        // Those of the build are read while the program is compiled.
        let is_built = text[..at].ends_with("env!(");
        if is_name && is_read && !is_built && !COMPILED.iter().any(|begin| word.starts_with(begin)) {
            found.push(word.to_owned());
        }
    }
    found
}

/// The service ran without `ACPDB_CONFIG`, so without the user's `redact = true`: secrets were recorded.
#[test]
fn a_service_sees_each_variable_or_there_is_a_reason() -> io::Result<()> {
    let service = std::fs::read_to_string(root().join(SERVICE))?;
    let list = service
        .split_once("const VARIABLES")
        .and_then(|(_, rest)| rest.split_once("];"))
        .map(|(list, _)| list);
    let list = list.unwrap_or_default();
    let mut findings = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for file in files()?.iter().filter(|file| is_answer(file) && !file.path.contains("/testing/")) {
        let text = file.text.as_deref().unwrap_or_default();
        let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        for name in variables(text.get(..tests).unwrap_or(text)) {
            let is_seen = list.contains(&format!("\"{name}\""));
            let has_reason = NOT_FOR_A_SERVICE.iter().any(|(known, _)| *known == name);
            if !is_seen && !has_reason {
                findings.push(format!("{}: {name}", file.path));
            }
            seen.insert(name);
        }
    }
    assert!(seen.len() > 20, "the variables were not found: {seen:?}");
    let gone = NOT_FOR_A_SERVICE.iter().filter(|(name, _)| !seen.contains(*name));
    findings.extend(gone.map(|(name, _)| format!("{name} is not read any more")));
    report(
        findings,
        "put it into VARIABLES of cli/src/commands/service.rs, or into NOT_FOR_A_SERVICE with the reason.",
    );
    Ok(())
}

#[test]
fn paths_and_variables_are_found_in_text() {
    let fields = "#[derive(Serialize)]\nstruct A {\n    path: PathBuf,\n    #[serde(serialize_with = \"\")]\n    other: &'a Path,\n    paths: Vec<PathBuf>,\n}\n";
    assert_eq!(serialized_paths(fields), [3, 6]);
    assert_eq!(
        serialized_paths("#[derive(Debug)]\nstruct A {\n    path: PathBuf,\n}\n"),
        Vec::<usize>::new()
    );
    assert_eq!(unshown("x", "json!({\"path\": path, \"a\": 1})\njson!({\"path\": shown(path)})"), [1]);
    assert_eq!(variables("var_os(\"AB\"), \"B\", \"C_D\", env!(\"CARGO_X\"), env!(\"E_F\")"), ["AB", "C_D"]);
}
