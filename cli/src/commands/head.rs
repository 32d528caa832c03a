//! `acpdb verify --head`: prints the durable end in a line, and reads such lines back.

use std::path::Path;

use acpdb_engine::ids::{Link, Seq, StoreId};
use acpdb_engine::store::HeadPlace;
use acpdb_engine::verify::Expected;
use serde_json::json;

use super::{Code, Failure, Global, Output, describe, store_path};

/// The end of the commit that holds an event; of the log, if no event is named.
pub(super) fn run(global: &Global, seq: &str, output: &mut Output) -> Result<Code, Failure> {
    let seq = (!seq.is_empty()).then(|| seq_of(seq)).transpose()?;
    let store = store_path::read(global, output)?;
    let Some(head) = store.head_place(seq)? else {
        let seq = seq.unwrap_or_default();
        return Err(Failure::not_found(format!("the log ends before {seq}")));
    };
    if output.json {
        output.json_object(
            "acpdb.head/1",
            &json!({
                "seq": head.seq, "link": head.link, "position": head.position.to_string(),
                "time": describe::time(head.time), "store": head.store,
            }),
        )?;
    } else {
        output.line(line(&head))?;
    }
    Ok(Code::Ok)
}

/// The end in a line that [`read_line`] takes.
fn line(head: &HeadPlace) -> String {
    let HeadPlace { store, seq, link, position, time } = head;
    format!("{seq} link {link} position {position} time {} store {store}", describe::time(*time))
}

pub(crate) fn seq_of(text: &str) -> Result<Seq, Failure> {
    let number = text.strip_prefix('#').unwrap_or(text).parse();
    number.map(Seq).map_err(|_| Failure::usage(format!("{text:?} is no seq, such as #812")))
}

fn link_of(text: &str) -> Result<Link, Failure> {
    let link = Link::from_hex(&text.to_ascii_lowercase());
    link.ok_or_else(|| Failure::usage(format!("{text:?} is no link: those are 64 hexadecimal digits")))
}

/// `812=ab..` as the link that the log should have.
fn expected(text: &str) -> Result<Expected, Failure> {
    let (seq, link) = text.split_once('=').ok_or_else(|| {
        Failure::usage(format!("{text:?} is not SEQ=LINK"))
            .hint("give what acpdb verify --head prints, or 812=ab12..")
    })?;
    Ok(Expected { seq: seq_of(seq.trim())?, link: link_of(link.trim())? })
}

/// The links in an argument: lines printed by `acpdb verify --head`, as in a file.
pub(crate) fn expected_lines(text: &str) -> Result<Vec<(Expected, Option<StoreId>)>, Failure> {
    match text.lines().map(str::trim).filter(|line| !line.is_empty()).map(read_line).collect() {
        // A variable that was never set would check nothing.
        Ok(lines) if Vec::is_empty(&lines) => expected(text).map(|expected| vec![(expected, None)]),
        lines => lines,
    }
}

/// The links in a file of lines from `acpdb verify --head`, as text or as JSON; also `SEQ=LINK`.
pub(crate) fn expected_in(path: &Path) -> Result<Vec<(Expected, Option<StoreId>)>, Failure> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(Failure::io("read", &shown))?;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let read = read_line(line.trim());
        found.push(read.map_err(|failure| failure.in_place(format!("{shown}, line {number}")))?);
    }
    Ok(found)
}

fn read_line(line: &str) -> Result<(Expected, Option<StoreId>), Failure> {
    let store_of = |text: &str| StoreId::from_hex(text);
    if line.starts_with('{') {
        #[derive(serde::Deserialize)]
        struct HeadFile {
            seq: u64,
            link: String,
            store: Option<String>,
        }
        let kept: HeadFile = serde_json::from_str(line).map_err(|error| {
            Failure::usage(format!("not what acpdb verify --head --json prints: {error}"))
        })?;
        let store = kept.store.as_deref().and_then(store_of);
        return Ok((Expected { seq: Seq(kept.seq), link: link_of(&kept.link)? }, store));
    }
    let mut words = line.split_whitespace();
    let seq = words.next().unwrap_or_default();
    let mut fields = std::collections::BTreeMap::new();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        fields.insert(name, value);
    }
    let Some(link) = fields.get("link") else { return Ok((expected(line)?, None)) };
    let store = fields.get("store").copied().and_then(store_of);
    Ok((Expected { seq: seq_of(seq)?, link: link_of(link)? }, store))
}

#[cfg(test)]
mod tests {
    use acpdb_engine::ids::{Micros, Position};

    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        let head = HeadPlace {
            store: StoreId([5; 16]),
            seq: Seq(812),
            link: Link([0xab; 32]),
            position: Position(1 << 32 | 512),
            time: Micros(1_700_000_000_000_000),
        };
        let expected = Expected { seq: head.seq, link: head.link };
        let text = line(&head);
        assert!(text.starts_with("#812 link abab"), "{text}");
        let json = format!(r#"{{"seq":812,"link":"{}","store":"{}"}}"#, head.link, head.store);
        for kept in [text, json] {
            assert!(read_line(&kept).is_ok_and(|read| read == (expected, Some(head.store))), "{kept}");
        }
        let pair = format!("812={}", head.link.to_hex().to_uppercase());
        assert!(read_line(&pair).is_ok_and(|read| read == (expected, None)));
        for wrong in ["812", "812=ab", "x=y", "{}", "#812 link", "#812 position 1:8192"] {
            assert!(read_line(wrong).is_err(), "{wrong}");
        }
    }
}
