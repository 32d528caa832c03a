//! A conversation as a request tells it, and the facts in it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::entry::{Bytes, Entry, ItemRef, PartEntry, fact};
use acpdb_engine::event::{Outcome, PartKind, Role};

use crate::import::{Occurrences, content_digest, json, prompt, step};
use crate::is_among;

/// The parts of a request before the messages.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RequestHead {
    /// The model.
    pub model: Option<String>,
    /// The system's text before the first message.
    pub system: Option<String>,
    /// Definitions of tools, as they are.
    pub tools: Option<String>,
    /// Parameters of the model, as one object.
    pub params: Option<String>,
}

impl RequestHead {
    /// The fact that these are in force from now on. It has no origin: an earlier head may come back.
    pub fn entry(&self) -> Entry {
        let bytes = |text: &Option<String>| text.as_ref().map(|text| Bytes::from(text.as_bytes()));
        let (system, tools, params) = (bytes(&self.system), bytes(&self.tools), bytes(&self.params));
        fact::PromptSet { system, tools, model: self.model.clone(), params }.into()
    }
}

/// A call as a message asks for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestedCall<'a> {
    /// Its id; where the provider gave none, one made of its message and its place.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Its parameters, JSON.
    pub params: Cow<'a, str>,
    /// The same as they stand in the request.
    pub value: &'a str,
    /// The provider's signature on the call.
    pub signature: Option<String>,
}

/// A result of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered<'a> {
    /// The call's id, as [`RequestedCall::id`].
    pub id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The parts of the result.
    pub parts: Vec<PartEntry>,
    /// The same as it stands in the request; `None`: it is not given.
    pub value: Option<&'a str>,
    /// Name of the message that asked for it; empty: none does.
    asked_in: String,
}

/// A message of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// Its name: a digest of its content, and its number among equal ones.
    pub key: String,
    /// Its role.
    pub role: Role,
    /// Its content, without calls and results.
    pub parts: Vec<PartEntry>,
    /// Calls that it asks for.
    pub calls: Vec<RequestedCall<'a>>,
    /// Results that it brings.
    pub results: Vec<Answered<'a>>,
    /// Whether it belongs to the step of the message before it.
    pub(crate) goes_on: bool,
}

impl<'a> Message<'a> {
    /// A message that only brings a result: nothing is said in it, so it needs no name.
    pub(crate) fn of_result(result: Answered<'a>) -> Self {
        let key = String::new();
        let (parts, calls, results) = (Vec::new(), Vec::new(), vec![result]);
        Self { key, role: Role::Tool, parts, calls, results, goes_on: false }
    }

    /// Whether something is said in it beside results.
    fn says(&self) -> bool {
        self.role == Role::Assistant || !self.parts.is_empty()
    }

    fn origin(&self) -> String {
        format!("msg:{}", self.key)
    }

    /// Origins of the parts of an answer: texts are numbered apart from the reasoning before them.
    fn part_origins(&self) -> Vec<String> {
        let mut counts = BTreeMap::new();
        let origin = |part: &PartEntry| {
            let name = match part.kind {
                PartKind::Reasoning => "thought",
                _ => "part",
            };
            let count: &mut usize = counts.entry(name).or_default();
            *count += 1;
            format!("msg:{}/{name}{count}", self.key)
        };
        self.parts.iter().map(origin).collect()
    }

    pub(crate) fn entries(&self, out: &mut Vec<Entry>) {
        for result in &self.results {
            let ended = Entry::tool_finished(&result.id, result.outcome, result.parts.clone());
            out.push(ended.origin(format!("call:{}@{}:finish", result.id, result.asked_in)));
        }
        if !self.says() {
            return;
        }
        let origin = self.origin();
        match self.role {
            Role::Assistant if !self.goes_on => out.push(step(&origin)),
            Role::User => out.push(prompt(&origin)),
            _ => {}
        }
        // A program sends an answer back without its reasoning: each part is a fact of its own, so that a part less is no
        // change.
        let (whole, single) = match self.role {
            Role::Assistant => (Vec::new(), &*self.parts),
            _ => (self.parts.clone(), [].as_slice()),
        };
        out.push(Entry::message_parts(&self.key, self.role, whole).origin(origin));
        for (part, origin) in single.iter().zip(self.part_origins()) {
            let fact = fact::MessageContinued { key: self.key.clone(), parts: vec![part.clone()] };
            out.push(Entry::from(fact).origin(origin));
        }
        for call in &self.calls {
            let fact = fact::ToolStarted {
                call: call.id.clone(),
                message: Some(self.key.clone()),
                tool: call.tool.clone(),
                params: Bytes::from(call.params.as_bytes()),
                provider_signature: call.signature.as_ref().map(|text| Bytes::from(text.as_bytes())),
            };
            out.push(Entry::from(fact).origin(format!("call:{}@{}:start", call.id, self.key)));
        }
    }

