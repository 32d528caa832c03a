//! Payloads as CBOR (RFC 8949), in the one form that the format has for each value.
//!
//! ```text
//! record!(TurnStarted { 4 kind, 5 key, 6 number })     ->  map(n): 4 kind, 5 key, 6 number; what has its default is left out
//! array!(Body { first, chunks, bytes, tokens, lines }) ->  array(5)
//! numbers! { pub enum TurnKind { Step = 0, Prompt = 1 } }  ->  unsigned integer
//! ```
//!
//! The reader takes the shortest integers, definite lengths and rising keys only, and no value that the writer would leave out. So
//! it is one pass that both reads and refuses every other form, and no program reads a second meaning out of the same bytes. Libraries
//! read more than that, and would need a second pass and a second list of the keys.
//!
//! `docs/FORMAT.md` has the rules and a table of every kind, which a test compares with these lists.

mod values;

/// Maps and lists that stand in each other, the payload itself included.
const DEPTH_MAX: u8 = 8;
/// Room that is made for a list before its elements are seen.
const LIST_ROOM_MAX: u64 = 16;

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const SIMPLE: u8 = 7;
const FALSE: u64 = 20;
const TRUE: u64 = 21;
/// In a head, in place of an argument: it follows in 1, 2, 4 or 8 bytes.
const FOLLOWS: [u8; 4] = [24, 25, 26, 27];

/// Why bytes are no value of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CborFault {
    /// They have another form than the one of the value that they mean, if they mean any.
    Malformed(&'static str),
    /// They hold something that a newer program wrote, and that may not be passed over.
    Newer,
}

use CborFault::{Malformed, Newer};

/// Bytes that are read from their start.
pub(crate) struct CborReader<'a> {
    rest: &'a [u8],
    depth: u8,
}

