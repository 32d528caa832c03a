//! Long answers on a terminal go through a pager, as with git.
//!
//! ```text
//! --no-pager, $ACPDB_PAGER, setting `pager`, $PAGER, less      the first that says something
//! ```
//!
//! `never`, `cat` and an empty command mean no pager. The pager is started with the first byte of an answer, so that errors alone
//! never start it. Default options of `less`: colours pass (R), a short answer is only printed (F), nothing is cleared (X).

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use crate::settings::Settings;

/// The pager that runs if none is named.
const DEFAULT: &str = "less";

/// The words of the pager's command; `None` if there is to be none.
pub(crate) fn command(settings: &Settings) -> Option<Vec<String>> {
    let env = |name: &str| std::env::var_os(name).map(OsString::into_string).and_then(Result::ok);
    let text = env("ACPDB_PAGER").or_else(|| settings.pager.clone()).or_else(|| env("PAGER"));
    words(text.as_deref().unwrap_or(DEFAULT))
}

fn words(text: &str) -> Option<Vec<String>> {
    let words = shlex::split(text)?;
    match words.first().map(String::as_str) {
        None | Some("" | "never" | "cat") => None,
        Some(_) => Some(words),
    }
}

/// A writer to a pager that starts with the first byte, or to stdout if the pager cannot be started.
pub(crate) struct Pager {
    words: Vec<String>,
    running: Option<Child>,
    failed: bool,
}

impl Pager {
    pub(crate) fn new(words: Vec<String>) -> Self {
        Self { words, running: None, failed: false }
    }

    fn start(&mut self) {
        let Some((program, arguments)) = self.words.split_first() else { return };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped());
        for (name, value) in [("LESS", "FRX"), ("LV", "-c")] {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        // Before the pager runs: a Ctrl-C in between must not end this program and leave the pager alone.
        crate::interrupt::paged(true);
        // A pager that does not start is handled below.
        if let Ok(child) = command.spawn() {
            self.running = Some(child);
        } else {
            // Without a pager, the answer is still shown.
            crate::interrupt::paged(false);
            self.failed = true;
        }
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.running.is_none() && !self.failed && !bytes.is_empty() {
            self.start();
        }
        match self.running.as_mut().and_then(|child| child.stdin.as_mut()) {
            Some(pipe) => pipe.write(bytes),
            None => io::stdout().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.running.as_mut().and_then(|child| child.stdin.as_mut()) {
            Some(pipe) => pipe.flush(),
            None => io::stdout().flush(),
        }
    }
}

impl Drop for Pager {
    /// Waits until the user has read enough.
    fn drop(&mut self) {
        if let Some(mut child) = self.running.take() {
            drop(child.stdin.take());
            // How the pager ended is its user's business.
            let _ = child.wait();
            crate::interrupt::paged(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn what_names_a_pager_and_what_names_none() {
        for (text, read) in [
            ("less", Some(&["less"] as &[&str])),
            ("less -R '-P a b'", Some(&["less", "-R", "-P a b"])),
            ("never", None),
            ("cat", None),
            ("", None),
            ("  ", None),
            ("''", None),
            ("an 'open quote", None),
        ] {
            let words = words(text);
            let words: Option<Vec<&str>> =
                words.as_ref().map(|words| words.iter().map(String::as_str).collect());
            assert_eq!(words.as_deref(), read, "{text:?}");
        }
    }
}
