//! The store file, `acpdb.json`: the format, the store, and the features that a program has to know to use it.
//!
//! It is JSON so that a person, and a program of any later version, can read it; its last field is a digest of all
//! before it, so that a damaged version number is not taken for a newer one.

use super::{DamagedPart, FORMAT_VERSION, Invalid, STORE_FILE_BYTES_MAX};
use crate::ids::{Micros, StoreId};

/// The store file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreFile {
    /// Random id of the store.
    pub store: StoreId,
    /// When it was created.
    pub created: Micros,
    /// Features that a program must know to read the store. This program knows [`ENCRYPTED`].
    pub needs: Vec<String>,
    /// Features that a program must know to write to the store; others may read it. This program knows none.
    pub writes: Vec<String>,
}

/// Why a store file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreFileError {
    /// Sound, but made before the first release: its form is read no more.
    #[error("format version {found} is older than {FORMAT_VERSION}")]
    Former {
        /// The version it names.
        found: u32,
    },
    /// Sound, but made by a later version.
    #[error("format version {found} is newer than {FORMAT_VERSION}")]
    Newer {
        /// The version it names.
        found: u32,
    },
    /// Sound, but its bytes cannot be read without features that this program does not know.
    #[error("it needs {}", names.join(", "))]
    Needs {
        /// Their names.
        names: Vec<String>,
    },
    /// Damaged.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// The feature of a store whose frames are sealed under its key.
pub(crate) const ENCRYPTED: &str = "encrypted";

const CHECK_KEY: &str = ",\n  \"check\": \"";
/// Longest name of a feature.
const NAME_BYTES_MAX: usize = 48;

impl StoreFile {
    /// Whether the store is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.needs.iter().any(|name| name == ENCRYPTED)
    }

    /// The file's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let text = format!(
            "{{\n  \"acpdb\": {FORMAT_VERSION},\n  \"store\": \"{}\",\n  \"created_micros\": {},\n  \
             \"needs\": {},\n  \"writes\": {}",
            self.store,
            self.created.0,
            list(&self.needs),
            list(&self.writes)
        );
        let check = blake3::hash(text.as_bytes()).to_hex();
        format!("{text}{CHECK_KEY}{check}\"\n}}\n").into_bytes()
    }

    /// Reads and checks the file.
    ///
    /// # Errors
    /// [`StoreFileError::Newer`] or [`StoreFileError::Needs`] if it is sound and for later programs, else
    /// [`StoreFileError::Invalid`].
    pub fn decode(bytes: &[u8]) -> Result<Self, StoreFileError> {
        let fail =
            |expected: &str| Err(Invalid::new(DamagedPart::StoreFile, 0, expected, "other text").into());
        if bytes.len() > STORE_FILE_BYTES_MAX {
            return fail("at most 4096 bytes");
        }
        let Ok(text) = std::str::from_utf8(bytes) else { return fail("UTF-8") };
        let Some((checked, check)) = text.rsplit_once(CHECK_KEY) else { return fail("a check") };
        let digest = blake3::hash(checked.as_bytes()).to_hex();
        if check.strip_suffix("\"\n}\n") != Some(digest.as_str()) {
            return fail("a matching check");
        }
        let value: serde_json::Value = match serde_json::from_slice(bytes) {
            Ok(value) => value,
            Err(_) => return fail("JSON"),
        };
        let number = |key: &str| value.get(key).and_then(serde_json::Value::as_i64);
        let Some(version) = number("acpdb").and_then(|version| u32::try_from(version).ok()) else {
            return fail("a format version");
        };
        if version > FORMAT_VERSION {
            return Err(StoreFileError::Newer { found: version });
        }
        if version < FORMAT_VERSION {
            return Err(StoreFileError::Former { found: version });
        }
        let store = value.get("store").and_then(serde_json::Value::as_str).and_then(StoreId::from_hex);
        let (Some(store), Some(created)) = (store, number("created_micros")) else {
            return fail("a store id and a time");
        };
        let (Some(needs), Some(writes)) = (names(&value, "needs"), names(&value, "writes")) else {
            return fail("lists of features");
        };
        let file = Self { store, created: Micros(created), needs, writes };
        if file.encode() != bytes {
            return fail("the canonical text");
        }
        let unknown: Vec<String> = file.needs.iter().filter(|name| *name != ENCRYPTED).cloned().collect();
        if unknown.is_empty() { Ok(file) } else { Err(StoreFileError::Needs { names: unknown }) }
    }
}

/// Names as the file lists them: in order, each once.
fn list(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    format!("[{}]", quoted.join(", "))
}

fn names(value: &serde_json::Value, key: &str) -> Option<Vec<String>> {
    let is_name = |name: &&str| {
        let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(known)
    };
    let list = value.get(key)?.as_array()?;
    let names: Option<Vec<String>> =
        list.iter().map(|name| name.as_str().filter(is_name).map(str::to_owned)).collect();
    names.filter(|names| names.is_sorted_by(|a, b| a < b))
}
