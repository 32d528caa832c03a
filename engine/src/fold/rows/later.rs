//! How parts of a state lie in an archive: a value that is shared in memory (an archive shares nothing), and a part that is made of
//! its saved bytes when it is first asked for.
//!
//! In a session that goes on, todo lists that were replaced long ago are half of the archives, and are hardly ever asked for.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use rkyv::api::high::{HighDeserializer, HighSerializer, HighValidator};
use rkyv::boxed::{ArchivedBox, BoxResolver};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::{Failure, Fallible, Source};
use rkyv::ser::Writer;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::string::{ArchivedString, StringResolver};
use rkyv::util::AlignedVec;
use rkyv::with::{ArchiveWith, DeserializeWith, SerializeWith};
use rkyv::{Archive, Deserialize, Place, Serialize};

use super::{In, Out};

/// A value that is made at its first use: from its archive, or as the default.
#[derive(Clone, Debug)]
pub(crate) struct Later<T> {
    /// The value that this program made or changed.
    here: Option<T>,
    /// The value made of the saved bytes, for reading only.
    made: OnceLock<T>,
    /// Empty, or an archive of a `T`; empty is the default.
    saved: AlignedVec<16>,
    make: fn(&[u8]) -> T,
}

impl<T: Default> Default for Later<T> {
    fn default() -> Self {
        let make = |_: &[u8]| T::default();
        Self { here: None, made: OnceLock::new(), saved: AlignedVec::new(), make }
    }
}

impl<T: Default> From<T> for Later<T> {
    fn from(value: T) -> Self {
        Self { here: Some(value), ..Self::default() }
    }
}

impl<T> Later<T> {
    /// The value, unless it is the default, and no caller has asked for it.
    pub(crate) fn known(&self) -> Option<&T> {
        (self.here.is_some() || self.made.get().is_some() || !self.saved.is_empty()).then(|| &**self)
    }
}

impl<T> Deref for Later<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.here.as_ref().unwrap_or_else(|| self.made.get_or_init(|| (self.make)(&self.saved)))
    }
}

impl<T> DerefMut for Later<T> {
    fn deref_mut(&mut self) -> &mut T {
        let Self { here, made, saved, make } = self;
        let value = here.get_or_insert_with(|| made.take().unwrap_or_else(|| make(saved)));
        *saved = AlignedVec::new();
        value
    }
}

impl<T: Default + Archive> Later<T>
where
    T::Archived: Deserialize<T, HighDeserializer<Failure>>,
    T::Archived: for<'b> CheckBytes<HighValidator<'b, Failure>>,
{
    pub(in crate::fold) fn save(&self, out: &mut Out) -> Option<()>
    where
        T: for<'a> Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, Failure>>,
    {
        out.archive(&**self)
    }

    /// Reads and checks the archive; the value is made of it at its first use.
    pub(in crate::fold) fn read(saved: &mut In<'_>) -> Option<Self> {
        let saved = saved.archived()?;
        // A saved fold whose parts are not sound is refused.
        rkyv::access::<T::Archived, Failure>(&saved).ok()?;
        Some(Self {
            here: None,
            made: OnceLock::new(),
            saved,
            // Checked above: the other case never comes.
            make: |bytes| rkyv::from_bytes::<T, Failure>(bytes).unwrap_or_default(),
        })
    }
}

/// A shared text, archived as a text.
pub(crate) struct AsText;

impl ArchiveWith<Arc<str>> for AsText {
    type Archived = ArchivedString;
    type Resolver = StringResolver;

    fn resolve_with(text: &Arc<str>, resolver: StringResolver, out: Place<ArchivedString>) {
        ArchivedString::resolve_from_str(text, resolver, out);
    }
}

impl<S: Fallible<Error: Source> + Writer + ?Sized> SerializeWith<Arc<str>, S> for AsText {
    fn serialize_with(text: &Arc<str>, serializer: &mut S) -> Result<StringResolver, S::Error> {
        ArchivedString::serialize_from_str(text, serializer)
    }
}

impl<D: Fallible + ?Sized> DeserializeWith<ArchivedString, Arc<str>, D> for AsText {
    fn deserialize_with(text: &ArchivedString, _: &mut D) -> Result<Arc<str>, D::Error> {
        Ok(Arc::from(text.as_str()))
    }
}

/// A shared value, archived apart from its holder: nothing is shared in an archive, and rows stay small.
pub(crate) struct Apart;

impl<T: Archive> ArchiveWith<Arc<T>> for Apart {
    type Archived = ArchivedBox<T::Archived>;
    type Resolver = BoxResolver;

    fn resolve_with(value: &Arc<T>, resolver: BoxResolver, out: Place<Self::Archived>) {
        ArchivedBox::resolve_from_ref(&**value, resolver, out);
    }
}

impl<T, S> SerializeWith<Arc<T>, S> for Apart
where
    T: Serialize<S>,
    S: Fallible + Writer + ?Sized,
{
    fn serialize_with(value: &Arc<T>, serializer: &mut S) -> Result<BoxResolver, S::Error> {
        ArchivedBox::serialize_from_ref(&**value, serializer)
    }
}

impl<T, D> DeserializeWith<ArchivedBox<T::Archived>, Arc<T>, D> for Apart
where
    T: Archive<Archived: Deserialize<T, D>>,
    D: Fallible + ?Sized,
{
    fn deserialize_with(value: &ArchivedBox<T::Archived>, deserializer: &mut D) -> Result<Arc<T>, D::Error> {
        value.get().deserialize(deserializer).map(Arc::new)
    }
}