impl<'a> CborReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, depth: 0 }
    }

    /// How many bytes follow.
    pub(crate) const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Checks that no bytes follow.
    pub(crate) fn end(&self) -> Result<(), CborFault> {
        if self.rest.is_empty() { Ok(()) } else { Err(Malformed("bytes follow its end")) }
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], CborFault> {
        let taken = usize::try_from(count).ok().and_then(|count| self.rest.split_at_checked(count));
        let (taken, rest) = taken.ok_or(Malformed("it is cut"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn big_endian<const N: usize>(&mut self) -> Result<[u8; N], CborFault> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed("it is cut"))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// The type of the next item, and its argument.
    fn head(&mut self) -> Result<(u8, u64), CborFault> {
        let (first, rest) = self.rest.split_first().ok_or(Malformed("it is cut"))?;
        self.rest = rest;
        let (major, info) = (first >> 5, first & 31);
        if info < 24 {
            return Ok((major, u64::from(info)));
        }
        if major == SIMPLE {
            return Err(Malformed("a float or a simple value stands in it"));
        }
        let (argument, least) = match info {
            24 => (u64::from(u8::from_be_bytes(self.big_endian()?)), 24),
            25 => (u64::from(u16::from_be_bytes(self.big_endian()?)), 1 << 8),
            26 => (u64::from(u32::from_be_bytes(self.big_endian()?)), 1 << 16),
            27 => (u64::from_be_bytes(self.big_endian()?), 1 << 32),
            _ => return Err(Malformed("a length is not said")),
        };
        if argument < least {
            return Err(Malformed("an integer is longer than it need be"));
        }
        Ok((major, argument))
    }

    /// The argument of the next item, which has to be of one type.
    #[inline]
    fn of(&mut self, wanted: u8) -> Result<u64, CborFault> {
        // Most arguments stand in the first byte.
        if let Some((first, rest)) = self.rest.split_first()
            && first ^ wanted << 5 < 24
        {
            self.rest = rest;
            return Ok(u64::from(first & 31));
        }
        self.of_more(wanted)
    }

    #[cold]
    #[inline(never)]
    fn of_more(&mut self, wanted: u8) -> Result<u64, CborFault> {
        match self.head()? {
            (major, argument) if major == wanted => Ok(argument),
            _ => Err(Malformed("a value is of another type")),
        }
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, CborFault> {
        self.of(UNSIGNED)
    }

    /// The number, if the next item is one; else it is not read.
    pub(super) fn unsigned_if_any(&mut self) -> Result<Option<u64>, CborFault> {
        let is_number = self.rest.first().is_some_and(|first| first >> 5 == UNSIGNED);
        is_number.then(|| self.unsigned()).transpose()
    }

    fn signed(&mut self) -> Result<i64, CborFault> {
        let range = |_| Malformed("an integer is out of range");
        match self.head()? {
            (UNSIGNED, argument) => i64::try_from(argument).map_err(range),
            // -1 - argument, which is the bits turned over.
            (NEGATIVE, argument) => i64::try_from(argument).map(|argument| !argument).map_err(range),
            _ => Err(Malformed("a value is of another type")),
        }
    }

    fn text(&mut self) -> Result<&'a str, CborFault> {
        let length = self.of(TEXT)?;
        std::str::from_utf8(self.take(length)?).map_err(|_| Malformed("a text is not UTF-8"))
    }

    fn enter(&mut self) -> Result<(), CborFault> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > DEPTH_MAX { Err(Malformed("it is too deep")) } else { Ok(()) }
    }

    /// A list or a map ends.
    fn leave(&mut self) {
        // It was entered.
        self.depth = self.depth.saturating_sub(1);
    }

    /// Begins an array.
    fn array(&mut self) -> Result<u64, CborFault> {
        let count = self.of(ARRAY)?;
        self.enter().map(|()| count)
    }

    /// Begins a map with one key.
    pub(super) fn map_of_one(&mut self) -> Result<(), CborFault> {
        let count = self.of(MAP)?;
        self.enter()?;
        if count == 1 { Ok(()) } else { Err(Malformed("a map has another length")) }
    }

    /// Begins an array of a known length.
    pub(super) fn array_of(&mut self, length: u64) -> Result<(), CborFault> {
        if self.array()? == length { Ok(()) } else { Err(Malformed("an array has another length")) }
    }

    /// Ends an array, or a map with one key.
    pub(super) fn array_end(&mut self) {
        self.leave();
    }

    /// Passes over one item of any type that the format has.
    fn skip(&mut self) -> Result<(), CborFault> {
        match self.head()? {
            (UNSIGNED | NEGATIVE, _) | (SIMPLE, FALSE | TRUE) => Ok(()),
            (BYTES, length) => self.take(length).map(drop),
            (TEXT, length) => {
                let bytes = self.take(length)?;
                std::str::from_utf8(bytes).map(drop).map_err(|_| Malformed("a text is not UTF-8"))
            }
            (ARRAY, count) => {
                self.enter()?;
                for _ in 0..count {
                    self.skip()?;
                }
                self.leave();
                Ok(())
            }
            (MAP, left) => {
                self.enter()?;
                let mut map = CborMap { left, next: None, least: 0 };
                while map.key(self)?.is_some() {
                    map.next = None;
                    self.skip()?;
                }
                self.leave();
                Ok(())
            }
            (SIMPLE, _) => Err(Malformed("null or a simple value stands in it")),
            _ => Err(Malformed("a tag stands in it")),
        }
    }
}

/// The rest of a map.
pub(crate) struct CborMap {
    left: u64,
    /// The key that was read last, while its value was not.
    next: Option<u64>,
    least: u64,
}

impl CborMap {
    pub(crate) fn begin(from: &mut CborReader<'_>) -> Result<Self, CborFault> {
        let left = from.of(MAP)?;
        from.enter()?;
        Ok(Self { left, next: None, least: 0 })
    }

