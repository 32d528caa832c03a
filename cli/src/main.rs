//! The `acpdb` command: arguments -> one call -> rendering -> exit code.
//!
//! ```text
//! args (clap) -> commands::* (one file a verb) -> engine, query, hosts -> output (text or JSON) -> exit code
//! ```
//!
//! stdout is data, stderr is messages and progress. Every command renders one value twice: for people, and with `--json`
//! for programs. Exit codes: 0 ok, 1 failure, 2 usage, 3 damage, 4 lost tail, 5 conflict, 6 busy, 7 not found,
//! 8 done in part, 9 cannot be read, 130 interrupted.

mod args;
#[cfg(feature = "proxy")]
mod child;
mod claims;
mod clock;
mod commands;
mod complete;
mod describe;
mod digits;
mod failure;
mod feed;
mod follow;
mod global;
mod interrupt;
mod kept;
mod keyring;
mod keys;
mod known;
mod mirrors;
mod mistakes;
mod output;
mod own_stores;
mod pager;
mod passphrases;
mod reader;
mod redaction;
mod rings;
mod route;
mod settings;
mod several;
mod shapes;
mod signing;
mod spread;
mod storage_prices;
mod store_path;
mod tiles;
mod tokens;
mod trust;
mod verdict;

use std::io::Write as _;
use std::process::ExitCode;

use args::{Args, Verb};
use failure::{Code, Failure};
use global::Global;
use output::{EscapeLevel, Output, escape};

fn main() -> ExitCode {
    tell_of_bugs();
    interrupt::outlive_full_files();
    clap_complete::CompleteEnv::with_factory(args::command).var(complete::VARIABLE).complete();
    if let Some(text) = args::topic(std::env::args_os()) {
        let mut out = anstream::stdout();
        return printed(write!(out, "{text}").and_then(|()| out.flush())).into();
    }
    let mut args = match Args::read(std::env::args_os()) {
        Ok(args) => args,
        // A host would take the usual exit code for a refusal of its agent's next act.
        Err(error) if error.use_stderr() && is_hook() => {
            let _ = writeln!(std::io::stderr(), "{}", escape(&error.to_string(), EscapeLevel::Text));
            let _ = writeln!(std::io::stdout(), "{}", commands::hook::NOTHING);
            commands::hook::refused(&error.to_string());
            return Code::Ok.into();
        }
        Err(mut error) => {
            mistakes::explain(&mut error);
            let code = if error.use_stderr() { Code::Usage } else { Code::Ok };
            // A user who names no verb wants the list of verbs.
            if error.kind() == clap::error::ErrorKind::MissingSubcommand {
                let help = args::help(std::env::args_os());
                let _ = writeln!(anstream::stderr(), "{}", help.ansi());
                return code.into();
            }
            // Help goes to standard output, since it is data; a mistake goes to standard error, and quotes words of others.
            if !error.use_stderr() {
                return printed(error.print().and_then(|()| std::io::stdout().flush())).into();
            }
            let text = error.render().ansi().to_string();
            let _ = write!(anstream::stderr(), "{}", output::escape_but_styles(&text, true));
            if let Some(act) = act_that_was_meant() {
                let _ = writeln!(std::io::stderr(), "\n  tip: did you mean 'context {act}'?");
            }
            return code.into();
        }
    };
    // An interrupted hook has nothing to say: all that it committed is there. A program that is run has signals of its own.
    let is_beside = matches!(args.verb, Verb::Hook(_) | Verb::Run(_));
    // A host shows nothing of a status line that fails.
    let is_unasked = is_beside || matches!(args.verb, Verb::Statusline);
    if !is_beside {
        interrupt::listen();
    }
    // A successor of a run needs neither: the run told of them.
    let (settled, settings) = match &args.verb {
        Verb::Run(run) if run.successor => (Ok(()), Ok(settings::Settings::default())),
        _ => (route::settle(&mut args, std::env::args_os()), settings::read()),
    };
    // With a file that cannot be read, `config` still runs, so that the user can mend it.
    let unread = match settings {
        Ok(settings) => {
            args.global.settings = settings;
            None
        }
        Err(_) if matches!(args.verb, Verb::Config(_)) => None,
        // The host is answered, the program runs, and nothing is recorded: neither the store nor the secrets to take out are known.
        Err(failure) if is_unasked => {
            args.global.settings.unread = Some(failure.message);
            None
        }
        Err(failure) => Some(failure),
    };
    let unread = match settled {
        Err(failure) if is_unasked => {
            args.global.settings.unread = Some(failure.message);
            unread
        }
        settled => settled.err().or(unread),
    };
    let mut output = Output::new(&args.global);
    let result = match unread {
        Some(failure) => Err(failure),
        None => run(&args, &mut output),
    };
    let flushed = match output.finish() {
        // A hook always ends well; its journal says that the host did not take the answer.
        Err(_) if matches!(args.verb, Verb::Hook(_)) => Ok(()),
        flushed => flushed,
    };
    // With damage, the answer of each verb, even that nothing was found, covers only the sound part.
    let result = if output.tell_of_damage() { failure::in_damage(result) } else { result };
    match result.and_then(|code| flushed.map(|()| code)) {
        Ok(code) => code.into(),
        Err(failure) if failure.broken_pipe => Code::Ok.into(),
        Err(failure) => {
            output.failure(&failure);
            failure.code.into()
        }
    }
}

/// The exit code of a program that printed help or its version. A reader that stops early is no error.
fn printed(said: std::io::Result<()>) -> Code {
    match said {
        Err(unsaid) if unsaid.kind() != std::io::ErrorKind::BrokenPipe => {
            let _ = writeln!(std::io::stderr(), "error: cannot write standard output: {unsaid}");
            Code::Failure
        }
        _ => Code::Ok,
    }
}

