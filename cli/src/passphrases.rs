//! Passphrases: of the environment, or asked for on the terminal.

use std::io::{self, IsTerminal as _};

use acpdb_engine::keys::PassphraseKeyRing;

use crate::failure::{Code, Failure};

/// The variable with the passphrase of keys that have one.
pub(crate) const PASSPHRASE: &str = "ACPDB_PASSPHRASE";
/// The variable with the new passphrase of a rotation.
pub(crate) const NEW_PASSPHRASE: &str = "ACPDB_NEW_PASSPHRASE";

/// The passphrase that a variable of the environment holds.
pub(crate) fn told(variable: &str) -> Result<Option<PassphraseKeyRing>, Failure> {
    let Some(text) = std::env::var_os(variable).filter(|text| !text.is_empty()) else { return Ok(None) };
    let text = text.into_string().map_err(|_| Failure::usage(format!("${variable} is no UTF-8")))?;
    PassphraseKeyRing::new(&text).map(Some).map_err(|error| Failure::usage(format!("${variable}: {error}")))
}

/// A new passphrase: from the environment, else asked for twice.
pub(crate) fn new_passphrase() -> Result<PassphraseKeyRing, Failure> {
    new_passphrase_in(PASSPHRASE)
}

/// As [`new_passphrase`], from another variable.
pub(crate) fn new_passphrase_in(variable: &str) -> Result<PassphraseKeyRing, Failure> {
    told(variable)?.map_or_else(|| asked_twice(variable), Ok)
}

/// The passphrase of a file: from the environment, else asked for.
pub(crate) fn passphrase_of(shown: &str) -> Result<PassphraseKeyRing, Failure> {
    if let Some(ring) = told(PASSPHRASE)? {
        return Ok(ring);
    }
    let locked = |why: String| Failure::new(Code::Locked, format!("{shown} is under a passphrase: {why}"));
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(locked(format!("there is no terminal to ask for it on; give it as ${PASSPHRASE}")));
    }
    let text = rpassword::prompt_password(format!("passphrase of {shown}: "));
    text.and_then(|text| PassphraseKeyRing::new(&text)).map_err(|error| locked(error.to_string()))
}

fn asked_twice(variable: &str) -> Result<PassphraseKeyRing, Failure> {
    if !io::stdin().is_terminal() {
        let failure = Failure::usage("there is no terminal to ask for a passphrase on");
        return Err(failure.hint(format!("give it as ${variable}")));
    }
    let wrong = |error: io::Error| Failure::usage(format!("no passphrase: {error}"));
    let text = rpassword::prompt_password("new passphrase: ").map_err(wrong)?;
    let again = rpassword::prompt_password("the same again: ").map_err(wrong)?;
    if text != again {
        return Err(Failure::usage("the two are not the same"));
    }
    PassphraseKeyRing::new(&text).map_err(wrong)
}