    #[inline]
    fn key(&mut self, from: &mut CborReader<'_>) -> Result<Option<u64>, CborFault> {
        if self.next.is_none() && self.left > 0 {
            let key = from.unsigned()?;
            if key < self.least {
                return Err(Malformed("its keys do not rise"));
            }
            // There is at least one.
            self.left = self.left.saturating_sub(1);
            self.least = key.checked_add(1).ok_or(Malformed("a key is out of range"))?;
            self.next = Some(key);
        }
        Ok(self.next)
    }

    /// Puts the value of a key, or its default, in a place. Keys have to be asked for in their order.
    #[inline]
    pub(crate) fn field_into<T: CborField>(
        &mut self,
        from: &mut CborReader<'_>,
        key: u64,
        place: &mut T,
    ) -> Result<(), CborFault> {
        while let Some(found) = self.key(from)? {
            if found > key {
                break;
            }
            self.next = None;
            if found == key {
                place.read(from)?;
                let is_default = place.is_default();
                return if is_default { Err(Malformed("a default is not left out")) } else { Ok(()) };
            }
            pass_over(from, found)?;
        }
        place.put_default()
    }

    /// Checks that no key follows that may not be passed over.
    pub(crate) fn end(mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
        while let Some(found) = self.key(from)? {
            self.next = None;
            pass_over(from, found)?;
        }
        from.leave();
        Ok(())
    }
}

fn pass_over(from: &mut CborReader<'_>, key: u64) -> Result<(), CborFault> {
    if key % 2 == 1 { Err(Newer) } else { from.skip() }
}

/// Appends the head of an item.
#[inline]
fn put_head(out: &mut Vec<u8>, major: u8, argument: u64) {
    let [in_1, in_2, in_4, in_8] = FOLLOWS.map(|follows| major << 5 | follows);
    match argument {
        // It is that small.
        0..24 => out.push(major << 5 | argument.to_le_bytes()[0]),
        24..=0xff => out.extend_from_slice(&[in_1, argument.to_le_bytes()[0]]),
        _ => {
            if let Ok(argument) = u16::try_from(argument) {
                out.push(in_2);
                out.extend_from_slice(&argument.to_be_bytes());
            } else if let Ok(argument) = u32::try_from(argument) {
                out.push(in_4);
                out.extend_from_slice(&argument.to_be_bytes());
            } else {
                out.push(in_8);
                out.extend_from_slice(&argument.to_be_bytes());
            }
        }
    }
}

pub(crate) fn put_unsigned(out: &mut Vec<u8>, value: u64) {
    put_head(out, UNSIGNED, value);
}

pub(crate) fn put_array(out: &mut Vec<u8>, length: u64) {
    put_head(out, ARRAY, length);
}

pub(crate) fn put_map(out: &mut Vec<u8>, count: u64) {
    put_head(out, MAP, count);
}

/// Appends a key and its value, unless it has its default.
#[inline]
pub(crate) fn put_field<T: CborField>(out: &mut Vec<u8>, key: u64, value: &T) {
    if !value.is_default() {
        put_head(out, UNSIGNED, key);
        value.write(out);
    }
}

/// A type of values in payloads. Values are read into places that held others: so the memory of names and lists is used again.
pub(crate) trait CborField: Sized {
    /// A value to read another one into.
    fn blank() -> Self;

    /// Puts the default in its place. An error: it has none, its key is always there.
    fn put_default(&mut self) -> Result<(), CborFault> {
        *self = Self::blank();
        Ok(())
    }

    /// Whether it is the value of an absent key.
    fn is_default(&self) -> bool;

    fn write(&self, out: &mut Vec<u8>);

    fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault>;

    /// Name of the type, as `docs/FORMAT.md` spells it.
    #[cfg(any(test, feature = "testing"))]
    fn form() -> String;

    /// The default in a word, of a type that has one.
    #[cfg(any(test, feature = "testing"))]
    const DEFAULT: &'static str = "0";
}

