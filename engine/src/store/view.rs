//! Frozen views: a fold and a watermark, with the bodies of the shown texts.
//!
//! A view shares its fold with the store and with other views, and it never changes: later events are folded into another one.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::error::Error;
use crate::event::{Face, PartKind};
use crate::fold::{
    Chain, Explanation, FaceState, ItemView, Ix, PendingItem, Placeholder, State, Stats, Visibility, World,
    render,
};
use crate::ids::{BodyId, ItemId, Seq, StreamId, Turn};
use crate::text::lossy;

use super::kept::Loaded;
use super::{Erasure, Store, StoreInner};

impl Store {
    /// A frozen view of one stream at its head.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the stream has no events.
    #[cfg_attr(
        feature = "tracing",
        tracing::instrument(name = "acpdb.view", level = "debug", skip_all, err(level = "debug"))
    )]
    pub fn view(&self, stream: StreamId) -> Result<View, Error> {
        self.view_at(stream, &At::Head)
    }

    /// A frozen view of one stream as of `at`.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the stream has no events.
    pub fn view_at(&self, stream: StreamId, at: &At) -> Result<View, Error> {
        View::new(self, stream, at)
    }

    /// As [`Store::view_at`], but the fold lives only as long as the view, and knows the session without its project's
    /// memory. For callers that look at many sessions, one after the other, in little memory.
    ///
    /// # Errors
    /// As [`Store::view_at`].
    #[doc(hidden)]
    pub fn view_once(&self, stream: StreamId, at: &At) -> Result<View, Error> {
        View::once(self, stream, at)
    }
}

/// A point in a stream's time.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// use acpdb_engine::{At, Seq, Turn};
///
/// for at in [At::Head, At::Seq(Seq(2)), At::Turn(Turn(1))] {
///     println!("{} items", session.view_at(&at)?.history().len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum At {
    /// Everything that is durable.
    #[default]
    Head,
    /// After this seq.
    Seq(Seq),
    /// At the end of this turn.
    Turn(Turn),
}

/// One stream as of one seq. Later appends do not show through it. Cheap to clone.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// let view = session.view()?;
/// let _ = session.append([acpdb_engine::Entry::message("m2", acpdb_engine::Role::User, "and now?")])?;
/// assert!(view.at() < store.head()?); // frozen: what came later does not show through it
/// assert!(view.visible(item).ok_or("it is there")?.visible);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct View {
    pub(super) inner: Arc<StoreInner>,
    fold: Arc<Loaded>,
    /// The stream's part of the fold.
    state: Arc<State>,
    stream: StreamId,
    at: Seq,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("stream", &self.stream).field("at", &self.at).finish_non_exhaustive()
    }
}

/// One face as the model sees it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ShownFace {
    /// How it is shown.
    pub state: FaceState,
    /// The text: the recorded one, or the placeholder. Parts that are no text come as `[media image/png, 12 B]`.
    pub text: String,
}

impl View {
    pub(super) fn new(store: &Store, stream: StreamId, at: &At) -> Result<Self, Error> {
        Self::of(store, store.inner.fold(stream)?, stream, at)
    }

    /// As [`Store::view_once`].
    pub(super) fn once(store: &Store, stream: StreamId, at: &At) -> Result<Self, Error> {
        Self::of(store, store.inner.fold_once(stream)?, stream, at)
    }

    fn of(store: &Store, fold: Arc<Loaded>, stream: StreamId, at: &At) -> Result<Self, Error> {
        let inner = Arc::clone(&store.inner);
        let not_found = |what, name: String| Error::NotFound { what, name, nearest: None };
        let state = match fold.world.shared(stream) {
            Some(state) => state,
            // All of its events are damaged: there is nothing to show, and the damage was noted.
            None if fold.has_gaps && !inner.frames_of(&[stream], Seq::ZERO)?.0.is_empty() => {
                Arc::new(State::new(stream, fold.world.policy(Seq::MAX)))
            }
            None => return Err(not_found("stream", stream.to_hex())),
        };
        let at = match at {
            At::Head => fold.watermark,
            // Frozen also if the seq is yet to come.
            At::Seq(seq) => (*seq).min(fold.watermark),
            At::Turn(turn) => state.turn_end(*turn).ok_or_else(|| not_found("turn", turn.to_string()))?,
        };
        Ok(Self { inner, fold, state, stream, at })
    }

    /// The stream.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// The watermark: everything up to this seq shows.
    pub fn at(&self) -> Seq {
        self.at
    }

