//! `acpdb verify --db URL`: the objects of shipped stores, checked where they lie.

use acpdb_engine::ids::StoreId;
use acpdb_remote::{ChainError, Remote, RemoteReport, RemoteViolation, check};
use serde::Serialize;

use super::remote_url::{RemoteUrl, WITHOUT_SECRET};
use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape};
use crate::args::Verify;
use crate::verdict::worse;

/// The findings of a store.
#[derive(Serialize)]
#[serde(untagged)]
enum Found {
    Checked(RemoteReport),
    /// Its head is lost.
    Headless {
        store: StoreId,
        is_sound: bool,
        violations: [RemoteViolation; 1],
    },
}

pub(crate) fn run(global: &Global, args: &Verify, output: &mut Output) -> Result<Code, Failure> {
    let [named] = global.named.as_slice() else {
        return Err(Failure::usage("verify checks one URL at a time"));
    };
    let is_for_a_folder = args.deep
        || args.without_key
        || args.head.is_some()
        || args.host.is_some()
        || args.key.is_some()
        || !args.expect.is_empty();
    if is_for_a_folder {
        let failure = Failure::usage("of a URL only objects are checked, with --quick or without");
        return Err(
            failure.hint("acpdb restore URL DIR makes a store of what is there, which takes all options")
        );
    }
    let url = RemoteUrl::read(named)?;
    let (remote, found) = url.stores(global.key_file.as_deref())?;
    let failed = |error: ChainError| url.failed(error, Code::Failure);
    let mut checked = Vec::new();
    for store in found {
        let _spinner = super::progress::spinner("verifying", output);
        checked.push(look(&*remote, store, args.quick).map_err(failed)?);
    }
    let code = checked.iter().map(code_of).fold(Code::Ok, worse);
    if output.json {
        return output.json_items("acpdb.verify_remote/1", &checked).map(|_| code);
    }
    for found in &checked {
        print(&url, found, output)?;
    }
    if code == Code::Damage {
        output.line("What to do: acpdb backup URL, from the store, makes a lost head anew; for other damage ship the store to another URL. What is sound there can be read.")?;
    }
    Ok(code)
}

fn look(remote: &dyn Remote, store: StoreId, is_quick: bool) -> Result<Found, ChainError> {
    match check(remote, store, is_quick) {
        Ok(report) => Ok(Found::Checked(report)),
        Err(ChainError::HeadLost { .. }) => {
            let lost = RemoteViolation { key: format!("heads/{store}"), detail: "it is none".to_owned() };
            Ok(Found::Headless { store, is_sound: false, violations: [lost] })
        }
        Err(error) => Err(error),
    }
}

fn code_of(found: &Found) -> Code {
    match found {
        Found::Checked(report) if report.is_sound && report.lacks_secret => Code::Partial,
        Found::Checked(report) if report.is_sound => Code::Ok,
        _ => Code::Damage,
    }
}

fn print(url: &RemoteUrl, found: &Found, output: &mut Output) -> Result<(), Failure> {
    let (store, violations) = match found {
        Found::Checked(report) => (report.store, report.violations.as_slice()),
        Found::Headless { store, violations, .. } => (*store, violations.as_slice()),
    };
    let verdict = match found {
        Found::Checked(report) if report.is_sound && report.is_quick => {
            output.paint(describe::GOOD, "whatever is named is there")
        }
        Found::Checked(report) if report.is_sound => output.paint(describe::GOOD, "sound"),
        _ => output.paint(describe::BAD, "damaged"),
    };
    output.line(format!("{}: store {store}: {verdict}", url.shown()))?;
    let line = |name: &str, text: String| format!("  {name:<10} {text}");
    if let Found::Checked(report) = found {
        let reach = if report.is_quick { "at least " } else { "" };
        // A quick look reads no entry, and knows no more than the segments and packs that are named.
        if report.head_seq.get() > 0 {
            let head = format!("{reach}#{}  link {}", report.head_seq.get(), report.head_link);
            output.line(line("head", head))?;
        }
        let chunks = if report.is_quick { "entry" } else { "chunk" };
        let mut parts = vec![
            describe::count(report.segments, "segment"),
            describe::count(report.packs, "pack"),
            describe::count(report.chunks, chunks),
        ];
        if !report.is_quick {
            parts.push(describe::count(report.fences, "fence"));
        }
        parts.push(describe::bytes(report.bytes));
        output.line(line("checked", parts.join(", ")))?;
        if report.torn > 0 {
            let torn = describe::count(report.torn, "entry");
            // Behind damage an entry that is torn may be the one that was acknowledged.
            let told = if report.is_sound { "passed over: never acknowledged, no damage" } else { "unsound" };
            output.line(line("torn", format!("{torn}, {told}")))?;
        }
        if report.left_over > 0 {
            let left = describe::count(report.left_over, "object");
            output.line(line(
                "left over",
                format!("{left} that nothing names; the next backup may remove them"),
            ))?;
        }
        if report.lacks_secret {
            output.line(line("secret", format!("not there: {WITHOUT_SECRET}")))?;
        }
    }
    for violation in violations {
        let text = format!("{}: {}", violation.key, violation.detail);
        output.line(line("damage", escape(&text, EscapeLevel::Line).into_owned()))?;
    }
    Ok(())
}