    fn items(&self, out: &mut Vec<ItemRef>) {
        if !self.says() {
            return;
        }
        if self.role == Role::Assistant {
            out.extend(self.part_origins().into_iter().map(|origin| ItemRef::Origin(origin, 1)));
        } else {
            out.extend((1..).zip(&self.parts).map(|(part, _)| ItemRef::Origin(self.origin(), part)));
        }
        let start = |call: &RequestedCall<'_>| format!("call:{}@{}:start", call.id, self.key);
        out.extend(self.calls.iter().map(|call| ItemRef::Origin(start(call), 1)));
    }
}

/// A call that has no result yet.
#[derive(Clone, PartialEq, Eq, Debug)]
struct PendingCall {
    /// The id that the provider or the program gave it.
    given: Option<String>,
    id: String,
    tool: String,
    asked_in: String,
}

/// Numbers messages and finds the calls of results, in the order of the conversation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct MessageNames {
    /// The answer that the messages follow, where a provider keeps the messages before it.
    after: String,
    equal: Occurrences,
    /// Calls of the last message that asked for some, and of earlier ones.
    group: Vec<PendingCall>,
    older: Vec<PendingCall>,
}

/// A conversation up to an answer, as far as names of later messages depend on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConversationState {
    /// The provider's name of the answer.
    pub(crate) answer: String,
    pub(crate) names: MessageNames,
}

/// A call before its message has a name.
#[derive(Debug)]
pub(crate) struct UnnamedCall<'a> {
    pub(crate) id: Option<String>,
    pub(crate) tool: String,
    pub(crate) params: Cow<'a, str>,
    pub(crate) value: &'a str,
    pub(crate) signature: Option<String>,
}

impl MessageNames {
    /// Names of messages that follow this answer, where the provider keeps the messages before it.
    pub(crate) fn after(answer: Option<&str>) -> Self {
        Self { after: answer.unwrap_or_default().to_owned(), ..Self::default() }
    }

    /// Names of messages that follow this answer: those of its own conversation, where that is known up to this answer. So a
    /// request that tells all of it later has the same names.
    pub(crate) fn going_on(answer: &str, known: Option<&ConversationState>) -> Self {
        let known = known.filter(|known| known.answer == answer);
        known.map_or_else(|| Self::after(Some(answer)), |known| known.names.clone())
    }

    /// A message of these parts and calls; results are added to it.
    pub(crate) fn message<'a>(
        &mut self,
        role: Role,
        parts: Vec<PartEntry>,
        calls: Vec<UnnamedCall<'a>>,
    ) -> Message<'a> {
        let key = content_digest(&format!("{}{}", self.after, said(role, &parts, &calls)));
        let key = format!("{key}#{}", self.equal.next(&key));
        if !calls.is_empty() {
            self.older.append(&mut self.group);
        }
        let mut asked = Vec::new();
        for (place, call) in calls.into_iter().enumerate() {
            let given = call.id.filter(|id| !id.is_empty());
            let id = given.clone().unwrap_or_else(|| format!("{key}.{place}"));
            let open = PendingCall { given, id: id.clone(), tool: call.tool.clone(), asked_in: key.clone() };
            self.group.push(open);
            let UnnamedCall { tool, params, value, signature, .. } = call;
            asked.push(RequestedCall { id, tool, params, value, signature });
        }
        Message { key, role, parts, calls: asked, results: Vec::new(), goes_on: false }
    }

    /// A result: of the call with this id, else, where it has none, of the first one of this tool that is open.
    pub(crate) fn result<'a>(
        &mut self,
        id: Option<String>,
        tool: Option<&str>,
        outcome: Outcome,
        parts: Vec<PartEntry>,
        value: Option<&'a str>,
    ) -> Answered<'a> {
        let id = id.filter(|id| !id.is_empty());
        let is_it = |open: &PendingCall| match &id {
            Some(id) => open.given.as_ref() == Some(id),
            None => open.given.is_none() && tool.is_none_or(|tool| tool == open.tool),
        };
        let open = match self.group.iter().position(is_it) {
            Some(at) => Some(self.group.remove(at)),
            None => self.older.iter().rposition(is_it).map(|at| self.older.remove(at)),
        };
        let (id, asked_in) = match open {
            Some(open) => (open.id, open.asked_in),
            None => (id.unwrap_or_default(), String::new()),
        };
        Answered { id, outcome, parts, value, asked_in }
    }
}

