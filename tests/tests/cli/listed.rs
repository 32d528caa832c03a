//! The list of operations against each door: whatever a door takes stands in the list, and what the list says the door takes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::world::World;
use acpdb_tests::binary::root;

const DOORS: [&str; 5] = ["command", "append", "mcp", "plugin", "library"];

#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Operation {
    says: String,
    pub(super) parameters: Vec<String>,
    result: String,
    errors: Vec<String>,
    #[serde(default)]
    pub(super) tells: Vec<String>,
    #[serde(default)]
    pub(super) rows: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) told: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    pub(super) refuses: BTreeMap<String, toml::Value>,
    #[serde(default)]
    pub(super) accepts: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    append: Vec<String>,
    #[serde(default)]
    mcp: Vec<String>,
    #[serde(default)]
    plugin: Vec<String>,
    #[serde(default)]
    library: Vec<String>,
    #[serde(default)]
    spelled: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(default)]
    left_out: BTreeMap<String, LeftOut>,
}

#[derive(Deserialize, Debug)]
#[serde(untagged)]
enum LeftOut {
    Whole(String),
    Parameters(BTreeMap<String, String>),
}

impl Operation {
    pub(super) fn names(&self, door: &str) -> &[String] {
        match door {
            "command" => &self.command,
            "append" => &self.append,
            "mcp" => &self.mcp,
            "plugin" => &self.plugin,
            _ => &self.library,
        }
    }

    /// The parameters of a door as it spells them, and whether each has to be given.
    fn taken(&self, door: &str) -> Vec<(String, bool)> {
        let left = match self.left_out.get(door) {
            Some(LeftOut::Whole(_)) => return Vec::new(),
            Some(LeftOut::Parameters(left)) => left.keys().map(String::as_str).collect(),
            None => BTreeSet::new(),
        };
        let spelled = self.spelled.get(door);
        let parameters = self.parameters.iter().map(|text| {
            let name = text.split([' ', '!']).next().unwrap();
            (name, text.ends_with('!'))
        });
        let kept = parameters.filter(|(name, _)| !left.contains(name));
        let said = |name: &str| spelled.and_then(|spelled| spelled.get(name)).cloned();
        kept.map(|(name, required)| (said(name).unwrap_or_else(|| name.to_owned()), required)).collect()
    }
}

pub(super) fn list() -> BTreeMap<String, Operation> {
    toml::from_str(&std::fs::read_to_string(root().join("cli/assets/doors.toml")).unwrap()).unwrap()
}

/// Whether a spelling says where a parameter stands, and is none.
fn is_elsewhere(name: &str) -> bool {
    ["in the ", "of the ", "on standard", "without "].iter().any(|start| name.starts_with(start))
}

#[test]
fn each_operation_goes_through_a_door_or_says_why_not() {
    for (name, operation) in list() {
        assert!(
            !operation.says.is_empty() && !operation.result.is_empty() && !operation.errors.is_empty(),
            "{name}"
        );
        for door in DOORS {
            let why = match operation.left_out.get(door) {
                Some(LeftOut::Whole(why)) => Some(why),
                _ => None,
            };
            assert_eq!(operation.names(door).is_empty(), why.is_some(), "{name} at {door}");
            assert!(why.is_none_or(|why| why.len() > 10), "{name} at {door}");
        }
        for door in operation.spelled.keys().chain(operation.left_out.keys()) {
            assert!(DOORS.contains(&door.as_str()), "{name}: there is no door {door}");
        }
    }
}

#[test]
fn the_command_line_takes_what_the_list_says() {
    let world = World::new();
    for (name, operation) in list() {
        let helps: Vec<String> = operation
            .command
            .iter()
            .map(|verb| {
                let words: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
                world.run(&words).ok()
            })
            .collect();
        for (parameter, _) in operation.taken("command").iter().filter(|(name, _)| !is_elsewhere(name)) {
            let is_bare = parameter.chars().all(|sign| sign.is_lowercase() || sign == '_');
            let text = if is_bare { format!("--{}", parameter.replace('_', "-")) } else { parameter.clone() };
            assert!(helps.iter().any(|help| help.contains(&text)), "{name}: {text}");
        }
    }
}