/// A type with fields by key: a kind, or a part of one.
pub(crate) trait CborRecord: Sized {
    /// How many fields do not have their default.
    fn field_count(&self) -> u64;

    fn write_fields(&self, out: &mut Vec<u8>);

    /// A value to read another one into.
    fn blank() -> Self;

    fn read_fields(&mut self, map: &mut CborMap, from: &mut CborReader<'_>) -> Result<(), CborFault>;

    /// Key, name, type and default of each field.
    #[cfg(any(test, feature = "testing"))]
    fn fields() -> Vec<FieldRow>;
}

/// A field in the table of the format: key, name, type, default.
#[cfg(any(test, feature = "testing"))]
pub type FieldRow = (u64, &'static str, String, &'static str);

/// A field's row in the table of the format, by a function that borrows the field.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn field_row<R, F: CborField>(key: u64, name: &'static str, _: fn(&R) -> &F) -> FieldRow {
    let has_default = F::blank().put_default().is_ok();
    (key, name, F::form(), if has_default { F::DEFAULT } else { "always there" })
}

/// The keys of a kind, or of a part of one, in their order. A key is never used again.
macro_rules! record {
    ($name:ident { $( $key:literal $field:ident ),+ $(,)? }) => {
        impl $crate::event::cbor::CborRecord for $name {
            fn field_count(&self) -> u64 {
                use $crate::event::cbor::CborField as _;
                [$( self.$field.is_default() ),+].into_iter().map(|is_default| u64::from(!is_default)).sum()
            }

            fn write_fields(&self, out: &mut Vec<u8>) {
                $( $crate::event::cbor::put_field(out, $key, &self.$field); )+
            }

            fn blank() -> Self {
                Self { $( $field: $crate::event::cbor::CborField::blank() ),+ }
            }

            fn read_fields(
                &mut self,
                map: &mut $crate::event::cbor::CborMap,
                from: &mut $crate::event::cbor::CborReader<'_>,
            ) -> Result<(), $crate::event::cbor::CborFault> {
                $( map.field_into(from, $key, &mut self.$field)?; )+
                Ok(())
            }

            #[cfg(any(test, feature = "testing"))]
            fn fields() -> Vec<$crate::event::cbor::FieldRow> {
                vec![ $( $crate::event::cbor::field_row($key, stringify!($field), |it: &Self| &it.$field) ),+ ]
            }
        }
    };
}
pub(crate) use record;

/// As [`record`], for a part of a kind: a map in a map.
macro_rules! part {
    ($name:ident { $( $key:literal $field:ident ),+ $(,)? }) => {
        $crate::event::cbor::record!($name { $( $key $field ),+ });

        impl $crate::event::cbor::CborField for $name {
            fn blank() -> Self {
                $crate::event::cbor::CborRecord::blank()
            }

            fn put_default(&mut self) -> Result<(), $crate::event::cbor::CborFault> {
                $( $crate::event::cbor::CborField::put_default(&mut self.$field)?; )+
                Ok(())
            }

            fn is_default(&self) -> bool {
                $crate::event::cbor::CborRecord::field_count(self) == 0
            }

            fn write(&self, out: &mut Vec<u8>) {
                use $crate::event::cbor::CborRecord as _;
                $crate::event::cbor::put_map(out, self.field_count());
                self.write_fields(out);
            }

            fn read(
                &mut self,
                from: &mut $crate::event::cbor::CborReader<'_>,
            ) -> Result<(), $crate::event::cbor::CborFault> {
                use $crate::event::cbor::CborRecord as _;
                let mut map = $crate::event::cbor::CborMap::begin(from)?;
                self.read_fields(&mut map, from)?;
                map.end(from)
            }

            #[cfg(any(test, feature = "testing"))]
            fn form() -> String {
                stringify!($name).to_owned()
            }

            #[cfg(any(test, feature = "testing"))]
            const DEFAULT: &'static str = "empty";
        }
    };
}
pub(crate) use part;

