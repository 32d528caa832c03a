//! Tables: their names and columns, and their rows, by walking their trees.

use super::record::{SqlValue, bytes_to, values, varint};
use super::wal::{number16, number32};
use super::{Database, HEADER_BYTES, Seen, Unreadable};

/// Deepest tree that is read: a tree of 2^64 rows is not as deep.
const DEPTH_MAX: u32 = 24;
/// Longest row in bytes, the limit of `SQLite` itself.
const ROW_BYTES_MAX: u32 = 1 << 30;

/// Most columns of a table that are read: `SQLite` itself takes 2000 by default, and no host has as many.
const COLUMN_COUNT_MAX: usize = 256;

const LEAF: u8 = 0x0d;
const INNER: u8 = 0x05;

/// A table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    root: u32,
}

impl Table {
    /// The indices of these columns; `None` for a column that the table lacks.
    pub fn places<const N: usize>(&self, names: [&str; N]) -> [Option<usize>; N] {
        names.map(|name| self.columns.iter().position(|column| column == name))
    }
}

/// The address of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowAddress {
    /// Its id.
    pub id: i64,
    /// Length of its record in bytes.
    pub bytes: u32,
    page: u32,
    at: u16,
}

/// Takes each row: its place, and its values in the order of the columns.
type Each<'f> = dyn FnMut(RowAddress, Vec<SqlValue>) -> Result<(), Unreadable> + 'f;

/// A row out of its page: its id, its length in bytes, its values.
type Cell = (i64, u32, Vec<SqlValue>);

