//! What is shared in memory, in an archive: there nothing is shared.

use std::sync::Arc;

use rkyv::boxed::{ArchivedBox, BoxResolver};
use rkyv::rancor::{Fallible, Source};
use rkyv::ser::Writer;
use rkyv::string::{ArchivedString, StringResolver};
use rkyv::with::{ArchiveWith, DeserializeWith, SerializeWith};
use rkyv::{Archive, Deserialize, Place, Serialize};

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

/// A shared value, archived apart from what holds it: nothing is shared in an archive, and rows stay small.
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
