//! The served context as a value, and the renderers that turn it into bytes.
//!
//! ```text
//! View --Served::of--> Served { items, each with the moments it shows } --Renderer--> bytes a provider accepts
//! ```
//!
//! The engine knows no provider: a [`Renderer`] does, and it is named with its version in `ContextServed`, so that the
//! same bytes can be made again. [`PlainText`] is always there. The fold holds conclusions, and says which are pending;
//! [`Step`](crate::Step) sends and records.

use acpdb_engine::Error;
use acpdb_engine::event::Face;
use acpdb_engine::fold::{FaceState, ItemKind, ItemView, ServedPlace};
use acpdb_engine::ids::{BodyId, Seq};

use acpdb_engine::store::{ShownFace, View};

/// An item as it is served.
#[derive(Clone, PartialEq, Debug)]
pub struct ServedItem {
    /// The item; its faces are those that are served, so `input.state` and `output.state` say how each is shown.
    pub view: ItemView,
    /// The moments that its faces show.
    pub place: ServedPlace,
    /// A text that stands for the output because the model sees (part of) it elsewhere in this very context.
    pub pointed: Option<String>,
}

/// A context as it goes to the model: frozen items in conversation order. Cheap to make; texts are read when asked for.
#[derive(Clone, Debug)]
pub struct Served {
    view: View,
    epoch: u32,
    items: Vec<ServedItem>,
    /// Whether pointers stand in place of lines that the model sees elsewhere.
    has_pointers: bool,
}

impl Served {
    /// The context of a view as it is to be served: sent items stay as they were sent, later conclusions are pending.
    ///
    /// Cost: O(items); no bodies.
    pub fn of(view: &View) -> Self {
        Self::at_places(view, view.state().served_places(view.at()))
    }

    /// The context as a host without a prompt cache sends it: all conclusions apply at once.
    ///
    /// Cost: O(items); no bodies.
    pub fn eager(view: &View) -> Self {
        let at = view.at();
        let places = view.state().served_places(at).into_iter();
        Self::at_places(
            view,
            places.map(|place| ServedPlace { input_at: at, output_at: at, ..place }).collect(),
        )
    }

    fn at_places(view: &View, places: Vec<ServedPlace>) -> Self {
        let state = view.state();
        let items = places.into_iter().filter_map(|place| served_item(state, place)).collect();
        Self { view: view.clone(), epoch: state.epoch(view.at()), items, has_pointers: false }
    }

    /// The same context with the items that have pointers.
    pub(crate) fn with_pointers(self, items: Vec<ServedItem>) -> Self {
        Self { items, has_pointers: true, ..self }
    }

    /// Whether it may have pointers.
    pub(crate) const fn has_pointers(&self) -> bool {
        self.has_pointers
    }

    /// The view it was made from.
    pub const fn view(&self) -> &View {
        &self.view
    }

    /// The number of its epoch; 0 until the first rebase.
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Its items, in conversation order.
    pub fn items(&self) -> &[ServedItem] {
        &self.items
    }

    /// A face as the model sees it.
    ///
    /// A face whose state is [`FaceState::Whole`] is shown as it was recorded: use its bodies for the exact bytes and for
    /// parts that are no text.
    ///
    /// # Errors
    /// As [`View::body`], for the bodies that the text is made of.
    pub fn shown(&self, item: &ServedItem, face: Face) -> Result<ShownFace, Error> {
        if face == Face::Output
            && let Some(text) = &item.pointed
        {
            return Ok(ShownFace { state: FaceState::Shortened, text: text.clone() });
        }
        self.view.with_at(item.place.at(face)).shown(item.view.ix, face)
    }

    /// Many faces as the model sees them, in the order of `faces`; each as from [`Served::shown`]. Cost: as
    /// [`View::bodies`].
    pub fn shown_all(&self, faces: &[(&ServedItem, Face)]) -> Vec<Result<ShownFace, Error>> {
        let pointed = |item: &ServedItem, face: Face| item.pointed.clone().filter(|_| face == Face::Output);
        let read = faces.iter().filter(|(item, face)| pointed(item, *face).is_none());
        let read: Vec<_> = read.map(|(item, face)| (item.view.ix, *face, item.place.at(*face))).collect();
        let mut read = self.view.shown_all(&read).into_iter();
        let shown = faces.iter().filter_map(|(item, face)| match pointed(item, *face) {
            Some(text) => Some(Ok(ShownFace { state: FaceState::Shortened, text })),
            None => read.next(),
        });
        shown.collect()
    }

    /// The bytes of a body, checked against their digest.
    ///
    /// # Errors
    /// As [`View::body`].
    pub fn body(&self, id: BodyId) -> Result<Vec<u8>, Error> {
        self.view.body(id)
    }

    /// Estimated tokens of its items as shown.
    pub fn tokens(&self) -> u64 {
        self.items.iter().map(ServedItem::tokens).sum()
    }
}

