//! Policies in archives: as their JSON, since a policy is parsed into patterns that no archive can hold.

use std::sync::Arc;

use rkyv::rancor::{Fallible, Source};
use rkyv::ser::{Allocator, Writer};
use rkyv::string::{ArchivedString, StringResolver};
use rkyv::vec::{ArchivedVec, VecResolver};
use rkyv::with::{ArchiveWith, DeserializeWith, SerializeWith};
use rkyv::{Archived, Deserialize as _, Place, Serialize as _};

use super::Policy;
use crate::ids::Seq;

/// A policy, archived as its JSON.
pub(crate) struct AsJson;

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
        Policy::shared(json).map_err(Source::new)
    }
}

/// Policies, each with the seq since which it holds, archived as their JSON.
pub(crate) struct EachAsJson;

impl ArchiveWith<Vec<(Seq, Arc<Policy>)>> for EachAsJson {
    type Archived = Archived<Vec<(Seq, String)>>;
    type Resolver = VecResolver;

    fn resolve_with(
        policies: &Vec<(Seq, Arc<Policy>)>,
        resolver: VecResolver,
        out: Place<Archived<Vec<(Seq, String)>>>,
    ) {
        ArchivedVec::resolve_from_len(policies.len(), resolver, out);
    }
}

impl<S> SerializeWith<Vec<(Seq, Arc<Policy>)>, S> for EachAsJson
where
    S: Fallible<Error: Source> + Allocator + Writer + ?Sized,
{
    fn serialize_with(
        policies: &Vec<(Seq, Arc<Policy>)>,
        serializer: &mut S,
    ) -> Result<VecResolver, S::Error> {
        let texts: Vec<(Seq, String)> =
            policies.iter().map(|(since, policy)| (*since, Policy::shared_json(policy))).collect();
        texts.serialize(serializer)
    }
}

impl<D> DeserializeWith<Archived<Vec<(Seq, String)>>, Vec<(Seq, Arc<Policy>)>, D> for EachAsJson
where
    D: Fallible<Error: Source> + ?Sized,
{
    fn deserialize_with(
        texts: &Archived<Vec<(Seq, String)>>,
        deserializer: &mut D,
    ) -> Result<Vec<(Seq, Arc<Policy>)>, D::Error> {
        let texts: Vec<(Seq, String)> = texts.deserialize(deserializer)?;
        let parse = |(since, json): (Seq, String)| Ok((since, Policy::shared(&json).map_err(Source::new)?));
        texts.into_iter().map(parse).collect()
    }
}
