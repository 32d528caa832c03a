//! `acpdb service`: services of the user's own that run `import --follow` and `backup --follow`, under systemd or launchd.
//!
//! The file names this program, this store, and the variables that move hosts' places, with their current values: a service does
//! not see a shell's variables. Nothing needs more rights than the user has.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use super::{Code, Failure, Global, Output, store_path};
use crate::args::{Manager, Service, ServiceAct, ServiceInstall};
use crate::settings::{self, path_in, variable};
use crate::verdict;

/// The verb that a service runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ServiceKind {
    Import,
    Backup,
}

impl ServiceKind {
    const ALL: [Self; 2] = [Self::Import, Self::Backup];

    /// Name of the unit.
    const fn unit(self) -> &'static str {
        match self {
            Self::Import => "acpdb-import.service",
            Self::Backup => "acpdb-backup.service",
        }
    }

    /// Name of the agent.
    const fn label(self) -> &'static str {
        match self {
            Self::Import => "acpdb.import",
            Self::Backup => "acpdb.backup",
        }
    }

    const fn about(self) -> &'static str {
        match self {
            Self::Import => "what agents record, kept in a store",
            Self::Backup => "a store, shipped as it grows",
        }
    }

    /// Variables that it gets, with their current values. No credentials: they are not written to a file.
    fn variables(self) -> impl Iterator<Item = &'static str> {
        let places: &[&str] = if self == Self::Backup { &REMOTE_VARIABLES } else { &[] };
        VARIABLES.into_iter().chain(places.iter().copied())
    }
}

/// Variables that say where a bucket or a database is, and in which files its credentials are.
const REMOTE_VARIABLES: [&str; 13] = [
    "AWS_CA_BUNDLE",
    "AWS_CONFIG_FILE",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_SHARED_CREDENTIALS_FILE",
    "PGPASSFILE",
    "PGPORT",
    "PGSSLMODE",
    "PGSSLROOTCERT",
    "PGUSER",
];

/// Variables for the places of hosts and settings, and for the recorded parts of a session. A tidy check compares them with those
/// that the program reads.
const VARIABLES: [&str; 10] = [
    "ACPDB_ANY_FILE_SYSTEM",
    "ACPDB_CONFIG",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "OPENCODE_DB",
    "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// The answer for programs: the services that were asked for, in one document.
#[derive(Debug, Serialize)]
struct ServiceResult<'a> {
    manager: Manager,
    items: &'a [ServiceUnit],
}

/// A service's file, and what is known of it.
#[derive(Debug, Serialize)]
struct ServiceUnit {
    #[serde(skip)]
    manager: Manager,
    #[serde(skip)]
    kind: ServiceKind,
    #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
    path: PathBuf,
    installed: bool,
    /// The manager's own word for the state; absent if the manager was not asked, or cannot be.
    state: Option<String>,
    /// The file that would be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

pub(crate) fn run(global: &Global, args: &Service, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let manager = args.manager.unwrap_or(match std::env::consts::OS {
        "macos" => Manager::Launchd,
        _ => Manager::Systemd,
    });
    let [import, backup] = ServiceKind::ALL.map(|kind| ServiceUnit::of(manager, kind));
    let (import, backup) = (import?, backup?);
    let (is_alone, is_there) = (!import.installed, backup.installed);
    let mut units: Vec<ServiceUnit> = match &args.act {
        ServiceAct::Install(install) if install.backup => vec![import, backup],
        // The one for backups is told of only where it is, and alone if it is the only one.
        ServiceAct::Remove if is_there && is_alone => vec![backup],
        ServiceAct::Remove | ServiceAct::Status if is_there => vec![import, backup],
        _ => vec![import],
    };
    if let ServiceAct::Install(install) = &args.act {
        // Whatever is refused is refused before anything is written.
        for unit in &mut units {
            let words = words(global, install, unit.kind, output)?;
            unit.text = Some(text(manager, unit.kind, &words)?);
        }
    }
    let mut code = Code::Ok;
    for unit in &mut units {
        code = verdict::worse(
            code,
            match &args.act {
                ServiceAct::Install(install) => unit.put(install, output)?,
                ServiceAct::Remove => unit.remove(output)?,
                ServiceAct::Status => unit.ask(output)?,
            },
        );
    }
    if output.json {
        output.json_object("acpdb.service/1", &ServiceResult { manager, items: &units })?;
    }
    Ok(code)
}

/// The path of the service's file.
fn path_of(manager: Manager, kind: ServiceKind) -> Result<PathBuf, Failure> {
    let home = || {
        let failure = Failure::usage("there is no home folder to keep a service in");
        path_in("HOME").ok_or_else(|| failure.hint("set HOME"))
    };
    Ok(match manager {
        Manager::Systemd => {
            let config =
                path_in("XDG_CONFIG_HOME").map_or_else(|| home().map(|home| home.join(".config")), Ok)?;
            config.join("systemd/user").join(kind.unit())
        }
        Manager::Launchd => home()?.join("Library/LaunchAgents").join(format!("{}.plist", kind.label())),
    })
}

impl ServiceUnit {
    fn of(manager: Manager, kind: ServiceKind) -> Result<Self, Failure> {
        let path = path_of(manager, kind)?;
        let installed = path.is_file();
        Ok(Self { manager, kind, path, installed, state: None, text: None })
    }

