//! `acpdb run -- PROGRAM`: a proxy inside this process, for as long as the program runs.
//!
//! ```text
//! port on 127.0.0.1, token --> PROGRAM with its own variables set --> its exit code
//!   '-> provider: the one of the user's environment or option; requests go there also if nothing can be recorded
//! ```
//!
//! If this process is killed, another one that it started goes on ([`super::successor`]).
//! No settings are changed. The provider is chosen by the user's environment and options alone: no file of a project is asked.

use std::ffi::OsString;
use std::path::Path;

use super::{Code, Failure, Global, Output};
use crate::args::Run;

/// A provider, and the variables by which programs find it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChildProvider {
    /// The variables; the first one that the user has set names the provider.
    variables: Vec<String>,
    /// The provider if none is set.
    usual: &'static str,
}

/// The path of a version, which belongs to the address in some variables.
#[cfg(feature = "proxy")]
const VERSION: &str = "/v1";

fn provider(variables: &[&str], usual: &'static str) -> ChildProvider {
    ChildProvider { variables: variables.iter().map(|name| (*name).to_owned()).collect(), usual }
}

/// The providers that a program speaks to, as far as its name tells.
fn providers(program: &str, args: &Run) -> Vec<ChildProvider> {
    let anthropic = || provider(&["ANTHROPIC_BASE_URL"], "https://api.anthropic.com");
    let openai = || provider(&["OPENAI_BASE_URL", "OPENAI_API_BASE"], "https://api.openai.com/v1");
    let gemini = || provider(&["GOOGLE_GEMINI_BASE_URL"], "https://generativelanguage.googleapis.com");
    if let Some(name) = &args.variable {
        return vec![provider(&[name], "")];
    }
    match program {
        "claude" => vec![anthropic()],
        "codex" => vec![openai()],
        "gemini" => vec![gemini()],
        // Its packages put the version into the address.
        "opencode" => vec![provider(&["ANTHROPIC_BASE_URL"], "https://api.anthropic.com/v1"), openai()],
        "copilot" => copilot(args),
        _ => vec![anthropic(), openai(), gemini()],
    }
}

/// Copilot CLI can be sent to a provider of the user's alone, not away from its own service.
fn copilot(args: &Run) -> Vec<ChildProvider> {
    let own = provider(&["COPILOT_PROVIDER_BASE_URL"], "");
    if args.upstream.is_some() || set(&own).is_some() { vec![own] } else { Vec::new() }
}

/// The name of a program without its folder.
fn name_of(program: &OsString) -> String {
    let name = Path::new(program).file_stem().unwrap_or(program);
    name.to_string_lossy().into_owned()
}

pub(crate) fn run(global: &Global, args: &Run, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    if args.successor {
        return inside::successor(output);
    }
    let Some((program, words)) = args.command.split_first() else {
        return Err(Failure::usage("name the program to run"));
    };
    let providers = providers(&name_of(program), args);
    if args.upstream.is_some() && providers.len() > 1 {
        let message = format!("{} may speak to several providers, and --upstream is one", name_of(program));
        return Err(Failure::usage(message).hint("name its variable as well: --variable OPENAI_BASE_URL"));
    }
    if args.upstream.is_none() && providers.iter().any(|one| one.usual.is_empty() && set(one).is_none()) {
        let message = format!(
            "{} is not set, so the provider is not known",
            args.variable.as_deref().unwrap_or("the variable")
        );
        return Err(Failure::usage(message).hint("name it with --upstream URL"));
    }
    inside::run(global, args, (program, words), &providers, output)
}

/// The provider that the user's environment names.
fn set(provider: &ChildProvider) -> Option<String> {
    let value = |name: &String| crate::settings::variable(name).filter(|value| !value.is_empty());
    provider.variables.iter().find_map(value)
}

#[cfg(not(feature = "proxy"))]
mod inside {
    use super::{ChildProvider, Code, Failure, Global, OsString, Output, Run};

    pub(super) fn successor(_: &Output) -> Result<Code, Failure> {
        Ok(Code::Ok)
    }

