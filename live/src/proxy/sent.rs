//! The last request of each session: where the next request differs from it, the provider's cache ends.
//!
//! In memory only. After a new start of the proxy one request of each session goes without the mark at its cut.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::identity::RequestIdentity;
use acpdb_engine::locks::steady;

/// Sessions whose last request is kept.
const SESSION_COUNT_MAX: usize = 16;
/// Most bytes of a request that is kept.
const BYTES_MAX: usize = 16 << 20;

/// The last request of each session, the newest session last.
#[derive(Debug, Default)]
pub struct LastRequests {
    last: Mutex<VecDeque<(RequestIdentity, String)>>,
}

impl LastRequests {
    /// The last request of a session.
    pub fn take(&self, identity: &RequestIdentity) -> Option<String> {
        let mut last = steady(&self.last);
        let place = last.iter().position(|(known, _)| known == identity)?;
        last.remove(place).map(|(_, body)| body)
    }

    /// Keeps a request; requests of the sessions that were quiet longest give way.
    pub fn keep(&self, identity: &RequestIdentity, body: String) {
        if body.len() > BYTES_MAX {
            return;
        }
        let mut last = steady(&self.last);
        last.retain(|(known, _)| known != identity);
        last.push_back((identity.clone(), body));
        while last.len() > SESSION_COUNT_MAX {
            last.pop_front();
        }
    }
}