impl ServedItem {
    /// Estimated tokens as shown.
    pub fn tokens(&self) -> u64 {
        let output = match &self.pointed {
            Some(text) => u64::from(acpdb_engine::text::tokens::estimate(text.as_bytes())),
            None => self.view.output.tokens_shown,
        };
        self.view.input.tokens_shown.saturating_add(output)
    }
}

/// Bytes made of a context.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rendered {
    /// The bytes to send.
    pub bytes: Vec<u8>,
    /// Content that could not be carried, in words; empty if everything was.
    pub notes: Vec<String>,
}

/// Makes the bytes of a format. Pure: the same context gives the same bytes, in every program that has this version.
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
/// use acpdb_engine::{Error, Face};
/// use acpdb_serve::{Rendered, Renderer, ServeOptions, Served, Step};
///
/// /// Results alone, each on its own lines.
/// struct Results;
///
/// impl Renderer for Results {
///     fn format(&self) -> &str {
///         "results"
///     }
///
///     fn version(&self) -> u32 {
///         1
///     }
///
///     fn render(&self, context: &Served) -> Result<Rendered, Error> {
///         let mut bytes = Vec::new();
///         for item in context.items() {
///             bytes.extend(context.shown(item, Face::Output)?.text.into_bytes());
///             bytes.push(b'\n');
///         }
///         Ok(Rendered { bytes, notes: Vec::new() })
///     }
/// }
///
/// let context = Step::begin(&session, "step-2")?.context(&Results, &ServeOptions::default())?;
/// assert!(context.bytes.starts_with(b"fn main() {}"));
/// # Ok(())
/// # }
/// ```
pub trait Renderer: Send + Sync {
    /// Name of the format: `anthropic`, `openai`, ..
    fn format(&self) -> &str;

    /// Version of the bytes: raised whenever the same context gives others.
    fn version(&self) -> u32;

    /// The bytes of a context.
    ///
    /// If no item of a context changes between two calls, and only new ones follow, the bytes of the first (without a
    /// closing bracket) are to be a prefix of those of the second.
    ///
    /// # Errors
    /// If a body cannot be read, or the context cannot be expressed.
    fn render(&self, context: &Served) -> Result<Rendered, Error>;
}

/// Plain text: a line that names each part, and its text. For people, and for tests.
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
/// use acpdb_serve::{PlainText, ServeOptions};
///
/// let context = acpdb_serve::Step::begin(&session, "step-2")?.context(&PlainText, &ServeOptions::default())?;
/// assert!(String::from_utf8_lossy(&context.bytes).contains("src/main.rs"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlainText;

/// Faces whose texts are in memory at a time.
const RENDERED_COUNT: usize = 1024;

impl Renderer for PlainText {
    fn format(&self) -> &'static str {
        "plain"
    }

    fn version(&self) -> u32 {
        1
    }

    fn render(&self, context: &Served) -> Result<Rendered, Error> {
        let known = |item: &ServedItem, face| {
            let known = if face == Face::Input { &item.view.input } else { &item.view.output };
            !matches!(known.state, FaceState::Absent | FaceState::Gone)
        };
        let faces = context.items().iter().flat_map(|item| [(item, Face::Input), (item, Face::Output)]);
        let faces: Vec<_> = faces.filter(|(item, face)| known(item, *face)).collect();
        let mut bytes = Vec::new();
        for some in faces.chunks(RENDERED_COUNT) {
            for ((item, face), shown) in some.iter().zip(context.shown_all(some)) {
                let shown = shown?;
                let role = || format!("{:?}", item.view.role).to_lowercase();
                let name = match (item.view.kind, face) {
                    (ItemKind::Call, Face::Input) => {
                        // A call of a tool without a name.
                        format!("call {}", item.view.tool.as_deref().unwrap_or_default())
                    }
                    (ItemKind::Call | ItemKind::Result, _) => "result".to_owned(),
                    _ => role(),
                };
                bytes.extend_from_slice(format!("--- {} {name}\n", item.view.item).as_bytes());
                bytes.extend_from_slice(shown.text.as_bytes());
                bytes.push(b'\n');
            }
        }
        Ok(Rendered { bytes, notes: Vec::new() })
    }
}

/// An item with its faces as they are served.
fn served_item(state: &acpdb_engine::fold::State, place: ServedPlace) -> Option<ServedItem> {
    let newest: Seq = place.output_at.max(place.input_at);
    let mut view = state.item(place.ix, newest)?;
    if place.output_at != newest {
        let then = state.item(place.ix, place.output_at)?;
        view.output = then.output;
        view.content = then.content;
        view.status = then.status;
    }
    if place.input_at != newest {
        view.input = state.face(place.ix, Face::Input, place.input_at);
        view.params = state.item(place.ix, place.input_at)?.params;
    }
    Some(ServedItem { view, place, pointed: None })
}
