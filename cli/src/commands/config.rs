//! `acpdb config`: the user's settings, listed, read and written.

use acpdb_engine::text::paths::shown;
use serde::Serialize;

use super::table::{self, text};
use super::{Code, Failure, Output, describe};
use crate::args::{ConfigAct, wrapped};
use crate::settings::{self, KEYS};

/// A setting with its value.
#[derive(Serialize)]
struct SettingRow {
    key: &'static str,
    /// The value in the file; null if the file has none.
    value: Option<String>,
    default: &'static str,
    about: &'static str,
}

pub(crate) fn run(act: &ConfigAct, output: &mut Output) -> Result<Code, Failure> {
    if let ConfigAct::Trust(args) = act {
        return super::trust::run(args, output);
    }
    let path = settings::path_or_failure()?;
    match act {
        ConfigAct::Trust(_) => {}
        ConfigAct::Path => {
            if output.json {
                output.json_line(&serde_json::json!({"schema": "acpdb.setting/1", "path": shown(&path)}))?;
            } else {
                output.line(path.display().to_string())?;
            }
        }
        ConfigAct::List => {
            let document = settings::document(&path)?;
            let mut rows = Vec::new();
            for key in KEYS {
                let value = settings::given(&document, key)?;
                rows.push(SettingRow { key: key.name, value, default: key.default, about: key.about });
            }
            if output.json {
                return output.json_items("acpdb.config/1", &rows);
            }
            let value = |row: &SettingRow| row.value.clone().unwrap_or_else(|| format!("({})", row.default));
            if output.tabs {
                let columns = vec![
                    text("setting", |row: &SettingRow| row.key.to_owned()),
                    text("value", value),
                    text("what it is", |row: &SettingRow| row.about.to_owned()),
                ];
                return table::print(output, columns, &rows).map(|()| Code::Ok);
            }
            for row in &rows {
                output.line(format!("{} = {}", row.key, value(row)))?;
                for line in wrapped(row.about, output.room(2)) {
                    output.styled(describe::DIM, format!("  {line}"))?;
                }
            }
        }
        ConfigAct::Get { key } => {
            let key = settings::key(key)?;
            let value = settings::given(&settings::document(&path)?, key)?;
            let value = value.ok_or_else(|| {
                Failure::not_found(format!("{} is not set", key.name))
                    .hint(format!("without it: {}", key.default))
            })?;
            print_value(&path, key.name, Some(&value), output)?;
            if !output.json {
                output.line(value)?;
            }
        }
        ConfigAct::Set { key, value } => {
            let key = settings::key(key)?;
            let value = &if key.name == "prices" {
                let former = settings::given(&settings::document(&path)?, key)?;
                super::prices::take(value, former.as_deref(), output)?
            } else {
                value.clone()
            };
            settings::write(&path, key, Some(value))?;
            print_value(&path, key.name, Some(value), output)?;
            output.note(format!("{} = {value} in {}", key.name, path.display()));
        }
        ConfigAct::Unset { key } => {
            let key = settings::key(key)?;
            settings::write(&path, key, None)?;
            print_value(&path, key.name, None, output)?;
            output.note(format!("{} is not set any more; without it: {}", key.name, key.default));
        }
    }
    Ok(Code::Ok)
}

/// Prints the value of a setting, for programs.
fn print_value(
    path: &std::path::Path,
    key: &str,
    value: Option<&str>,
    output: &mut Output,
) -> Result<(), Failure> {
    if output.json {
        output.json_line(&serde_json::json!({
            "schema": "acpdb.setting/1", "path": shown(path), "key": key, "value": value,
        }))?;
    }
    Ok(())
}