impl Database<'_> {
    /// The tables, in the order of their making.
    ///
    /// # Errors
    /// If the schema cannot be read.
    pub fn tables(&self) -> Result<Vec<Table>, Unreadable> {
        let schema = Table { name: "sqlite_schema".to_owned(), columns: vec![String::new(); 5], root: 1 };
        let mut tables = Vec::new();
        self.rows(&schema, &mut |_, values| {
            if let [
                SqlValue::Text(kind),
                SqlValue::Text(name),
                _,
                SqlValue::Integer(root),
                SqlValue::Text(sql),
            ] = values.as_slice()
                && kind == "table"
                && let Ok(root) = u32::try_from(*root)
            {
                tables.push(Table { name: name.clone(), columns: columns(sql), root });
            }
            Ok(())
        })?;
        Ok(tables)
    }

    /// Calls `each` with every row, in the order of the row ids.
    ///
    /// Rows whose bytes are no record are left out.
    ///
    /// # Errors
    /// If the tree cannot be read, or the error of `each`.
    pub fn rows(&self, table: &Table, each: &mut Each<'_>) -> Result<(), Unreadable> {
        self.rows_to(table, table.columns.len(), each)
    }

    /// As [`Self::rows`], with the first `count` values of each row only. If they lie in the row's leaf, its further pages are
    /// not read.
    ///
    /// # Errors
    /// As [`Self::rows`].
    pub fn rows_to(&self, table: &Table, count: usize, each: &mut Each<'_>) -> Result<(), Unreadable> {
        let mut seen = Seen::new();
        self.walk(table.root, count, 0, &mut seen, each)
    }

    /// The row that was found at a place, if it still has its id; else the row of this id.
    ///
    /// # Errors
    /// If the tree cannot be read.
    pub fn row_at(&self, table: &Table, place: RowAddress) -> Result<Option<Vec<SqlValue>>, Unreadable> {
        let found = self.with_page(place.page, |page| {
            let is_leaf = PageHead::of(place.page, page).is_ok_and(|head| head.is_leaf);
            if is_leaf { self.cell(page, usize::from(place.at), table.columns.len()) } else { Ok(None) }
        });
        match found {
            Ok(Some((id, _, row))) if id == place.id => Ok(Some(row)),
            // The page holds something else by now.
            _ => self.row(table, place.id),
        }
    }

    /// The row of this id.
    ///
    /// # Errors
    /// If the tree cannot be read.
    pub fn row(&self, table: &Table, id: i64) -> Result<Option<Vec<SqlValue>>, Unreadable> {
        let mut number = table.root;
        let mut page = Vec::new();
        for _ in 0..DEPTH_MAX {
            self.page(number, &mut page)?;
            let head = PageHead::of(number, &page)?;
            let mut next = head.right;
            for at in head.cells(&page) {
                if head.is_leaf {
                    let Some((own, _, row)) = self.cell(&page, at, table.columns.len())? else { continue };
                    if own == id {
                        return Ok(Some(row));
                    }
                } else {
                    let mut key = page.get(at.saturating_add(4)..).unwrap_or_default();
                    if varint(&mut key).is_some_and(|key| id <= key.cast_signed()) {
                        next = number32(&page, at);
                        break;
                    }
                }
            }
            if head.is_leaf {
                return Ok(None);
            }
            number = next;
        }
        Err(Unreadable::Damaged { page: number, what: "the tree is too deep" })
    }

    fn walk(
        &self,
        number: u32,
        count: usize,
        depth: u32,
        seen: &mut Seen,
        each: &mut Each<'_>,
    ) -> Result<(), Unreadable> {
        if depth > DEPTH_MAX || !seen.insert(number) {
            return Err(Unreadable::Damaged { page: number, what: "the tree leads back to it" });
        }
        let mut page = Vec::new();
        self.page(number, &mut page)?;
        let head = PageHead::of(number, &page)?;
        // Cells of a sound page lie apart, so together they fit in it. One cell that thousands of pointers name would be read as often.
        let mut room = self.page_bytes;
        for at in head.cells(&page) {
            if head.is_leaf {
                let own = self.cell_bytes(&page, at);
                room = room
                    .checked_sub(own)
                    .ok_or(Unreadable::Damaged { page: number, what: "its rows lie on one another" })?;
            }
            if !head.is_leaf {
                self.walk(number32(&page, at), count, depth + 1, seen, each)?;
            } else if let Some((id, bytes, row)) = self.cell(&page, at, count)? {
                each(RowAddress { id, bytes, page: number, at: u16::try_from(at).unwrap_or(u16::MAX) }, row)?;
            }
        }
        if head.is_leaf { Ok(()) } else { self.walk(head.right, count, depth + 1, seen, each) }
    }

    /// The bytes of a cell that lie in its leaf.
    fn cell_bytes(&self, page: &[u8], at: usize) -> usize {
        let start = page.get(at..self.usable.min(page.len())).unwrap_or_default();
        let mut rest = start;
        let (Some(bytes), Some(_)) = (varint(&mut rest), varint(&mut rest)) else { return 1 };
        let whole = usize::try_from(bytes).unwrap_or(usize::MAX);
        let numbers = start.len().saturating_sub(rest.len()); // the numbers stand before the rest
        numbers.saturating_add(self.local_bytes(whole).min(rest.len()))
    }

    /// The bytes of a row of this length that stay in its leaf, by the rule of the format.
    fn local_bytes(&self, whole: usize) -> usize {
        let (most, least) =
            // A row that claims more than any page has is longer than every page; the numbers stand before the rest.
            (self.usable.saturating_sub(35), (self.usable.saturating_sub(12) * 32 / 255).saturating_sub(23));
        if whole <= most {
            return whole;
        }
        // Here the whole is longer than `most`, which is more than `least`; 480 bytes of a page are usable at least.
        let some = least + (whole.saturating_sub(least)) % self.usable.saturating_sub(4);
        if some <= most { some } else { least }
    }

    /// The row in a cell of a leaf: its id, its length in bytes, and its first `count` values.
    fn cell(&self, page: &[u8], at: usize, count: usize) -> Result<Option<Cell>, Unreadable> {
        let mut rest = page.get(at..self.usable.min(page.len())).unwrap_or_default();
        let (Some(bytes), Some(id)) = (varint(&mut rest), varint(&mut rest)) else { return Ok(None) };
        let Some(bytes) = u32::try_from(bytes).ok().filter(|bytes| *bytes <= ROW_BYTES_MAX) else {
            return Ok(None);
        };
        let whole = usize::try_from(bytes).unwrap_or(usize::MAX);
        let local = self.local_bytes(whole);
        let Some(own) = rest.get(..local) else { return Ok(None) };
        let row = if local == whole || bytes_to(own, count).is_some_and(|end| end <= local) {
            values(own, count)
        } else {
            let mut record = own.to_vec();
            let next = number32(rest, local);
            if !self.overflow(next, whole, &mut record)? {
                return Ok(None);
            }
            values(&record, count)
        };
        Ok(row.map(|row| (id.cast_signed(), bytes, row)))
    }

    /// Adds the bytes of a record that lie on further pages; false if the pages end too early.
    fn overflow(&self, first: u32, whole: usize, record: &mut Vec<u8>) -> Result<bool, Unreadable> {
        let mut page = Vec::new();
        let mut next = first;
        let mut seen = Seen::new();
        while record.len() < whole {
            if next == 0 || !seen.insert(next) {
                return Ok(false);
            }
            self.page(next, &mut page)?;
            let own = page.get(4..self.usable).unwrap_or_default();
            let left = self.further.get().checked_sub(own.len() as u64);
            let what = "its rows share their further pages";
            self.further.set(left.ok_or(Unreadable::Damaged { page: next, what })?);
            let wanted = (whole - record.len()).min(own.len());
            record.extend_from_slice(own.get(..wanted).unwrap_or_default());
            next = number32(&page, 0);
        }
        Ok(true)
    }
}