    pub(super) fn run(
        _: &Global,
        _: &Run,
        _: (&OsString, &[OsString]),
        _: &[ChildProvider],
        _: &mut Output,
    ) -> Result<Code, Failure> {
        let failure = Failure::usage("this program was built without the proxy that run needs");
        Err(failure.hint("install it with its default features: cargo install acpdb-cli"))
    }
}

#[cfg(feature = "proxy")]
mod inside {
    use std::process::Command;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use acpdb_engine::Store;
    use acpdb_engine::locks::steady;
    use acpdb_live::attach::{self, SettingsOwner, settings};
    use acpdb_live::proxy::access::{ClientAccess, Clients, address};
    use acpdb_live::proxy::inside::{Inside, begin};
    use acpdb_live::proxy::prune::RecordingFolders;
    use acpdb_live::proxy::server::{ProxyOptions, Unrecorded};
    use acpdb_live::{AttachMode, Host, recording};

    use super::{ChildProvider, Code, Failure, Global, OsString, Output, Run, VERSION, set};
    use crate::commands::successor::{Successor, SuccessorOrder, SuccessorPort};
    use crate::failure::chained;
    use crate::{child, keys, settings as own, store_path};

    /// Longest wait for records of exchanges, once the program has ended.
    const RECORDS_WAIT: Duration = Duration::from_secs(5);
    /// Variables that send requests through a proxy of another kind, which acpdb does not ask.
    const OTHER_PROXIES: [&str; 6] =
        ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
    /// Reasons that are told, once the program has ended.
    const TOLD_COUNT_MAX: usize = 8;

    pub(super) use crate::commands::successor::run as successor;

    /// Variables and words that the program gets beside the words of the user.
    #[derive(Default)]
    struct Given {
        variables: Vec<(String, String)>,
        words: Vec<String>,
    }

    pub(super) fn run(
        global: &Global,
        args: &Run,
        (program, words): (&OsString, &[OsString]),
        providers: &[ChildProvider],
        output: &mut Output,
    ) -> Result<Code, Failure> {
        let store = opened(global, output);
        let reasons: Arc<Mutex<Vec<String>>> = Arc::default();
        let begun = match other_proxy() {
            Some(name) => Err(format!("${name} names another proxy, which acpdb does not ask")),
            None => proxies(store.as_ref(), (args, global.session.as_deref()), providers, &reasons),
        };
        let (given, mut inside, mut order) = match begun {
            Ok((addresses, inside, order)) => {
                (given(global, args, program, words, &addresses, output), Some(inside), Some(order))
            }
            Err(why) => {
                output.warn(format!("requests go straight to the provider, and are not recorded: {why}"));
                (Given::default(), None, None)
            }
        };
        output.flush()?;
        let mut command = Command::new(program);
        command.args(&given.words).args(words).envs(given.variables);
        let mut successor = None;
        let mut started = |program| {
            let order = order.take().filter(|order| !order.ports.is_empty());
            successor = order.and_then(|order| Successor::begin(&SuccessorOrder { program, ..order }));
            // A program that has had an answer keeps its provider if this process is killed.
            inside.iter_mut().for_each(Inside::open);
        };
        let code = match child::run(&mut command, &mut started) {
            Ok(status) => child::code(status),
            Err(error) => {
                let code = child::unstarted(&error);
                output.failure(&Failure::io("start", program.display())(error));
                code
            }
        };
        let is_over = inside.is_none_or(|inside| ended(&inside, store.as_ref(), args, output));
        successor.into_iter().for_each(Successor::end);
        for why in steady(&reasons).iter() {
            output.warn(format!("an exchange is not recorded: {why}"));
        }
        // A store that is still being written to would hold up the end for as long as it is late.
        if let Some(store) = store.filter(|_| is_over) {
            crate::kept::leave_if_much(&store);
            if let Err(error) = store.close() {
                output.warn(chained(&error));
            }
        }
        // The code is the program's, and there are more of them than codes of acpdb.
        std::process::exit(code.into());
    }

