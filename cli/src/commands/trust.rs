//! `acpdb config trust`: the list of stores that are used where they are found, although the user did not make them here, they belong to others,
//! or others may write to them.

use std::path::{Path, PathBuf};

use super::{Code, Failure, Output};
use crate::args::Trust;
use crate::settings;

/// A store that is trusted.
#[derive(serde::Serialize)]
struct TrustedStore<'a> {
    #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
    path: &'a Path,
}

pub(crate) fn run(args: &Trust, output: &mut Output) -> Result<Code, Failure> {
    let file = settings::path_or_failure()?;
    let mut stores = settings::trusted(&settings::document(&file)?)?;
    if let Some(path) = &args.path {
        let store = store_at(path)?;
        if !stores.contains(&store) {
            stores.push(store.clone());
            settings::write_trusted(&file, &stores)?;
        }
        output.note(format!("{} is trusted; the list is in {}", store.display(), file.display()));
    }
    if let Some(path) = &args.remove {
        // A store that is gone can be named by its path in the list.
        let store = store_at(path).unwrap_or_else(|_| path.clone());
        let before = stores.len();
        stores.retain(|known| *known != store && known != path);
        if stores.len() == before {
            let failure = Failure::not_found(format!("{} is not on the list", store.display()));
            return Err(failure.hint("acpdb config trust --list shows what is"));
        }
        settings::write_trusted(&file, &stores)?;
        output.note(format!("{} is not trusted any more", store.display()));
    }
    if output.json {
        let rows: Vec<TrustedStore<'_>> = stores.iter().map(|path| TrustedStore { path }).collect();
        output.json_items("acpdb.trust/1", &rows)?;
    } else if args.list {
        for store in &stores {
            let text = store.display().to_string();
            output.line(crate::output::escape(&text, crate::output::EscapeLevel::Line))?;
        }
        if stores.is_empty() {
            output.note("no store is trusted");
        }
    }
    Ok(Code::Ok)
}

/// The store's folder that a path means, without links on the way to it.
fn store_at(path: &Path) -> Result<PathBuf, Failure> {
    let below = path.join(crate::own_stores::FOLDER);
    let folder = if below.is_dir() { &below } else { path };
    // A folder that is not there, or cannot be entered, cannot be trusted; the failure below says so.
    let found = folder.canonicalize().ok().filter(|folder| folder.join("acpdb.json").is_file());
    found.ok_or_else(|| {
        Failure::not_found(format!("{} is not an acpdb store", folder.display()))
            .hint("name the folder with acpdb.json in it")
    })
}