/// Parameters in their canonical form, since programs write them anew; parameters that are no JSON stay.
pub(crate) fn canonical(params: &str) -> String {
    match acpdb_engine::text::json::canonical_or_text(params.as_bytes()) {
        (canonical, Some(_)) => canonical,
        (_, None) => params.to_owned(),
    }
}

/// The content of a message for its name: texts in one piece, no reasoning. So a streamed answer and the message that a
/// program makes of it have one name.
fn said(role: Role, parts: &[PartEntry], calls: &[UnnamedCall<'_>]) -> String {
    let mut text = String::new();
    let mut others = Vec::new();
    for part in parts {
        match part.kind {
            PartKind::Text => text.push_str(&String::from_utf8_lossy(&part.bytes)),
            PartKind::Reasoning => {}
            _ => others.push(String::from_utf8_lossy(&part.bytes)),
        }
    }
    let calls: Vec<_> =
        calls.iter().map(|call| (call.id.as_deref().unwrap_or_default(), &call.tool, &call.params)).collect();
    format!("{role:?}\n{}\n{others:?}\n{calls:?}", text.trim())
}

/// How much of its conversation a request tells.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Extent {
    /// All that the model is shown.
    #[default]
    Whole,
    /// The new messages: the provider keeps those before them.
    Added,
    /// Some messages stand at the provider only, in places that the request does not tell.
    Refers,
}

/// The conversation that a request tells.
#[derive(Clone, Debug)]
pub struct Talk<'a> {
    /// The parts before the messages.
    pub head: RequestHead,
    /// The messages.
    pub messages: Vec<Message<'a>>,
    /// How much of the conversation these are.
    pub extent: Extent,
    /// The answer before the messages, where their names are those that follow it in a whole conversation.
    pub after: Option<String>,
    /// Members that are not understood, by name. They go to the provider as they are, and are not recorded.
    pub unknown: BTreeSet<String>,
    /// Names of messages so far.
    pub(crate) names: MessageNames,
}

impl Talk<'_> {
    /// Whether its messages and their names go on from there.
    pub fn goes_on_from(&self, known: &ConversationState) -> bool {
        self.after.as_ref() == Some(&known.answer)
    }

    /// Every message, call and result, in order. The head is not among them.
    pub fn entries(&self) -> Vec<Entry> {
        let mut out = Vec::new();
        self.messages.iter().for_each(|message| message.entries(&mut out));
        out
    }

    /// The items that the model is shown, in order.
    pub fn items(&self) -> Vec<ItemRef> {
        let mut out = Vec::new();
        self.messages.iter().for_each(|message| message.items(&mut out));
        out
    }

    /// Names of the messages that say something, in order: a longer request of the same conversation begins with them.
    pub fn keys(&self) -> Vec<String> {
        self.messages.iter().filter(|message| message.says()).map(|message| message.key.clone()).collect()
    }
}

/// The members of a request that are parameters of its model, as an object. Members that are not known are noted: programs
/// put anything there, keys too.
pub(crate) fn params(
    body: &str,
    known: &str,
    passed: &str,
    unknown: &mut BTreeSet<String>,
) -> Option<String> {
    let mut out = Vec::new();
    for (name, value) in json::members(body)? {
        if is_among(known, &name) {
            out.push(format!("\"{name}\":{value}"));
        } else if !is_among(passed, &name) {
            unknown.insert(name);
        }
    }
    (!out.is_empty()).then(|| format!("{{{}}}", out.join(",")))
}

/// Notes the names of an object's members that are not known.
pub(crate) fn note_unknown(object: &str, known: &str, unknown: &mut BTreeSet<String>) {
    let members = json::members(object).unwrap_or_default();
    unknown.extend(members.into_iter().map(|(name, _)| name).filter(|name| !is_among(known, name)));
}
