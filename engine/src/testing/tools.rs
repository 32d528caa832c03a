//! A registry of a few tools, enough for scripts.

use crate::event::{Key, KeyKind, TodoRole, ToolClass};
use crate::registry::{Registry, ToolFacts};
use crate::text::Json;

/// Knows `read write edit delete grep webfetch shell cat bash todowrite todoread clock`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TestTools;

impl Registry for TestTools {
    fn version(&self) -> u32 {
        1
    }

    fn tool(&self, _host: &str, tool: &str, params: &Json) -> ToolFacts {
        let class = match tool {
            "read" => ToolClass::Read,
            "write" => ToolClass::Write,
            "edit" => ToolClass::Edit,
            "delete" => ToolClass::Delete,
            "grep" => ToolClass::Search,
            _ => ToolClass::Other,
        };
        let text = |name: &str| params.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        let key =
            |kind, given: String, fields: Vec<String>| Key { kind, class, given, resolved: None, fields };
        let mut facts = ToolFacts { class, ..ToolFacts::default() };
        match tool {
            "read" | "write" | "edit" | "delete" => {
                let path = text("filePath");
                if !path.is_empty() {
                    facts.keys.push(key(KeyKind::File, path, Vec::new()));
                }
                facts.file_params = vec!["filePath"];
                facts.shown = vec!["filePath"];
            }
            "grep" => {
                let fields = vec!["grep".to_owned(), String::new(), text("pattern"), String::new()];
                facts.keys.push(key(KeyKind::Search, format!("grep::{}:", text("pattern")), fields));
            }
            "webfetch" => facts.keys.push(key(KeyKind::Url, text("url"), Vec::new())),
            "shell" => facts.keys.push(key(KeyKind::Exec, text("command"), Vec::new())),
            "cat" => {
                facts.keys.push(key(KeyKind::Exec, format!("cat {}", text("filePath")), Vec::new()));
                facts.keys.push(key(KeyKind::File, text("filePath"), Vec::new()));
            }
            "bash" if text("command").starts_with("git status") => {
                let fields = vec!["bash:git:status".to_owned()];
                facts.keys.push(key(KeyKind::State, "bash:git:status".to_owned(), fields));
            }
            "bash" if text("command").starts_with("cargo test") => {
                let fields = vec!["cargo test".to_owned()];
                facts.keys.push(key(KeyKind::Check, "cargo test".to_owned(), fields));
            }
            "todowrite" => facts.todo = TodoRole::Write,
            "todoread" => facts.todo = TodoRole::Read,
            "clock" => facts.volatile = true,
            _ => {}
        }
        facts
    }

    fn todos_in_output(&self, _host: &str, tool: &str, output: &[u8]) -> Option<Vec<u8>> {
        let is_list = || Json::parse(output).is_ok_and(|json| json.as_array().is_some());
        (tool == "todowrite" && is_list()).then(|| output.to_vec())
    }
}
