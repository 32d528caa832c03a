//! opencode before its database: a session in many files, put together as an export of it is.
//!
//! ```text
//! storage/session/<project>/<session>.json      the info                  older: storage/session/info/<session>.json
//! storage/message/<session>/<message>.json      messages[].info           older: storage/session/message/<session>/..
//! storage/part/<message>/<part>.json            messages[].parts[]        older: storage/session/part/<session>/<message>/..
//! ```
//!
//! The caller finds the files and says by their names what belongs together; nothing here opens one. A file that is no JSON
//! object is kept as it is and named.

use super::opencode_db::{broken::Broken, group::RowData, record};
use super::values::ValueReader;
use super::{
    ImportContext, ImportError, ImportFormat, ImportOptions, ImportReport, Sink, json, opencode,
    report::Admitted,
};

/// The ids of the messages of a session, each with those of its parts.
pub type ListedMessages = Vec<(String, Vec<String>)>;

/// A message of a session, with its parts in their order: ids and contents of files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredMessage {
    /// The message's id.
    pub id: String,
    /// The content of its file.
    pub info: Vec<u8>,
    /// Its parts.
    pub parts: Vec<(String, Vec<u8>)>,
}

/// Imports a session of opencode's storage. `id` is its name, `info` the content of its file; the list names what follows.
///
/// # Errors
/// The info is no JSON object, a message cannot be read (as an error of `messages`), or the sink stopped.
pub fn read_storage(
    id: &str,
    info: &[u8],
    (list, messages): (ListedMessages, &mut dyn Iterator<Item = std::io::Result<StoredMessage>>),
    options: &ImportOptions,
    sink: &mut dyn Sink,
) -> Result<ImportReport, ImportError> {
    let mut context = ImportContext::new(ImportFormat::Opencode, id, options, sink);
    // The error below says so.
    let Some(info) = std::str::from_utf8(info).ok().filter(|info| json::pick(info, ["id"]).is_some()) else {
        let reason = "the session's file is no JSON object";
        return Err(ImportError::OtherFormat { format: ImportFormat::Opencode, line: 1, offset: 0, reason });
    };
    let info = info.trim();
    let mut session = opencode::SessionReader::open(info, &mut context);
    let stream = std::sync::Arc::clone(&session.stream);
    session.present(list.into_iter().map(|(id, parts)| (id, Some(parts))), &mut context);
    session.literal(&format!("{{\"info\":{info},\"messages\":["));
    let (mut end, mut is_first) = (0_u64, true);
    let mut broken = Broken::default();
    for message in messages {
        let message = message.map_err(|source| ImportError::Io { offset: end, source })?;
        let mut out = Vec::new();
        broken.begin(true);
        let is_there = document_of(id, message, &mut out, &mut broken);
        end = end.saturating_add(out.len() as u64);
        broken.hand_out(&stream, end, &mut context)?;
        // Its depth and its size are looked at as those of any input.
        let mut values = ValueReader::documents(out.as_slice(), &context.options.limits);
        let value = if is_there { values.read()? } else { None };
        if let Some(Admitted::Text(text)) = value.map(|value| context.admit(&value)) {
            if !std::mem::replace(&mut is_first, false) {
                session.literal(",");
            }
            session.message(text, end, &mut context)?;
        }
    }
    session.literal("]}");
    session.revert(&mut context);
    session.close(end, &mut context)?;
    Ok(context.finish())
}

/// Writes a message as an export does; false if its info is broken.
fn document_of(session: &str, message: StoredMessage, out: &mut Vec<u8>, broken: &mut Broken) -> bool {
    let data = |bytes: Vec<u8>| match String::from_utf8(bytes) {
        Ok(text) => RowData::Object(text),
        Err(error) => RowData::Other(error.into_bytes()),
    };
    let StoredMessage { id, info, parts } = message;
    let Some(info) = broken.object("message", &id, data(info)) else {
        // Nothing can be told of its parts without it.
        for (part, bytes) in parts {
            broken.keep("part", &part, data(bytes));
        }
        return false;
    };
    out.extend_from_slice(b"{\"info\":");
    named(out, &info, &[("id", &id), ("sessionID", session)]);
    out.extend_from_slice(b",\"parts\":[");
    let mut is_first = true;
    for (part, bytes) in parts {
        let Some(text) = broken.object("part", &part, data(bytes)) else { continue };
        if !std::mem::replace(&mut is_first, false) {
            out.push(b',');
        }
        named(out, &text, &[("id", &part), ("sessionID", session), ("messageID", &id)]);
    }
    out.extend_from_slice(b"]}");
    true
}

/// Writes a record, with the ids of its file before its own members where it has none.
fn named(out: &mut Vec<u8>, text: &str, ids: &[(&str, &str)]) {
    let lacks = |name: &&(&str, &str)| json::member(Some(text), name.0).is_none();
    let lacking: Vec<(&str, &str)> = ids.iter().filter(lacks).copied().collect();
    if lacking.is_empty() {
        out.extend_from_slice(text.trim().as_bytes());
    } else {
        record(out, text, &lacking);
    }
}
