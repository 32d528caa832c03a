//! Which stream a name means, and which branch of a session.

use std::collections::BTreeSet;

use crate::entry::StreamInfo;
use crate::error::Error;
use crate::event::{Payload, Scope};
use crate::ids::{Seq, StreamId};
use crate::index::{NAME_BYTES_MAX, NameKind};
use crate::text::likeness::nearest;

use super::{Store, StreamName};

/// The events among which a branch says what it leaves: its opening, and the fork.
const BRANCH_BEGINS_WITHIN: usize = 2;

/// Most streams that are looked up by their names in the index: with more, all streams are looked at.
const FOUND_COUNT_MAX: usize = 64;

impl Store {
    /// The stream that a host's id, a unique prefix of one, or `latest` names. Sessions of all hosts and projects. Of a session
    /// with branches it is the newest one, on which its host goes on; the id of a stream names that stream.
    ///
    /// Cost: with an index, a look at the first event of each stream that the index knows by this name. Without one, and
    /// for a name that is not there, a look at the first event of each stream.
    ///
    /// # Errors
    /// [`Error::NotFound`] with the nearest name, [`Error::Ambiguous`] with the candidates.
    pub fn find_stream(&self, name: &str) -> Result<StreamName, Error> {
        if name == "latest" {
            return self.latest()?.ok_or_else(|| not_found(name, None));
        }
        if let Some(known) = self.known_by(name)? {
            match chosen(&known, name) {
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
                Ok(found) => return self.newest_branch(found),
            }
        }
        let found = chosen(&self.stream_names()?, name)?;
        if found.id.to_hex() == name { Ok(found) } else { self.newest_branch(found) }
    }

    /// Among a session and its branches, the one that was active last. Cost: a look-up, if it has no branches.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn newest_branch(&self, session: StreamName) -> Result<StreamName, Error> {
        let own = StreamInfo::session(session.host.as_str(), session.name.as_str());
        let mut branches = vec![session.clone()];
        while let Some(branch) = self.stream_name(own.branch(branches.len() + 1).id())? {
            // Another session may bear such a name.
            if !self.leaves_one_of(&branch, &branches)? {
                break;
            }
            branches.push(branch);
        }
        if branches.len() == 1 {
            return Ok(session);
        }
        Ok(self.newest_of(branches)?.unwrap_or(session))
    }

    /// Whether a session begins as a fork of one of these.
    fn leaves_one_of(&self, session: &StreamName, from: &[StreamName]) -> Result<bool, Error> {
        for recorded in self.stream_events(session.id, Seq(1), Seq::MAX)?.take(BRANCH_BEGINS_WITHIN) {
            match recorded {
                Ok(recorded) => {
                    if let Payload::Forked(fork) = recorded.event.payload {
                        return Ok(from.iter().any(|known| known.id == fork.from));
                    }
                }
                Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// The session that is no subagent's and was active last; see [`Store::newest_of`].
    fn latest(&self) -> Result<Option<StreamName>, Error> {
        let mut names = self.stream_names()?;
        names.retain(|stream| stream.scope == Scope::Session && stream.parent.is_none());
        self.newest_of(names)
    }

    /// The streams that the index knows by a name, or else by names that begin with it; `None` if the index cannot tell,
    /// or knows none. If it is behind, these are all whose names begin so, and the streams with events that it does not have.
    fn known_by(&self, name: &str) -> Result<Option<Vec<StreamName>>, Error> {
        // The index of names holds no ids of streams, and of longer names it holds the beginning.
        let in_index = !name.is_empty() && name.len() < NAME_BYTES_MAX && !is_hex_id(name);
        for prefix in [false, true] {
            let known = || self.named(NameKind::Session, name, prefix, FOUND_COUNT_MAX);
            if !in_index {
                return Ok(None);
            }
            let Some(entries) = known() else {
                let streams = self.bearers(NameKind::Session, name, FOUND_COUNT_MAX)?;
                let streams = streams.map(|streams| streams.into_iter().collect());
                return streams.map(|streams| self.stream_names_among(&streams)).transpose();
            };
            if entries.len() >= FOUND_COUNT_MAX {
                return Ok(None);
            }
            if !entries.is_empty() {
                let known: BTreeSet<StreamId> = entries.into_iter().map(|entry| entry.stream).collect();
                return self.stream_names_among(&known).map(Some);
            }
        }
        Ok(None)
    }
}

/// The stream among `names` that `name` means.
fn chosen(names: &[StreamName], name: &str) -> Result<StreamName, Error> {
    let exact: Vec<&StreamName> =
        names.iter().filter(|stream| stream.name == name || stream.id.to_hex() == name).collect();
    if let [only] = exact.as_slice() {
        return Ok((*only).clone());
    }
    let candidates: Vec<&StreamName> = if exact.is_empty() {
        names.iter().filter(|stream| !name.is_empty() && stream.name.starts_with(name)).collect()
    } else {
        exact
    };
    match candidates.as_slice() {
        [only] => Ok((*only).clone()),
        [] => {
            let near = nearest(names.iter().map(|stream| &stream.name), name, 0.7);
            Err(not_found(name, near.cloned()))
        }
        many => {
            // A session and its subagents share a prefix: the session is meant.
            let tops: Vec<&&StreamName> = many.iter().filter(|stream| stream.parent.is_none()).collect();
            if let [only] = tops.as_slice() {
                return Ok((**only).clone());
            }
            // Forks are called after the session that they left: that session is meant.
            let whole =
                many.iter().filter(|stream| many.iter().all(|other| other.name.starts_with(&stream.name)));
            if let [only] = whole.collect::<Vec<_>>().as_slice() {
                return Ok((**only).clone());
            }
            let candidates = many.iter().take(8).map(|stream| stream.name.clone()).collect();
            Err(Error::Ambiguous { name: name.to_owned(), candidates })
        }
    }
}

/// Whether a text can be the id of a stream.
fn is_hex_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn not_found(name: &str, nearest: Option<String>) -> Error {
    Error::NotFound { what: "session", name: name.to_owned(), nearest }
}
