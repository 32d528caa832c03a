//! The parts before the messages: system prompt, tools, parameters, and the provider's rules to clear by itself.

use std::collections::BTreeSet;

use acpdb_engine::fold::Policy;
use acpdb_engine::text::Globs;
use acpdb_engine::{Error, event::Role};

use super::Format;
use super::calls::{is_json, object_type};
use super::providers::ToolStyle;
use super::report::{ExportReport, LeftOut};
use super::source::ExportSource;
use super::write::JsonWriter;
use crate::import::json::{elements, member, members, owned, quoted};
use crate::is_among;

/// Members that an export writes itself.
const OWN: &str = "
    model system instructions systemInstruction tools messages input contents context_management";

/// The part of the policy that a provider can be told, so that it clears by itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Clearing {
    keep: u32,
    protected: Globs,
    files: Vec<String>,
    inputs: bool,
    thinking: Option<u32>,
}

impl Clearing {
    pub(super) fn of(policy: &Policy) -> Self {
        Self {
            keep: policy.turn_protection.age_min().max(3),
            protected: policy.protected_tools.clone(),
            files: policy.protected_files.patterns().to_vec(),
            inputs: policy.hide_input != acpdb_engine::fold::HideInput::None,
            thinking: policy.reasoning_turns().map(|turns| turns.max(1)),
        }
    }

