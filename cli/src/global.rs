//! The options of every verb, with the settings behind them. All code but the table of arguments uses only these. Only the verb
//! itself uses its own options.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;

use acpdb_engine::store::Stores;
use acpdb_query::when::{FoundPoint, SessionClock};
use clap::ValueEnum;

use crate::failure::Failure;
use crate::settings::Settings;

/// Their place in the help of a verb: behind its own options.
const GLOBAL_OPTIONS: &str = "Options of every command";

/// Options of every command.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Global {
    /// The store's folder; several, a folder of stores, or a URL of stores, are read as one [default: the nearest .acpdb/ upwards, else as set by
    /// config, else the user's data directory]
    #[arg(id = "db", help_heading = GLOBAL_OPTIONS, long, global = true, value_name = "PATH", env = "ACPDB_PATH", hide_env_values = true)]
    pub(crate) named: Vec<PathBuf>,
    /// The store's folder, if one is named.
    #[arg(skip)]
    pub(crate) db: Option<PathBuf>,
    /// Several stores that are read as one; `None`: there is one.
    #[arg(skip)]
    pub(crate) several: Option<Arc<Stores<Failure>>>,
    /// The reason for which one of several stores was taken, as a note.
    #[arg(skip)]
    pub(crate) note: Option<String>,
    /// Warnings of the stores of a URL: left out, set back.
    #[arg(skip)]
    pub(crate) warnings: Vec<String>,
    /// The thing that the key which is given opens.
    #[arg(skip)]
    pub(crate) key_of: KeyOf,
    /// The name of the store, if it was one of several.
    #[arg(skip)]
    pub(crate) store_label: Option<String>,
    /// The key of an encrypted store [default: beside your settings, else a passphrase]
    #[arg(help_heading = GLOBAL_OPTIONS, long, global = true, value_name = "FILE", env = "ACPDB_KEY_FILE", hide_env_values = true)]
    pub(crate) key_file: Option<PathBuf>,
    /// The session, for verbs that are about one: its id, the beginning of one, or latest [default: as the verb says]
    #[arg(help_heading = GLOBAL_OPTIONS, long, short, global = true, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Print JSON, for programs
    #[arg(help_heading = GLOBAL_OPTIONS, long, global = true)]
    pub(crate) json: bool,
    /// Read as of this point: #812, t12, -3t, "2026-01-31 14:05", "10m ago", "last Tuesday", @compact-1, @rewind-1
    #[arg(help_heading = GLOBAL_OPTIONS, long, global = true, value_name = "WHEN", allow_hyphen_values = true)]
    pub(crate) at: Option<String>,
    /// Colours [default: auto]
    #[arg(help_heading = GLOBAL_OPTIONS, long, global = true, value_name = "WHEN")]
    pub(crate) color: Option<ColorChoice>,
    /// Do not show long answers through a pager
    #[arg(help_heading = GLOBAL_OPTIONS, long, global = true)]
    pub(crate) no_pager: bool,
    /// No progress and no remarks
    #[arg(help_heading = GLOBAL_OPTIONS, long, short, global = true)]
    pub(crate) quiet: bool,
    /// The user's settings, once they are read.
    #[arg(skip)]
    pub(crate) settings: Settings,
    /// The clocks that the answers used.
    #[arg(skip)]
    pub(crate) clocks: Clocks,
}

impl Global {
    /// The options needed to open a store, for work apart from the verb that prints nothing itself.
    pub(crate) fn apart(&self) -> Self {
        Self {
            db: self.db.clone(),
            several: self.several.clone(),
            key_file: self.key_file.clone(),
            key_of: self.key_of,
            quiet: true,
            settings: self.settings.clone(),
            ..Self::default()
        }
    }

    /// Whether there are colours: by the option, else by the settings, else by the terminal.
    pub(crate) fn color(&self) -> ColorChoice {
        self.color.unwrap_or(match self.settings.color.as_deref() {
            Some("always") => ColorChoice::Always,
            Some("never") => ColorChoice::Never,
            _ => ColorChoice::Auto,
        })
    }
}

/// The thing that a key opens.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyOf {
    /// The store.
    #[default]
    Store,
    /// The objects of which a store is a copy, or the store, if it is encrypted itself.
    Objects,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// The clocks by which times were looked up.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    host: Cell<bool>,
    recorded: Cell<bool>,
}

impl Clocks {
    /// Takes note of the clock by which a point was found.
    pub(crate) fn used(&self, found: &FoundPoint) {
        match found.clock {
            Some(SessionClock::Host) => self.host.set(true),
            Some(SessionClock::Recorded) => self.recorded.set(true),
            None => {}
        }
    }

    /// The clocks that an answer used, in words, if it used one.
    pub(crate) fn words(&self) -> Option<&'static str> {
        match (self.host.get(), self.recorded.get()) {
            (false, false) => None,
            (true, false) => Some(SessionClock::Host.label()),
            (false, true) => Some(SessionClock::Recorded.label()),
            (true, true) => {
                Some("the clocks of the hosts; where they give no times, when things were recorded")
            }
        }
    }
}
