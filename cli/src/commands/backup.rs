//! `acpdb backup`: a verified copy beside the writers.

use super::{Code, Escape, Failure, Global, Output, describe, escape, progress, store_path};
use crate::args::Backup;

pub(crate) fn run(global: &Global, args: &Backup, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "backup")?;
    let store = store_path::read(global, output)?;
    let bar = progress::bytes(store.info()?.log_bytes, output);
    let done = store.backup(&args.folder, &mut |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let done = done.map_err(|error| taken(error, "backup"))?;
    let code = super::verify::code_of(&done.report);
    if output.json {
        output.json_line(&done)?;
        return Ok(code);
    }
    let folder = escape(&done.path.display().to_string(), Escape::Line).into_owned();
    let copied = if done.bytes == 0 { "there already".to_owned() } else { describe::bytes(done.bytes) };
    output.line(format!(
        "{folder}: {} up to {}, {copied}, verified",
        describe::count(done.report.events, "event"),
        done.head
    ))?;
    if code != Code::Ok {
        let copy = store_path::quoted(&done.path);
        output.line(format!(
            "The copy is as damaged as the store: acpdb --db {copy} verify says how. Keep older backups."
        ))?;
    }
    Ok(code)
}

/// The failure for a folder that holds something already, or that another process fills: with a hint.
pub(crate) fn taken(error: acpdb_engine::Error, what: &str) -> Failure {
    let acpdb_engine::Error::Io { path, source, .. } = &error else { return Failure::from(error) };
    let (code, hint) = match source.kind() {
        std::io::ErrorKind::AlreadyExists => (
            Code::Usage,
            format!("a {what} needs a folder that is empty or does not exist yet{}", or_copy(what)),
        ),
        std::io::ErrorKind::InvalidInput => (Code::Usage, "name another folder".to_owned()),
        std::io::ErrorKind::ResourceBusy => {
            (Code::Busy, format!("another process makes a {what} in {}; wait for it", path.display()))
        }
        _ => return Failure::from(error),
    };
    Failure::from(error).coded(code).hint(hint)
}

/// The other contents that the folder of a backup may have.
fn or_copy(what: &str) -> &'static str {
    if what == "backup" { ", or one that holds a backup of this store alone" } else { "" }
}
