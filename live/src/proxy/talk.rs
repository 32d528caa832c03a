//! The conversation of a session without a recording, as its requests and answers tell it.
//!
//! A request tells all messages that the model sees. Known messages add nothing. If a request does not begin with the messages
//! of the request before it, the program has replaced its context, and that is recorded. If the provider keeps the
//! conversation, a request adds to it. A path names one conversation: requests without tools beside requests with tools are
//! left out, for programs ask for titles and summaries that way.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use acpdb_engine::entry::{Entry, StreamInfo, fact};
use acpdb_engine::event::ReplaceCause;
use acpdb_engine::locks::steady;
use acpdb_engine::{Error, Store};
use acpdb_hosts::exchange::{self, ConversationState, Extent, RequestHead, Talk};
use acpdb_hosts::export::Format;
use serde::Serialize;

use super::identity::RequestIdentity;

/// Sessions that are remembered.
const SESSION_COUNT_MAX: usize = 64;

/// The outcome of recording a conversation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RecordingOutcome {
    /// Events that were new.
    pub events: u64,
    /// Members that are not understood, by name; they went through, and are not recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Why nothing, or not all, was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// Whether a session is recorded from its requests: hosts that are named by their headers have recordings of their own.
pub fn is_told(identity: &RequestIdentity) -> bool {
    matches!(identity.host, "proxy" | "gemini-cli")
}

/// The requests of each session so far, as far as the next request is compared with them. In memory only: after a new start of
/// the proxy the first request of a session counts as its continuation.
#[derive(Debug, Default)]
pub struct Talks {
    number: AtomicU64,
    last: Mutex<VecDeque<(RequestIdentity, Last)>>,
}

#[derive(Clone, Debug, Default)]
struct Last {
    /// Number of the newest request.
    number: u64,
    head: RequestHead,
    /// Names of messages, the answer's too; `None`: not known.
    keys: Option<Vec<String>>,
    /// The conversation up to its newest answer, and the names of all messages up to there.
    known: Option<(ConversationState, Vec<String>)>,
}

/// A request whose answer may be there.
#[derive(Clone, Copy, Debug)]
pub struct AnsweredRequest<'a> {
    /// Its number, by [`Talks::number`].
    pub number: u64,
    /// The path, up to its `?`.
    pub path: &'a str,
    /// The body of the request, as the program made it.
    pub request: &'a [u8],
    /// The body of the answer, if the provider took the request and all of it came.
    pub answer: Option<&'a [u8]>,
}

impl Talks {
    /// A number for a request; later ones are greater.
    pub fn number(&self) -> u64 {
        self.number.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Records the conversation of a request. Durable when it returns.
    ///
    /// Cost: one pass over the bodies; for the first request of a session a fold of it.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn tell(
        &self,
        store: &Store,
        identity: &RequestIdentity,
        said: AnsweredRequest<'_>,
    ) -> Result<RecordingOutcome, Error> {
        let left_out = |why: &str| {
            Ok(RecordingOutcome { left_out: Some(why.to_owned()), ..RecordingOutcome::default() })
        };
        let Some(api) = Format::of_path(said.path) else { return left_out("another API") };
        let Ok(body) = std::str::from_utf8(said.request) else { return left_out("the body is no text") };
        let mut all = steady(&self.last);
        let info = StreamInfo::session(identity.host, identity.session.as_str());
        let place = all.iter().position(|(known, _)| known == identity);
        let known = place.and_then(|place| all.get(place)).and_then(|(_, last)| last.known.as_ref());
        let known = known.map(|(known, _)| known);
        let Some(talk) = exchange::request_after(api, said.path, body, known) else {
            return left_out("the body is not understood");
        };
        let before = match place.and_then(|place| all.remove(place)) {
            Some((_, last)) => last,
            None => Last { head: head_in_store(store, &info)?, ..Last::default() },
        };
        let told = tell_talk(store, &info, api, &talk, &before, said);
        let (told, last) = match told {
            Ok((told, last)) => (Ok(told), last),
            // The known state stays, so the next request tells it all again.
            Err(error) => (Err(error), before),
        };
        all.push_back((identity.clone(), last));
        while all.len() > SESSION_COUNT_MAX {
            all.pop_front();
        }
        told
    }
}

