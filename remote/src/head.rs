//! The head of a store: the one object that changes. Pure.

use acpdb_engine::codec::{FieldReader, Put, WrittenPlace, place_record, put_trailing_checksum, read_place};
use acpdb_engine::ids::StoreId;

use crate::names::{ObjectName, PackName, SegmentName, TRASH_BYTES};
use crate::run::{NoRun, fields_of};

const MAGIC: [u8; 8] = *b"acpdbrhd";
const FORM: u16 = 1;
const FIXED_BYTES: usize = 144;
const SEGMENT_BYTES: usize = 136;
const PACK_BYTES: usize = 32;
/// Most bytes of a head.
pub(crate) const HEAD_BYTES_MAX: usize = 4 << 20;
/// Most bytes of an owner's name.
pub(crate) const OWNER_BYTES_MAX: usize = 256;

/// A complete segment that the remote has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptSegment {
    pub(crate) name: SegmentName,
    pub(crate) length: u64,
    pub(crate) behind: WrittenPlace,
    /// The first number that may hold what comes behind it.
    pub(crate) boundary: u64,
    /// The highest epoch before that number.
    pub(crate) floor: u64,
}

/// The head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteHead {
    pub(crate) store: StoreId,
    pub(crate) epoch: u64,
    pub(crate) owner_nonce: u64,
    /// Drawn for each head, so that no two have the same bytes.
    pub(crate) nonce: u64,
    /// The first number that is not covered by packs and segments.
    pub(crate) boundary: u64,
    /// The highest epoch before the boundary.
    pub(crate) floor: u64,
    /// The place at the boundary.
    pub(crate) place: WrittenPlace,
    pub(crate) segments: Vec<KeptSegment>,
    pub(crate) packs: Vec<PackName>,
    pub(crate) trash: Vec<ObjectName>,
    pub(crate) owner: String,
}

impl RemoteHead {
    /// The head of a store of which nothing was shipped.
    pub(crate) fn empty(store: StoreId) -> Self {
        Self {
            store,
            epoch: 0,
            owner_nonce: 0,
            nonce: 0,
            boundary: 1,
            floor: 0,
            place: WrittenPlace::default(),
            segments: Vec::new(),
            packs: Vec::new(),
            trash: Vec::new(),
            owner: String::new(),
        }
    }

    /// The objects that it names, in the order of the log; segments with the place behind them.
    pub(crate) fn names(&self) -> impl Iterator<Item = (ObjectName, Option<WrittenPlace>)> + '_ {
        let segments = self.segments.iter().map(|kept| (ObjectName::Segment(kept.name), Some(kept.behind)));
        segments.chain(self.packs.iter().map(|pack| (ObjectName::Pack(*pack), None)))
    }

    /// Whether both name the same objects, and the same entries behind them.
    pub(crate) fn names_the_same(&self, other: &Self) -> bool {
        self.boundary == other.boundary && self.names().eq(other.names())
    }

    /// Its object.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let lists = self.segments.len() * SEGMENT_BYTES
            + self.packs.len() * PACK_BYTES
            + self.trash.len() * TRASH_BYTES;
        let mut object = vec![0; FIXED_BYTES + lists + self.owner.len() + 4];
        let mut put = Put(&mut object);
        put.bytes(&MAGIC).u16(FORM).u16(u16::try_from(self.owner.len()).unwrap_or(u16::MAX));
        put.u32(count(self.segments.len())).bytes(self.store.as_bytes());
        put.u64(self.epoch).u64(self.owner_nonce).u64(self.nonce).u64(self.boundary).u64(self.floor);
        put.bytes(&place_record(&self.place)).u32(count(self.packs.len())).u32(count(self.trash.len()));
        for KeptSegment { name, length, behind, boundary, floor } in &self.segments {
            put.u32(name.number)
                .u32(name.generation)
                .u64(name.nonce)
                .u64(*length)
                .bytes(&name.digest)
                .bytes(&place_record(behind))
                .u64(*boundary)
                .u64(*floor);
        }
        for PackName { first, next, epoch, nonce } in &self.packs {
            put.u64(*first).u64(*next).u64(*epoch).u64(*nonce);
        }
        for name in &self.trash {
            put.bytes(&name.encode());
        }
        put.bytes(self.owner.as_bytes());
        put_trailing_checksum(&mut object);
        object
    }

    /// Reads and checks a head of `store`.
    pub(crate) fn decode(store: StoreId, object: &[u8]) -> Result<Self, NoRun> {
        let unsound = |what| Err(NoRun::Unsound(what));
        if object.len() < FIXED_BYTES + 4 || object.len() > HEAD_BYTES_MAX {
            return unsound("it has another length");
        }
        let mut fields = fields_of(object, MAGIC, FORM)?;
        let (owner_bytes, segment_count) = (usize::from(fields.u16()), fields.u32() as usize);
        if StoreId(fields.array()) != store {
            return unsound("it is of another store");
        }
        let (epoch, owner_nonce, nonce) = (fields.u64(), fields.u64(), fields.u64());
        let (boundary, floor) = (fields.u64(), fields.u64());
        let place = read_place(&fields.array::<64>());
        let (pack_count, trash_count) = (fields.u32() as usize, fields.u32() as usize);
        let lists = [(segment_count, SEGMENT_BYTES), (pack_count, PACK_BYTES), (trash_count, TRASH_BYTES)];
        let lists = lists
            .into_iter()
            .fold(0_usize, |sum, (count, bytes)| sum.saturating_add(count.saturating_mul(bytes)));
        let length = lists.saturating_add(FIXED_BYTES).saturating_add(owner_bytes).saturating_add(4);
        let (Some(place), true) =
            (place, length == object.len() && owner_bytes <= OWNER_BYTES_MAX && boundary > 0)
        else {
            return unsound("it contradicts itself");
        };
        // The counts fit into the length, which is bounded.
        let segment = |fields: &mut FieldReader<'_>| {
            let (number, generation, nonce) = (fields.u32(), fields.u32(), fields.u64());
            let (length, digest) = (fields.u64(), fields.array());
            let behind = read_place(&fields.array::<64>())?;
            let (boundary, floor) = (fields.u64(), fields.u64());
            let name = SegmentName { number, generation, nonce, digest };
            Some(KeptSegment { name, length, behind, boundary, floor })
        };
        let segments: Option<Vec<_>> = (0..segment_count).map(|_| segment(&mut fields)).collect();
        let pack = |fields: &mut FieldReader<'_>| {
            let (first, next, epoch, nonce) = (fields.u64(), fields.u64(), fields.u64(), fields.u64());
            PackName { first, next, epoch, nonce }
        };
        let packs: Vec<_> = (0..pack_count).map(|_| pack(&mut fields)).collect();
        let trash: Option<Vec<_>> = (0..trash_count).map(|_| ObjectName::decode(&fields.array())).collect();
        let owner = fields.0.get(..owner_bytes).and_then(|owner| std::str::from_utf8(owner).ok());
        let (Some(segments), Some(trash), Some(owner)) = (segments, trash, owner) else {
            return unsound("a list of it is none");
        };
        let in_order = segments.iter().zip(1..).all(|(segment, number)| segment.name.number == number);
        if !in_order {
            return unsound("its segments have gaps");
        }
        let owner = owner.to_owned();
        Ok(Self { store, epoch, owner_nonce, nonce, boundary, floor, place, segments, packs, trash, owner })
    }
}
