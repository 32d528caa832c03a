//! Names of objects, and back. A name in any other form is no object.

use acpdb_engine::codec::{FieldReader, Put};
use acpdb_engine::ids::{Digest, StoreId};

/// Bytes of a name in the trash of a head.
pub(crate) const TRASH_BYTES: usize = 56;

/// An object of a store that is written once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ObjectName {
    /// A chunk or a fence.
    Entry(u64),
    /// Chunks from `first` to before `next`.
    Pack(PackName),
    /// A complete segment.
    Segment(SegmentName),
}

/// The name of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PackName {
    pub(crate) first: u64,
    pub(crate) next: u64,
    pub(crate) epoch: u64,
    pub(crate) nonce: u64,
}

/// The name of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentName {
    pub(crate) number: u32,
    pub(crate) generation: u32,
    /// Of its writer: no two writers put the same name, so that nothing that comes late replaces what another one put.
    pub(crate) nonce: u64,
    /// BLAKE3 of the unpacked bytes.
    pub(crate) digest: [u8; 32],
}

/// The key of the mark that a prefix is one of acpdb's.
pub(crate) const PREFIX_MARK: &str = "acpdb-remote.json";
/// The text of that mark.
pub(crate) const PREFIX_TEXT: &[u8] = b"{\"acpdb-remote\":1}\n";
/// Where the heads of all stores are.
pub(crate) const HEADS: &str = "heads/";

/// The key of a store's head.
pub(crate) fn head_key(store: StoreId) -> String {
    format!("{HEADS}{store}")
}

/// Where the other objects of a store are.
pub(crate) fn store_keys(store: StoreId) -> String {
    format!("s/{store}/")
}

/// The key of a small file of a store: `acpdb.json`, `secret`, `key`.
pub fn meta_key(store: StoreId, name: &str) -> String {
    format!("s/{store}/meta/{name}")
}

impl ObjectName {
    /// Its key.
    pub(crate) fn key(&self, store: StoreId) -> String {
        match self {
            Self::Entry(number) => format!("s/{store}/log/{number:016x}"),
            Self::Pack(PackName { first, next, epoch, nonce }) => {
                format!("s/{store}/pack/{first:016x}-{next:016x}-{epoch:016x}-{nonce:016x}")
            }
            Self::Segment(SegmentName { number, generation, nonce, digest }) => {
                format!("s/{store}/seg/{number:08x}.{generation:08x}-{nonce:016x}-{}", Digest(*digest))
            }
        }
    }

    /// The object that a key names, if it has exactly the form of one.
    pub(crate) fn parse(store: StoreId, key: &str) -> Option<Self> {
        let (folder, name) = key.strip_prefix(&store_keys(store))?.split_once('/')?;
        // Another text is no number.
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let found = match folder {
            // No number comes behind the last one, so that it is none of an entry.
            "log" => Self::Entry(number(name).filter(|number| *number < u64::MAX)?),
            "pack" => {
                let mut parts = name.split('-').map(number);
                let mut next = || parts.next().flatten();
                Self::Pack(PackName { first: next()?, next: next()?, epoch: next()?, nonce: next()? })
            }
            "seg" => {
                let (numbers, rest) = name.split_once('-')?;
                let (own, digest) = rest.split_once('-')?;
                let (segment, generation) = numbers.split_once('.')?;
                // As above.
                let short = |text| u32::from_str_radix(text, 16).ok();
                let digest = Digest::from_hex(digest)?.0;
                let (generation, nonce) = (short(generation)?, number(own)?);
                Self::Segment(SegmentName { number: short(segment)?, generation, nonce, digest })
            }
            _ => return None,
        };
        // Signs, capitals, missing zeros and a fifth part are read above, and are no form of a name.
        (found.key(store) == key).then_some(found)
    }

    /// As a name in the trash.
    pub(crate) fn encode(&self) -> [u8; TRASH_BYTES] {
        let mut bytes = [0; TRASH_BYTES];
        let mut put = Put(&mut bytes);
        match self {
            Self::Entry(number) => put.u8(1).skip(7).u64(*number),
            Self::Pack(PackName { first, next, epoch, nonce }) => {
                put.u8(3).skip(7).u64(*first).u64(*next).u64(*epoch).u64(*nonce)
            }
            Self::Segment(SegmentName { number, generation, nonce, digest }) => {
                put.u8(4).skip(7).u32(*number).u32(*generation).u64(*nonce).bytes(digest)
            }
        };
        bytes
    }

    /// A name in the trash; `None`: the bytes are none.
    pub(crate) fn decode(bytes: &[u8; TRASH_BYTES]) -> Option<Self> {
        let mut fields = FieldReader(bytes);
        let kind = fields.u8();
        let _reserved = fields.zeros(7);
        let found = match kind {
            1 => Self::Entry(fields.u64()),
            3 => {
                let (first, next) = (fields.u64(), fields.u64());
                Self::Pack(PackName { first, next, epoch: fields.u64(), nonce: fields.u64() })
            }
            4 => {
                let (number, generation, nonce) = (fields.u32(), fields.u32(), fields.u64());
                Self::Segment(SegmentName { number, generation, nonce, digest: fields.array() })
            }
            _ => return None,
        };
        // Reserved bytes that are not zero would be lost.
        (found.encode() == *bytes).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: StoreId = StoreId([0xab; 16]);

    #[test]
    fn a_name_is_read_in_its_own_form_alone() {
        let pack = ObjectName::Pack(PackName { first: 1, next: 65, epoch: 3, nonce: u64::MAX });
        let segment =
            ObjectName::Segment(SegmentName { number: 7, generation: 2, nonce: 5, digest: [9; 32] });
        for name in [ObjectName::Entry(0x1f), pack, segment] {
            assert_eq!(ObjectName::parse(STORE, &name.key(STORE)), Some(name));
            assert_eq!(ObjectName::decode(&name.encode()), Some(name));
            assert!(crate::remote::is_key(&name.key(STORE)));
            let mut reserved = name.encode();
            reserved[5] = 1;
            assert_eq!(ObjectName::decode(&reserved), None);
        }
        let own = store_keys(STORE);
        let other = ObjectName::Entry(1).key(StoreId([1; 16]));
        for key in [
            "",
            "..",
            "log/../../etc",
            "log/1",
            "log/ffffffffffffffff",
            "log/000000000000001F",
            "log/+00000000000001f",
            "log/00000000000001f/x",
            "pack/1-2-3-4",
        ] {
            assert_eq!(ObjectName::parse(STORE, &format!("{own}{key}")), None, "{key}");
        }
        assert_eq!(ObjectName::parse(STORE, &other), None);
        assert_eq!(ObjectName::parse(STORE, &format!("{}-1", pack.key(STORE))), None);
    }
}