    /// The same stream as of another seq.
    #[must_use]
    #[doc(hidden)]
    pub fn with_at(&self, at: Seq) -> Self {
        Self { at, ..self.clone() }
    }

    /// The items of the current context, in the order of the conversation. Their faces may be hidden: see each one's state.
    pub fn current(&self) -> Vec<ItemView> {
        let items = self.state.current(self.at).into_iter();
        items.filter_map(|ix| self.state.item(ix, self.at)).collect()
    }

    /// Every item there ever was, in the order of recording.
    pub fn history(&self) -> Vec<ItemView> {
        self.state.items(self.at).filter_map(|ix| self.state.item(ix, self.at)).collect()
    }

    /// The items that an item superseded and those that superseded it, oldest first; `None` if it is not of this stream.
    pub fn chain(&self, item: ItemId) -> Option<Chain> {
        self.state.find(item).and_then(|ix| self.state.chain(ix, self.at))
    }

    /// Whether an item is in the current context, and exactly why or why not; `None` if it is not of this stream.
    pub fn explain(&self, item: ItemId) -> Option<Explanation> {
        self.state.find(item).and_then(|ix| self.state.explain(ix, self.at))
    }

    /// Whether the model can still see an item's content; `None` if it is not of this stream.
    pub fn visible(&self, item: ItemId) -> Option<Visibility> {
        self.state.find(item).and_then(|ix| self.state.visible(ix, self.at))
    }

    /// How many items each rule hid, and the tokens saved by that.
    pub fn stats(&self) -> Stats {
        self.state.stats(self.at)
    }

    /// Events of the stream that this program does not understand, because a newer one wrote them. They are kept, and count for nothing in
    /// what the view shows.
    pub fn not_understood(&self) -> u64 {
        self.state.not_understood()
    }

    /// Conclusions that are not served yet, in the order of the served context. Cost: O(items).
    pub fn pending(&self) -> Vec<PendingItem> {
        self.state.pending(self.at)
    }

    /// The turn: how many steps the model had begun.
    pub fn turn(&self) -> Turn {
        self.state.turn(self.at)
    }

    /// The state of the stream. Pass [`View::at`] to its reads.
    #[doc(hidden)]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// All streams of the fold: the session, its project, the parents of forks, the store's own.
    #[doc(hidden)]
    pub fn world(&self) -> &World {
        &self.fold.world
    }

    /// The bytes of a body, checked against their digest.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::Erased`].
    pub fn body(&self, id: BodyId) -> Result<Vec<u8>, Error> {
        self.inner.body(id)
    }

    /// A body as text; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// As [`View::body`].
    pub fn text(&self, id: BodyId) -> Result<String, Error> {
        self.inner.body(id).map(lossy)
    }

    /// The text of a placeholder, of bodies that `read` gives; `None` where the face is shown whole after all.
    ///
    /// # Errors
    /// Those of `read`.
    #[doc(hidden)]
    pub fn placeholder_text_of(
        &self,
        placeholder: &Placeholder,
        read: &mut dyn FnMut(BodyId) -> Result<Vec<u8>, Error>,
    ) -> Result<Option<String>, Error> {
        let mut needed = Vec::new();
        for id in placeholder.needs() {
            needed.push((id, read(id)?));
        }
        let body = |id: BodyId| needed.iter().find(|(known, _)| *known == id).map(|(_, bytes)| bytes.clone());
        Ok(render(placeholder, &*self.inner.registry, &body))
    }

    /// The bytes of many bodies, in the order of `ids`, each as from [`View::body`].
    ///
    /// Cost: a fraction of asking one by one: neighbours are read together, and digests are checked on two threads.
    pub fn bodies(&self, ids: &[BodyId]) -> Vec<Result<Vec<u8>, Error>> {
        self.inner.bodies(ids)
    }

    /// A face as the model sees it at the watermark.
    ///
    /// # Errors
    /// As [`View::body`], for the bodies that the text is made of.
    pub fn shown(&self, ix: Ix, face: Face) -> Result<ShownFace, Error> {
        let plan = ShowPlan::of(&self.state, (ix, face, self.at), State::placeholder);
        plan.show(self, &mut |id| self.inner.body(id))
    }

    /// Many faces as the model sees them, each at a moment of its own, in the order of `faces`; each as from [`View::shown`].
    ///
    /// Cost: as [`View::bodies`]. Where memory counts, ask for a few thousand at a time.
    #[doc(hidden)]
    pub fn shown_all(&self, faces: &[(Ix, Face, Seq)]) -> Vec<Result<ShownFace, Error>> {
        self.all_by(faces, State::placeholder)
    }

