//! Rows of plain data as bytes and back: the greater part of a snapshot, as fast as memory is.
//!
//! ```text
//! Vec<Row>  --fields one behind the other, little-endian, no padding-->  count 8, rows of BYTES each
//! ```
//!
//! Irregular values (policies, todo lists, maps of lists) are rkyv archives between the rows. Both ways go from front to
//! back once, so that a reader need not hold the whole: a piece is digested, taken apart and forgotten while it is
//! in the processor's cache.
//!
//! Any bytes are safe to read: a number without a meaning makes the reader refuse the whole, and nothing is allocated that
//! the remaining bytes could not fill.

mod later;

use rkyv::api::high::{HighDeserializer, HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::Failure;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Deserialize, Serialize};

use crate::event::{Body, Face, InjectedKind, KeyKind, Outcome, PartKind, Role, Shown, TodoRole, ToolClass};
use crate::fold::number::{Ix, KeyId, NONE, Name};
use crate::ids::{ItemId, Micros, Seq, Signature, Turn};

pub(crate) use self::later::Later;
pub(crate) use self::later::{Apart, AsText};

/// Most bytes that are asked of a source at once.
pub(crate) const TAKEN_BYTES_MAX: usize = 64 << 10;

/// A source of saved bytes, front to back.
pub(crate) trait Pieces {
    /// The next `count` bytes, at most [`TAKEN_BYTES_MAX`]. `None` if fewer are left.
    fn take(&mut self, count: usize) -> Option<&[u8]>;

    /// Number of bytes that were not taken yet.
    fn left(&self) -> u64;

    /// Tells the source of memory that will be filled at once.
    fn expect(&self, start: *const u8, bytes: usize) {
        // A source in memory has no use for this.
        let _ = (start, bytes);
    }
}

impl Pieces for &[u8] {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.split_at_checked(count)?;
        *self = rest;
        Some(taken)
    }

    fn left(&self) -> u64 {
        self.len() as u64
    }
}

/// A value that is a row of fields.
pub(crate) trait Flat: Sized {
    /// Bytes of each value.
    const BYTES: usize;

    /// Adds the value to `out`.
    fn put(&self, out: &mut Out);

    /// Takes a value from the front of `row`.
    fn get(row: &mut Fields<'_>) -> Self;
}

/// The fields of a row.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    /// A field holds a number without a meaning.
    is_bad: bool,
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((field, rest)) = self.bytes.split_first_chunk::<N>() else {
            self.is_bad = true;
            return [0; N];
        };
        self.bytes = rest;
        *field
    }

    /// Notes that a field holds a number without a meaning.
    pub(crate) const fn refuse(&mut self) {
        self.is_bad = true;
    }
}

