//! The forms of numbers, names, digests, lists and absent values.

use super::{
    BYTES, CborFault, CborField, CborReader, FALSE, LIST_ROOM_MAX, Malformed, NEGATIVE, SIMPLE, TEXT, TRUE,
    UNSIGNED, put_array, put_head, put_unsigned,
};
use crate::ids::{Micros, Seq, Signature, StreamId};

macro_rules! unsigned {
    ($( $type:ty ),+) => { $(
        impl CborField for $type {
            fn blank() -> Self {
                0
            }

            #[inline]
            fn is_default(&self) -> bool {
                *self == 0
            }

            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                put_unsigned(out, u64::from(*self));
            }

            #[inline]
            fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
                *self = Self::try_from(from.unsigned()?).map_err(|_| Malformed("an integer is out of range"))?;
                Ok(())
            }

            #[cfg(any(test, feature = "testing"))]
            fn form() -> String {
                stringify!($type).to_owned()
            }
        }
    )+ };
}
unsigned!(u8, u16, u32, u64);

impl CborField for Seq {
    fn blank() -> Self {
        Self::ZERO
    }

    fn is_default(&self) -> bool {
        *self == Self::ZERO
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_unsigned(out, self.0);
    }

    fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
        self.0.read(from)
    }

    #[cfg(any(test, feature = "testing"))]
    fn form() -> String {
        "seq".to_owned()
    }
}

impl CborField for Micros {
    fn blank() -> Self {
        Self(0)
    }

    fn is_default(&self) -> bool {
        self.0 == 0
    }

    fn write(&self, out: &mut Vec<u8>) {
        match u64::try_from(self.0) {
            Ok(argument) => put_head(out, UNSIGNED, argument),
            // -1 - value, which is the bits turned over.
            Err(_) => put_head(out, NEGATIVE, (!self.0).unsigned_abs()),
        }
    }

    fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
        *self = Self(from.signed()?);
        Ok(())
    }

    #[cfg(any(test, feature = "testing"))]
    fn form() -> String {
        "time".to_owned()
    }
}

impl CborField for bool {
    fn blank() -> Self {
        false
    }

    #[inline]
    fn is_default(&self) -> bool {
        !*self
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_head(out, SIMPLE, if *self { TRUE } else { FALSE });
    }

    fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
        *self = match from.head()? {
            (SIMPLE, FALSE) => false,
            (SIMPLE, TRUE) => true,
            _ => return Err(Malformed("a value is of another type")),
        };
        Ok(())
    }

    #[cfg(any(test, feature = "testing"))]
    fn form() -> String {
        "bool".to_owned()
    }

    #[cfg(any(test, feature = "testing"))]
    const DEFAULT: &'static str = "false";
}

/// A name: an id, a path, a key, the name of a tool. Free texts are [`super::Text`].
impl CborField for String {
    fn blank() -> Self {
        Self::new()
    }

    fn put_default(&mut self) -> Result<(), CborFault> {
        self.clear();
        Ok(())
    }

    #[inline]
    fn is_default(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_head(out, TEXT, self.len() as u64);
        out.extend_from_slice(self.as_bytes());
    }

    #[inline]
    fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
        let text = from.text()?;
        self.clear();
        self.push_str(text);
        Ok(())
    }

    #[cfg(any(test, feature = "testing"))]
    fn form() -> String {
        "name".to_owned()
    }

    #[cfg(any(test, feature = "testing"))]
    const DEFAULT: &'static str = "empty";
}

impl<const N: usize> CborField for [u8; N] {
    fn blank() -> Self {
        [0; N]
    }

    fn put_default(&mut self) -> Result<(), CborFault> {
        Err(Malformed("a field is missing"))
    }

    fn is_default(&self) -> bool {
        false
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_head(out, BYTES, N as u64);
        out.extend_from_slice(self);
    }

    fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
        if from.of(BYTES)? == N as u64 {
            *self = from.big_endian()?;
            Ok(())
        } else {
            Err(Malformed("a byte string has another length"))
        }
    }

    #[cfg(any(test, feature = "testing"))]
    fn form() -> String {
        format!("bytes {N}")
    }
}

macro_rules! digests {
    ($( $type:ident ),+) => { $(
        impl CborField for $type {
            fn blank() -> Self {
                Self::ZERO
            }

            fn put_default(&mut self) -> Result<(), CborFault> {
                self.0.put_default()
            }

            fn is_default(&self) -> bool {
                false
            }

            fn write(&self, out: &mut Vec<u8>) {
                self.0.write(out);
            }

            #[inline]
            fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
                self.0.read(from)
            }

            #[cfg(any(test, feature = "testing"))]
            fn form() -> String {
                "bytes 16".to_owned()
            }
        }
    )+ };
}
digests!(Signature, StreamId);

impl<T: CborField> CborField for Option<T> {
    fn blank() -> Self {
        None
    }

    #[inline]
    fn is_default(&self) -> bool {
        self.is_none()
    }

    fn write(&self, out: &mut Vec<u8>) {
        // An absent value is left out with its key, so there always is one here.
        if let Some(value) = self {
            value.write(out);
        }
    }

    #[inline]
    fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
        self.get_or_insert_with(T::blank).read(from)
    }

    #[cfg(any(test, feature = "testing"))]
    fn form() -> String {
        T::form()
    }

    #[cfg(any(test, feature = "testing"))]
    const DEFAULT: &'static str = "none";
}

impl<T: CborField> CborField for Vec<T> {
    fn blank() -> Self {
        Self::new()
    }

    fn put_default(&mut self) -> Result<(), CborFault> {
        self.clear();
        Ok(())
    }

    #[inline]
    fn is_default(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_array(out, self.len() as u64);
        for value in self {
            value.write(out);
        }
    }

    fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
        let count = from.array()?;
        self.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        let room = usize::try_from(count.min(LIST_ROOM_MAX)).unwrap_or_default();
        // A list that has the room needs no more.
        self.reserve_exact(room.saturating_sub(self.len()));
        for number in 0..count {
            if let Some(place) = usize::try_from(number).ok().and_then(|number| self.get_mut(number)) {
                place.read(from)?;
            } else {
                let mut value = T::blank();
                value.read(from)?;
                self.push(value);
            }
        }
        from.leave();
        Ok(())
    }

    #[cfg(any(test, feature = "testing"))]
    fn form() -> String {
        format!("list of {}", T::form())
    }

    #[cfg(any(test, feature = "testing"))]
    const DEFAULT: &'static str = "empty";
}

/// Two values as an array.
impl<A: CborField, B: CborField> CborField for (A, B) {
    fn blank() -> Self {
        (A::blank(), B::blank())
    }

    fn put_default(&mut self) -> Result<(), CborFault> {
        Err(Malformed("a field is missing"))
    }

    fn is_default(&self) -> bool {
        false
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_array(out, 2);
        self.0.write(out);
        self.1.write(out);
    }

    fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
        from.array_of(2)?;
        self.0.read(from)?;
        self.1.read(from)?;
        from.leave();
        Ok(())
    }

    #[cfg(any(test, feature = "testing"))]
    fn form() -> String {
        format!("[{}, {}]", A::form(), B::form())
    }
}
