//! Acts of a thread that read, and look for texts that must be gone.

use std::collections::BTreeSet;

use acpdb_engine::event::Recorded;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::{Error, Store};
use acpdb_serve::{PlainText, ServeOptions, Step};

use super::board::Post;
use super::diary::Line;
use super::pages::PAGES;
use super::thread::{Hand, Held};
use super::{SESSION_COUNT, session};
use crate::support::texts_of;

/// Texts that a reader who begins now does not see.
struct Gone {
    texts: Vec<String>,
}

impl Gone {
    fn of(posts: Vec<Post>) -> Self {
        let text = |post| match post {
            Post::TextGone(text) => Some(text),
            Post::Page(..) => None,
        };
        Self { texts: posts.into_iter().filter_map(text).collect() }
    }

    fn in_text(&self, text: &[u8]) -> Option<&String> {
        let text = String::from_utf8_lossy(text);
        self.texts.iter().find(|gone| text.contains(gone.as_str()))
    }

    /// The first thing of an event that must be gone, in words.
    fn in_event(&self, store: &Store, event: &Recorded) -> Result<Option<String>, Error> {
        for body in texts_of(event) {
            match store.body(body) {
                Ok(text) => {
                    if let Some(gone) = self.in_text(&text) {
                        return Ok(Some(format!(
                            "{gone:?}, which was erased, is read in event {}",
                            event.seq
                        )));
                    }
                }
                Err(Error::Erased { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    fn in_view(&self, store: &Store, stream: StreamId) -> Result<Option<String>, Error> {
        let view = match store.view(stream) {
            Err(Error::NotFound { .. }) => return Ok(None),
            view => view?,
        };
        for item in view.history() {
            for part in item.content {
                match view.body(part.body) {
                    Ok(text) => {
                        if let Some(gone) = self.in_text(&text) {
                            return Ok(Some(format!("{gone:?}, which was erased, is shown in {stream}")));
                        }
                    }
                    Err(Error::Erased { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(None)
    }
}

impl Hand<'_> {
    /// A context to send; a rebase may be recorded before it.
    pub(super) fn serves(&mut self, name: &str) -> Result<(), String> {
        let (info, key) = (session(name), self.tag());
        let tokens_max = self.dice.one_in(2).then_some(2000);
        let gone = Gone::of(self.member.board.posts()?);
        let mut shown = None;
        self.records("serve", vec![Line::new(name, "context_served", "")], |store| {
            let step = Step::begun(&store.session(info), key);
            let context =
                step.context(&PlainText, &ServeOptions { tokens_max, ..ServeOptions::default() })?;
            shown = gone.in_text(&context.bytes).cloned();
            Ok(Some((context.seq.get(), context.seq.get())))
        })?;
        shown.map_or(Ok(()), |shown| Err(format!("{shown:?}, which was erased, was served")))
    }

    /// Reads as a new reader, and finds nothing that was told to be gone.
    pub(super) fn looks_for_gone(&mut self) -> Result<(), String> {
        let gone = Gone::of(self.member.board.posts()?);
        let way = self.dice.below(3);
        let found = self.does("look for what is gone", |store| {
            if way == 0 {
                let names = (0..SESSION_COUNT).map(|number| format!("s{number}")).chain([PAGES.to_owned()]);
                for name in names {
                    let found = gone.in_view(store, session(&name).id())?;
                    if found.is_some() {
                        return Ok(found);
                    }
                }
                return Ok(None);
            }
            let head = store.head()?;
            let mut all = store.events(Seq(1), head)?;
            for seq in (1..=head.get()).map(Seq) {
                let event = if way == 1 { store.event(seq)? } else { all.next().transpose()? };
                let Some(event) = event else {
                    return Ok(Some(format!("event {seq} of {head} is not there")));
                };
                let found = gone.in_event(store, &event)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
            Ok(None)
        })?;
        found.flatten().map_or(Ok(()), Err)
    }

    pub(super) fn reads(&mut self) -> Result<(), String> {
        let name = self.session();
        let stream = session(&name).id();
        if let Some(Held { view, digest }) = self.held.take()
            && view.state().digest(view.at()) != digest
        {
            return Err(format!("a view of {} at {} moved", view.stream(), view.at()));
        }
        match self.dice.below(5) {
            0 => drop(self.does("sessions", |store| store.sessions(store.head()?))?),
            1 => drop(self.does("space", Store::space)?),
            2 => drop(self.does("info", Store::info)?),
            3 => self.serves(&name)?,
            _ => {
                let read = self.does("stream events", |store| {
                    let head = store.head()?;
                    let by_stream = store.stream_events(stream, Seq(1), head)?;
                    let by_stream =
                        by_stream.map(|event| Ok(event?.seq)).collect::<Result<BTreeSet<_>, Error>>()?;
                    let all = store.events(Seq(1), head)?.collect::<Result<Vec<_>, Error>>()?;
                    Ok((head, by_stream, all))
                })?;
                let Some((head, by_stream, all)) = read else { return Ok(()) };
                if all.len() as u64 != head.get() {
                    return Err(format!("{} events up to {head}", all.len()));
                }
                let own = all.iter().filter(|event| event.event.stream == stream).map(|event| event.seq);
                if own.collect::<BTreeSet<_>>() != by_stream {
                    return Err(format!("{name} up to {head}: another list by stream: {by_stream:?}"));
                }
            }
        }
        let Some(view) = self.does("view", |store| store.view(stream))? else { return Ok(()) };
        let digest = view.state().digest(view.at());
        self.held = Some(Held { view, digest });
        Ok(())
    }
}
