//! The place of objects in a database: `postgres://HOST[:PORT]/DATABASE/PREFIX`.

/// A prefix in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresPlace {
    host: String,
    port: Option<u16>,
    database: String,
    prefix: String,
}

impl PostgresPlace {
    /// Reads what stands behind `postgres://`. `None`: it has another form.
    pub fn read(rest: &str) -> Option<Self> {
        let (server, path) = rest.split_once('/')?;
        let (database, prefix) = path.split_once('/').unwrap_or((path, ""));
        let is_plain = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
        };
        let (host, port) = match server.strip_prefix('[') {
            // An address of IP, version 6.
            Some(rest) => {
                let (host, port) = rest.split_once(']')?;
                // Another text is another form.
                host.parse::<std::net::Ipv6Addr>().ok()?;
                (host, port.strip_prefix(':').or_else(|| port.is_empty().then_some(""))?)
            }
            None => server.split_once(':').unwrap_or((server, "")),
        };
        let is_host = !host.is_empty() && (is_plain(host) || server.starts_with('['));
        // A port that is none is another form.
        let port =
            if port.is_empty() { None } else { Some(port.parse::<u16>().ok().filter(|port| *port > 0)?) };
        let names = prefix.trim_end_matches('/');
        let is_prefix = names.is_empty()
            || names.split('/').all(|name| !name.is_empty() && !name.starts_with('.') && is_plain(name));
        let is_there = is_host && !database.is_empty() && is_plain(database) && is_prefix;
        is_there.then(|| Self {
            host: host.to_owned(),
            port,
            database: database.to_owned(),
            prefix: names.to_owned(),
        })
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) const fn port(&self) -> Option<u16> {
        self.port
    }

    pub(super) fn database(&self) -> &str {
        &self.database
    }

    /// The names below which the objects are.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether the server is this machine.
    pub(super) fn is_here(&self) -> bool {
        self.host == "localhost"
            || self.host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_or_is_none() {
        for (rest, read) in [
            ("db.example/agents", Some(("db.example", None, "agents", ""))),
            ("db.example:6432/agents/team/one", Some(("db.example", Some(6432), "agents", "team/one"))),
            ("[::1]:5433/agents/team/", Some(("::1", Some(5433), "agents", "team"))),
            ("[::1]/agents", Some(("::1", None, "agents", ""))),
            ("", None),
            ("db.example", None),
            ("db.example/", None),
            ("/agents", None),
            ("db.example:x/agents", None),
            ("db.example:0/agents", None),
            ("db.example:99999/agents", None),
            ("[::1/agents", None),
            ("[::1]x/agents", None),
            ("db.example/agents//one", None),
            ("db.example/agents/../one", None),
            ("db.example/agents/a b", None),
            ("db.example/agents?sslmode=disable", None),
            ("db.example/a%20b", None),
            ("user:word@db.example/agents", None),
        ] {
            let found = PostgresPlace::read(rest);
            let told = found.as_ref().map(|at| (at.host(), at.port(), at.database(), at.prefix()));
            assert_eq!(told, read, "{rest}");
        }
    }
}
