//! A policy in an archive.

use std::sync::Arc;

use rkyv::Place;
use rkyv::rancor::{Fallible, Source};
use rkyv::ser::Writer;
use rkyv::string::{ArchivedString, StringResolver};
use rkyv::with::{ArchiveWith, DeserializeWith, SerializeWith};

use super::Policy;

/// A policy, archived as its JSON.
pub(crate) struct AsJson;

impl ArchiveWith<Arc<Policy>> for AsJson {
    type Archived = ArchivedString;
    type Resolver = StringResolver;

    fn resolve_with(policy: &Arc<Policy>, resolver: StringResolver, out: Place<ArchivedString>) {
        ArchivedString::resolve_from_str(&policy.to_json(), resolver, out);
    }
}

impl<S: Fallible<Error: Source> + Writer + ?Sized> SerializeWith<Arc<Policy>, S> for AsJson {
    fn serialize_with(policy: &Arc<Policy>, serializer: &mut S) -> Result<StringResolver, S::Error> {
        ArchivedString::serialize_from_str(&policy.to_json(), serializer)
    }
}

impl<D: Fallible<Error: Source> + ?Sized> DeserializeWith<ArchivedString, Arc<Policy>, D> for AsJson {
    fn deserialize_with(json: &ArchivedString, _: &mut D) -> Result<Arc<Policy>, D::Error> {
        Policy::shared(json).map_err(Source::new)
    }
}