/// Whether a host runs this program for one of its events.
fn is_hook() -> bool {
    let words: Vec<_> = std::env::args_os().collect();
    args::verb(&words).and_then(|place| words.get(place)).is_some_and(|word| word == "hook")
}

/// `context discrad r_a1b2c` is refused for two words too many, although the first of them is wrong.
fn act_that_was_meant() -> Option<&'static str> {
    // A word that is not UTF-8 is no word of this program.
    let mut words = std::env::args_os()
        .filter_map(|word| word.into_string().ok())
        .skip_while(|word| word != "context")
        .skip(1);
    words.next().and_then(|word| commands::context::near_act(&word).filter(|act| *act != word))
}

/// Ends a panic's message with its meaning for the user. The exit code of a panic stays 101.
///
/// Panics of the index's library on a damaged file are no bugs: they are caught at the call.
fn tell_of_bugs() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if acpdb_engine::index::panic_is_contained() {
            return;
        }
        usual(panic);
        let _ = writeln!(
            std::io::stderr(),
            "error: this is a bug in acpdb {}; what was acknowledged is safe\n  hint: please report the lines above \
             and the command, at {}/issues",
            env!("CARGO_PKG_VERSION"),
            env!("CARGO_PKG_REPOSITORY")
        );
    }));
}

fn run(args: &Args, output: &mut Output) -> Result<Code, Failure> {
    let global = &args.global;
    if args.verb.is_paged() {
        output.page(global);
    }
    for remark in &global.settings.remarks {
        output.warn(remark);
    }
    for warning in &global.warnings {
        output.warn(warning);
    }
    if let Some(note) = &global.note {
        output.note(note);
    }
    commands::at::forewarn(global, output);
    let code = act(&args.verb, global, output)?;
    if let Some(every) = global.settings.sign.filter(|_| output.records.get() && args.verb.is_signed_after())
    {
        signing::sign_if_due(&store_path::write(global, output)?, every, output);
    }
    if let Some(clocks) = global.clocks.words() {
        output.note(format!("note: times go by {clocks}"));
    }
    Ok(code)
}

fn act(verb: &Verb, global: &Global, output: &mut Output) -> Result<Code, Failure> {
    match verb {
        Verb::Home => commands::home::run(global, output),
        Verb::Demo(args) => commands::demo::run(global, args, output),
        Verb::Init(args) => commands::init::run(global, args, output),
        Verb::Import(args) => commands::import::run(global, args, output),
        Verb::Service(args) => commands::service::run(global, args, output),
        Verb::Append(args) => commands::append::run(global, args, output),
        Verb::Attach(args) => commands::attach::attach(global, args, output),
        Verb::Detach(args) => commands::attach::detach(args, output),
        Verb::Hook(args) => {
            commands::hook::run(global, args);
            Ok(Code::Ok)
        }
        Verb::Statusline => commands::statusline::run(global, output),
        Verb::Plugin(args) => commands::plugin::run(global, args),
        Verb::Mcp(args) => commands::mcp::run(global, args, output),
        Verb::Proxy(args) => commands::proxy::run(global, args, output),
        Verb::Run(args) => commands::run::run(global, args, output),
        Verb::Step(args) => commands::step::run(global, args, output),
        Verb::Sessions(args) => commands::sessions::run(global, args, output),
        Verb::Context(args) => commands::context::run(global, args, output),
        Verb::History(args) => commands::history::run(global, args, output),
        Verb::Lost(args) => commands::lost::run(global, args, output),
        Verb::Log(args) => commands::log::run(global, args, output),
        Verb::Show(args) => commands::show::run(global, args, output),
        Verb::Export(act) => commands::exports::run(global, act, output),
        Verb::Ui(args) => commands::ui::run(global, args, output),
        Verb::Scan(args) => match &args.sought {
            Some(sought) => commands::scan_for::run(global, sought, output),
            None => commands::scan::run(global, args, output),
        },
        Verb::Explain(args) => commands::explain::run(global, args, output),
        Verb::Diff(args) => commands::travel::diff(global, args, output),
        Verb::Blame(args) => commands::travel::blame(global, args, output),
        Verb::Rewind(args) => commands::branch::rewind(global, args, output),
        Verb::Fork(args) => commands::branch::fork(global, args, output),
        Verb::Resume(args) => commands::resume::run(global, args, output),
        Verb::Undo(args) => commands::branch::undo(global, args, output),
        Verb::Stats(args) => commands::stats::run(global, args, output),
        Verb::Search(args) => commands::search::run(global, args, output),
        Verb::Cost(args) => commands::cost::run(global, args, output),
        Verb::Simulate(args) => commands::simulate::run(global, args, output),
        Verb::Todo(act) => commands::todo::run(global, act, output),
        Verb::Memory(act) => commands::memory::run(global, act, output),
        Verb::Task(act) => commands::task::run(global, act, output),
        Verb::Project(act) => commands::project::run(global, act, output),
        Verb::Policy(act) => commands::policy::run(global, act, output),
        Verb::Verify(args) => commands::verify::run(global, args, output),
        Verb::Key(act) => commands::key::run(global, act, output),
        Verb::Checkpoint(args) => commands::checkpoint::run(global, args, output),
        Verb::Doctor(args) => commands::doctor::run(global, args, output),
        Verb::Backup(args) => commands::backup::run(global, args, output),
        Verb::Restore(args) => commands::restore::run(global, args, output),
        Verb::Info(args) => commands::info::run(global, args, output),
        Verb::Erase(args) => commands::erase::run(global, args, output),
        Verb::Config(act) => commands::config::run(act, output),
        Verb::Completions(args) => commands::shell::completions(args, output),
        Verb::Man(args) => commands::shell::man(args, output),
    }
}
