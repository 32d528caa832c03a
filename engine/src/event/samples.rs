//! One event of every kind, for tests that must not miss any.

#[allow(
    clippy::wildcard_imports,
    reason = "one of everything there is; in test builds the lint is silent"
)]
use super::*;
use crate::ids::{ItemId, Seq, Signature};

fn body(first: u32, bytes: u64) -> Body {
    Body { first, chunks: 1, bytes, tokens: 3, lines: 1 }
}

fn part(first: u32) -> Part {
    Part {
        kind: PartKind::Text,
        body: body(first, 40),
        media_type: None,
        signature: Some(body(first + 1, 8)),
        task: Some("t1".to_owned()),
        automata: true,
    }
}

fn item() -> ItemId {
    ItemId { seq: Seq(812), part: 2 }
}

fn hidden(summary: Option<Body>) -> Hidden {
    Hidden { item: item(), pattern: Some(Signature([6; 16])), summary }
}

#[expect(clippy::unnecessary_wraps, reason = "fields are optional")]
fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// A free text as it stands in a payload: its row.
#[expect(clippy::unnecessary_wraps, reason = "fields are optional")]
fn prose(row: u32) -> Option<Text> {
    let mut text = Text::default();
    text.settle(body(row, 9));
    Some(text)
}

fn list() -> TodoList {
    let head = TodoHead {
        id: text("1"),
        content: Signature([4; 16]),
        status: "in_progress".to_owned(),
        priority: text("high"),
    };
    TodoList { body: body(1, 70), items: vec![head] }
}

fn change() -> TodoChange {
    TodoChange {
        id: "7".to_owned(),
        status: text("completed"),
        entry: Some(body(0, 20)),
        content: Some(Signature([5; 16])),
    }
}

fn file_key() -> Key {
    Key {
        kind: KeyKind::File,
        class: ToolClass::Read,
        given: "src/app.ts".to_owned(),
        resolved: text("/w/src/app.ts"),
        fields: vec!["a".to_owned()],
    }
}

