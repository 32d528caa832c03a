//! `acpdb erase`: an item's content zeroed for good, with everything equal to it.

use super::describe;
use crate::args::{Erase, Global};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::place;

pub(crate) fn run(global: &Global, args: &Erase, output: &mut Output) -> Result<Code, Failure> {
    let store = place::read(global, output)?;
    let found = super::find::item(&store, &args.id, args.session.as_deref())?;
    // A finish names its call.
    let item = found.ix.and_then(|ix| found.view.read().state().item_id(ix)).unwrap_or(found.item);
    drop(found);
    let report = store.erase(item, "user", &args.reason)?;
    if output.json {
        let mut value = serde_json::to_value(&report).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.insert("schema".to_owned(), "acpdb.erase/1".into());
        }
        output.json_line(&value)?;
        return Ok(Code::Ok);
    }
    let Some(recorded) = report.recorded else {
        output.line(format!("{} has no content that is not erased already", report.item))?;
        return Ok(Code::Ok);
    };
    output.line(format!("{}: erased, on record as {recorded}", report.item))?;
    let names = describe::StreamNames::new(&store)?;
    for content in &report.hit {
        let item = content.item.map_or_else(|| format!("event {}", content.seq), |item| item.to_string());
        let why = if content.equal { "  the same content" } else { "" };
        output.line(format!(
            "  {:<10} {:<10} {}, {}  in {}{why}",
            content.seq.to_string(),
            item,
            describe::count(content.bodies, "body").replace("bodys", "bodies"),
            describe::bytes(content.bytes),
            names.short(content.stream),
        ))?;
    }
    output.note(
        "not covered: ids, names of tools, keys of files, digests, quotations inside other texts; copies outside the store, such \
         as backups and the host's own files",
    );
    Ok(Code::Ok)
}
