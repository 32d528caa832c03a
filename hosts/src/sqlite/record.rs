//! Rows: their values, out of the bytes of a record.
//!
//! ```text
//! bytes of the header (varint) | a type for each value (varint) .. | the values
//! ```

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum SqlValue {
    /// No value.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes, or a text that is not UTF-8.
    Blob(Vec<u8>),
}

impl SqlValue {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, if it is one.
    pub const fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }
}

/// Takes a number of 1 to 9 bytes off the front.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for place in 0..9 {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        if place == 8 {
            return Some((number << 8) | u64::from(*first));
        }
        number = (number << 7) | u64::from(first & 0x7f);
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    Some(number)
}

/// The count of a record's bytes that hold its first `count` values; `None` if its header cannot be read.
pub(super) fn bytes_to(record: &[u8], count: usize) -> Option<usize> {
    let mut rest = record;
    let header = usize::try_from(varint(&mut rest)?).ok()?;
    let start = record.len().checked_sub(rest.len())?;
    let mut types = record.get(start..header)?;
    let mut end = header;
    for _ in 0..count {
        if types.is_empty() {
            break;
        }
        end = end.checked_add(usize::try_from(bytes_of(varint(&mut types)?)?).ok()?)?;
    }
    Some(end)
}

/// The first `count` values of a record; `None` if its bytes are no record. A value that it lacks is null: the column came
/// later.
pub(super) fn values(record: &[u8], count: usize) -> Option<Vec<SqlValue>> {
    let mut rest = record;
    let header = usize::try_from(varint(&mut rest)?).ok()?;
    let start = record.len().checked_sub(rest.len())?;
    let mut types = record.get(start..header)?;
    let mut body = record.get(header..)?;
    let mut values = Vec::with_capacity(count);
    while values.len() < count && !types.is_empty() {
        let kind = varint(&mut types)?;
        let bytes = usize::try_from(bytes_of(kind)?).ok()?;
        let (own, after) = body.split_at_checked(bytes)?;
        body = after;
        values.push(value(kind, own));
    }
    values.resize(count, SqlValue::Null);
    Some(values)
}

/// The length of a value of this type, in bytes.
const fn bytes_of(kind: u64) -> Option<u64> {
    Some(match kind {
        0 | 8 | 9 => 0,
        1..=4 => kind,
        5 => 6,
        6 | 7 => 8,
        10 | 11 => return None,
        _ => (kind - 12) / 2,
    })
}

fn value(kind: u64, bytes: &[u8]) -> SqlValue {
    match kind {
        0 => SqlValue::Null,
        1..=6 => {
            let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
            let start = if negative { -1 } else { 0 };
            SqlValue::Integer(bytes.iter().fold(start, |number: i64, byte| (number << 8) | i64::from(*byte)))
        }
        7 => SqlValue::Real(bytes.try_into().map_or(0.0, f64::from_be_bytes)),
        8 => SqlValue::Integer(0),
        9 => SqlValue::Integer(1),
        _ if kind & 1 == 1 => match std::str::from_utf8(bytes) {
            Ok(text) => SqlValue::Text(text.to_owned()),
            Err(_) => SqlValue::Blob(bytes.to_vec()),
        },
        _ => SqlValue::Blob(bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_their_types() {
        // null, -2 in one byte, 258 in two, "ab", a blob, 1, and one that is not there.
        let record = [7, 0, 1, 2, 17, 16, 9, 0xfe, 1, 2, b'a', b'b', 0xff, 0];
        let expected = vec![
            SqlValue::Null,
            SqlValue::Integer(-2),
            SqlValue::Integer(258),
            SqlValue::Text("ab".to_owned()),
            SqlValue::Blob(vec![0xff, 0]),
            SqlValue::Integer(1),
            SqlValue::Null,
        ];
        assert_eq!(values(&record, 7), Some(expected));
        for cut in 0..record.len() {
            let _ = values(&record[..cut], 7);
        }
    }

    #[test]
    fn a_number_has_up_to_nine_bytes() {
        for (bytes, expected) in [
            (&[5_u8][..], Some(5)),
            (&[0x81, 0x00], Some(128)),
            (&[0xff; 9], Some(u64::MAX)),
            (&[0x81], None),
            (&[], None),
        ] {
            let mut rest = bytes;
            assert_eq!(varint(&mut rest), expected, "{bytes:?}");
        }
    }
}
