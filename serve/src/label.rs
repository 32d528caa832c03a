//! Names of results in pointers: words by which a model finds what it has seen.

use acpdb_engine::View;
use acpdb_engine::fold::ItemView;

/// Longest name of a result, without its id.
const LABEL_CHARS_MAX: usize = 120;

/// The name by which a model knows a result, such as `Read src/a.rs (#12)`: the tool, the file or the command that it named, and the id under which `recall` finds it.
pub fn label(view: &View, item: &ItemView) -> String {
    let tool = item.tool.as_deref().unwrap_or("a result");
    // A key that begins so is a mask of the model's words.
    let key = item.keys.first().filter(|key| !key.starts_with('~')).map(ToString::to_string);
    let name = match key.or_else(|| command(view, item)) {
        Some(key) => format!("{tool} {key}"),
        None => tool.to_owned(),
    };
    let line: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = match line.char_indices().nth(LABEL_CHARS_MAX) {
        Some((end, _)) => format!("{}..", line.get(..end).unwrap_or_default()),
        None => line,
    };
    format!("{line} ({})", item.item)
}

/// The command among the parameters of a call.
fn command(view: &View, item: &ItemView) -> Option<String> {
    // A label needs no command: without one it is the tool's name. The store notes damage.
    let params: serde_json::Value = serde_json::from_str(&view.text(item.params?).ok()?).ok()?;
    let found = ["command", "cmd"].iter().find_map(|name| params.get(*name))?;
    found.as_str().map(str::to_owned)
}
