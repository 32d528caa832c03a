//! How far a remote is behind its store.

use acpdb_engine::codec::StoreFile;
use acpdb_engine::ids::{Seq, StoreId};

use crate::ahead::AheadRemote;
use crate::encrypted::is_sealed_there;
use crate::error::ChainError;
use crate::look::{look, trash_left};
use crate::names::meta_key;
use crate::objects::get_settled;
use crate::remote::Remote;

/// A store as a remote has it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RemoteStatus {
    /// The store.
    pub store: StoreId,
    /// The last seq that the remote has.
    pub there: Seq,
    /// The last durable seq of the store in the folder, if one was asked.
    pub here: Option<Seq>,
    /// Events that the remote does not have yet.
    pub behind: u64,
    /// Who wrote last, as it called itself.
    pub owner: String,
    /// How often the store was taken over.
    pub epoch: u64,
    /// Complete segments.
    pub segments: usize,
    /// Packs.
    pub packs: usize,
    /// Chunks that no pack has.
    pub chunks: usize,
    /// Its secret is not there: what is restored can be read, and nothing can be appended to it. An encrypted store needs none.
    pub lacks_secret: bool,
    /// Its objects are sealed: without their key the remote has noise.
    pub encrypted_objects: bool,
    /// Objects that were replaced and are there still, such as segments whose bodies were erased.
    pub trash: usize,
}

/// Says what a remote has of a store, whose folder is at `here`; `None`: nothing. Changes nothing.
///
/// # Errors
/// [`ChainError::HeadLost`], [`ChainError::Newer`], [`ChainError::Remote`].
pub fn status(
    remote: &dyn Remote,
    store: StoreId,
    here: Option<Seq>,
) -> Result<Option<RemoteStatus>, ChainError> {
    let Some((head, tail)) = look(&AheadRemote::new(remote, store))? else { return Ok(None) };
    let there = tail.place.seq;
    let trash = trash_left(remote, &head)?;
    // A remote that is ahead is no event behind.
    let behind = here.map_or(0, |here| here.0.saturating_sub(there.0));
    Ok(Some(RemoteStatus {
        store,
        there,
        here,
        behind,
        owner: head.owner,
        epoch: head.epoch,
        segments: head.segments.len(),
        packs: head.packs.len(),
        chunks: tail.accepted.len(),
        lacks_secret: lacks_secret(remote, store)?,
        trash,
        encrypted_objects: is_sealed_there(remote, store)?,
    }))
}

/// Whether the secret of a store that needs one is not there.
pub(crate) fn lacks_secret(remote: &dyn Remote, store: StoreId) -> Result<bool, ChainError> {
    if get_settled(remote, &meta_key(store, "secret"))?.is_some() {
        return Ok(false);
    }
    Ok(!is_encrypted_there(remote, store)?)
}

/// Whether a store file is of an encrypted store. One that is none says nothing: who restores it tells that.
pub(crate) fn is_of_encrypted(store_file: &[u8]) -> bool {
    StoreFile::decode(store_file).is_ok_and(|file| file.is_encrypted())
}

/// Whether the remote says that a store is encrypted.
pub(crate) fn is_encrypted_there(remote: &dyn Remote, store: StoreId) -> Result<bool, ChainError> {
    let file = get_settled(remote, &meta_key(store, "acpdb.json"))?;
    Ok(file.is_some_and(|(bytes, _)| is_of_encrypted(&bytes)))
}