macro_rules! flat_numbers {
    ($($number:ty),*) => {
        $(impl Flat for $number {
            const BYTES: usize = size_of::<Self>();

            fn put(&self, out: &mut Out) {
                out.bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn get(row: &mut Fields<'_>) -> Self {
                Self::from_le_bytes(row.take())
            }
        })*
    };
}

flat_numbers!(u8, u16, u32, u64, i64);

/// Lays out a struct field by field, in the order given.
macro_rules! flat {
    ($name:ident { $($field:tt: $kind:ty),* $(,)? }) => {
        impl $crate::fold::rows::Flat for $name {
            const BYTES: usize = 0 $(+ <$kind as $crate::fold::rows::Flat>::BYTES)*;

            fn put(&self, out: &mut $crate::fold::rows::Out) {
                $(<$kind as $crate::fold::rows::Flat>::put(&self.$field, out);)*
            }

            fn get(row: &mut $crate::fold::rows::Fields<'_>) -> Self {
                Self { $($field: <$kind as $crate::fold::rows::Flat>::get(row)),* }
            }
        }
    };
}
pub(crate) use flat;

/// Lays out an enum without fields as the number of its variant.
macro_rules! flat_enum {
    ($name:ident { $first:ident $(, $variant:ident)* $(,)? }) => {
        impl $crate::fold::rows::Flat for $name {
            const BYTES: usize = 1;

            fn put(&self, out: &mut $crate::fold::rows::Out) {
                // The match names all variants, so that a new one is not forgotten.
                match self {
                    Self::$first $(| Self::$variant)* => (*self as u8).put(out),
                }
            }

            fn get(row: &mut $crate::fold::rows::Fields<'_>) -> Self {
                match u8::get(row) {
                    number if number == Self::$first as u8 => Self::$first,
                    $(number if number == Self::$variant as u8 => Self::$variant,)*
                    _ => {
                        row.refuse();
                        Self::$first
                    }
                }
            }
        }
    };
}
pub(crate) use flat_enum;

flat!(Micros { 0: i64 });
flat!(Turn { 0: u32 });
flat!(Ix { 0: u32 });
flat!(Name { 0: u32 });
flat!(KeyId { 0: u32 });
flat!(ItemId { seq: Seq, part: u32 });
flat!(Shown { line_bytes: u32, line_tokens: u32, object_bytes: u32, object_tokens: u32 });
flat_enum!(Face { Input, Output });
flat_enum!(InjectedKind { Reminder, Reflection, Memory, Other });
flat_enum!(KeyKind { File, Search, Url, Exec, State, Task, Check });
flat_enum!(Outcome { Completed, Failed, Aborted });
flat_enum!(PartKind { Text, Reasoning, Media, Call, Result, Opaque });
flat_enum!(Role { System, User, Assistant, Tool });
flat_enum!(TodoRole { None, Write, Read, Delta });
flat_enum!(ToolClass { Read, Write, Edit, Delete, Search, Other });

/// A seq in half its bytes: a fold with a larger seq is not saved. The last number stands for [`Seq::MAX`].
impl Flat for Seq {
    const BYTES: usize = 4;

    fn put(&self, out: &mut Out) {
        match u32::try_from(self.0) {
            Ok(seq) if seq != NONE => seq.put(out),
            _ => {
                out.is_beyond |= *self != Self::MAX;
                NONE.put(out);
            }
        }
    }

    fn get(row: &mut Fields<'_>) -> Self {
        match u32::get(row) {
            NONE => Self::MAX,
            seq => Self(u64::from(seq)),
        }
    }
}

/// Bytes of a body as 32 bits: no frame holds a longer body.
impl Flat for Body {
    const BYTES: usize = 20;

    fn put(&self, out: &mut Out) {
        let Self { first, chunks, bytes, tokens, lines } = *self;
        out.is_beyond |= bytes > u64::from(u32::MAX);
        [first, chunks, u32::try_from(bytes).unwrap_or(u32::MAX), tokens, lines].put(out);
    }

    fn get(row: &mut Fields<'_>) -> Self {
        let [first, chunks, bytes, tokens, lines] = <[u32; 5]>::get(row);
        Self { first, chunks, bytes: u64::from(bytes), tokens, lines }
    }
}

impl Flat for bool {
    const BYTES: usize = 1;

    fn put(&self, out: &mut Out) {
        u8::from(*self).put(out);
    }

    fn get(row: &mut Fields<'_>) -> Self {
        let number = u8::get(row);
        if number > 1 {
            row.refuse();
        }
        number == 1
    }
}

impl Flat for Signature {
    const BYTES: usize = 16;

    fn put(&self, out: &mut Out) {
        out.bytes.extend_from_slice(self.as_bytes());
    }

    fn get(row: &mut Fields<'_>) -> Self {
        Self(row.take())
    }
}

/// The last number stands for `None`.
impl Flat for Option<Name> {
    const BYTES: usize = Name::BYTES;

    fn put(&self, out: &mut Out) {
        self.unwrap_or(Name(NONE)).put(out);
    }

    fn get(row: &mut Fields<'_>) -> Self {
        Some(Name::get(row)).filter(|name| *name != Name(NONE))
    }
}

impl<A: Flat, B: Flat> Flat for (A, B) {
    const BYTES: usize = A::BYTES + B::BYTES;

    fn put(&self, out: &mut Out) {
        self.0.put(out);
        self.1.put(out);
    }

    fn get(row: &mut Fields<'_>) -> Self {
        (A::get(row), B::get(row))
    }
}

impl<A: Flat, B: Flat, C: Flat> Flat for (A, B, C) {
    const BYTES: usize = A::BYTES + B::BYTES + C::BYTES;

    fn put(&self, out: &mut Out) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }

    fn get(row: &mut Fields<'_>) -> Self {
        (A::get(row), B::get(row), C::get(row))
    }
}

impl<T: Flat + Copy + Default, const N: usize> Flat for [T; N] {
    const BYTES: usize = T::BYTES * N;

    fn put(&self, out: &mut Out) {
        for value in self {
            value.put(out);
        }
    }

    fn get(row: &mut Fields<'_>) -> Self {
        std::array::from_fn(|_| T::get(row))
    }
}

/// Bytes being saved.
pub(crate) struct Out {
    bytes: Vec<u8>,
    /// A number was too large for its field.
    is_beyond: bool,
}

