//! Contents of the store: names of streams, sessions in a line each, sizes.

use std::collections::BTreeSet;

use crate::codec::{FORMAT_VERSION, Frame};
use crate::error::Error;
use crate::event::{Payload, Recorded, Scope};
use crate::fold::{State, StreamFacts};
use crate::ids::{Micros, Seq, StoreId, StreamId, Turn};
use crate::index::FramePlace;
use crate::log::LogError;
use crate::storage::list_if_there;

use super::fetch::bare;
use super::{At, Store, StoreInner, View};
use crate::log::StreamPlace;

/// A stream by its names.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct StreamName {
    /// Its id.
    #[serde(rename = "stream")]
    pub id: StreamId,
    /// Session, project or user.
    pub scope: Scope,
    /// The host program.
    pub host: String,
    /// The host's id of the session, or the project's or user's name.
    #[serde(rename = "id")]
    pub name: String,
    /// A title for people.
    pub title: Option<String>,
    /// For a subagent: the stream it was started from.
    #[serde(skip)]
    pub parent: Option<StreamId>,
    /// The same, with the call that started it.
    #[serde(rename = "parent")]
    pub started_by: Option<StartedBy>,
    /// Newest seq.
    pub head: Seq,
    /// The host's time of its opening, else the time when the opening was recorded. `None`: unknown, as for files of
    /// hosts that write no times; the time when such a file was read says nothing.
    pub began: Option<Micros>,
    /// The working folder that it began in, else its project; a folder that was moved, where it is now.
    #[serde(skip)]
    pub folder: Option<String>,
}

/// The start of a subagent.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct StartedBy {
    /// The stream it was started from.
    pub stream: StreamId,
    /// The host's id of the call, if it is known.
    pub call: Option<String>,
}

/// A session in a line.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct SessionSummary {
    /// Its names.
    #[serde(flatten)]
    pub name: StreamName,
    /// Its project.
    pub project: Option<String>,
    /// Model steps.
    pub turns: Turn,
    /// The user's prompts.
    pub prompts: u32,
    /// Tool calls.
    pub calls: u64,
    /// Items superseded by a rule, each once.
    pub superseded: u64,
    /// Estimated tokens of everything recorded.
    pub tokens: u64,
    /// Estimated tokens of the current context as shown.
    pub tokens_shown: u64,
    /// Estimated tokens that hiding saves in the current context.
    pub tokens_freed: u64,
    /// First seq.
    pub first: Seq,
    /// When it was last active: the host's newest time, or when it was last acted on. `None`: unknown.
    pub ended: Option<Micros>,
}

/// The store in figures.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct StoreInfo {
    /// Its id.
    pub id: StoreId,
    /// Its folder.
    #[serde(serialize_with = "crate::text::paths::serialize_shown")]
    pub path: std::path::PathBuf,
    /// Version of its format.
    pub format_version: u32,
    /// Newest durable seq.
    pub head: Seq,
    /// Streams, the store's own included.
    pub stream_count: u64,
    /// Sessions among them, subagents included.
    pub session_count: u64,
    /// Segment files.
    pub segment_count: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes that recovery set aside.
    pub quarantine_bytes: u64,
    /// Whether the index is used, and if not, why.
    pub index: String,
    /// Whether an erasure was begun and has not ended.
    pub erasing: bool,
    /// Whether all that it records is sealed under a key.
    pub encrypted: bool,
}

