//! `acpdb context lint --format F FILE`: whether a provider accepts the body of a request.
//!
//! Exit code 0: no objection; 1: objections; 2: no such format; 7: no such file.

use std::io::Read as _;
use std::path::Path;

use acpdb_hosts::lint::{RequestFacts, lint};

use super::{Code, EscapeLevel, Failure, Output, describe, escape};
use crate::args::Lint;

/// Longest body that is read.
const BODY_BYTES_MAX: u64 = 512 << 20;

pub(crate) fn run(args: &Lint, output: &mut Output) -> Result<Code, Failure> {
    if args.format.provider().is_none() {
        return Err(Failure::usage("transcripts are for people; no provider has rules for them"));
    }
    let body = read(&args.file)?;
    let previous = args.previous.as_deref().map(read).transpose()?;
    let known = RequestFacts { model: args.model.as_deref(), previous: previous.as_deref() };
    let findings = lint(args.format, &body, known);
    let code = if findings.is_empty() { Code::Ok } else { Code::Failure };
    if output.json {
        output.json_items("acpdb.lint/1", &findings)?;
        return Ok(code);
    }
    for finding in &findings {
        let rule = output.paint(describe::BAD, finding.rule);
        let pointer = if finding.pointer.is_empty() { "/" } else { &finding.pointer };
        output.line(format!("{rule} {}", escape(pointer, EscapeLevel::Line)))?;
        let (expected, found) =
            (escape(&finding.expected, EscapeLevel::Line), escape(&finding.found, EscapeLevel::Line));
        output.line(format!("   expected {expected}, found {found}"))?;
        if !finding.says.is_empty() {
            let says = escape(&finding.says, EscapeLevel::Line);
            output.styled(describe::DIM, format!("   providers say: {says}"))?;
        }
    }
    if findings.is_empty() {
        output.note("nothing to object to");
    } else {
        output.note(describe::count(findings.len() as u64, "violation"));
    }
    Ok(code)
}

/// The bytes of a file, or of standard input for `-`.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let result = if name == "-" {
        std::io::stdin().lock().take(BODY_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(BODY_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    match result {
        Ok(_) if bytes.len() as u64 > BODY_BYTES_MAX => {
            Err(Failure::usage(format!("{name} is longer than {BODY_BYTES_MAX} bytes")))
        }
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::not_found(format!("there is no file {name}")))
        }
        Err(error) => Err(Failure::io("read", &name)(error)),
    }
}