/// One payload of every kind, in order of their numbers, each with every field set.
#[expect(clippy::too_many_lines, reason = "one literal a kind")]
pub fn payloads() -> Vec<Payload> {
    let usage = Usage {
        input: Some(1),
        output: Some(2),
        cache_read: Some(3),
        cache_write: Some(4),
        cache_write_long: Some(2),
        reasoning: Some(5),
    };
    let started = ToolCallStarted {
        call: "call_1".to_owned(),
        message: text("msg_1"),
        tool: "read".to_owned(),
        params: body(0, 25),
        canonical_tokens: 9,
        label: 0x00ab_cdef,
        signature: Signature([1; 16]),
        forms: vec![
            (SignatureForm::NoNulls, Signature([2; 16])),
            (SignatureForm::Resolved, Signature([3; 16])),
        ],
        class: ToolClass::Read,
        keys: vec![file_key()],
        volatile: true,
        todo: TodoRole::Write,
        todos: Some(list()),
        shown: Shown { line_bytes: 10, line_tokens: 4, object_bytes: 12, object_tokens: 5 },
        registry: 1,
        provider_signature: Some(body(2, 9)),
    };
    let memory = MemoryRecorded {
        id: "p1".to_owned(),
        kind: MemoryKind::Preference,
        category: "tooling".into(),
        key: prose(4),
        subject: prose(5),
        value: body(0, 6),
        value_signature: Signature([8; 16]),
        rationale: Some(body(1, 5)),
        alternatives: vec![body(2, 5)],
        related_files: prose(6).into_iter().collect(),
        confidence: 80,
        lifespan: Lifespan::Project,
        created: Some(Micros(5)),
        source: Some(MemorySource { item: item(), start: 1, end: 9 }),
        replaces: vec!["p0".to_owned()],
        superseded_by: vec!["p2".to_owned()],
        status: prose(7),
        extra: Some(body(3, 2)),
    };
    let task = TaskFields {
        id: "t1".to_owned(),
        content: Some(body(0, 4)),
        status: Some(TaskStatus::InProgress),
        extra: Some(body(1, 4)),
        summary: Some(body(2, 4)),
    };
    let message = MessageRecorded {
        key: "msg_1".to_owned(),
        role: Role::Assistant,
        parts: vec![part(0)],
        parent: text("msg_0"),
        hidden_from_model: true,
        hidden_from_user: true,
    };
    let served = ContextServed {
        step: "step_1".to_owned(),
        epoch: 2,
        renderer: 1,
        digest: [9; 32],
        tokens: 100,
        format: "anthropic".to_owned(),
    };
    vec![
        SessionOpened {
            scope: Scope::Session,
            host: "opencode".to_owned(),
            name: "ses_1".to_owned(),
            project: text("shop"),
            parent: Some(Parent { stream: StreamId([1; 16]), call: text("call_0") }),
            cwd: text("/w"),
            title: prose(1),
            host_version: text("1.0"),
            policy: Some(Seq(1)),
            key: body(0, 32),
        }
        .into(),
        SessionChanged { title: prose(0), cwd: text("/v"), project: text("p"), host_version: text("2") }
            .into(),
        SessionClosed { reason: prose(0) }.into(),
        TurnStarted { kind: TurnKind::Prompt, key: "k".to_owned(), number: Some(4) }.into(),
        PromptSet {
            system: Some(body(0, 5)),
            tools: Some(body(1, 5)),
            model: text("m"),
            params: Some(body(2, 5)),
        }
        .into(),
        ContextReplaced { cause: ReplaceCause::Host, order: vec![item()], tokens_before: Some(9) }.into(),
        HostCleared { items: vec![item()], calls: vec!["c".to_owned()], text: Some(body(0, 3)) }.into(),
        Rewound { to: Seq(5) }.into(),
        Forked { from: StreamId([2; 16]), at: Seq(6) }.into(),
        HostRecorded { record: "summary".to_owned(), about: text("x"), raw: Some(body(0, 3)) }.into(),
        message.into(),
        MessageContinued { key: "msg_1".to_owned(), parts: vec![part(0), part(2)] }.into(),
        MessageFinished {
            key: "msg_1".to_owned(),
            report: Report {
                model: text("m"),
                provider: text("p"),
                request: text("r"),
                stop_reason: text("end"),
                service_tier: text("s"),
                cost: Some(7),
                usage,
            },
        }
        .into(),
        MessageAbandoned { key: "msg_2".to_owned() }.into(),
        ItemRevised { item: item(), face: Face::Input, parts: vec![part(0)] }.into(),
        started.into(),
        ToolCallFinished {
            call: "call_1".to_owned(),
            outcome: Outcome::Failed,
            output: vec![part(0)],
            details: Some(body(2, 8)),
            todos: Some(TodoUpdate::Change(change())),
        }
        .into(),
        FileChanged { key: file_key(), by: FileChanger::Shell }.into(),
        TodosReplaced { list: list() }.into(),
        TodoChanged { change: change() }.into(),
        TaskChanged { tasks: vec![task], message: text("msg_1") }.into(),
        TaskEvicted {
            task: "t1".to_owned(),
            summary: Some(body(0, 20)),
            validation: Some(Validation { valid: true, score: 70, evidence_found: Some(false) }),
            message: text("msg_9"),
        }
        .into(),
        memory.into(),
        MemorySuperseded { old: "a".to_owned(), new: "b".to_owned(), reason: Some(body(0, 4)) }.into(),
        MemoryReinforced { id: "a".to_owned(), amount: 10, at: Some(Micros(1)) }.into(),
        MemoryRetracted { id: "a".to_owned(), reason: Some(body(0, 4)), at: Some(Micros(2)) }.into(),
        Discarded { targets: body(0, 9), items: vec![hidden(None)] }.into(),
        Distilled { targets: body(0, 9), items: vec![hidden(Some(body(1, 7)))] }.into(),
        Restored { targets: body(0, 9), items: vec![item()] }.into(),
        Pinned { items: vec![item()] }.into(),
        Unpinned { items: vec![item()] }.into(),
        Injected { what: InjectedKind::Reflection, text: body(0, 9) }.into(),
        ContextRebased { epoch: 2, why: RebaseCause::Pays, items: vec![item()] }.into(),
        served.into(),
        PolicySet { policy: "{\"preset\":\"acp\"}".to_owned(), reason: prose(0) }.into(),
        Erased {
            bodies: vec![BodyAddress { seq: Seq(4), row: 1 }],
            by: "me".to_owned(),
            reason: "secret".into(),
            contents: vec![[7; 16]],
        }
        .into(),
        DamageNoted { segment: 2, offset: 4096, first: Seq(7), last: Seq(9), note: "flip".to_owned() }.into(),
    ]
}

/// A stamp with every field set.
pub fn stamp() -> Stamp {
    Stamp { actor: Actor::Assistant, estimator: 1, revision: 77, wire: Some(body(9, 300)) }
}
