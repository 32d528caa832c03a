//! Todo lists as hosts write them, brought to one form: objects with `content` and `status`, and all else they had.

use acpdb_engine::text::{Json, write_json_string};

/// The list in `list`; its items' content stands in the field `content`.
///
/// `None` if it is no array of objects. A status that is absent is `pending`; other fields keep their order.
pub(super) fn normalised(list: &Json, content: &str) -> Option<Vec<u8>> {
    let items = list.as_array()?;
    let mut out = String::from("[");
    for (index, item) in items.iter().enumerate() {
        let fields = item.as_object()?;
        if index > 0 {
            out.push(',');
        }
        out.push_str("{\"content\":");
        match item.get(content).or_else(|| item.get("content")) {
            Some(text) => out.push_str(&text.canonical()),
            None => out.push_str("\"\""),
        }
        out.push_str(",\"status\":");
        match item.get("status") {
            Some(status @ Json::Str(_)) => out.push_str(&status.canonical()),
            _ => out.push_str("\"pending\""),
        }
        for (name, value) in fields {
            let name = name.to_lossy();
            if name != content && name != "content" && name != "status" {
                out.push(',');
                write_json_string(&mut out, &name);
                out.push(':');
                out.push_str(&value.canonical());
            }
        }
        out.push('}');
    }
    out.push(']');
    Some(out.into_bytes())
}
