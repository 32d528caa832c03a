//! Databases: cut, damaged, with a write-ahead log that counts or does not.

use std::path::Path;

use acpdb_engine::entry::Fact;
use acpdb_hosts::import::{Batch, Options, is_opencode, read_database};
use acpdb_hosts::sqlite::{Database, Source, Value};

/// A database that opencode wrote.
fn database() -> Vec<u8> {
    let path = "../tests/fixtures/hosts/opencode/agent/recording/opencode.db";
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn imported(file: &[u8], log: Option<&[u8]>) -> Vec<Batch> {
    let mut batches = Vec::new();
    let log = log.as_ref().map(|log| log as &dyn Source);
    let _ = read_database(&file, log, "x", &Options::default(), &mut batches);
    batches
}

fn titles(file: &[u8], log: Option<&[u8]>) -> Vec<String> {
    let mut titles: Vec<String> =
        imported(file, log).iter().filter_map(|batch| batch.stream.title.clone()).collect();
    titles.dedup();
    titles
}

#[test]
fn a_database_gives_its_sessions_with_their_links() {
    let file = database();
    let batches = imported(&file, None);
    let mut sessions: Vec<_> =
        batches.iter().map(|it| (it.stream.name.clone(), it.stream.parent.is_some())).collect();
    sessions.sort();
    sessions.dedup();
    assert_eq!(
        sessions.iter().map(|(_, has_parent)| *has_parent).filter(|it| *it).count(),
        1,
        "{sessions:?}"
    );
    assert_eq!(sessions.len(), 2);
    let facts = batches.iter().flat_map(|batch| &batch.entries);
    let calls = facts.filter(|entry| matches!(entry.fact, Fact::ToolStarted { .. })).count();
    assert_eq!(calls, 2);
}

#[test]
fn a_cut_or_damaged_database_ends_with_a_word() {
    let file = database();
    for end in (0..file.len()).step_by(4_099) {
        let _ = imported(&file[..end], None);
    }
    let mut seed = 7_u64;
    for _ in 0..600 {
        let mut file = file.clone();
        for _ in 0..3 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = usize::try_from(seed >> 16).unwrap() % file.len();
            // Heads of pages are where numbers lead elsewhere.
            let at = if seed & 1 == 0 { at } else { at / 4096 * 4096 + at % 64 };
            file[at] = u8::try_from(seed >> 56).unwrap();
        }
        let _ = imported(&file, None);
    }
    // Not one, and one of another program.
    for other in [&b""[..], b"SQLite format 3", b"{\"info\":{},\"messages\":[]}"] {
        assert!(is_opencode(&other, None).is_err());
        assert!(imported(other, None).is_empty());
    }
}

#[test]
fn a_tree_that_leads_back_to_itself_ends() {
    let mut file = database();
    let page = usize::from(u16::from_be_bytes([file[16], file[17]]));
    // Every inner page's children become the page itself.
    for number in 1..=file.len() / page {
        let start = (number - 1) * page + if number == 1 { 100 } else { 0 };
        if file[start] == 5 {
            let number = u32::try_from(number).unwrap().to_be_bytes();
            file[start + 8..start + 12].copy_from_slice(&number);
        }
    }
    let _ = imported(&file, None);
}

/// Sums over words, as the log's format says them.
fn sums(mut sums: (u32, u32), bytes: &[u8]) -> (u32, u32) {
    for pair in bytes.chunks_exact(8) {
        let word = |at: usize| u32::from_be_bytes(pair[at..at + 4].try_into().unwrap());
        sums.0 = sums.0.wrapping_add(word(0)).wrapping_add(sums.1);
        sums.1 = sums.1.wrapping_add(word(4)).wrapping_add(sums.0);
    }
    sums
}

