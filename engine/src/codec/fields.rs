//! Reading and writing fixed layouts, field by field, without an index that could be wrong.

/// Reads fields one after the other. Past the end it reads zeros, so layouts are checked by length first.
pub struct FieldReader<'a>(pub &'a [u8]);

impl FieldReader<'_> {
    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        if let Some((head, rest)) = self.0.split_first_chunk::<N>() {
            self.0 = rest;
            *head
        } else {
            self.0 = &[];
            [0; N]
        }
    }

    /// The next byte.
    pub fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.array())
    }

    /// The next two bytes as a number.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// The next four bytes as a number.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// The next eight bytes as a number.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// The next eight bytes as a signed number.
    pub fn i64(&mut self) -> i64 {
        i64::from_le_bytes(self.array())
    }

    /// Skips `count` bytes and says whether all of them were zero.
    pub fn zeros(&mut self, count: usize) -> bool {
        let (head, rest) = self.0.split_at_checked(count).unwrap_or((self.0, &[]));
        self.0 = rest;
        is_zero(head)
    }
}

/// Writes fields one after the other into a buffer that begins as zeros. Fields that do not fit are dropped, so
/// layouts are checked by constant assertions.
pub struct Put<'a>(pub &'a mut [u8]);

impl Put<'_> {
    /// Writes bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let rest = std::mem::take(&mut self.0);
        if let Some((head, tail)) = rest.split_at_mut_checked(bytes.len()) {
            head.copy_from_slice(bytes);
            self.0 = tail;
        }
        self
    }

    /// Leaves `count` bytes as they are.
    pub fn skip(&mut self, count: usize) -> &mut Self {
        let rest = std::mem::take(&mut self.0);
        self.0 = rest.get_mut(count..).unwrap_or(&mut []);
        self
    }

    /// Writes a byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    /// Writes two bytes.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes eight bytes.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Writes eight bytes.
    pub fn i64(&mut self, value: i64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }
}

/// Whether every byte is zero; fast enough to run over a preallocated tail.
pub fn is_zero(bytes: &[u8]) -> bool {
    let mut chunks = bytes.chunks_exact(64);
    chunks.all(|chunk| chunk.iter().fold(0, |sum, byte| sum | byte) == 0)
        && chunks.remainder().iter().all(|byte| *byte == 0)
}

/// Rounds up to the next multiple of 16, saturating.
pub const fn align16(bytes: usize) -> usize {
    bytes.saturating_add(15) & !15
}

/// The crc32c of all of `bytes` but the last four, and the value of these four.
pub fn trailing_checksum(bytes: &[u8]) -> (u32, u32) {
    let (body, stored) = bytes.split_last_chunk::<4>().unwrap_or((bytes, &[0; 4]));
    (crc32c::crc32c(body), u32::from_le_bytes(*stored))
}

/// Fills the last four bytes with the crc32c of the others.
pub fn put_trailing_checksum(bytes: &mut [u8]) {
    if let Some((body, stored)) = bytes.split_last_chunk_mut::<4>() {
        *stored = crc32c::crc32c(body).to_le_bytes();
    }
}
