//! The system prompt and the tools, which Pi records as messages that change them.
//!
//! ```text
//! {role: "system", content, sections: {name: text or null}, toolsAdded: [{name, ..}], toolsRemoved: [{name}]}
//! ```
//!
//! The first such message says all. A later one adds its content, sets or takes away sections by name, and adds or takes
//! away tools. A compaction's message (`systemMessage`) says all of it again. Where the API takes such a message in the
//! middle, the host sends the change there; the fact here is the whole that holds from then on.

use acpdb_engine::entry::{Fact, fact};

use super::super::json::{elements, member, members, owned, pick};

/// The prompt and the tools after a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct System {
    contents: Vec<String>,
    /// By name, in the order in which they were set first.
    sections: Vec<(String, String)>,
    /// Definitions by name.
    tools: Vec<(String, String)>,
}

impl System {
    /// Takes in a message.
    pub(super) fn change(&mut self, said: &str) {
        let [content, sections, added, removed] =
            pick(said, ["content", "sections", "toolsAdded", "toolsRemoved"]).unwrap_or_default();
        let blocks = content.and_then(elements).unwrap_or_default();
        let texts = blocks.iter().filter_map(|block| owned(member(Some(block), "text")));
        let text = owned(content).unwrap_or_else(|| texts.collect::<Vec<_>>().join("\n"));
        self.contents.extend(Some(text).filter(|text| !text.is_empty()));
        for (name, section) in sections.and_then(members).unwrap_or_default() {
            set(&mut self.sections, name, owned(Some(section)));
        }
        for tool in removed.and_then(elements).unwrap_or_default() {
            set(&mut self.tools, owned(member(Some(tool), "name")).unwrap_or_default(), None);
        }
        for tool in added.and_then(elements).unwrap_or_default() {
            let name = owned(member(Some(tool), "name")).unwrap_or_default();
            set(&mut self.tools, name, Some(tool.to_owned()));
        }
    }

    /// The prompt and the tools as they are now.
    pub(super) fn fact(&self) -> Fact {
        let sections = self.sections.iter().map(|(_, text)| text);
        let texts: Vec<&str> = self
            .contents
            .iter()
            .chain(sections)
            .map(String::as_str)
            .filter(|text| !text.is_empty())
            .collect();
        let tools: Vec<&str> = self.tools.iter().map(|(_, tool)| tool.as_str()).collect();
        Fact::PromptSet(fact::PromptSet {
            system: Some(texts.join("\n\n").into_bytes().into()),
            tools: Some(format!("[{}]", tools.join(",")).into_bytes().into()),
            ..fact::PromptSet::default()
        })
    }
}

/// Sets a value, where it stands if it is there; or takes it away.
fn set(list: &mut Vec<(String, String)>, name: String, value: Option<String>) {
    let place = list.iter().position(|(other, _)| *other == name);
    match (place, value) {
        (Some(place), Some(value)) => {
            if let Some((_, old)) = list.get_mut(place) {
                *old = value;
            }
        }
        (Some(place), None) => drop(list.remove(place)),
        (None, Some(value)) => list.push((name, value)),
        (None, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_changes_what_the_ones_before_it_said() {
        let mut system = System::default();
        for (said, text, tools) in [
            (
                r#"{"content":"","sections":{"a":"A","b":"B"},"toolsAdded":[{"name":"read"},{"name":"write"}]}"#,
                "A\n\nB",
                r#"[{"name":"read"},{"name":"write"}]"#,
            ),
            (
                r#"{"content":"Now.","sections":{"a":"A2","b":null},"toolsRemoved":[{"name":"read"}]}"#,
                "Now.\n\nA2",
                r#"[{"name":"write"}]"#,
            ),
            (
                r#"{"content":[{"type":"text","text":"Then."}],"toolsAdded":[{"name":"write","n":2}]}"#,
                "Now.\n\nThen.\n\nA2",
                r#"[{"name":"write","n":2}]"#,
            ),
            (r#"{"content":"","toolsAdded":7}"#, "Now.\n\nThen.\n\nA2", r#"[{"name":"write","n":2}]"#),
        ] {
            system.change(said);
            let Fact::PromptSet(fact::PromptSet { system: Some(is), tools: Some(are), .. }) = system.fact()
            else {
                panic!("no prompt")
            };
            assert_eq!((is.as_ref(), are.as_ref()), (text.as_bytes(), tools.as_bytes()), "{said}");
        }
    }
}
