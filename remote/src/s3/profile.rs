//! A profile of a user: one section of `~/.aws/credentials` or `~/.aws/config`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::remote::RemoteError;

/// Longest file of profiles or certificates.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A text file; `None`: it is not there.
pub(super) fn read_file(path: &Path) -> Result<Option<String>, RemoteError> {
    let failed = |why: String| RemoteError::Broken { what: format!("reading {}: {why}", path.display()) };
    match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Ok(found) if found.len() > FILE_BYTES_MAX => return Err(failed("it is too long".to_owned())),
        Err(error) => return Err(failed(error.to_string())),
        Ok(_) => {}
    }
    std::fs::read_to_string(path).map(Some).map_err(|error| failed(error.to_string()))
}

/// The entries of one profile.
#[derive(Default)]
pub(super) struct AwsProfile(BTreeMap<String, String>);

impl AwsProfile {
    /// The profile of a name in a file; one without entries if the file or the profile is not there.
    pub(super) fn read(file: &Path, name: &str) -> Result<Self, RemoteError> {
        Ok(read_file(file)?.map(|text| Self::parse(&text, name)).unwrap_or_default())
    }

    /// Entries are `key = value`; entries of an indented group have its name and a dot before them.
    fn parse(text: &str, name: &str) -> Self {
        let (mut found, mut is_inside, mut group) = (BTreeMap::new(), false, None);
        for line in text.lines() {
            let is_indented = line.starts_with([' ', '\t']);
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(section) =
                line.strip_prefix('[').and_then(|line| line.split_once(']')).map(|(name, _)| name)
            {
                let section = section.trim();
                let section = section
                    .strip_prefix("profile")
                    .filter(|rest| rest.starts_with([' ', '\t']))
                    .unwrap_or(section);
                (is_inside, group) = (section.trim() == name, None);
                continue;
            }
            let Some((key, value)) = line.split_once('=').filter(|_| is_inside) else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match &group {
                Some(group) if is_indented => drop(found.insert(format!("{group}.{key}"), value.to_owned())),
                _ if value.is_empty() => group = Some(key),
                _ => {
                    group = None;
                    found.insert(key, value.to_owned());
                }
            }
        }
        Self(found)
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}
