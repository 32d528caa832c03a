//! Numbers and texts as few bytes, one behind the other; and back. The bytes that are read may be anything: nothing here panics or
//! sets more memory aside than there are bytes.

/// Bytes of a number: seven bits each.
const NUMBER_BYTES_MAX: usize = 10;

/// The written bytes.
#[derive(Debug, Default)]
pub(crate) struct KeptWriter {
    bytes: Vec<u8>,
}

impl KeptWriter {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        loop {
            let [low, ..] = (number & 0x7f).to_le_bytes();
            number >>= 7;
            if number == 0 {
                self.bytes.push(low);
                return;
            }
            self.bytes.push(low | 0x80);
        }
    }

    pub(crate) fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63).cast_unsigned());
    }

    pub(crate) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    pub(crate) fn exactly<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A mark, and the thing if there is one.
    pub(crate) fn maybe<T>(&mut self, thing: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.bytes.push(u8::from(thing.is_some()));
        if let Some(thing) = thing {
            put(self, thing);
        }
    }

    /// The count, and each thing.
    pub(crate) fn each<T>(
        &mut self,
        things: impl ExactSizeIterator<Item = T>,
        mut put: impl FnMut(&mut Self, T),
    ) {
        self.count(things.len());
        for thing in things {
            put(self, thing);
        }
    }
}

/// The bytes that are left to read. `None` of any method: these are not the bytes of such a thing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn exactly<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for place in 0..NUMBER_BYTES_MAX {
            let [byte] = self.exactly::<1>()?;
            let bits = u64::from(byte & 0x7f);
            let shifted = bits << (7 * place);
            // Bits past the last would be lost.
            (shifted >> (7 * place) == bits).then_some(())?;
            number |= shifted;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    pub(crate) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(crate) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let length = self.count()?;
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        // `None` is the answer to bytes that were not written here: the kept data is made anew then.
        std::str::from_utf8(taken).ok()
    }

    /// The outer `None`: neither mark.
    #[expect(
        clippy::option_option,
        reason = "a thing that is not there, and bytes of no thing, are two answers"
    )]
    pub(crate) fn maybe<T>(&mut self, take: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.exactly::<1>()? {
            [0] => Some(None),
            [1] => take(self).map(Some),
            _ => None,
        }
    }

    /// Each thing has at least a byte, so no count is larger than the number of bytes left.
    pub(crate) fn each<T>(&mut self, mut take: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count().filter(|count| *count <= self.0.len())?;
        let mut things = Vec::new();
        for _ in 0..count {
            things.push(take(self)?);
        }
        Some(things)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            number in any::<u64>(),
            signed in any::<i64>(),
            text in ".*",
            some in any::<Option<u64>>(),
            many in prop::collection::vec(any::<u64>(), 0..9),
        ) {
            let mut writer = KeptWriter::default();
            writer.number(number);
            writer.signed(signed);
            writer.text(&text);
            writer.maybe(some, KeptWriter::number);
            writer.each(many.iter().copied(), KeptWriter::number);
            writer.exactly(b"end");
            let bytes = writer.into_bytes();
            let mut reader = Reader(&bytes);
            prop_assert_eq!(reader.number(), Some(number));
            prop_assert_eq!(reader.signed(), Some(signed));
            prop_assert_eq!(reader.text(), Some(text.as_str()));
            prop_assert_eq!(reader.maybe(Reader::number), Some(some));
            prop_assert_eq!(reader.each(Reader::number), Some(many));
            prop_assert_eq!(reader.exactly::<3>(), Some(*b"end"));
            prop_assert!(reader.0.is_empty());
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader(&bytes);
            while reader.number().is_some() && reader.signed().is_some() && reader.text().is_some() {}
            let mut reader = Reader(&bytes);
            if let Some(things) = reader.each(Reader::text) {
                prop_assert!(things.len() <= bytes.len());
            }
        }
    }

    #[test]
    fn numbers_that_are_too_large_are_none() {
        assert_eq!(Reader(&[0xff; 10]).number(), None);
        assert_eq!(
            Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).number(),
            Some(u64::MAX)
        );
        assert_eq!(Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 3]).number(), None);
        assert_eq!(Reader(&[0x80]).number(), None);
        assert_eq!(Reader(&[2, 0]).maybe(Reader::number), None);
        assert_eq!(Reader(&[200, 1, 0]).each(Reader::number), None);
    }
}