    /// As `context_management` of an Anthropic request. The provider decides when it begins to clear.
    ///
    /// The provider compares whole names. So a pattern, and a name that also stands for a server's tool, go out as the
    /// names of the `known` tools that they fit, and the report names the patterns.
    pub(super) fn json(&self, known: &BTreeSet<String>, report: &mut ExportReport) -> String {
        let mut edits = Vec::new();
        if let Some(turns) = self.thinking {
            // It has to come first.
            edits.push(format!(
                r#"{{"type":"clear_thinking_20251015","keep":{{"type":"thinking_turns","value":{turns}}}}}"#
            ));
        }
        let mut exclude: Vec<&String> = Vec::new();
        for pattern in self.protected.patterns() {
            if pattern.contains(['*', '?']) {
                report.note_name(LeftOut::PatternExpanded, pattern);
            } else if !exclude.contains(&pattern) {
                exclude.push(pattern);
            }
        }
        let fitting = known.iter().filter(|tool| self.protected.is_match_tool(tool));
        let fitting: Vec<&String> = fitting.filter(|tool| !exclude.contains(tool)).collect();
        exclude.extend(fitting);
        for pattern in &self.files {
            report.note_name(LeftOut::FilesUnprotected, pattern);
        }
        let exclude: Vec<String> = exclude.into_iter().map(|tool| quoted(tool)).collect();
        edits.push(format!(
            r#"{{"type":"clear_tool_uses_20250919","keep":{{"type":"tool_uses","value":{}}},"exclude_tools":[{}],"clear_tool_inputs":{}}}"#,
            self.keep,
            exclude.join(","),
            self.inputs
        ));
        format!(r#"{{"edits":[{}]}}"#, edits.join(","))
    }
}

/// The tools that calls of the export name.
pub(super) fn called_tools(source: &ExportSource<'_>) -> BTreeSet<String> {
    source.items.iter().filter_map(|item| item.brief.tool.as_deref().map(str::to_owned)).collect()
}

/// Writes model and parameters.
pub(super) fn head(source: &mut ExportSource<'_>, json: &mut JsonWriter) -> Result<(), Error> {
    if let Some(model) = source.prompt.model.clone()
        && source.format.request().is_some_and(|request| request.names_model)
    {
        json.text("model", &model);
    }
    let Some(body) = source.prompt.params else { return Ok(()) };
    let Some(params) = source.exact(body, None)? else { return Ok(()) };
    let foreign = source.home().is_some_and(|home| Some(home) != source.format.provider());
    match members(&params) {
        Some(members) if !foreign => {
            for (name, value) in members.iter().filter(|(name, _)| !is_among(OWN, name)) {
                json.member(name, value);
            }
        }
        _ => source.report.note(LeftOut::Parameters, None),
    }
    Ok(())
}

/// The system prompt, and the system's texts before the first text of the user or the model.
///
/// `leading`: takes these texts out of the messages; without it they stay there.
pub(super) fn system(source: &mut ExportSource<'_>, leading: bool) -> Result<Vec<String>, Error> {
    let mut texts = Vec::new();
    if let Some(body) = source.prompt.system {
        texts.push(source.text(body, None)?);
    }
    if leading {
        let said = match source.groups.first() {
            Some(group) if group.model.is_empty() => group.said.clone(),
            _ => Vec::new(),
        };
        let is_system =
            |place: &&usize| source.items.get(**place).is_some_and(|item| item.brief.role == Role::System);
        let count = said.iter().take_while(is_system).count();
        for place in said.iter().take(count) {
            let mut out = Vec::new();
            super::turns::said_of(source, *place, &mut out)?;
            texts.extend(out);
        }
        if let Some(group) = source.groups.first_mut() {
            group.said.drain(..count.min(group.said.len()));
            if group.said.is_empty() && group.model.is_empty() && count > 0 {
                source.groups.remove(0);
                source.unbound.drain(..1.min(source.unbound.len()));
            }
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    Ok(texts)
}

/// The blocks of a system prompt that is a list of blocks, as hosts record it.
pub(super) fn system_blocks(text: &str) -> Option<Vec<&str>> {
    if !text.trim_start().starts_with('[') {
        return None;
    }
    let blocks = elements(text)?;
    (!blocks.is_empty() && blocks.iter().all(|block| object_type(block).is_some())).then_some(blocks)
}

/// A system prompt as one text.
pub(super) fn system_text(text: &str) -> String {
    let Some(blocks) = system_blocks(text) else { return text.to_owned() };
    let texts: Vec<String> =
        blocks.into_iter().filter_map(|block| owned(member(Some(block), "text"))).collect();
    texts.join("\n\n")
}

/// A tool, in no provider's form.
pub(super) struct ToolDefinition<'a> {
    name: String,
    description: Option<&'a str>,
    schema: Option<&'a str>,
}

impl ToolDefinition<'_> {
    /// Writes name, description, and the schema under this name.
    pub(super) fn members(&self, schema: &str, json: &mut JsonWriter) {
        json.text("name", &self.name);
        if let Some(description) = self.description {
            json.member("description", description);
        }
        let own = self.schema.filter(|schema| is_json(schema));
        json.member(schema, own.unwrap_or(r#"{"type":"object"}"#));
    }
}

fn tool(definition: &str) -> Option<ToolDefinition<'_>> {
    let function = member(Some(definition), "function").unwrap_or(definition);
    let get = |names: &[&str]| names.iter().find_map(|name| member(Some(function), name));
    let name = owned(get(&["name"]))?;
    let schema = get(&["input_schema", "parameters", "parametersJsonSchema"]);
    Some(ToolDefinition { name, description: get(&["description"]), schema })
}

/// Writes the tools, in the form of the format, and gives their names.
pub(super) fn tools(source: &mut ExportSource<'_>, json: &mut JsonWriter) -> Result<Vec<String>, Error> {
    let Some(body) = source.prompt.tools else { return Ok(Vec::new()) };
    let Some(text) = source.exact(body, None)? else { return Ok(Vec::new()) };
    let Some(definitions) = elements(&text).filter(|definitions| !definitions.is_empty()) else {
        source.report.note(LeftOut::ToolDefinition, None);
        return Ok(Vec::new());
    };
    let Some(form) = source.format.request().map(|request| &request.tools) else {
        return Ok(Vec::new());
    };
    let all_own = definitions.iter().all(|definition| (form.is_own)(definition));
    // Some providers list their functions inside one element.
    let groups: Vec<&str> = Format::requests().filter_map(|request| request.tools.inside).collect();
    let mut flat = Vec::new();
    for definition in definitions {
        match groups.iter().find_map(|name| member(Some(definition), name).and_then(elements)) {
            Some(inner) => flat.extend(inner),
            None => flat.push(definition),
        }
    }
    let read: Vec<Option<ToolDefinition<'_>>> = flat.into_iter().map(tool).collect();
    let names = read.iter().flatten().map(|tool| tool.name.clone()).collect();
    if all_own {
        json.member("tools", text.trim());
        return Ok(names);
    }
    let mut written = Vec::new();
    for tool in read {
        match tool {
            Some(tool) => written.push(rewritten(form, &tool)),
            None => source.report.note(LeftOut::ToolDefinition, None),
        }
    }
    if !written.is_empty() {
        let list = written.join(",");
        match form.inside {
            Some(name) => json.member("tools", &format!(r#"[{{"{name}":[{list}]}}]"#)),
            None => json.member("tools", &format!("[{list}]")),
        }
    }
    Ok(names)
}

fn rewritten(form: &ToolStyle, tool: &ToolDefinition<'_>) -> String {
    let mut json = JsonWriter::default();
    json.open(b'{');
    (form.write)(tool, &mut json);
    json.close(b'}');
    String::from_utf8(json.out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(format: Format) -> &'static ToolStyle {
        &format.request().unwrap().tools
    }

    #[test]
    fn a_tool_is_written_in_every_form() {
        let schema = r#"{"type":"object","properties":{"p":{"type":"string"}}}"#;
        let forms = [
            format!(r#"{{"name":"read","description":"Reads","input_schema":{schema}}}"#),
            format!(
                r#"{{"type":"function","function":{{"name":"read","description":"Reads","parameters":{schema}}}}}"#
            ),
            format!(r#"{{"type":"function","name":"read","description":"Reads","parameters":{schema}}}"#),
        ];
        for from in &forms {
            let tool = tool(from).unwrap();
            for (format, expected) in
                [Format::Anthropic, Format::Openai, Format::Responses].into_iter().zip(&forms)
            {
                assert_eq!(&rewritten(form(format), &tool), expected);
                assert!((form(format).is_own)(expected), "{expected}");
            }
        }
        let gemini = rewritten(form(Format::Gemini), &tool(&forms[0]).unwrap());
        assert_eq!(
            gemini,
            format!(r#"{{"name":"read","description":"Reads","parametersJsonSchema":{schema}}}"#)
        );
    }

    /// Patterns were dropped without a word, and names were sent as the policy spells them: a server's `mcp__notes__batch`
    /// that the policy protects as `batch` was cleared all the same.
    #[test]
    fn clearing_is_said_from_the_policy_and_what_cannot_be_said_is_named() {
        let clearing = Clearing {
            keep: 4,
            protected: Globs::names(["batch", "book_*", "no?where"]).unwrap(),
            files: vec!["**/.env".to_owned()],
            inputs: true,
            thinking: Some(2),
        };
        let known = ["book_hotel", "mcp__notes__batch", "mcp__travel__book_car", "read"];
        let known = known.into_iter().map(str::to_owned).collect();
        let mut report = ExportReport::default();
        let json: serde_json::Value = serde_json::from_str(&clearing.json(&known, &mut report)).unwrap();
        assert_eq!(json["edits"][0]["type"], "clear_thinking_20251015");
        assert_eq!(json["edits"][1]["keep"]["value"], 4);
        let excluded = ["batch", "book_hotel", "mcp__notes__batch", "mcp__travel__book_car"];
        assert_eq!(json["edits"][1]["exclude_tools"], serde_json::json!(excluded));
        let lines = [
            "pattern of tools told as the tools that it fits so far: 2 (book_*, no?where)",
            "pattern of protected files that the provider does not know of: 1 (**/.env)",
        ];
        assert_eq!(report.lines(), lines);
    }
}
