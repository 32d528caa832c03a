//! Todo lists and changes of tasks as hosts write them, brought to one form: objects with the fields that acpdb reads, and all else they had.

use acpdb_engine::text::{Json, write_json_string};

/// A field that acpdb reads: its name at the host, its own name, and its value where the host tells none.
type Field<'a> = (&'a str, &'a str, Option<&'a str>);

/// The list in `list`; its items' content stands in the field `content`.
///
/// `None` if it is no array of objects. A status that is absent is `pending`; other fields keep their order.
pub(super) fn normalised(list: &Json, content: &str) -> Option<Vec<u8>> {
    let fields = [(content, "content", Some("\"\"")), ("status", "status", Some("\"pending\""))];
    brought(list, &fields).map(String::into_bytes)
}

/// The change of tasks in `list`; its entries tell id, content, status and summary in the fields of these names.
///
/// `None` if it is no array of objects. A field that is absent changes nothing.
pub(super) fn tasks(list: &Json, [id, content, status, summary]: [&str; 4]) -> Option<Vec<u8>> {
    let fields = [(id, "id"), (content, "content"), (status, "status"), (summary, "result_summary")];
    let list = brought(list, &fields.map(|(given, own)| (given, own, None)))?;
    Some(format!("{{\"tasks\":{list}}}").into_bytes())
}

fn brought(list: &Json, fields: &[Field<'_>]) -> Option<String> {
    let mut out = String::from("[");
    for item in list.as_array()? {
        out.push_str(if out.len() > 1 { ",{" } else { "{" });
        let mut separator = "";
        let mut put = |name: &str, value: &str| {
            out.push_str(separator);
            separator = ",";
            write_json_string(&mut out, name);
            out.push(':');
            out.push_str(value);
        };
        for (given, own, default) in fields {
            let told = item.get(given).or_else(|| item.get(own));
            let told = told.filter(|value| *own != "status" || matches!(value, Json::Str(_)));
            if let Some(value) = told.map(Json::canonical).or_else(|| default.map(str::to_owned)) {
                put(own, &value);
            }
        }
        for (name, value) in item.as_object()? {
            let name = name.to_lossy();
            if !fields.iter().any(|(given, own, _)| name == *given || name == *own) {
                put(&name, &value.canonical());
            }
        }
        out.push('}');
    }
    out.push(']');
    Some(out)
}