/// The fields that a door names when it is given one that it does not know.
fn named_by_refusal(world: &World, field: &str) -> Option<BTreeSet<String>> {
    let line = json!({"session": "s1", "host": "opencode", field: {"no_such_field": 1}}).to_string();
    let ran = world.run_with(&["append", "--stdin"], line);
    assert_ne!(ran.code, 0, "{field}");
    assert!(!ran.err.contains(&format!("unknown field \"{field}\"")), "{}", ran.err);
    let (_, named) = ran.err.split_once("expected one of ")?;
    Some(named.split('`').skip(1).step_by(2).map(str::to_owned).collect())
}

#[test]
fn append_takes_what_the_list_says() {
    let world = World::new();
    for (name, operation) in list() {
        for field in &operation.append {
            let Some(named) = named_by_refusal(&world, field) else { continue };
            if name == "record" {
                continue;
            }
            for (parameter, _) in operation.taken("append").iter().filter(|(name, _)| !is_elsewhere(name)) {
                assert!(named.contains(parameter), "{name}: {parameter} is none of {named:?}");
            }
            // Other words for the value, and an id of the host's own.
            let known = ["id", "value", "fact", "description"];
            let taken = operation.taken("append");
            let unlisted = named.iter().filter(|field| {
                taken.iter().all(|(name, _)| name != *field) && !known.contains(&field.as_str())
            });
            assert_eq!(unlisted.collect::<Vec<_>>(), Vec::<&String>::new(), "{name}");
        }
    }
}

/// Tools of a door: the arguments of each, and those that have to be given.
fn tools(list: &Value, schema: &str) -> BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> {
    let tools = list.as_array().unwrap().iter().map(|tool| {
        let input = &tool[schema];
        let names = input["properties"].as_object().unwrap().keys().cloned().collect();
        let required =
            input["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
        (tool["name"].as_str().unwrap().to_owned(), (names, required.collect()))
    });
    tools.collect()
}

fn check_tools(door: &str, tools: &BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)>) {
    let list = list();
    let mut listed = BTreeSet::new();
    for (name, operation) in &list {
        for tool in operation.names(door) {
            listed.insert(tool.clone());
            let (names, required) = tools.get(tool).unwrap_or_else(|| panic!("{door} has no {tool}"));
            let taken = operation.taken(door);
            let taken: Vec<_> = taken.iter().filter(|(name, _)| !is_elsewhere(name)).collect();
            let all: BTreeSet<String> = taken.iter().map(|(name, _)| name.clone()).collect();
            let needed: BTreeSet<String> =
                taken.iter().filter(|(_, required)| *required).map(|(name, _)| name.clone()).collect();
            assert_eq!((&all, &needed), (names, required), "{name} at {door}");
        }
    }
    assert_eq!(listed, tools.keys().cloned().collect(), "{door}");
}

#[test]
fn the_tools_of_mcp_are_those_of_the_list() {
    let world = World::fed();
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let answers = world.run_with(&["mcp"], input).ok();
    let answer: Value = serde_json::from_str(answers.lines().nth(1).unwrap()).unwrap();
    check_tools("mcp", &tools(&answer["result"]["tools"], "inputSchema"));
}

#[test]
fn the_tools_of_the_plug_ins_are_those_of_the_list() {
    let world = World::fed();
    let answer =
        world.run_with(&["plugin", "opencode", "--mode", "prune"], "{\"id\":1,\"op\":\"hello\"}\n").ok();
    let answer: Value = serde_json::from_str(answer.lines().next().unwrap()).unwrap();
    check_tools("plugin", &tools(&answer["tools"], "input"));
}

/// Python and Node keep to a list of their own, which their tests hold them against.
#[test]
fn the_bindings_take_what_the_list_says() {
    let surface = std::fs::read_to_string(root().join("bindings/surface.toml")).unwrap();
    let surface: toml::Table = toml::from_str(&surface).unwrap();
    let operations = surface["operations"].as_table().unwrap();
    for (name, operation) in list() {
        let mut taken = BTreeSet::new();
        for call in &operation.library {
            let known = operations.get(call).unwrap_or_else(|| panic!("{name}: there is no {call}"));
            let parameters = known["parameters"].as_array().unwrap().iter().filter_map(toml::Value::as_str);
            taken.extend(parameters.map(|text| text.split(' ').next().unwrap().to_owned()));
            taken.insert(call.clone());
        }
        for (parameter, _) in operation.taken("library").iter().filter(|(name, _)| !is_elsewhere(name)) {
            let is_call = parameter.contains('.') && operations.contains_key(parameter);
            assert!(is_call || taken.contains(parameter), "{name}: {parameter} is none of {taken:?}");
        }
    }
}