/// The head of a page of a tree.
struct PageHead {
    is_leaf: bool,
    count: usize,
    right: u32,
    start: usize,
}

impl PageHead {
    fn of(number: u32, page: &[u8]) -> Result<Self, Unreadable> {
        let start = if number == 1 { HEADER_BYTES } else { 0 };
        let is_leaf = match page.get(start) {
            Some(&LEAF) => true,
            Some(&INNER) => false,
            _ => return Err(Unreadable::Damaged { page: number, what: "it is no page of a table" }),
        };
        let count = usize::from(number16(page, start + 3));
        let right = if is_leaf { 0 } else { number32(page, start + 8) };
        Ok(Self { is_leaf, count, right, start: start + if is_leaf { 8 } else { 12 } })
    }

    /// The offsets of the cells in their page.
    fn cells(&self, page: &[u8]) -> Vec<usize> {
        let pointers = page.get(self.start..).unwrap_or_default();
        pointers.chunks_exact(2).take(self.count).map(|pair| usize::from(number16(pair, 0))).collect()
    }
}

/// The names of the columns, out of the statement that made a table.
fn columns(sql: &str) -> Vec<String> {
    let Some((_, body)) = sql.split_once('(') else { return Vec::new() };
    let mut names = Vec::new();
    let (mut depth, mut quote, mut start) = (0_u32, None, 0);
    let mut parts = Vec::new();
    for (at, letter) in body.char_indices() {
        match (quote, letter) {
            (Some(end), _) if letter == end => quote = None,
            (None, '`' | '"' | '\'') => quote = Some(letter),
            (None, '[') => quote = Some(']'),
            (None, '(') => depth += 1,
            (None, ')') if depth == 0 => {
                parts.extend(body.get(start..at));
                break;
            }
            (None, ')') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.extend(body.get(start..at));
                start = at + 1;
                if parts.len() >= COLUMN_COUNT_MAX {
                    break;
                }
            }
            _ => {}
        }
    }
    for part in parts {
        let part = part.trim_start();
        let name = match part.chars().next() {
            Some(open @ ('`' | '"' | '[' | '\'')) => {
                let close = if open == '[' { ']' } else { open };
                part.get(1..).unwrap_or_default().split(close).next().unwrap_or_default()
            }
            _ => part.split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default(),
        };
        let is_rule = part.chars().next().is_some_and(char::is_alphabetic)
            && ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"]
                .iter()
                .any(|word| name.eq_ignore_ascii_case(word));
        if !is_rule {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_by_the_statement() {
        let check = |sql: &str, expected: &[&str]| assert_eq!(columns(sql), expected, "{sql}");
        check(
            "CREATE TABLE t (`id` text PRIMARY KEY, \"n\" integer DEFAULT (1, 2), plain)",
            &["id", "n", "plain"],
        );
        check("CREATE TABLE t(a,b text, CONSTRAINT x FOREIGN KEY (a) REFERENCES u(b))", &["a", "b"]);
        check("CREATE TABLE t([odd, name] text, 'q' text, PRIMARY KEY(a, b))", &["odd, name", "q"]);
        check("CREATE TABLE t", &[]);
        let many = format!("CREATE TABLE t ({})", vec!["c"; 3000].join(","));
        assert_eq!(columns(&many).len(), COLUMN_COUNT_MAX);
    }
}

#[cfg(test)]
mod work {
    use super::*;
    use crate::sqlite::MAGIC;

    const PAGE: usize = 512;

    fn text_record(values: &[&str], root: u8) -> Vec<u8> {
        // Texts, but for the fourth value: the page of a root.
        let mut types = Vec::new();
        let mut body = Vec::new();
        for (place, value) in values.iter().enumerate() {
            if place == 3 {
                types.push(1);
                body.push(root);
            }
            types.push(u8::try_from(13 + 2 * value.len()).unwrap());
            body.extend_from_slice(value.as_bytes());
        }
        let mut record = vec![u8::try_from(types.len() + 1).unwrap()];
        record.extend(types);
        record.extend(body);
        record
    }

    /// A page of a table's rows in which `count` pointers name one cell.
    fn leaf(start: usize, cell: &[u8], count: u16) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        page[start] = LEAF;
        page[start + 3..start + 5].copy_from_slice(&count.to_be_bytes());
        let at = PAGE - cell.len();
        for pointer in 0..usize::from(count) {
            let place = start + 8 + 2 * pointer;
            page[place..place + 2].copy_from_slice(&u16::try_from(at).unwrap().to_be_bytes());
        }
        page[at..].copy_from_slice(cell);
        page
    }

    /// A database of one table `t`, whose leaf has `count` pointers to this cell, and further pages.
    fn database(cell: &[u8], count: u16, further: &[Vec<u8>]) -> Vec<u8> {
        let record = text_record(&["table", "t", "t", "CREATE TABLE t (a)"], 2);
        let mut schema = vec![u8::try_from(record.len()).unwrap(), 1];
        schema.extend(record);
        let mut bytes = leaf(HEADER_BYTES, &schema, 1);
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..18].copy_from_slice(&512_u16.to_be_bytes());
        bytes.extend(leaf(0, cell, count));
        for page in further {
            bytes.extend(page);
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Result<usize, Unreadable> {
        let source: &dyn super::super::Source = &bytes;
        let database = Database::open(source, None)?;
        let tables = database.tables()?;
        let table = tables.first().unwrap();
        let (mut count, mut places) = (0, Vec::new());
        database.rows(table, &mut |place, _| {
            count += 1;
            places.push(place);
            Ok(())
        })?;
        for place in places {
            assert!(database.row_at(table, place)?.is_some());
        }
        Ok(count)
    }

    /// One cell that thousands of pointers name, over one chain of pages: a file of a MiB took 52 seconds.
    #[test]
    fn rows_that_share_their_bytes_are_damage() {
        let short = [[5, 1, 2, 19].as_slice(), b"abc"].concat();
        assert_eq!(read(&database(&short, 1, &[])).unwrap(), 1);
        let shared = read(&database(&short, 200, &[])).unwrap_err().to_string();
        assert!(shared.contains("lie on one another"), "{shared}");
        // A row over further pages, and such a chain read again and again.
        let whole = 200_000_usize;
        let mut cell = vec![0, 0, 0, 1];
        // A record of 200,000 bytes: a header of 4 bytes, one blob of 199,996.
        let kind = 12 + 2 * (whole - 4);
        let varint3 = |number: usize| {
            [
                0x80 | u8::try_from(number >> 14).unwrap(),
                0x80 | u8::try_from((number >> 7) & 0x7f).unwrap(),
                u8::try_from(number & 0x7f).unwrap(),
            ]
        };
        cell[..3].copy_from_slice(&varint3(whole));
        let (most, least) = (PAGE - 35, (PAGE - 12) * 32 / 255 - 23);
        let some = least + (whole - least) % (PAGE - 4);
        let local = if some <= most { some } else { least };
        let mut own = vec![4];
        own.extend(varint3(kind));
        own.resize(local, 7);
        cell.extend(own);
        cell.extend(3_u32.to_be_bytes());
        let count = (whole - local).div_ceil(PAGE - 4);
        let pages: Vec<Vec<u8>> = (0..count)
            .map(|number| {
                let next = if number + 1 < count { u32::try_from(number + 4).unwrap() } else { 0 };
                let mut page = vec![7; PAGE];
                page[..4].copy_from_slice(&next.to_be_bytes());
                page
            })
            .collect();
        let bytes = database(&cell, 1, &pages);
        assert_eq!(read(&bytes).unwrap(), 1);
        let source: &dyn super::super::Source = &bytes.as_slice();
        let database = Database::open(source, None).unwrap();
        let table = database.tables().unwrap().remove(0);
        let ended = (0..100).find_map(|_| database.row(&table, 1).err());
        assert!(ended.unwrap().to_string().contains("share their further pages"));
    }
}