fn tell_talk(
    store: &Store,
    info: &StreamInfo,
    api: Format,
    talk: &Talk<'_>,
    before: &Last,
    said: AnsweredRequest<'_>,
) -> Result<(RecordingOutcome, Last), Error> {
    let mut told =
        RecordingOutcome { unknown: talk.unknown.iter().cloned().collect(), ..RecordingOutcome::default() };
    let is_added = talk.extent == Extent::Added;
    // A request that only adds to a conversation may leave its tools as they are.
    if talk.head.tools.is_none() && before.head.tools.is_some() && !is_added {
        told.left_out = Some("a request without tools, beside those with tools".to_owned());
        return Ok((told, before.clone()));
    }
    if talk.extent == Extent::Refers {
        told.left_out = Some("a request that refers to what only the provider keeps".to_owned());
        return Ok((told, before.clone()));
    }
    // Answers may come in another order than their requests were made.
    let is_newest = said.number >= before.number;
    let mut entries = Vec::new();
    if is_newest {
        entries.extend(changed(&talk.head, &before.head));
    }
    entries.extend(talk.entries());
    let so_far = before.known.as_ref().filter(|(known, _)| talk.goes_on_from(known));
    let mut asked: Vec<String> = so_far.into_iter().flat_map(|(_, keys)| keys.iter().cloned()).collect();
    asked.extend(talk.keys());
    let mut keys = asked.clone();
    let answer = match said.answer {
        Some(answer) => {
            // Bytes that are no text are no answer of this API, as below.
            let answer = std::str::from_utf8(answer).ok();
            let answer = answer.and_then(|answer| exchange::answer(api, answer, talk));
            if answer.is_none() {
                told.left_out = Some("the answer: the next request tells it".to_owned());
            }
            answer
        }
        None => None,
    };
    keys.extend(answer.iter().flat_map(|answer| answer.keys.iter().cloned()));
    let is_same = |known: &Vec<String>| said.number == before.number && known.starts_with(&asked);
    let goes_on =
        is_added || before.keys.as_ref().is_none_or(|known| keys.starts_with(known) || is_same(known));
    if is_newest && !goes_on {
        let order = talk.items();
        let replaced = fact::ContextReplaced { cause: ReplaceCause::Host, order, tokens_before: None };
        entries.push(replaced.into());
    }
    let known = answer.as_ref().and_then(|answer| answer.known.clone()).map(|known| (known, keys.clone()));
    entries.extend(answer.into_iter().flat_map(|answer| answer.entries));
    told.events = store.append(info, entries)?.event_count;
    let last = if is_newest {
        let known = known.or_else(|| before.known.clone());
        Last { number: said.number, head: merged(&talk.head, &before.head), keys: Some(keys), known }
    } else {
        before.clone()
    };
    Ok((told, last))
}

/// The fields of a head that differ from the head before.
fn changed(now: &RequestHead, before: &RequestHead) -> Option<Entry> {
    let newer = |now: &Option<String>, before: &Option<String>| now.clone().filter(|_| now != before);
    let head = RequestHead {
        model: newer(&now.model, &before.model),
        system: newer(&now.system, &before.system),
        tools: newer(&now.tools, &before.tools),
        params: newer(&now.params, &before.params),
    };
    (head != RequestHead::default()).then(|| head.entry())
}

fn merged(now: &RequestHead, before: &RequestHead) -> RequestHead {
    let newest = |now: &Option<String>, before: &Option<String>| now.clone().or_else(|| before.clone());
    RequestHead {
        model: newest(&now.model, &before.model),
        system: newest(&now.system, &before.system),
        tools: newest(&now.tools, &before.tools),
        params: newest(&now.params, &before.params),
    }
}

/// The head in force, from the store; empty for a new session.
fn head_in_store(store: &Store, info: &StreamInfo) -> Result<RequestHead, Error> {
    let Some(view) = crate::if_there(store.view(info.id()))? else { return Ok(RequestHead::default()) };
    let mut head = RequestHead::default();
    for (seq, set) in view.state().prompts(view.at()).to_vec() {
        head.model = set.model.or(head.model);
        for (place, body) in
            [(&mut head.system, set.system), (&mut head.tools, set.tools), (&mut head.params, set.params)]
        {
            if let Some(body) = body {
                // An erased text is not known any more.
                *place = view.text(body.id(seq)).ok().or(place.take());
            }
        }
    }
    Ok(head)
}
