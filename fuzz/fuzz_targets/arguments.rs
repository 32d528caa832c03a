//! Arguments of the command line, one a line: any words are a command or are refused with a message. Nothing is executed.
#![no_main]
#![allow(dead_code, unused_imports, reason = "the fields are for commands, which are not here")]

#[path = "../../cli/src/args/mod.rs"]
mod args;
#[path = "../../cli/src/global.rs"]
mod global;
#[path = "../../cli/src/redaction.rs"]
mod redaction;

/// Questions to a store by which a shell completes arguments; here no shell asks.
mod complete {
    use std::ffi::OsStr;

    use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};

    fn nothing() -> ArgValueCandidates {
        ArgValueCandidates::new(Vec::new)
    }
    fn nothing_of_it() -> ArgValueCompleter {
        ArgValueCompleter::new(|_: &OsStr| Vec::new())
    }
    pub(crate) fn sessions() -> ArgValueCompleter {
        nothing_of_it()
    }
    pub(crate) fn items() -> ArgValueCompleter {
        nothing_of_it()
    }
    pub(crate) fn settings() -> ArgValueCandidates {
        nothing()
    }
    pub(crate) fn presets() -> ArgValueCandidates {
        nothing()
    }
    pub(crate) fn formats() -> ArgValueCandidates {
        nothing()
    }
}

/// No user's settings.
mod settings {
    #[derive(Clone, Debug, Default)]
    pub(crate) struct Settings {
        pub(crate) color: Option<String>,
    }
}

/// Nothing is executed, so nothing fails but reading the arguments.
mod failure {
    #[derive(Debug)]
    pub(crate) struct Failure;

    impl Failure {
        pub(crate) fn usage(_: impl Into<String>) -> Self {
            Self
        }
    }
}

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let words = data.split(|byte| *byte == b'\n').map(|word| OsString::from_vec(word.to_vec()));
    let words: Vec<OsString> = std::iter::once(OsString::from("acpdb")).chain(words).collect();
    match args::Args::read(&words) {
        Ok(read) => {
            let again = args::Args::read(&words).expect("what was read can be read again");
            assert_eq!(format!("{read:?}"), format!("{again:?}"));
        }
        // Help and version count as refusals with a message.
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
