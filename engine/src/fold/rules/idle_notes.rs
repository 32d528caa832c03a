//! Idle notes: a read of prose, logs, tables, temporary or vendored files steps aside early: such a file is read once, to know it.
use super::Look;
use super::shorten::{Acts, AgesKey, Leaves, Resting, Shortening, TEXT_ASIDE};
use crate::fold::policy_values::Ages;
use crate::event::{KeyKind, ToolClass};

pub(crate) const RULE: Shortening = Shortening {
    name: "idle_notes",
    figure: "Idle Notes",
    reason: "a read of notes, logs, temporary or vendored files is set aside after some turns without a touch",
    leaves: |_| Leaves::Text(TEXT_ASIDE),
    acts: Acts::Idle { ages: Some(AgesKey { key: "idle.notes", presets: PRESETS }), turns },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::all(7))];

const ENDINGS: &[&str] = &["md", "txt", "rst", "log", "csv"];
const TEMPORARY: &[&str] = &["/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/", "/private/var/folders/"];
const VENDORED: &[&str] = &["node_modules/", "vendor/", "third_party/", ".venv/", "venv/", "site-packages/"];

fn turns(look: Look<'_>, resting: &Resting<'_>, ages: Ages) -> Option<u32> {
    if !resting.is_output_of(ToolClass::Read) {
        return None;
    }
    let files = look.keys(resting.ix).filter(|(_, key)| key.kind == KeyKind::File);
    let mut files = files.map(|(_, key)| look.facts.names.text(key.given)).peekable();
    files.peek()?;
    ages.turns(resting.tokens).filter(|_| files.all(is_note))
}

fn is_note(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace('\\', "/");
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let begins = |folder: &&str| path.starts_with(*folder);
    let holds = |folder: &&str| path.starts_with(*folder) || path.contains(&format!("/{folder}"));
    ENDINGS.contains(&ending) || TEMPORARY.iter().any(begins) || VENDORED.iter().any(holds)
}
