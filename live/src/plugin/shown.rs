//! A served context as the changes to a host's own messages, a JSON object a line.
//!
//! ```text
//! {"message":"m1","call":"c1","output":"[..]","input":"{..}","hash":"r_a1b2c"}   a call; only changed faces, and its hash
//! {"message":"m1","text":0,"shown":".."}                                        the first text of a message
//! {"message":"m1","reasoning":0}                                                not to be sent any more
//! {"after":"m1","note":".."}                                                    a text of its own behind a message
//! ```
//!
//! The host makes the request: acpdb decides only these changes, and records them as sent. The lines stand in the order of the
//! conversation: as long as nothing is newly hidden, each context begins with the one before it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use acpdb_engine::Error;
use acpdb_engine::event::{Face, Role};
use acpdb_engine::fold::{FaceState, ItemKind};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_serve::{Rendered, Renderer, Served, ServedItem};
use serde_json::{Map, Value};

/// Renders the changes that a plug-in makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PluginRenderer {
    /// Whether reasoning is bound to all messages before it.
    is_bound: bool,
    /// Whether each call is told with the hash by which a model names it.
    has_hashes: bool,
}

impl PluginRenderer {
    /// For a model that binds its reasoning to the messages before it, or for a model that does not.
    pub const fn new(is_bound: bool) -> Self {
        Self { is_bound, has_hashes: true }
    }

    /// The same without hashes, for a model without a tool that takes hashes.
    pub const fn bare(is_bound: bool) -> Self {
        Self { is_bound, has_hashes: false }
    }

    /// All renderers: `context --served` looks through their contexts.
    pub const ALL: [Self; 4] = [Self::new(false), Self::new(true), Self::bare(false), Self::bare(true)];

    /// Renders only the injected texts.
    ///
    /// # Errors
    /// As [`Renderer::render`].
    pub fn notes(&self, context: &Served) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        let mut last: Option<Arc<str>> = None;
        for item in context.items() {
            match item.view.kind {
                ItemKind::Injected => note(context, item, last.as_deref(), &mut out)?,
                _ => last = item.view.message.clone().or(last),
            }
        }
        Ok(out)
    }
}

impl Renderer for PluginRenderer {
    fn format(&self) -> &'static str {
        match (self.is_bound, self.has_hashes) {
            (false, true) => "changes",
            (true, true) => "changes-bound",
            (false, false) => "changes-bare",
            (true, false) => "changes-bare-bound",
        }
    }

    fn version(&self) -> u32 {
        1
    }

    fn render(&self, context: &Served) -> Result<Rendered, Error> {
        let mut out = Vec::new();
        let mut last: Option<Arc<str>> = None;
        let stale = if self.is_bound { stale(context) } else { HashSet::new() };
        let mut places: HashMap<(Option<Arc<str>>, ItemKind), usize> = HashMap::new();
        for item in context.items() {
            let view = &item.view;
            if view.kind == ItemKind::Injected {
                note(context, item, last.as_deref(), &mut out)?;
                continue;
            }
            // Some hosts put calls into no message; their ids are enough.
            let message = view.message.clone();
            last = message.clone().or(last);
            let mut line = Map::new();
            line.insert("message".to_owned(), message.as_deref().into());
            let count = places.entry((message, view.kind)).or_default();
            let place = *count;
            *count += 1;
            match view.kind {
                ItemKind::Call => {
                    line.insert("call".to_owned(), view.call.as_deref().unwrap_or_default().into());
                    let mut differs = false;
                    for (face, name) in [(Face::Input, "input"), (Face::Output, "output")] {
                        if is_other(item, face) {
                            line.insert(name.to_owned(), context.shown(item, face)?.text.into());
                            differs = true;
                        }
                    }
                    // A result that ended later than the context was made is not there yet.
                    if let Some(hash) =
                        view.hash.as_deref().filter(|_| self.has_hashes && view.finished.is_some())
                    {
                        line.insert("hash".to_owned(), hash.into());
                        differs = true;
                    }
                    if differs {
                        push(&line, &mut out);
                    }
                }
                ItemKind::Text if is_other(item, Face::Output) => {
                    line.insert("text".to_owned(), place.into());
                    line.insert("shown".to_owned(), context.shown(item, Face::Output)?.text.into());
                    push(&line, &mut out);
                }
                ItemKind::Reasoning if view.role == Role::Assistant => {
                    let is_gone = view.output.state == FaceState::Gone;
                    if is_gone || stale.contains(&view.item) {
                        line.insert("reasoning".to_owned(), place.into());
                        push(&line, &mut out);
                    }
                }
                _ => {}
            }
        }
        Ok(Rendered { bytes: out, notes: Vec::new() })
    }
}

/// Reasoning that is older than a change before it.
pub fn stale(context: &Served) -> HashSet<ItemId> {
    let mut changed = Seq::ZERO;
    let mut found = HashSet::new();
    for item in context.items() {
        if item.view.kind == ItemKind::Reasoning && changed > item.view.item.seq {
            found.insert(item.view.item);
        }
        for face in [Face::Input, Face::Output] {
            if is_other(item, face) {
                changed = changed.max(item.place.at(face));
            }
        }
    }
    found
}

/// Whether a face is shown otherwise than the host has it.
fn is_other(item: &ServedItem, face: Face) -> bool {
    let state = match face {
        Face::Input => item.view.input.state,
        Face::Output => item.view.output.state,
    };
    let is_pointed = face == Face::Output && item.pointed.is_some();
    is_pointed || !matches!(state, FaceState::Whole | FaceState::Absent)
}

fn note(context: &Served, item: &ServedItem, after: Option<&str>, out: &mut Vec<u8>) -> Result<(), Error> {
    if item.view.output.state != FaceState::Whole {
        return Ok(());
    }
    let mut line = Map::new();
    line.insert("after".to_owned(), after.into());
    line.insert("note".to_owned(), context.shown(item, Face::Output)?.text.into());
    push(&line, out);
    Ok(())
}

fn push(line: &Map<String, Value>, out: &mut Vec<u8>) {
    // Writing values into memory cannot fail.
    let _ = serde_json::to_writer(&mut *out, line);
    out.push(b'\n');
}
