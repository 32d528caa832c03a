//! The system's keyring: where a key can lie instead of in a file beside the settings.
//!
//! ```text
//! keys/NAME.key, keys/DIGITS.store-key    acpdb-in-keyring-1 ENTRY: where the key is, and nothing of it
//! the keyring                             service "acpdb", user ENTRY: 64 hex digits, since KWallet keeps nothing but text
//! ```
//!
//! An entry is written once, under a name that no other entry has, and another key never replaces it: no act here loses a key that
//! a keyring holds. `system` chooses the keyring; a program that was built without the feature says how to get it.

#[cfg_attr(not(feature = "keyring"), path = "without.rs")]
mod system;

use acpdb_engine::keys::Zeroizing;

use crate::digits::{hex, unhex};
use crate::failure::{Code, Failure};

/// The first bytes of a file whose key is in the keyring.
const WORD: &str = "acpdb-in-keyring-1 ";
/// Largest entry that makes sense, in bytes.
const ENTRY_BYTES_MAX: usize = 128;

/// The reason why the keyring gave or took nothing.
#[derive(Debug)]
#[cfg_attr(not(feature = "keyring"), expect(dead_code, reason = "there is one trouble without a keyring"))]
enum Trouble {
    /// This program was built without a keyring.
    #[cfg(not(feature = "keyring"))]
    NotBuilt,
    /// The system has no keyring, or it cannot be reached.
    Absent(String),
    /// The keyring is there, and does not open.
    Locked(String),
    /// The keyring has no such entry.
    NoEntry,
    /// The keyring has several entries of the name.
    Several(usize),
    /// Anything else.
    Other(String),
}

impl Trouble {
    /// The failure for an entry: what is wrong, and what to do.
    fn told(self, entry: &str) -> Failure {
        let locked = |text: String| Failure::new(Code::Locked, text);
        match self {
            #[cfg(not(feature = "keyring"))]
            Self::NotBuilt => Failure::usage("this acpdb was built without the system's keyring")
                .hint("build it with --features keyring, or keep the key in a file or under a passphrase"),
            Self::Absent(why) => locked(format!("no keyring of the system can be reached: {why}")).hint(
                "log in to a session that has one (on Linux a session bus with a secret service: gnome-keyring, KWallet, KeePassXC)",
            ),
            Self::Locked(why) => locked(format!("the system's keyring is locked: {why}"))
                .hint("unlock it, then run this again; nothing was changed"),
            Self::NoEntry => locked(format!("the system's keyring has no entry {entry} of acpdb")).hint(
                "it was removed, or the keyring is another user's or machine's: put it back from a copy of that keyring",
            ),
            Self::Several(count) => {
                locked(format!("the system's keyring has {count} entries {entry} of acpdb"))
                    .hint("remove those that acpdb did not make, then run this again")
            }
            Self::Other(why) => locked(format!("the system's keyring failed: {why}"))
                .hint("run this again; nothing was changed"),
        }
    }
}

/// The entry that the text of a file refers to; `None` if the key is in the file itself.
pub(crate) fn entry_in<'a>(text: &'a str, shown: &str) -> Result<Option<&'a str>, Failure> {
    let Some(entry) = text.strip_prefix(WORD) else { return Ok(None) };
    let entry = entry.trim_end();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_ ".contains(c);
    if entry.is_empty() || entry.len() > ENTRY_BYTES_MAX || !entry.chars().all(is_plain) {
        let failure =
            Failure::new(Code::Failure, format!("{shown} is damaged: it names no entry of the keyring"));
        return Err(failure.hint(format!("put it back from a copy of it: {WORD}and the name of the entry")));
    }
    Ok(Some(entry))
}

/// The text of a file whose key is in the keyring.
pub(crate) fn text_of(entry: &str) -> String {
    format!("{WORD}{entry}\n")
}

/// Puts a key into the keyring under a new name, and checks that it is there.
pub(crate) fn keep(entry: &str, key: &[u8; 32]) -> Result<(), Failure> {
    match system::get(entry) {
        Err(Trouble::NoEntry) => {}
        Err(trouble) => return Err(trouble.told(entry)),
        Ok(_) => {
            let message = format!("the system's keyring has an entry {entry} of acpdb already");
            return Err(Failure::new(Code::Conflict, message).hint("run this again: another name is drawn"));
        }
    }
    system::set(entry, &Zeroizing::new(hex(key))).map_err(|trouble| trouble.told(entry))?;
    let kept = secret(entry)?;
    if *kept == *key {
        return Ok(());
    }
    let failure = Failure::new(Code::Failure, "the system's keyring did not keep what it was given");
    Err(failure.hint("keep the key in a file or under a passphrase"))
}

/// Takes out an entry whose file could not be written, so that no entry is left without a file.
pub(crate) fn forget(entry: &str) {
    // An entry that stays does no harm.
    let _ = system::remove(entry);
}

/// The key of an entry.
pub(crate) fn secret(entry: &str) -> Result<Zeroizing<[u8; 32]>, Failure> {
    let text = system::get(entry).map_err(|trouble| trouble.told(entry))?;
    let bytes = (text.len() == 64).then(|| unhex(&text).map(Zeroizing::new)).flatten();
    let key = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes.as_slice()).ok());
    key.map(Zeroizing::new).ok_or_else(|| {
        let length = text.len();
        let message = format!(
            "the entry {entry} of acpdb in the system's keyring is no key: it has {length} bytes, not 64 hex digits"
        );
        Failure::new(Code::Locked, message).hint("put it back from a copy of that keyring")
    })
}

#[cfg(all(test, feature = "keyring"))]
mod tests;