    /// The store; without one the program runs all the same.
    fn opened(global: &Global, output: &Output) -> Option<Store> {
        let opened = match &global.settings.unread {
            Some(why) => Err(Failure::new(Code::Failure, why.clone())),
            None => store_path::open_live(global, output),
        };
        match opened {
            Ok(store) => Some(store),
            Err(failure) => {
                let why = failure.message;
                output.warn(format!("nothing is recorded, and requests go through as they are: {why}"));
                None
            }
        }
    }

    fn other_proxy() -> Option<&'static str> {
        let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        OTHER_PROXIES.into_iter().find(is_set)
    }

    /// The addresses that a program is given in place of its providers', the proxies behind them, and the order for a successor.
    type Begun = (Vec<(Vec<String>, String)>, Inside, SuccessorOrder);

    fn proxies(
        store: Option<&Store>,
        (args, session): (&Run, Option<&str>),
        providers: &[ChildProvider],
        reasons: &Arc<Mutex<Vec<String>>>,
    ) -> Result<Begun, String> {
        let undrawn = |failure: Failure| failure.message;
        let token = keys::hex(&keys::random::<16>().map_err(undrawn)?);
        let access = ClientAccess::new(&token, Clients::OfThisUser).ok_or("there is no token")?;
        let name = keys::hex(&keys::random::<4>().map_err(undrawn)?);
        let session = session.map_or_else(|| format!("run-{name}"), str::to_owned);
        let reasons = Arc::clone(reasons);
        let unrecorded = Unrecorded(Arc::new(move |why: &str| {
            let mut reasons = steady(&reasons);
            if reasons.len() < TOLD_COUNT_MAX && !reasons.iter().any(|known| known == why) {
                reasons.push(why.to_owned());
            }
        }));
        let options = |provider: &ChildProvider| {
            let upstream = args.upstream.clone().or_else(|| set(provider));
            let upstream = upstream.unwrap_or_else(|| provider.usual.to_owned());
            // Records name an API by the end of its path, which holds the version.
            let plain = upstream.trim_end_matches('/');
            let (plain, version) = plain.strip_suffix(VERSION).map_or((plain, ""), |plain| (plain, VERSION));
            let options = ProxyOptions {
                listen: ([127, 0, 0, 1], 0).into(),
                upstream: plain.to_owned(),
                access: access.clone(),
                session: Some(session.clone()),
                prune: (args.mode == AttachMode::Prune).then(|| RecordingFolders::usual(&own::variable)),
                unrecorded: unrecorded.clone(),
            };
            (options, version)
        };
        let (all, versions): (Vec<ProxyOptions>, Vec<&'static str>) = providers.iter().map(options).unzip();
        let inside = begin(store, &all).map_err(|error| chained(&error))?;
        let addresses =
            inside.addresses.iter().zip(versions).zip(providers).map(|((port, version), provider)| {
                (provider.variables.clone(), format!("{}{version}", address(*port, &token)))
            });
        let addresses = addresses.collect();
        let ports = inside.addresses.iter().zip(&all);
        let ports = ports.map(|(at, one)| SuccessorPort { port: at.port(), upstream: one.upstream.clone() });
        let order = SuccessorOrder { ports: ports.collect(), token, program: 0 };
        Ok((addresses, inside, order))
    }

    /// The variables and words by which a program finds the proxy.
    fn given(
        global: &Global,
        args: &Run,
        program: &OsString,
        words: &[OsString],
        addresses: &[(Vec<String>, String)],
        output: &Output,
    ) -> Given {
        let mut given = Given::default();
        for (names, address) in addresses {
            given.variables.extend(names.iter().map(|name| (name.clone(), address.clone())));
        }
        match &*super::name_of(program) {
            "claude" => {
                // Claude Code keeps tools back until they are asked for, but not at an address that it does not know.
                if std::env::var_os("ENABLE_TOOL_SEARCH").is_none()
                    && std::env::var_os("ANTHROPIC_BASE_URL").is_none()
                {
                    given.variables.push(("ENABLE_TOOL_SEARCH".to_owned(), "true".to_owned()));
                }
                if args.mode != AttachMode::Record {
                    given.words = hooks(global, args.mode, words, output);
                }
            }
            // Codex takes no variable for it.
            "codex" => {
                let address = addresses.first().map_or("", |(_, address)| address);
                given.words = vec!["-c".to_owned(), format!("openai_base_url=\"{address}\"")];
                told_by_attach(args.mode, "codex", output);
            }
            name => {
                if addresses.is_empty() {
                    output.note(format!("note: {name} speaks to its own service, and not by way of acpdb"));
                }
                told_by_attach(args.mode, name, output);
            }
        }
        given
    }

    /// Says that a program is told nothing: its hooks are in settings, which are not changed.
    fn told_by_attach(mode: AttachMode, name: &str, output: &Output) {
        if mode == AttachMode::Suggest {
            let host = Host::from_name(name).map_or("HOST", |host| host.name());
            output.note(format!(
                "note: run tells {name} no todos and decisions; its hooks do: acpdb attach {host} --mode suggest"
            ));
        }
        if let Some(host) =
            Host::from_name(name).filter(|host| mode == AttachMode::Prune && host.takes_plugin())
        {
            output.note(format!(
                "note: run changes no request of {host}; its plug-in does: acpdb attach {host} --mode prune"
            ));
        }
    }

    /// Hooks for this run of Claude Code alone; none if it has them in its settings, or has settings of the user's for this run.
    fn hooks(global: &Global, mode: AttachMode, words: &[OsString], output: &Output) -> Vec<String> {
        if are_attached() {
            return Vec::new();
        }
        if words.iter().any(|word| word.to_string_lossy().starts_with("--settings")) {
            output.note("note: with --settings of yours, run sets no hooks: it records and prunes, and tells the model nothing");
            return Vec::new();
        }
        match made_hooks(global, mode) {
            Ok(hooks) => vec!["--settings".to_owned(), hooks],
            Err(why) => {
                output.note(format!("note: the model is told nothing: {why}"));
                Vec::new()
            }
        }
    }

    /// Settings that hold the hooks of acpdb and nothing else.
    fn made_hooks(global: &Global, mode: AttachMode) -> Result<String, String> {
        let unnamed = |error: std::io::Error| error.to_string();
        let program = std::env::current_exe().map_err(unnamed)?;
        let store = global.db.as_ref().map(std::path::absolute).transpose().map_err(unnamed)?;
        let run =
            attach::HostCommand { program: &program, store: store.as_deref(), host: Host::ClaudeCode, mode };
        let words = run.words().map_err(|error| chained(&error))?;
        let command = settings::HostCommandLine { words, host: Host::ClaudeCode };
        settings::attached("", &command).map_err(|error| error.to_string())
    }

    /// Whether the hooks of acpdb are in Claude Code's own settings.
    fn are_attached() -> bool {
        // Without a folder, or with settings that cannot be read, they are not known to be there.
        let Ok(project) = std::env::current_dir() else { return false };
        [SettingsOwner::User, SettingsOwner::Project].into_iter().any(|reach| {
            let place = attach::place(Host::ClaudeCode, reach, &project, &own::variable);
            place
                .and_then(|place| attach::found(&place, Host::ClaudeCode))
                .is_ok_and(|found| !found.is_empty())
        })
    }

    /// Records what is still to be recorded, once the program has ended. `false`: a record is still under way.
    fn ended(inside: &Inside, store: Option<&Store>, args: &Run, output: &Output) -> bool {
        if !inside.finish(RECORDS_WAIT) {
            output
                .warn("an exchange that was under way is not recorded, nor is the host's own recording read");
            return false;
        }
        if inside.exchange_count() == 0 && args.mode != AttachMode::Record && !inside.addresses.is_empty() {
            output.note("note: no request came through; the program's own settings may name another address");
        }
        let Some(store) = store else { return true };
        let places = RecordingFolders::usual(&own::variable);
        for identity in inside.seen() {
            let Some((format, path)) = places.recording(&identity) else { continue };
            // Such a recording is read by the next import, too.
            if let Err(error) = recording::import(store, &path, format) {
                output.warn(format!("{} is not recorded: {}", path.display(), chained(&error)));
            }
        }
        true
    }
}