impl Out {
    pub(super) const fn behind(bytes: Vec<u8>) -> Self {
        Self { bytes, is_beyond: false }
    }

    /// The saved bytes; `None` if a number was too large for its field.
    pub(super) fn finish(self) -> Option<Vec<u8>> {
        (!self.is_beyond).then_some(self.bytes)
    }

    pub(crate) fn number(&mut self, number: usize) {
        (number as u64).put(self);
    }

    pub(crate) fn rows<T: Flat>(&mut self, rows: &[T]) {
        self.number(rows.len());
        self.bytes.reserve(rows.len().saturating_mul(T::BYTES));
        for row in rows {
            row.put(self);
        }
    }

    /// As [`Out::rows`], for the rows of an iterator.
    pub(crate) fn all<T: Flat>(&mut self, rows: impl ExactSizeIterator<Item = T>) {
        self.number(rows.len());
        for row in rows {
            row.put(self);
        }
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// An irregular value, as an archive. `None` if it is larger than an archive can be.
    pub(crate) fn archive<T>(&mut self, value: &T) -> Option<()>
    where
        T: for<'a> Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, Failure>>,
    {
        // A value without a layout is not saved.
        let bytes = rkyv::to_bytes::<Failure>(value).ok()?;
        self.number(bytes.len());
        self.bytes.extend_from_slice(&bytes);
        Some(())
    }
}

/// Saved bytes being read.
pub(crate) struct In<'a> {
    source: &'a mut dyn Pieces,
}

impl<'a> In<'a> {
    pub(super) const fn new(source: &'a mut dyn Pieces) -> Self {
        Self { source }
    }

    pub(crate) fn number(&mut self) -> Option<usize> {
        let bytes = self.source.take(8)?.first_chunk::<8>()?;
        usize::try_from(u64::from_le_bytes(*bytes)).ok()
    }

    /// Number of values that come next, of `bytes` each; `None` if the source has fewer bytes.
    fn count(&mut self, bytes: usize) -> Option<usize> {
        let count = self.number()?;
        (count.checked_mul(bytes)? as u64 <= self.source.left()).then_some(count)
    }

    /// Room for `count` values, and for some that come after them.
    fn room<T>(&self, count: usize) -> Vec<T> {
        let room: Vec<T> = Vec::with_capacity(count.saturating_add(count / 16));
        self.source.expect(room.as_ptr().cast::<u8>(), count.saturating_mul(size_of::<T>()));
        room
    }

    pub(crate) fn rows<T: Flat>(&mut self) -> Option<Vec<T>> {
        self.rows_of(|row| row)
    }

    /// As [`In::rows`], for the values that `make` makes of the rows.
    pub(crate) fn rows_of<T: Flat, U>(&mut self, make: impl Fn(T) -> U) -> Option<Vec<U>> {
        let count = self.count(T::BYTES)?;
        let mut rows = self.room(count);
        while rows.len() < count {
            let some = (count - rows.len()).min(TAKEN_BYTES_MAX / T::BYTES);
            let bytes = self.source.take(some.checked_mul(T::BYTES)?)?;
            let mut is_bad = false;
            rows.extend(bytes.chunks_exact(T::BYTES).map(|bytes| {
                let mut row = Fields { bytes, is_bad: false };
                let value = T::get(&mut row);
                is_bad |= row.is_bad;
                make(value)
            }));
            if is_bad {
                return None;
            }
        }
        Some(rows)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        let count = self.count(1)?;
        let mut bytes = self.room(count);
        while bytes.len() < count {
            bytes.extend_from_slice(self.source.take((count - bytes.len()).min(TAKEN_BYTES_MAX))?);
        }
        // A saved fold with bytes that are no text is refused, here and below.
        String::from_utf8(bytes).ok()
    }

    pub(crate) fn archive<T>(&mut self) -> Option<T>
    where
        T: Archive,
        T::Archived: Deserialize<T, HighDeserializer<Failure>>,
        T::Archived: for<'b> CheckBytes<HighValidator<'b, Failure>>,
    {
        // As above.
        rkyv::from_bytes::<T, Failure>(&self.archived()?).ok()
    }

    /// The bytes of an archive, not yet checked.
    pub(super) fn archived(&mut self) -> Option<AlignedVec<16>> {
        let count = self.count(1)?;
        let mut bytes: AlignedVec<16> = AlignedVec::with_capacity(count);
        self.source.expect(bytes.as_ptr(), count);
        while bytes.len() < count {
            bytes.extend_from_slice(self.source.take((count - bytes.len()).min(TAKEN_BYTES_MAX))?);
        }
        Some(bytes)
    }
}
