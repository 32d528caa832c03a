//! Settings of the variables `PG*` and of a user's file of passwords. No message holds a password.

use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::config::SslMode;
use postgres::{Client, Config, NoTls};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failed;
use super::place::PostgresPlace;
use crate::remote::RemoteError;

const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long bytes may stay without an answer of the other machine's network.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const PORT: u16 = 5432;
const PASSWORDS_BYTES_MAX: u64 = 1 << 20;

/// How a database is reached.
#[derive(Clone)]
pub struct PostgresSettings {
    user: Option<String>,
    password: Option<String>,
    port: Option<u16>,
    passwords: Option<PathBuf>,
    mode: Option<String>,
    roots: Option<PathBuf>,
}

impl std::fmt::Debug for PostgresSettings {
    /// Keeps the password out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresSettings").field("user", &self.user).finish_non_exhaustive()
    }
}

fn refused(what: impl Into<String>) -> RemoteError {
    RemoteError::Refused { what: what.into() }
}

impl PostgresSettings {
    /// The settings of variables; `home` is the user's folder. Makes no connection.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>, home: Option<&Path>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let passwords = set("PGPASSFILE").map(PathBuf::from);
        Self {
            user: set("PGUSER").or_else(|| set("USER")),
            password: set("PGPASSWORD"),
            // One that is none counts as unset; the server's own port is tried.
            port: set("PGPORT").and_then(|port| port.parse().ok()),
            passwords: passwords.or_else(|| home.map(|home| home.join(".pgpass"))),
            mode: set("PGSSLMODE"),
            roots: set("PGSSLROOTCERT").map(PathBuf::from),
        }
    }

    pub(super) fn connect(&self, place: &PostgresPlace) -> Result<Client, RemoteError> {
        let user = self.user.as_deref().ok_or_else(|| refused("connections without a user: set PGUSER"))?;
        let port = place.port().or(self.port).unwrap_or(PORT);
        let mut config = Config::new();
        config
            .host(place.host())
            .port(port)
            .dbname(place.database())
            .user(user)
            .application_name("acpdb")
            .connect_timeout(CONNECT_MAX)
            .tcp_user_timeout(SILENCE_MAX)
            .keepalives_idle(SILENCE_MAX);
        let password = match &self.password {
            Some(password) => Some(password.clone()),
            None => self.kept([place.host(), &port.to_string(), place.database(), user])?,
        };
        if let Some(password) = password {
            config.password(password);
        }
        let failed = |error: postgres::Error| failed("connecting", "", &error);
        let is_plain = match self.mode.as_deref() {
            None => place.is_here(),
            Some("disable") if place.is_here() => true,
            Some("disable" | "allow" | "prefer") => {
                return Err(refused(
                    "a connection to another machine that is not encrypted: leave PGSSLMODE out",
                ));
            }
            // The server's certificate is checked whatever the mode.
            Some(_) => false,
        };
        if is_plain {
            return config.ssl_mode(SslMode::Disable).connect(NoTls).map_err(failed);
        }
        config.ssl_mode(SslMode::Require).connect(MakeRustlsConnect::new(self.tls()?)).map_err(failed)
    }

    /// Certificates that are trusted: those of a file, else those of the system.
    fn tls(&self) -> Result<ClientConfig, RemoteError> {
        let broken = |what: String| RemoteError::Broken { what };
        let mut roots = RootCertStore::empty();
        let found = match &self.roots {
            Some(path) => {
                let failed = |error| broken(format!("reading {}: {error}", path.display()));
                let read = CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
                read.collect::<Result<Vec<_>, _>>().map_err(|error| failed(error.to_string()))?
            }
            None => rustls_native_certs::load_native_certs().certs,
        };
        // One that rustls does not take is left out, as in other clients.
        let (taken, _) = roots.add_parsable_certificates(found);
        if taken == 0 {
            return Err(broken("there are no certificates to trust: set PGSSLROOTCERT".to_owned()));
        }
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider);
        let builder =
            builder.with_safe_default_protocol_versions().map_err(|error| broken(format!("TLS: {error}")))?;
        Ok(builder.with_root_certificates(roots).with_no_client_auth())
    }

    /// The password of the user's file for host, port, database and user.
    fn kept(&self, wanted: [&str; 4]) -> Result<Option<String>, RemoteError> {
        use std::os::unix::fs::PermissionsExt as _;
        let Some(path) = &self.passwords else { return Ok(None) };
        let failed = |error: &dyn std::fmt::Display| RemoteError::Broken {
            what: format!("reading {}: {error}", path.display()),
        };
        let about = match path.metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            about => about.map_err(|error| failed(&error))?,
        };
        if about.permissions().mode() & 0o077 != 0 {
            return Err(refused(format!("{}, which others may read: chmod 600 {0}", path.display())));
        }
        if !about.is_file() || about.len() > PASSWORDS_BYTES_MAX {
            return Err(failed(&"it is no file of passwords"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
        Ok(text.lines().find_map(|line| password_in(line, wanted)))
    }
}

/// The password of a line `host:port:database:user:password`, if the line is for these. `*` is for any, and `\` takes the next letter as it is.
fn password_in(line: &str, wanted: [&str; 4]) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let is_last = fields.len() == 5;
        let field = fields.last_mut()?;
        match letter {
            '\\' => field.extend(letters.next()),
            ':' if !is_last => fields.push(String::new()),
            _ => field.push(letter),
        }
    }
    let [places @ .., password] = <[String; 5]>::try_from(fields).ok()?;
    let fits = |(kept, wanted): (&String, &str)| kept == "*" || kept == wanted;
    places.iter().zip(wanted).all(fits).then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: [&str; 4] = ["db.example", "5432", "agents", "worker"];

    #[test]
    fn a_password_is_found_for_its_place_alone() {
        for (line, found) in [
            ("db.example:5432:agents:worker:word", Some("word")),
            ("*:*:*:worker:word", Some("word")),
            ("*:*:*:*:a\\:b:c\\\\d", Some("a:b:c\\d")),
            ("*:*:*:*:", Some("")),
            ("db.example:5433:agents:worker:word", None),
            ("db.example:5432:agents:other:word", None),
            ("# *:*:*:*:word", None),
            ("*:*:*:word", None),
            ("", None),
        ] {
            assert_eq!(password_in(line, WANTED).as_deref(), found, "{line}");
        }
    }

    #[test]
    fn the_file_of_passwords_is_for_its_user_alone_and_no_message_holds_a_password() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".pgpass");
        let settings =
            PostgresSettings::read(&|name| (name == "USER").then(|| "me".to_owned()), Some(folder.path()));
        assert_eq!(settings.kept(WANTED).unwrap(), None);
        std::fs::write(&path, "*:*:*:*:w0rd\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let refused = settings.kept(WANTED).unwrap_err().to_string();
        assert!(refused.contains("chmod 600") && !refused.contains("w0rd"), "{refused}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(settings.kept(WANTED).unwrap().as_deref(), Some("w0rd"));
        let given = PostgresSettings { password: Some("w0rd".to_owned()), ..settings };
        assert!(!format!("{given:?}").contains("w0rd"));
    }

    /// A password went over the network in plain if a variable said so.
    #[test]
    fn a_connection_to_another_machine_is_encrypted_or_is_none() {
        let place = PostgresPlace::read("192.0.2.1/agents").unwrap();
        for mode in ["disable", "allow", "prefer"] {
            let variable = |name: &str| match name {
                "PGUSER" => Some("me".to_owned()),
                "PGSSLMODE" => Some(mode.to_owned()),
                _ => None,
            };
            let error = PostgresSettings::read(&variable, None).connect(&place).err().unwrap();
            assert!(error.to_string().contains("not encrypted"), "{error}");
        }
        let error = PostgresSettings::read(&|_| None, None).connect(&place).err().unwrap();
        assert!(error.to_string().contains("PGUSER"), "{error}");
    }
}
