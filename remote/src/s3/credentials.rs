//! Credentials: of the environment, of a profile, or printed by the program that a profile names. They are read when they are needed, and kept
//! in memory alone.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use rusty_s3::Credentials;

use super::profile::AwsProfile;
use crate::remote::RemoteError;

/// Where credentials come from.
#[derive(Debug, Clone)]
pub(super) enum CredentialSource {
    /// Those of the environment.
    Given(Credentials),
    /// A profile in these files, of which the first that has it counts.
    AwsProfile { name: String, files: Vec<PathBuf> },
}

pub(super) fn refused(what: String) -> RemoteError {
    RemoteError::Refused { what }
}

pub(super) fn credentials(key: &str, secret: &str, token: Option<&str>) -> Credentials {
    match token.filter(|token| !token.is_empty()) {
        Some(token) => Credentials::new_with_token(key, secret, token),
        None => Credentials::new(key, secret),
    }
}

impl CredentialSource {
    /// The credentials as they are now.
    pub(super) fn read(&self) -> Result<Credentials, RemoteError> {
        let (name, files) = match self {
            Self::Given(given) => return Ok(given.clone()),
            Self::AwsProfile { name, files } => (name, files),
        };
        let profiles: Vec<AwsProfile> =
            files.iter().map(|file| AwsProfile::read(file, name)).collect::<Result<_, _>>()?;
        for profile in &profiles {
            let (key, secret) = (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key"));
            if let (Some(key), Some(secret)) = (key, secret) {
                return Ok(credentials(key, secret, profile.get("aws_session_token")));
            }
        }
        match profiles.iter().find_map(|profile| profile.get("credential_process")) {
            Some(command) => printed(command),
            None => Err(refused(format!(
                "requests without credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or have them in the profile {name}"
            ))),
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PrintedCredentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: Option<String>,
}

/// The credentials that the program of a profile prints. Its own words go to the terminal.
fn printed(command: &str) -> Result<Credentials, RemoteError> {
    let failed = |why: &str| refused(format!("the program of credential_process: {why}"));
    let words = shlex::split(command).unwrap_or_default();
    let (program, arguments) = words.split_first().ok_or_else(|| failed("it has no name"))?;
    let ran = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let ran = ran.map_err(|_| failed("it cannot be run"))?;
    if !ran.status.success() {
        return Err(failed("it failed"));
    }
    // The error would hold what was printed.
    let found: PrintedCredentials =
        serde_json::from_slice(&ran.stdout).map_err(|_| failed("it printed no credentials"))?;
    Ok(credentials(&found.access_key_id, &found.secret_access_key, found.session_token.as_deref()))
}