/// A log with these frames: page, pages after the commit, content.
fn log(page_bytes: u32, frames: &[(u32, u32, Vec<u8>)]) -> Vec<u8> {
    let mut log = Vec::new();
    for number in [0x377f_0683, 3_007_000, page_bytes, 0, 11, 22] {
        log.extend(u32::to_be_bytes(number));
    }
    let mut sum = sums((0, 0), &log);
    log.extend(sum.0.to_be_bytes().into_iter().chain(sum.1.to_be_bytes()));
    for (page, pages, content) in frames {
        let head = [page.to_be_bytes(), pages.to_be_bytes()].concat();
        sum = sums(sums(sum, &head), content);
        log.extend(head);
        log.extend([11_u32, 22, sum.0, sum.1].into_iter().flat_map(u32::to_be_bytes));
        log.extend(content);
    }
    log
}

#[test]
fn the_log_counts_up_to_its_last_commit() {
    let file = database();
    let bytes = usize::from(u16::from_be_bytes([file[16], file[17]]));
    let wanted = b"A title";
    let at = file.windows(wanted.len()).position(|window| window == wanted).unwrap();
    let number = at / bytes;
    let page = |letter: u8| {
        let mut page = file[number * bytes..(number + 1) * bytes].to_vec();
        for place in 0..page.len() - wanted.len() {
            if &page[place..place + wanted.len()] == wanted {
                page[place] = letter;
            }
        }
        page
    };
    let (number, page_bytes) = (u32::try_from(number + 1).unwrap(), u32::try_from(bytes).unwrap());
    let has = |log: &[u8], title: &str| titles(&file, Some(log)).iter().any(|it| it == title);
    let committed = log(page_bytes, &[(number, 9, page(b'B')), (number, 9, page(b'C'))]);
    assert!(has(&committed, "C title"));
    let open = log(page_bytes, &[(number, 9, page(b'B')), (number, 0, page(b'C'))]);
    assert!(has(&open, "B title"), "a frame behind the last commit");
    let mut torn = committed.clone();
    let last = torn.len() - 1;
    torn[last] ^= 1;
    assert!(has(&torn, "B title"), "a frame whose sum is wrong");
    let cut = &committed[..committed.len() - 5];
    assert!(has(cut, "B title"), "a frame that is not all there");
    let mut old = committed.clone();
    old[16] ^= 1;
    assert!(has(&old, "A title"), "a log of another time");
    for end in (0..committed.len()).step_by(997) {
        let _ = titles(&file, Some(&committed[..end]));
    }
    // A host that writes meanwhile is noticed.
    let (before, after) = (&open[..], &committed[..]);
    let database = Database::open(&&file[..], Some(&before)).map(|database| database.is_unmoved().unwrap());
    assert!(database.unwrap());
    let growing = Growing(std::cell::Cell::new(0), [before, after]);
    let file = &file[..];
    let database = Database::open(&file, Some(&growing)).unwrap();
    growing.0.set(1);
    assert!(!database.is_unmoved().unwrap());
}

/// A log that is another one later.
struct Growing<'a>(std::cell::Cell<usize>, [&'a [u8]; 2]);

impl Source for Growing<'_> {
    fn fill(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<bool> {
        self.1[self.0.get()].fill(offset, buffer)
    }
}

#[test]
fn rows_are_found_by_their_ids_as_in_passing() {
    let file = database();
    let file = &file[..];
    let database = Database::open(&file, None).unwrap();
    for table in database.tables().unwrap() {
        let mut rows: Vec<(i64, Vec<Value>)> = Vec::new();
        database
            .rows(&table, &mut |id, row| {
                rows.push((id, row));
                Ok(())
            })
            .unwrap_or_default();
        assert!(rows.is_sorted_by_key(|(id, _)| *id), "{}", table.name);
        for (id, row) in &rows {
            assert_eq!(database.row(&table, *id).unwrap().as_ref(), Some(row), "{} {id}", table.name);
        }
        assert_eq!(database.row(&table, -5).unwrap_or_default(), None, "{}", table.name);
    }
}