/// The fields of a part of a kind that is an array. They can never become more.
macro_rules! array {
    ($name:ident { $( $field:ident ),+ $(,)? }) => {
        impl $crate::event::cbor::CborField for $name {
            fn blank() -> Self {
                Self { $( $field: $crate::event::cbor::CborField::blank() ),+ }
            }

            fn put_default(&mut self) -> Result<(), $crate::event::cbor::CborFault> {
                $( $crate::event::cbor::CborField::put_default(&mut self.$field)?; )+
                Ok(())
            }

            fn is_default(&self) -> bool {
                $( $crate::event::cbor::CborField::is_default(&self.$field) )&&+
            }

            fn write(&self, out: &mut Vec<u8>) {
                $crate::event::cbor::put_array(out, [$( stringify!($field) ),+].len() as u64);
                $( $crate::event::cbor::CborField::write(&self.$field, out); )+
            }

            fn read(
                &mut self,
                from: &mut $crate::event::cbor::CborReader<'_>,
            ) -> Result<(), $crate::event::cbor::CborFault> {
                from.array_of([$( stringify!($field) ),+].len() as u64)?;
                $( $crate::event::cbor::CborField::read(&mut self.$field, from)?; )+
                from.array_end();
                Ok(())
            }

            #[cfg(any(test, feature = "testing"))]
            fn form() -> String {
                stringify!($name).to_owned()
            }

            #[cfg(any(test, feature = "testing"))]
            const DEFAULT: &'static str = "all 0";
        }

        impl $name {
            /// Its fields in order, with their types.
            #[cfg(any(test, feature = "testing"))]
            pub(crate) fn elements() -> Vec<$crate::event::cbor::FieldRow> {
                let rows = vec![ $( $crate::event::cbor::field_row(0, stringify!($field), |it: &Self| &it.$field) ),+ ];
                (0..).zip(rows).map(|(place, (_, name, form, _))| (place, name, form, "always there")).collect()
            }
        }
    };
}
pub(crate) use array;

/// An enum with its numbers, from 0. They never change; 0 is the default.
macro_rules! numbers {
    (
        $(#[$about:meta])*
        pub enum $name:ident {
            $(#[$about_zero:meta])* $zero:ident = 0 $(, $(#[$about_one:meta])* $variant:ident = $number:literal )* $(,)?
        }
    ) => {
        #[derive(
            rkyv::Archive, rkyv::Serialize, rkyv::Deserialize, serde::Serialize, serde::Deserialize,
            Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug,
        )]
        #[serde(rename_all = "snake_case")]
        $(#[$about])*
        pub enum $name {
            $(#[$about_zero])*
            $zero,
            $( $(#[$about_one])* $variant, )*
        }

        impl $crate::event::cbor::CborField for $name {
            fn blank() -> Self {
                Self::$zero
            }

            fn is_default(&self) -> bool {
                matches!(self, Self::$zero)
            }

            fn write(&self, out: &mut Vec<u8>) {
                $crate::event::cbor::put_unsigned(out, match self {
                    Self::$zero => 0,
                    $( Self::$variant => $number, )*
                });
            }

            fn read(
                &mut self,
                from: &mut $crate::event::cbor::CborReader<'_>,
            ) -> Result<(), $crate::event::cbor::CborFault> {
                *self = match from.unsigned()? {
                    0 => Self::$zero,
                    $( $number => Self::$variant, )*
                    _ => return Err($crate::event::cbor::CborFault::Newer),
                };
                Ok(())
            }

            #[cfg(any(test, feature = "testing"))]
            fn form() -> String {
                stringify!($name).to_owned()
            }
        }

        impl $name {
            /// Its values, with their numbers.
            #[cfg(any(test, feature = "testing"))]
            pub(crate) fn values() -> Vec<(u64, &'static str)> {
                vec![ (0, stringify!($zero)) $(, ($number, stringify!($variant)) )* ]
            }
        }
    };
}
pub(crate) use numbers;