impl Store {
    /// Every stream by its names, in order of first events. The store's own stream is left out.
    ///
    /// Cost: one look at the first event of each stream.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn stream_names(&self) -> Result<Vec<StreamName>, Error> {
        let streams = self.inner.stream_places()?.into_iter();
        self.names_of(streams.filter(|place| place.stream != StreamId::STORE).collect())
    }

    /// One stream by its names; `None` if it has no events. Cost: one look at its first event.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn stream_name(&self, stream: StreamId) -> Result<Option<StreamName>, Error> {
        let place = self.inner.stream_place(stream)?;
        Ok(self.names_of(place.into_iter().collect())?.pop())
    }

    /// As [`Store::stream_names`], of these streams only. Cost: one look at the first event of each.
    ///
    /// # Errors
    /// If the log cannot be read.
    #[doc(hidden)]
    pub fn stream_names_among(&self, streams: &BTreeSet<StreamId>) -> Result<Vec<StreamName>, Error> {
        if let (Some(one), 1) = (streams.first(), streams.len()) {
            return Ok(self.stream_name(*one)?.into_iter().collect());
        }
        // The order is known only from all streams together.
        let places = self.inner.stream_places()?.into_iter();
        self.names_of(places.filter(|place| streams.contains(&place.stream)).collect())
    }

    fn names_of(&self, streams: Vec<StreamPlace>) -> Result<Vec<StreamName>, Error> {
        let inner = &self.inner;
        let moves = inner.project_moves()?;
        let mut names = Vec::with_capacity(streams.len());
        for place in streams {
            let stream = place.stream;
            let mut name =
                StreamName { id: stream, name: stream.to_hex(), head: place.head, ..StreamName::default() };
            let frame = match inner.frame_at(place.first.position) {
                Ok(frame) => Some(frame),
                // A damaged first frame costs the name, not the list.
                Err(Error::Corrupt { .. }) => None,
                Err(error) => return Err(error),
            };
            if let Some(frame) = frame
                && let Some(event) = frame.events().find(|event| event.envelope.stream == stream)
            {
                let recorded = match inner.noted(inner.decode(&frame, &event)) {
                    Ok(recorded) => recorded,
                    // A damaged event costs the name, not the list.
                    Err(Error::Corrupt { .. }) => {
                        names.push(name);
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                let (began, folder) = self.beginning(&frame, &recorded)?;
                name.began = began;
                name.folder = folder.map(|folder| moves.folder(&folder).into_owned());
                let Payload::SessionOpened(opened) = recorded.event.payload else {
                    names.push(name);
                    continue;
                };
                name.scope = opened.scope;
                name.host = opened.host;
                name.name = opened.name;
                name.title = opened.title.map(String::from);
                name.started_by =
                    opened.parent.map(|parent| StartedBy { stream: parent.stream, call: parent.call });
                name.parent = name.started_by.as_ref().map(|started| started.stream);
            }
            names.push(name);
        }
        Ok(names)
    }

    /// When a stream began and in which folder, by its first event in `frame`. A host may write the first lines of a session before it
    /// writes times and the folder. So if few events are beside the first one, those of the next commit are asked, too.
    fn beginning(
        &self,
        frame: &Frame,
        opening: &Recorded,
    ) -> Result<(Option<Micros>, Option<String>), Error> {
        let stream = opening.event.stream;
        let folder = match &opening.event.payload {
            Payload::SessionOpened(opened) => opened.cwd.clone().or_else(|| opened.project.clone()),
            _ => None,
        };
        let dated = match opening.event.host_time {
            Some(time) => {
                let time = time.min(opening.recorded_at);
                Dating::Host { first: time, last: time }
            }
            None => dating(frame, stream, Seq::MAX)?,
        };
        let beside: Vec<Seq> =
            frame.events().filter(|event| event.envelope.stream == stream).map(|event| event.seq).collect();
        let are_few = beside.len() < BESIDE_COUNT_MIN;
        // Events beside an opening say whether its host writes times.
        let may_be_dated = matches!(dated, Dating::Live(_)) && beside.len() == 1;
        let is_unknown = are_few && (folder.is_none() || matches!(dated, Dating::Undated));
        if !may_be_dated && !is_unknown {
            return Ok((dated.first(), folder));
        }
        let known = beside.last().copied().unwrap_or(opening.seq);
        let (places, _) = self.inner.frames_of(&[stream], known)?;
        let Some(next) = places.first() else { return Ok((dated.first(), folder)) };
        let Some(behind) = self.inner.sound_frame_at(next.position)? else {
            return Ok((dated.first(), folder));
        };
        let told = dating(&behind, stream, Seq::MAX)?;
        let began = match (&dated, &told) {
            (Dating::Live(_), Dating::Host { .. } | Dating::Undated) if may_be_dated => told.first(),
            (Dating::Undated, Dating::Host { first, .. }) => Some(*first),
            _ => dated.first(),
        };
        let folder = match folder {
            None if are_few => folder_in(&behind, stream)?,
            known => known,
        };
        Ok((began, folder))
    }

    /// Among some streams, the one that was active last, by [`SessionSummary::ended`]. A stream without a known time
    /// stands behind all others; of equals, the one that was recorded last is taken.
    ///
    /// Cost: a look at the last frame of each.
    ///
    /// # Errors
    /// If the log cannot be read.
    #[doc(hidden)]
    pub fn newest_of(&self, names: Vec<StreamName>) -> Result<Option<StreamName>, Error> {
        let mut newest = None;
        for name in names {
            let key = (self.last_active(name.id, Seq::MAX)?, name.head);
            if newest.as_ref().is_none_or(|(best, _)| key > *best) {
                newest = Some((key, name));
            }
        }
        Ok(newest.map(|(_, name)| name))
    }

    /// All sessions as of `at`, in order of first events, subagents included. Folds one after the other, and keeps none.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn sessions(&self, at: Seq) -> Result<Vec<SessionSummary>, Error> {
        let mut summaries = Vec::new();
        for name in self.stream_names()?.into_iter().filter(|name| name.scope == Scope::Session) {
            let view = self.view_once(name.id, &At::Seq(at))?;
            summaries.extend(self.summary(name, &view)?);
        }
        Ok(summaries)
    }

    /// A session in a line, as of the view of it; `None` if it began later. Cost: a look at each of its envelopes.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn summary(&self, name: StreamName, view: &View) -> Result<Option<SessionSummary>, Error> {
        let at = view.at();
        if view.state().first() > at {
            return Ok(None);
        }
        let ended = self.last_active(name.id, at)?;
        let mut summary = summary(name, view.state(), at, ended);
        let moves = self.project_moves()?;
        summary.project = summary.project.map(|project| moves.project(&project).into_owned());
        Ok(Some(summary))
    }

    /// When a stream was last active, as of `at`: the newest of the host's times in its last frame that has any. An event
    /// without a host's record was not read from a file, and happened when it was recorded. `None`: unknown.
    ///
    /// # Errors
    /// If the log cannot be read.
    #[doc(hidden)]
    pub fn last_active(&self, stream: StreamId, at: Seq) -> Result<Option<Micros>, Error> {
        let (places, _) = self.inner.frames_of(&[stream], Seq::ZERO)?;
        for place in places.iter().rev().filter(|place| place.first_seq <= at) {
            let frame = match self.inner.frame_at(place.position) {
                Ok(frame) => frame,
                // Damage costs the time, not the list.
                Err(Error::Corrupt { .. }) => continue,
                Err(error) => return Err(error),
            };
            match dating(&frame, stream, at)? {
                Dating::Host { last, .. } => return Ok(Some(last)),
                Dating::Live(time) => return Ok(Some(time)),
                // Hosts write records without a time at the end of their files.
                Dating::Undated => {}
            }
        }
        Ok(None)
    }

    /// The newest seq before the first event that was recorded after a moment: [`Seq::ZERO`] if everything is later. If the clock
    /// went back, an event behind a later time counts as that late.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn seq_at(&self, moment: Micros) -> Result<Seq, Error> {
        let (places, _) = self.inner.all_frames(Seq::ZERO)?;
        let mut low = 0;
        let mut high = places.len();
        // The highest time so far never goes back, so the frames can be halved.
        while low < high {
            let middle = low.midpoint(high);
            match self.first_sound(places.get(middle..high).unwrap_or_default())? {
                Some((skipped, time)) if time <= moment => low = middle + skipped + 1,
                _ => high = middle,
            }
        }
        Ok(low
            .checked_sub(1)
            .and_then(|last| places.get(last))
            .map(|place| place.last_seq)
            // No place: no seq.
            .unwrap_or_default())
    }

    /// How many damaged frames stand before the first sound one, and the highest time up to that.
    fn first_sound(&self, places: &[FramePlace]) -> Result<Option<(usize, Micros)>, Error> {
        for (skipped, place) in places.iter().enumerate() {
            match self.inner.log.header_at(place.position) {
                Ok(header) => return Ok(Some((skipped, header.time_max))),
                Err(LogError::Corrupt(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// The store in figures.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn info(&self) -> Result<StoreInfo, Error> {
        let (_, head) = self.inner.open_names()?;
        let names = self.stream_names()?;
        let sessions = names.iter().filter(|name| name.scope == Scope::Session).count() as u64;
        let (segment_count, log_bytes) = self.inner.files("log", ".seg")?;
        let (_, quarantine_bytes) = self.inner.files("quarantine", "")?;
        Ok(StoreInfo {
            id: self.id(),
            path: self.inner.root.clone(),
            format_version: FORMAT_VERSION,
            head,
            stream_count: self.inner.stream_places()?.len() as u64,
            session_count: sessions,
            segment_count,
            log_bytes,
            quarantine_bytes,
            index: self.inner.index_state(),
            erasing: self.inner.log.is_erasing()?,
            encrypted: self.is_encrypted(),
        })
    }
}

/// Events of a commit that are looked at for a host's record: few events come of one record, and one of these keeps it.
const DATED_COUNT_MAX: usize = 32;
/// Events of a session's beginning, read as a part of a commit, that say whether its host writes times.
const BESIDE_COUNT_MIN: usize = 8;

/// The times of the events of a stream, by the frames of one commit.
enum Dating {
    /// The host wrote times: the first, and the newest.
    Host { first: Micros, last: Micros },
    /// No host's record and no time: the events happened when they were recorded, at this time.
    Live(Micros),
    /// A host's records without a time, or nothing of the stream.
    Undated,
}

impl Dating {
    const fn first(&self) -> Option<Micros> {
        match self {
            Self::Host { first, .. } | Self::Live(first) => Some(*first),
            Self::Undated => None,
        }
    }
}

fn dating(frame: &Frame, stream: StreamId, at: Seq) -> Result<Dating, Error> {
    let own = || frame.events().filter(|event| event.envelope.stream == stream && event.seq <= at);
    // A time in the future counts as that of recording: else a file with a wrong clock is the newest session for ever.
    let past = |time: Micros| time.min(frame.time());
    let times: Vec<Micros> = own().filter_map(|event| event.envelope.host_time.map(past)).collect();
    if let (Some(first), Some(last)) = (times.first(), times.iter().max()) {
        return Ok(Dating::Host { first: *first, last: *last });
    }
    let mut live = None;
    for event in own().take(DATED_COUNT_MAX) {
        match bare(frame, &event) {
            Ok(recorded) if recorded.event.stamp.wire.is_some() => return Ok(Dating::Undated),
            Ok(recorded) => live = Some(recorded.recorded_at),
            Err(Error::Corrupt { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(live.map_or(Dating::Undated, Dating::Live))
}

/// The folder that the first events of a stream in these frames tell, by a change of the session.
fn folder_in(frame: &Frame, stream: StreamId) -> Result<Option<String>, Error> {
    let own = frame.events().filter(|event| event.envelope.stream == stream);
    for event in own.take(DATED_COUNT_MAX) {
        match bare(frame, &event).map(|recorded| recorded.event.payload) {
            Ok(Payload::SessionChanged(changed)) => {
                if let Some(folder) = changed.cwd.or(changed.project) {
                    return Ok(Some(folder));
                }
            }
            Ok(_) | Err(Error::Corrupt { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

impl StoreInner {
    /// Files in a folder of the store whose names end so: how many, and how many bytes.
    fn files(&self, folder: &str, ending: &str) -> Result<(u64, u64), Error> {
        let storage = self.log.storage();
        let failed = |source| Error::Io { action: "read", path: storage.path(folder), source };
        let mut names = list_if_there(&**storage, folder).map_err(failed)?;
        names.retain(|name| name.ends_with(ending));
        let mut bytes = 0;
        for name in &names {
            let file =
                storage.open(&format!("{folder}/{name}"), crate::storage::Access::Read).map_err(failed)?;
            bytes += file.len().map_err(failed)?;
        }
        Ok((names.len() as u64, bytes))
    }
}

fn summary(mut name: StreamName, state: &State, at: Seq, ended: Option<Micros>) -> SessionSummary {
    let figures = state.stats(at);
    // Before its opening nothing is known of a session.
    let facts = state.info(at).cloned().unwrap_or_default();
    let StreamFacts { project, title, parent, .. } = facts;
    name.title = title.or(name.title);
    name.started_by = parent.map(|parent| StartedBy { stream: parent.stream, call: parent.call });
    let superseded = figures.kinds.iter().filter(|(kind, _)| matches!(kind, crate::fold::StatsKind::Rule(_)));
    SessionSummary {
        project,
        turns: state.turn(at),
        prompts: state.prompt_count(at),
        calls: figures.calls,
        superseded: superseded.map(|(_, kind)| kind.count).sum(),
        tokens: figures.tokens_recorded,
        tokens_shown: figures.tokens_shown,
        tokens_freed: figures.freed(),
        first: state.first(),
        ended,
        name,
    }
}
