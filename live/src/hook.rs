//! One event of a host: recorded, and answered.
//!
//! | event | recorded | answered |
//! |---|---|---|
//! | session begins | the recording, if it goes on | the text that is due in the project, unless the context has it already; behind a compaction an index of what left |
//! | prompt | the recording so far | the reminder and the notice of size that are due; the index, if it was not given yet |
//! | call ended | nothing, or the original of a replaced result | a pointer, if the model still sees the result |
//! | row added | the recording so far, and the original of a replaced result | likewise |
//! | fold asked | the recording so far | a shorter conversation |
//! | batch ended, stop, compaction, end | the recording so far, subagents at the end | |
//!
//! For a host without a recording that can be read, the words of its hooks are recorded.

use std::path::{Path, PathBuf};

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::{Outcome, Role};
use acpdb_engine::fold::{ItemView, Status};
use acpdb_engine::{Error, Store, View};
use acpdb_hosts::import::ImportFormat;

use crate::host::{AttachMode, Host};
use crate::plugin::chained;
use crate::recording::{self, RecordingError, RecordingReport};
use crate::told::{CallWithResult, HostEvent, HostEventKind, HostReply, SessionStart};
use crate::{birth, compaction, damage, due, if_there, lost};

/// Largest recording that is read for one call; a longer one waits for the end of the batch.
const CALL_BYTES_MAX: u64 = 8 << 20;

/// Most characters of a text for the model.
const CONTEXT_CHARS_MAX: usize = 9_500;

/// How long, and how often, acpdb waits for a host's recording.
const LATE_WAIT: std::time::Duration = std::time::Duration::from_millis(15);
const LATE_WAIT_COUNT: u32 = 12;

/// The outcome of an event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HookOutcome {
    /// The answer to the host.
    pub answer: HostReply,
    /// Events that are new in the store.
    pub event_count: u64,
    /// A text about parts that are left out: damaged parts of the answer, or recordings beyond the limit. The host hears nothing of it.
    pub left_out: Option<String>,
}

impl HookOutcome {
    fn add(&mut self, recorded: RecordingReport) {
        self.event_count = self.event_count.saturating_add(recorded.event_count);
        self.leave_out(recorded.left_out);
    }

    /// Adds a text about parts that are left out, unless it is known: a recording may be read twice for one event.
    fn leave_out(&mut self, more: Option<String>) {
        match (&mut self.left_out, more) {
            (Some(known), Some(more)) if !known.contains(&more) => *known = format!("{known}; {more}"),
            (known @ None, more) => *known = more,
            _ => {}
        }
    }
}

/// Why an event was not recorded. The host hears nothing of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// The host's recording.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The store.
    #[error(transparent)]
    Store(#[from] Error),
}

/// An event with the values that it takes to deal with it.
#[derive(Debug)]
pub struct HookEvent<'a> {
    /// The host.
    pub host: Host,
    /// The mode of acpdb in the host.
    pub mode: AttachMode,
    /// The event as the host told it.
    pub told: &'a HostEvent,
    /// The host's recording, if it has one.
    pub transcript: Option<&'a Path>,
}