    /// Writes the file, and starts the service.
    fn put(&mut self, args: &ServiceInstall, output: &mut Output) -> Result<Code, Failure> {
        if args.dry_run {
            if let (Some(text), false) = (&self.text, output.json) {
                output.note(format!("would write {}:", self.path.display()));
                output.bytes(text.as_bytes())?;
            }
            return Ok(Code::Ok);
        }
        settings::replace(&self.path, &self.text.take().unwrap_or_default())?;
        self.installed = true;
        output.note(format!("written: {}", self.path.display()));
        let start: &[&[&str]] = match self.manager {
            Manager::Systemd => &[
                &["systemctl", "--user", "daemon-reload"],
                &["systemctl", "--user", "enable", "--now", self.kind.unit()],
            ],
            Manager::Launchd => &[&["launchctl", "load", "-w", "{path}"]],
        };
        let mut code = Code::Ok;
        for command in start {
            let words = with_path(command, &self.path);
            if args.no_start {
                output.note(format!("to start it: {}", typed(&words)));
            } else if let Err(trouble) = call(&words) {
                output.warn(format!("{trouble}; to start it: {}", typed(&words)));
                code = Code::Partial;
            }
        }
        Ok(code)
    }

    /// Stops the service, and removes the file.
    fn remove(&mut self, output: &Output) -> Result<Code, Failure> {
        if !self.installed {
            let failure = Failure::not_found(format!("there is no service at {}", self.path.display()));
            return Err(failure.hint("acpdb service install writes one"));
        }
        let stop: &[&str] = match self.manager {
            Manager::Systemd => &["systemctl", "--user", "disable", "--now", self.kind.unit()],
            Manager::Launchd => &["launchctl", "unload", "-w", "{path}"],
        };
        let mut code = Code::Ok;
        if let Err(trouble) = call(&with_path(stop, &self.path)) {
            output.warn(format!("{trouble}; if it runs, it runs until you log out"));
            code = Code::Partial;
        }
        std::fs::remove_file(&self.path).map_err(Failure::io("remove", self.path.display()))?;
        self.installed = false;
        output.note(format!("removed: {}", self.path.display()));
        if self.manager == Manager::Systemd && code == Code::Ok {
            // The unit is stopped and its file is gone: systemd forgets it at its next reload, even if this call fails.
            let _ = call(&["systemctl", "--user", "daemon-reload"].map(str::to_owned));
        }
        Ok(code)
    }

