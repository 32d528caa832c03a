//! Exporters: a context as the body of a request that the model's provider accepts.
//!
//! ```text
//! View -> source (items, faces, prompt) -> turns (groups of one reply, its results, the user's next texts)
//!                                             |
//!            thinking: which reasoning is still bound to the items before it, and which changes have to wait
//!                                             |
//!                 the format's file in `providers`                        -> Export { bytes, closing, report }
//! ```
//!
//! - **Deterministic**: the same log, policy, watermark and options give the same bytes. [`Format::renderer`] numbers the
//!   way they are made; a change of the bytes is a change of that number.
//! - **Append-only**: messages come last in the body, so the bytes up to [`Export::closing`] are a prefix of the next
//!   export, as long as nothing is newly hidden and no call was open. The provider's cache lives on that.
//! - **Valid**: a part that a provider refuses is left out or put differently by rule, and told in the [`ExportReport`].
//! - Opaque fields (signatures, encrypted reasoning) come out byte for byte, on the part they were recorded with, or
//!   not at all.
//!
//! Bodies are read one turn at a time, so memory is the output and a turn. This module does not decide which items are
//! hidden (the engine does), talk to a provider, or count with a provider's tokenizer.

mod ahead;
mod breakpoints;
mod calls;
mod dialect;
mod prompt;
mod provider;
mod providers;
mod report;
mod source;
mod thinking;
mod turns;
mod write;

use std::borrow::Cow;

use acpdb_engine::{Error, View};
use acpdb_serve::{Rendered, Renderer, Served};

pub use breakpoints::{BREAKPOINT_COUNT_MAX, with_breakpoints};
pub use provider::preserves_thinking;
pub use providers::{Format, Provider};
pub use report::{ExportReport, LeftOut, Reason};

use providers::RequestRules;
use source::ExportSource;

impl Format {
    /// Its name, as commands spell it and as `ContextServed` records it.
    pub const fn name(self) -> &'static str {
        self.form().name
    }

    /// The format of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format of requests to this path, which has no query.
    pub fn of_path(path: &str) -> Option<Self> {
        let is_path = |format: &Self| {
            let request = format.request();
            request.is_some_and(|request| request.wire.paths.iter().any(|end| path.ends_with(end)))
        };
        Self::REQUESTS.into_iter().find(is_path)
    }

    /// Version of the renderer: it names the bytes. Equal numbers give equal bytes for equal input, for ever.
    pub const fn renderer(self) -> u32 {
        self.form().renderer
    }

    /// The provider's rules for its requests; `None` for formats that people read.
    pub(crate) const fn request(self) -> Option<&'static RequestRules> {
        self.form().request.as_ref()
    }

    /// The rules of each format of requests.
    pub(crate) fn requests() -> impl Iterator<Item = &'static RequestRules> {
        Self::REQUESTS.into_iter().filter_map(Self::request)
    }

    /// The provider whose format it is; `None` for formats that people read.
    pub fn provider(self) -> Option<Provider> {
        self.request().map(|request| request.provider)
    }

    /// The member of a request that holds its messages; `None` for formats that people read.
    pub fn list(self) -> Option<&'static str> {
        self.request().map(|request| request.wire.list)
    }

    /// The model that a request's path names, where the format has it there.
    pub fn model_in(self, path: &str) -> Option<&str> {
        self.request().and_then(|request| (request.wire.model)(path))
    }

    /// Whether reasoning may be bound to everything before it ([`preserves_thinking`] says for which models).
    pub fn binds_reasoning(self) -> bool {
        self.request().is_some_and(|request| request.binds_reasoning)
    }

    /// Whether it has marks for the provider's cache.
    pub fn has_marks(self) -> bool {
        self.marked().is_some()
    }

    /// Whether parameters of calls are a text in a request.
    pub fn texts_params(self) -> bool {
        self.request().is_some_and(|request| request.wire.texts_params)
    }

    /// The member of a result that holds its text, where the result is no text itself.
    pub fn result_member(self) -> Option<&'static str> {
        self.request().and_then(|request| request.wire.result)
    }

    /// Its name with marks for the provider's cache, where it has any.
    fn marked(self) -> Option<&'static str> {
        self.request().and_then(|request| request.marked)
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Which items are exported, and how they are shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Selection {
    /// The current context: superseded, discarded and distilled items show their placeholders.
    #[default]
    Current,
    /// The items of the current context, each as it was recorded: for providers that clear results themselves.
    Whole,
    /// The items of the current context as the host had them: as recorded, but for results that the host cleared itself.
    Recorded,
    /// Every item of the active branch as it was recorded, also items that compactions took out of the context.
    History,
}

/// The rule for calls without a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unfinished {
    /// They are left out, and told in the report.
    #[default]
    LeaveOut,
    /// They get a result that says there is none, marked as an error.
    Synthetic,
}

/// The rule for the model's reasoning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Thinking {
    /// By the model's family: [`preserves_thinking`].
    #[default]
    Auto,
    /// Reasoning is bound to everything before it: a change that hides something waits for the user's next message, and
    /// then also removes the reasoning behind it.
    Preserved,
    /// Reasoning is not bound to the items before it.
    Free,
    /// No reasoning is sent.
    Drop,
}