impl HookEvent<'_> {
    /// Whether the event needs the store at all.
    pub fn is_idle(&self) -> bool {
        match &self.told.event {
            HostEventKind::Other | HostEventKind::Greeted => true,
            HostEventKind::CallEnded(call) => {
                self.host.format().is_some() && !(self.may_replace() && birth::is_worth_a_look(call))
            }
            _ => false,
        }
    }

    /// Records the event, and returns the answer to the host. Durable when it returns.
    ///
    /// Cost: a pass over the host's recording, and a fold of the session (kept by snapshots).
    ///
    /// # Errors
    /// If the recording cannot be read or the store cannot be written. Facts before the error are recorded.
    pub fn run(&self, store: &Store) -> Result<HookOutcome, HookError> {
        if self.is_idle() {
            return Ok(HookOutcome { answer: self.idle_answer(), ..HookOutcome::default() });
        }
        let mut done = HookOutcome::default();
        match self.host.format().map(|format| self.import(store, format, &mut done)) {
            // Texts that are due come from the store alone.
            Some(Err(HookError::Recording(error)))
                if self.has_texts() && !matches!(error, RecordingError::Store(_)) =>
            {
                done.leave_out(Some(chained(&error)));
            }
            Some(read) => read?,
            None => done.event_count = self.record(store)?,
        }
        match &self.told.event {
            HostEventKind::SessionStarted { source }
                if self.mode != AttachMode::Record && *source != SessionStart::Resumed =>
            {
                let lost = if *source == SessionStart::Compacted { self.lost(store)? } else { None };
                done.answer.context = joined(lost, self.due(store)?);
            }
            HostEventKind::Prompted { .. } if self.mode != AttachMode::Record => {
                done.answer.context = joined(self.lost(store)?, self.reminders(store)?);
            }
            HostEventKind::CallEnded(call) | HostEventKind::RowAdded(Some(call)) if self.may_replace() => {
                self.replace(store, call, &mut done)?;
            }
            HostEventKind::FoldAsked(asked) if self.may_replace() => {
                let key = format!("{}{}", acpdb_query::lost::COMPACTION_STEP, store.now().0);
                let folded = compaction::answer(&store.session(self.branch(store)?), asked, &key);
                done.answer.folded = if_there(folded)?.flatten();
            }
            _ => {}
        }
        done.leave_out(damage::met(store));
        Ok(done)
    }

    /// The answer to an event that needs no store.
    pub fn idle_answer(&self) -> HostReply {
        HostReply { is_greeting: self.told.event == HostEventKind::Greeted, ..HostReply::default() }
    }

    /// Whether texts may be due with the event.
    const fn has_texts(&self) -> bool {
        matches!(self.told.event, HostEventKind::SessionStarted { .. } | HostEventKind::Prompted { .. })
    }

    fn may_replace(&self) -> bool {
        self.mode == AttachMode::Prune && self.host.can_replace()
    }

    /// The session; within a subagent, its own.
    fn info(&self) -> StreamInfo {
        let folder = self.told.cwd.as_ref().map(|folder| folder.to_string_lossy().into_owned());
        let name = match &self.told.agent {
            Some(agent) if self.is_of_agent() => format!("{}/{agent}", self.told.session),
            _ => self.told.session.clone(),
        };
        StreamInfo { project: folder.clone(), cwd: folder, ..StreamInfo::session(self.host.name(), name) }
    }

    /// Whether the event is about the context of a subagent.
    fn is_of_agent(&self) -> bool {
        let is_about_rows = matches!(
            self.told.event,
            HostEventKind::CallEnded(_) | HostEventKind::RowAdded(_) | HostEventKind::FoldAsked(_)
        );
        self.host == Host::ClaudeCode && is_about_rows && self.told.agent.is_some()
    }

    /// The branch of the session that was written to last, by the recording so far.
    fn branch(&self, store: &Store) -> Result<StreamInfo, Error> {
        let info = self.info();
        let known = store.stream_name(info.id())?;
        let newest = known.map(|known| store.newest_branch(known)).transpose()?;
        Ok(StreamInfo { name: newest.map_or(info.name, |newest| newest.name), ..self.info() })
    }

    /// The recording of the context that the event is about.
    fn recording(&self) -> Option<PathBuf> {
        let path = self.transcript?;
        match &self.told.agent {
            Some(agent) if self.is_of_agent() => Some(recording::agent(path, agent)),
            _ => Some(path.to_owned()),
        }
    }

    /// Imports the recording of the context that the event is about. A subagent's lies beside the session's, and is looked for there.
    fn import_own(
        &self,
        store: &Store,
        path: &Path,
        format: ImportFormat,
    ) -> Result<RecordingReport, RecordingError> {
        match self.transcript.filter(|_| self.is_of_agent()) {
            Some(session) => recording::import_agent(store, session, path, format),
            None => recording::import(store, path, format),
        }
    }

    /// Imports the host's recording so far.
    fn import(&self, store: &Store, format: ImportFormat, done: &mut HookOutcome) -> Result<(), HookError> {
        let Some(path) = self.recording() else { return Ok(()) };
        let path = path.as_path();
        let (agents, are_beside): (Vec<PathBuf>, bool) = match &self.told.event {
            // The new result is compared with results that the model saw, so the recording is read, unless it is too long.
            HostEventKind::CallEnded(_) | HostEventKind::RowAdded(_) if size(path) > CALL_BYTES_MAX => {
                return Ok(());
            }
            HostEventKind::AgentStopped { transcript: Some(agent) } => (vec![agent.clone()], false),
            HostEventKind::AgentStopped { transcript: None } | HostEventKind::SessionEnded => {
                let agents = recording::agents(path)?;
                done.leave_out(agents.shortage(path));
                (agents.files, true)
            }
            _ => (Vec::new(), false),
        };
        done.add(self.import_own(store, path, format)?);
        for agent in agents {
            let read = if are_beside {
                recording::import_agent(store, path, &agent, format)?
            } else {
                recording::import(store, &agent, format)?
            };
            done.add(read);
        }
        Ok(())
    }

    /// Records the words of the hook itself, for a host without a recording.
    fn record(&self, store: &Store) -> Result<u64, HookError> {
        let now = store.now();
        let at = Some(now);
        let entries: Vec<Entry> = match &self.told.event {
            HostEventKind::Prompted { id, text } => {
                let key = id.clone().unwrap_or_else(|| format!("prompt-{}", now.0));
                vec![
                    Entry::prompt(key.as_str()).origin(format!("prompt:{key}")).at(at),
                    Entry::message(key.as_str(), Role::User, text).origin(format!("msg:{key}#0")).at(at),
                ]
            }
            HostEventKind::CallEnded(call) => {
                let id = call.id.clone().unwrap_or_else(|| format!("call-{}", now.0));
                let started = Entry::tool_started(id.as_str(), call.tool.as_str(), &call.params);
                vec![
                    Entry::step(format!("step-{id}")).origin(format!("turn:step-{id}")).at(at),
                    started.origin(format!("call:{id}#1:start")).at(at),
                    finished(&id, call.outcome, call).at(at),
                ]
            }
            HostEventKind::Stopped { said: Some(said) } if !said.is_empty() => {
                vec![Entry::message(format!("said-{}", now.0), Role::Assistant, said).at(at)]
            }
            _ => Vec::new(),
        };
        if entries.is_empty() {
            return Ok(0);
        }
        Ok(store.append(&self.info(), entries)?.event_count)
    }

    fn due(&self, store: &Store) -> Result<Option<String>, HookError> {
        let Some(folder) = &self.told.cwd else { return Ok(None) };
        Ok(due::text(store, &folder.to_string_lossy(), self.branch(store)?.id())?)
    }

    /// The index of what a compaction took.
    fn lost(&self, store: &Store) -> Result<Option<String>, HookError> {
        Ok(lost::give(store, &self.branch(store)?)?)
    }

    /// The reminder and the notice of the context's size that are due with a prompt.
    fn reminders(&self, store: &Store) -> Result<Option<String>, HookError> {
        let Some(view) = if_there(store.view(self.branch(store)?.id()))? else { return Ok(None) };
        let reminder = acpdb_serve::Reminder::due(&view).map(|due| due.text);
        Ok(joined(reminder, acpdb_serve::SizeNotice::due_with_prompt(&view).map(|due| due.text)))
    }

    /// Puts a pointer in place of a result that the model still sees; the original is recorded before.
    fn replace(&self, store: &Store, call: &CallWithResult, done: &mut HookOutcome) -> Result<(), HookError> {
        if !birth::is_worth_a_look(call) {
            return Ok(());
        }
        let own = self.branch(store)?;
        let Some(view) = if_there(store.view(own.id()))? else { return Ok(()) };
        if call.id.as_ref().is_some_and(|id| has_ended(&view, id)) {
            // The host writes a row again: its content was decided before.
            return Ok(());
        }
        let Some(pointer) = birth::pointer(&view, call)? else { return Ok(()) };
        let Some(id) = self.begun(store, call, done)? else { return Ok(()) };
        // The model reads the pointer, so the call is no newer view of the file: the earlier one has to stay.
        let receipt = store.append(&own, vec![finished(&id, Outcome::Aborted, call)])?;
        done.event_count = done.event_count.saturating_add(receipt.event_count);
        done.answer.replacement = Some(pointer);
        Ok(())
    }

    /// The id of a call whose start is in the log: without the start, the end would belong to no call. Of a call that the host does not name, the
    /// oldest open one with its tool and parameters.
    ///
    /// A host writes its recording behind its work, so the start may be a moment late.
    fn begun(
        &self,
        store: &Store,
        call: &CallWithResult,
        done: &mut HookOutcome,
    ) -> Result<Option<String>, HookError> {
        for wait in 0..=LATE_WAIT_COUNT {
            if wait > 0 {
                std::thread::sleep(LATE_WAIT);
                if let (Some(format), Some(path)) = (self.host.format(), self.recording()) {
                    done.add(self.import_own(store, &path, format)?);
                }
            }
            let view = store.view(self.branch(store)?.id())?;
            let found = match &call.id {
                Some(id) => {
                    let is_there = !view.state().calls_by_host_id(id, view.at()).is_empty();
                    is_there.then(|| id.clone())
                }
                None => open_call(&view, call),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// The oldest open call with the tool and the parameters of `call`.
fn open_call(view: &View, call: &CallWithResult) -> Option<String> {
    // Parameters that cannot be read, or are no JSON, are not those of the call.
    let value = |text: String| serde_json::from_str::<serde_json::Value>(&text).ok();
    let params = value(call.params.clone())?;
    let is_it = |item: &ItemView| {
        item.status == Some(Status::Pending)
            && item.tool.as_deref() == Some(&*call.tool)
            // As above.
            && item.params.and_then(|body| view.text(body).ok()).and_then(value).as_ref() == Some(&params)
    };
    view.current().into_iter().find(is_it)?.call.map(|id| id.to_string())
}

/// Two texts for the model, as one; Claude Code passes on 10,000 characters.
fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    let mut text = match (first, second) {
        (Some(first), Some(second)) => format!("{}\n{second}", first.trim_end()),
        (first, second) => return first.or(second),
    };
    if let Some((end, _)) = text.char_indices().nth(CONTEXT_CHARS_MAX) {
        text.truncate(end);
    }
    Some(text)
}

/// Whether the end of a call is in the log.
fn has_ended(view: &View, id: &str) -> bool {
    let state = view.state();
    let calls = state.calls_by_host_id(id, view.at());
    calls.iter().any(|call| state.item(*call, view.at()).is_some_and(|item| item.finished.is_some()))
}

/// The end of a call as the importers name it.
fn finished(id: &str, outcome: Outcome, call: &CallWithResult) -> Entry {
    let text = call.shown.as_deref().or(call.text.as_deref()).unwrap_or_default();
    let part = acpdb_engine::entry::PartEntry::text(text);
    Entry::tool_finished(id, outcome, vec![part]).origin(format!("call:{id}#1:finish"))
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The file of the host's recording of this session: the path that the host told, else the usual path.
pub fn transcript(
    host: Host,
    told: &HostEvent,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    if told.transcript.is_some() {
        return told.transcript.clone();
    }
    if host != Host::CopilotCli || told.session.contains(['/', '\\']) {
        return None;
    }
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("COPILOT_HOME").or_else(|| Some(set("HOME")?.join(".copilot")))?;
    Some(folder.join("session-state").join(&told.session).join("events.jsonl"))
}