    /// Says whether the service is there, and its state.
    fn ask(&mut self, output: &mut Output) -> Result<Code, Failure> {
        let path = self.path.display();
        if !self.installed {
            if !output.json {
                output.line(format!("not installed: {path}"))?;
            }
            return Ok(Code::NotFound);
        }
        let ask: &[&str] = match self.manager {
            Manager::Systemd => &["systemctl", "--user", "is-active", self.kind.unit()],
            Manager::Launchd => &["launchctl", "list", self.kind.label()],
        };
        let state = state(self.manager, ask);
        if !output.json {
            let said = state.as_deref().unwrap_or("not known: the service manager cannot be asked");
            output.line(format!("installed: {path}"))?;
            output
                .line(format!("state: {}", crate::output::escape(said, crate::output::EscapeLevel::Line)))?;
        }
        self.state = state;
        Ok(Code::Ok)
    }
}

/// The words of the service's command.
fn words(
    global: &Global,
    args: &ServiceInstall,
    kind: ServiceKind,
    output: &Output,
) -> Result<Vec<String>, Failure> {
    let hosts = args.hosts.iter().map(|name| super::import::host_of(name)).collect::<Result<Vec<_>, _>>()?;
    // A host without a place is refused now, not at the start of the service.
    super::import::places(&hosts)?;
    let own = std::env::current_exe().map_err(Failure::io("find", "this program"))?;
    let folder = store_path::folder_unasked(global, output)?;
    let store = std::path::absolute(&folder).map_err(Failure::io("name", folder.display()))?;
    // A shipper reads no text, so it needs no key.
    let needs_key = kind == ServiceKind::Import;
    if needs_key && global.key_file.is_none() && crate::rings::needs_passphrase(&folder)? {
        let failure = Failure::usage(format!(
            "{} is opened by a passphrase, which a service cannot ask for",
            folder.display()
        ));
        return Err(failure.hint("acpdb key rotate --to FILE makes a key that lies in a file"));
    }
    if needs_key {
        store_path::check_given_key(&folder, global)?;
    }
    let mut words = vec![plain(&own)?, "--quiet".to_owned(), "--db".to_owned(), plain(&store)?];
    let encrypts = global.settings.backup_encrypt == Some(true);
    if let Some(file) = global.key_file.as_ref().filter(|_| needs_key || encrypts) {
        let failed = Failure::io("name", file.display());
        words.extend(["--key-file".to_owned(), plain(&std::path::absolute(file).map_err(&failed)?)?]);
    }
    if kind == ServiceKind::Backup {
        let url = global.settings.backup.clone().ok_or_else(|| {
            let failure = Failure::usage("the setting backup does not say where the store is shipped to");
            failure.hint("acpdb config set backup URL")
        })?;
        for (name, place) in [("AWS_ACCESS_KEY_ID", "~/.aws"), ("PGPASSWORD", "~/.pgpass")] {
            if variable(name).is_some() {
                output.warn(format!(
                    "the service does not get {name}, since its file would hold a secret: keep credentials in {place}"
                ));
            }
        }
        words.extend(["backup".to_owned(), plain(Path::new(&url))?, "--follow".to_owned()]);
        return Ok(words);
    }
    words.extend(["import", "--follow"].map(str::to_owned));
    for host in &args.hosts {
        words.extend(["--host".to_owned(), host.clone()]);
    }
    Ok(words)
}

/// A path as text that fits on a line.
fn plain(path: &Path) -> Result<String, Failure> {
    let fits = |text: &&str| !text.chars().any(char::is_control);
    path.to_str().filter(fits).map(str::to_owned).ok_or_else(|| {
        let failure = Failure::usage(format!("{} cannot be written into a service's file", path.display()));
        failure.hint("give it a name of printable characters")
    })
}

/// The service's file.
fn text(manager: Manager, kind: ServiceKind, words: &[String]) -> Result<String, Failure> {
    let mut variables = Vec::new();
    for name in kind.variables() {
        if let Some(value) = path_in(name) {
            variables.push((name, plain(&value)?));
        }
    }
    Ok(match manager {
        Manager::Systemd => unit(kind, words, &variables),
        Manager::Launchd => agent(kind, words, &variables),
    })
}

fn unit(kind: ServiceKind, words: &[String], variables: &[(&str, String)]) -> String {
    let command: Vec<String> = words.iter().map(|word| quoted(word).replace('$', "$$")).collect();
    let variables: String = variables
        .iter()
        .map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"))))
        .collect();
    format!(
        "[Unit]\n\
         Description=acpdb: {}\n\
         Documentation={}\n\
         \n\
         [Service]\n\
         ExecStart={}\n\
         {variables}\
         Restart=on-failure\n\
         RestartSec=30\n\
         Nice=10\n\
         NoNewPrivileges=yes\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        kind.about(),
        env!("CARGO_PKG_REPOSITORY"),
        command.join(" ")
    )
}

/// A word in the form that systemd reads.
fn quoted(word: &str) -> String {
    let word = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{word}\"")
}

