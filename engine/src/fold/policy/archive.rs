//! A policy that many states share. Archives have its JSON: it is parsed into patterns that no archive can hold.

use std::ops::Deref;
use std::sync::Arc;

use rkyv::Place;
use rkyv::rancor::{Fallible, Source};
use rkyv::ser::Writer;
use rkyv::string::{ArchivedString, StringResolver};
use rkyv::with::{ArchiveWith, DeserializeWith, SerializeWith};

use super::Policy;

/// A policy that many states share. The default is [`Policy::standard`].
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct SharedPolicy(#[rkyv(with = AsJson)] pub(crate) Arc<Policy>);

impl Default for SharedPolicy {
    fn default() -> Self {
        Policy::standard()
    }
}

impl Deref for SharedPolicy {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.0
    }
}

impl PartialEq for SharedPolicy {
    fn eq(&self, other: &Self) -> bool {
        // Mostly it is the very policy: a file of thousands of rewinds spent most of its time on comparing them.
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

/// A policy, archived as its JSON.
struct AsJson;

impl ArchiveWith<Arc<Policy>> for AsJson {
    type Archived = ArchivedString;
    type Resolver = StringResolver;

    fn resolve_with(policy: &Arc<Policy>, resolver: StringResolver, out: Place<ArchivedString>) {
        ArchivedString::resolve_from_str(&Policy::shared_json(policy), resolver, out);
    }
}

impl<S: Fallible<Error: Source> + Writer + ?Sized> SerializeWith<Arc<Policy>, S> for AsJson {
    fn serialize_with(policy: &Arc<Policy>, serializer: &mut S) -> Result<StringResolver, S::Error> {
        ArchivedString::serialize_from_str(&Policy::shared_json(policy), serializer)
    }
}

impl<D: Fallible<Error: Source> + ?Sized> DeserializeWith<ArchivedString, Arc<Policy>, D> for AsJson {
    fn deserialize_with(json: &ArchivedString, _: &mut D) -> Result<Arc<Policy>, D::Error> {
        Policy::shared(json).map(|policy| policy.0).map_err(Source::new)
    }
}