    /// Many faces as the host had them, in the order of `faces`: as recorded, but without texts that the host cleared
    /// itself or that were erased. Cost: as [`View::shown_all`].
    #[doc(hidden)]
    pub fn recorded_all(&self, faces: &[(Ix, Face, Seq)]) -> Vec<Result<ShownFace, Error>> {
        self.all_by(faces, State::recorded_placeholder)
    }

    fn all_by(&self, faces: &[(Ix, Face, Seq)], placeholder: PlaceholderOf) -> Vec<Result<ShownFace, Error>> {
        let mut shown = Vec::with_capacity(faces.len());
        for some in faces.chunks(SHOWN_COUNT) {
            let plans: Vec<ShowPlan> =
                some.iter().map(|face| ShowPlan::of(&self.state, *face, placeholder)).collect();
            let ids: Vec<BodyId> = plans.iter().flat_map(ShowPlan::needs).collect();
            let mut bodies = ids.iter().copied().zip(self.bodies(&ids));
            shown.extend(plans.into_iter().map(|plan| {
                let count = plan.needs().count();
                let mut own: Vec<_> = bodies.by_ref().take(count).collect();
                plan.show(self, &mut |id| match own.iter().position(|(known, _)| *known == id) {
                    Some(at) => own.swap_remove(at).1,
                    // A body that was not foreseen, or is asked for again.
                    None => self.inner.body(id),
                })
            }));
        }
        shown
    }
}

/// Finds the placeholder of a face.
type PlaceholderOf = fn(&State, Ix, Face, Seq) -> Option<Placeholder>;

/// Faces of which all bodies are read at a time.
const SHOWN_COUNT: usize = 1024;

/// The material of a shown face.
struct ShowPlan {
    state: FaceState,
    placeholder: Option<Placeholder>,
    parts: Vec<(PartKind, BodyId, u64, Option<String>)>,
}

impl ShowPlan {
    fn of(fold: &State, (ix, face, at): (Ix, Face, Seq), of: PlaceholderOf) -> Self {
        let state = fold.face_state(ix, face, at);
        if matches!(state, FaceState::Absent) {
            return Self { state, placeholder: None, parts: Vec::new() };
        }
        let placeholder = of(fold, ix, face, at);
        let parts = if face == Face::Input {
            let params = fold.params(ix, at);
            params.map(|body| (PartKind::Text, body, 0, None)).into_iter().collect()
        } else {
            let content = fold.content(ix, at);
            content
                .into_iter()
                .map(|part| (part.kind, part.body, part.bytes, part.media_type))
                .collect::<Vec<_>>()
        };
        Self { state, placeholder, parts }
    }

    /// The bodies that the text is most likely made of: of its placeholder if it has one, else of its parts.
    fn needs(&self) -> impl Iterator<Item = BodyId> {
        let placeholder = self.placeholder.as_ref().map(Placeholder::needs);
        let parts = self.parts.iter().filter(|_| self.placeholder.is_none());
        let parts = parts.filter(|(kind, ..)| *kind != PartKind::Media).map(|(_, body, ..)| *body);
        // Without a placeholder it needs no bodies.
        placeholder.unwrap_or_default().into_iter().chain(parts)
    }

    fn show(
        self,
        view: &View,
        body: &mut dyn FnMut(BodyId) -> Result<Vec<u8>, Error>,
    ) -> Result<ShownFace, Error> {
        let state = self.state;
        if let Some(placeholder) = &self.placeholder
            && let Some(text) = view.placeholder_text_of(placeholder, body)?
        {
            return Ok(ShownFace { state, text });
        }
        let mut text = String::new();
        for (kind, id, bytes, media_type) in self.parts {
            if !text.is_empty() {
                text.push('\n');
            }
            if kind == PartKind::Media {
                let media_type = media_type.unwrap_or_else(|| "of unknown type".to_owned());
                let _ = write!(text, "[media {media_type}, {bytes} B]");
            } else {
                let part = lossy(body(id)?);
                if text.is_empty() {
                    text = part;
                } else {
                    text.push_str(&part);
                }
            }
        }
        Ok(ShownFace { state, text })
    }
}

impl View {
    /// As [`Store::erasure`].
    ///
    /// # Errors
    /// If the event cannot be read.
    pub fn erasure(&self, seq: Seq) -> Result<Option<Erasure>, Error> {
        self.inner.erasure(seq)
    }
}