/// Choices of the caller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExportChoices {
    /// The items that are exported.
    pub selection: Selection,
    /// Calls without a result.
    pub unfinished: Unfinished,
    /// Reasoning.
    pub thinking: Thinking,
    /// The model that the request is for; by default the one recorded last.
    pub model: Option<String>,
    /// Let the provider clear old results by itself, from the policy's figures, where it can: everything is sent whole,
    /// with `context_management` (Anthropic only; else told in the report).
    pub server_side: bool,
    /// Set `cache_control` where it pays (Anthropic only): [`with_breakpoints`]. As the marks move from request to request,
    /// the bytes are then no prefix of the next export; without the marks they are.
    pub breakpoints: bool,
}

/// A request, or a transcript.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Export {
    /// The bytes: one JSON object, or text.
    pub bytes: Vec<u8>,
    /// Their format.
    pub format: Format,
    /// Version of the renderer.
    pub renderer: u32,
    /// Count of the bytes at the end that only close brackets: without them the bytes are a prefix of the next export.
    pub closing: usize,
    /// Messages (of the provider's kind) in it.
    pub message_count: usize,
    /// Parts that could not be carried, or were put differently.
    pub report: ExportReport,
}

impl Export {
    /// The bytes without those that only close brackets.
    pub fn prefix(&self) -> &[u8] {
        self.bytes.get(..self.bytes.len().saturating_sub(self.closing)).unwrap_or_default()
    }
}

/// Exports the context that `view` shows.
///
/// Cost: O(items) and the bodies that are shown, each read once. Texts that are erased or damaged are named as such in
/// their place.
///
/// # Errors
/// If the log cannot be read.
pub fn export(view: &View, format: Format, options: &ExportChoices) -> Result<Export, Error> {
    let export = written(ExportSource::of(view, format, options))?;
    Ok(if options.breakpoints { marked(export, None) } else { export })
}

/// Exports a context as it is served: texts that were sent before stay as they were sent. [`ExportChoices::selection`] has no
/// effect.
///
/// # Errors
/// As [`export()`].
pub fn export_served(context: &Served, format: Format, options: &ExportChoices) -> Result<Export, Error> {
    let options = ExportChoices { selection: Selection::Current, server_side: false, ..options.clone() };
    let export = written(ExportSource::served(context, format, &options))?;
    if !options.breakpoints || !format.has_marks() {
        return Ok(export);
    }
    let before = match served_before(context, format) {
        Some(before) => Some(written(ExportSource::served(&before, format, &options))?),
        None => None,
    };
    Ok(marked(export, before.as_ref()))
}

/// The context that was sent before this one in the same format, as it was made then.
fn served_before(context: &Served, format: Format) -> Option<Served> {
    let view = context.view();
    let (seq, record) = view.state().served(view.at()).last()?;
    let is_ours = record.format == format.name() || Some(record.format.as_str()) == format.marked();
    let at = seq.before();
    is_ours.then(|| Served::to_send(&view.with_at(at)))
}

/// The export with marks for the provider's cache.
fn marked(mut export: Export, before: Option<&Export>) -> Export {
    if !export.format.has_marks() {
        return export;
    }
    let Ok(body) = std::str::from_utf8(&export.bytes) else { return export };
    // The body that was sent before is JSON too; a body that is none has no marks to keep.
    let before = before.and_then(|before| std::str::from_utf8(&before.bytes).ok());
    if let Cow::Owned(marked) = with_breakpoints(body, before) {
        export.bytes = marked.into_bytes();
    }
    export
}

fn written(source: ExportSource<'_>) -> Result<Export, Error> {
    (source.format.form().export)(source)
}

/// A format as a renderer that the engine serves contexts with: [`ContextServed`](acpdb_engine::event::ContextServed) bears
/// its name and version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exporter {
    /// The format.
    pub format: Format,
    /// Choices. Other ones give other bytes: a host that wants its contexts made again keeps to the same.
    pub options: ExportChoices,
}

impl Exporter {
    /// A format with the usual choices.
    pub fn new(format: Format) -> Self {
        Self { format, options: ExportChoices::default() }
    }

    /// The same with marks for the provider's cache, where the format knows any: [`ExportChoices::breakpoints`].
    pub fn marked(format: Format) -> Self {
        Self { format, options: ExportChoices { breakpoints: true, ..ExportChoices::default() } }
    }

    /// All formats with the usual choices; formats that have marks also with marks.
    pub fn all() -> Vec<Self> {
        let marked = Format::ALL.into_iter().filter(|format| format.has_marks());
        Format::ALL.into_iter().map(Self::new).chain(marked.map(Self::marked)).collect()
    }
}

impl Renderer for Exporter {
    fn format(&self) -> &str {
        self.format.marked().filter(|_| self.options.breakpoints).unwrap_or(self.format.name())
    }

    fn version(&self) -> u32 {
        self.format.renderer()
    }

    fn render(&self, context: &Served) -> Result<Rendered, Error> {
        let export = export_served(context, self.format, &self.options)?;
        Ok(Rendered { notes: export.report.lines(), bytes: export.bytes })
    }
}