fn agent(kind: ServiceKind, words: &[String], variables: &[(&str, String)]) -> String {
    let label = kind.label();
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let words: String =
        words.iter().map(|word| format!("    <string>{}</string>\n", escaped(word))).collect();
    let pairs: String = variables
        .iter()
        .map(|(name, value)| format!("    <key>{name}</key>\n    <string>{}</string>\n", escaped(value)))
        .collect();
    let variables = match pairs.as_str() {
        "" => String::new(),
        pairs => format!("  <key>EnvironmentVariables</key>\n  <dict>\n{pairs}  </dict>\n"),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n\
         <dict>\n  \
         <key>Label</key>\n  <string>{label}</string>\n  \
         <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n\
         {variables}  \
         <key>RunAtLoad</key>\n  <true/>\n  \
         <key>KeepAlive</key>\n  <dict>\n    <key>SuccessfulExit</key>\n    <false/>\n  </dict>\n  \
         <key>ThrottleInterval</key>\n  <integer>30</integer>\n  \
         <key>ProcessType</key>\n  <string>Background</string>\n\
         </dict>\n\
         </plist>\n"
    )
}

/// The state of the service, by its manager.
fn state(manager: Manager, words: &[&str]) -> Option<String> {
    let (program, rest) = words.split_first()?;
    // If the manager cannot be asked, the caller says so.
    let done = Command::new(program).args(rest).output().ok()?;
    let said = String::from_utf8_lossy(&done.stdout);
    let first = said.lines().next().unwrap_or_default().trim();
    match manager {
        Manager::Systemd => (!first.is_empty()).then(|| first.to_owned()),
        Manager::Launchd if done.status.success() => Some("loaded".to_owned()),
        Manager::Launchd => Some("not loaded".to_owned()),
    }
}

fn with_path(words: &[&str], path: &Path) -> Vec<String> {
    words.iter().map(|word| word.replace("{path}", &path.to_string_lossy())).collect()
}

/// Words in the form that a user types in a shell.
fn typed(words: &[String]) -> String {
    words.iter().map(|word| store_path::quoted(Path::new(word))).collect::<Vec<_>>().join(" ")
}

/// Runs a command of the manager. An error in words.
fn call(words: &[String]) -> Result<(), String> {
    let Some((program, rest)) = words.split_first() else { return Ok(()) };
    let done = Command::new(program).args(rest).output();
    let done = done.map_err(|error| format!("cannot run {program}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(format!("{program} failed: {}", said.lines().next().unwrap_or("it said nothing").trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_program_as_they_are() {
        let words = ["/a b/acpdb".to_owned(), "50%\"$HOME\\".to_owned()];
        let unit = unit(ServiceKind::Import, &words, &[("CODEX_HOME", "/c d".to_owned())]);
        assert!(unit.contains("ExecStart=\"/a b/acpdb\" \"50%%\\\"$$HOME\\\\\"\n"), "{unit}");
        assert!(unit.contains("\nEnvironment=\"CODEX_HOME=/c d\"\n"), "{unit}");
        let agent = agent(ServiceKind::Import, &["<&>".to_owned()], &[]);
        assert!(agent.contains("    <string>&lt;&amp;&gt;</string>\n"), "{agent}");
        assert!(!agent.contains("EnvironmentVariables"));
        assert!(plain(Path::new("/a\nb")).is_err());
    }
}
