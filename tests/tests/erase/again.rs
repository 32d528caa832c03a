//! An erased content does not come again, from any process and in any spelling.

use acpdb_engine::entry::{Entry, TodoChangeEntry, fact};
use acpdb_engine::event::Role;
use acpdb_engine::ids::Seq;
use acpdb_engine::storage::SimWorld;
use acpdb_engine::store::ErasedWhy;
use acpdb_tests::support::texts_of;

use crate::{SECRET, assert_sound, call, filled, found_in, item_of, open, output, session};

/// A process that has stored a body names it when it comes again. Once it was erased, the new event would name zeros; it was stored anew
/// then, and so a transcript that was imported later brought back a text that a user had taken out. Now it stays erased, whichever
/// process brings it.
#[test]
fn what_comes_again_after_an_erasure_stays_erased() {
    let world = filled(false, false);
    let (one, two) = (open(&world, 2), open(&world, 3));
    let _ = one.append(&session(2), call("c5", &output())).unwrap();
    let _ = two.append(&session(3), call("c6", &output())).unwrap();
    let item = item_of(&one, &session(0), "c1");
    let report = one.erase(item, "ada", "it leaked").unwrap();
    assert_eq!(report.hit.iter().filter(|hit| hit.why == ErasedWhy::Equal).count(), 3);
    assert_eq!(found_in(&world), [""; 0]);
    for (store, number) in [(&two, 3), (&one, 2)] {
        let _ = store.append(&session(number), call("c7", &output())).unwrap();
        let view = store.view(session(number).id()).unwrap();
        let found = view.history().into_iter().find(|item| item.call.as_deref() == Some("c7")).unwrap();
        assert_eq!(view.text(found.content[0].body).unwrap(), "[erased before; not stored again]");
    }
    assert_eq!(found_in(&world), [""; 0], "it is nowhere again");
    assert_sound(&world, "with the same content again");
}

/// A host's database and its export write the same parameters with other blanks, so an erased call came back. A todo that quotes an erased
/// text brought it back, too.
#[test]
fn an_erased_content_comes_back_in_no_other_spelling_and_in_no_todo() {
    let params = format!(r#"{{"command":"echo {SECRET}","line":1,"of":["a\u00fc"]}}"#);
    let other_spellings = [
        format!(r#"{{"command": "echo {SECRET}", "line": 1, "of": ["aü"]}}"#),
        format!(
            "{{\n  \"of\": [\n    \"aü\"\n  ],\n  \"line\": 1.0,\n  \"command\": \"echo {SECRET}\"\n}}\n"
        ),
        format!(r#"{{"line":1e0,"of":["a\u00fc"],"command":"echo\u0020{SECRET}"}}"#),
    ];
    let started = |call: &str, params: &str| vec![Entry::tool_started(call, "bash", params)];
    for sealed in [false, true] {
        let world = SimWorld::new(21);
        let store = open(&world, 1);
        let info = session(0);
        let _ = store.append(&info, started("p0", &params)).unwrap();
        let _ = store.append(&info, vec![Entry::message("m0", Role::User, output())]).unwrap();
        let _ = store.append(&session(1), started("p1", &other_spellings[0])).unwrap();
        let _ = store
            .append(&session(1), started("near", r#"{"command": "echo other", "line": 1, "of": ["aü"]}"#))
            .unwrap();
        if sealed {
            let _ = store.seal(true).unwrap();
        }
        let report = store.erase(item_of(&store, &info, "p0"), "ada", "it leaked").unwrap();
        assert_eq!(report.hit.iter().filter(|hit| hit.why == ErasedWhy::Equal).count(), 1, "{report:?}");
        let message = store.view(info.id()).unwrap().history()[1].item;
        let _ = store.erase(message, "ada", "it leaked").unwrap();
        assert_eq!(found_in(&world), [""; 0]);

        for (number, spelling) in other_spellings.iter().enumerate() {
            let call = format!("q{number}");
            let _ = store.append(&session(2), started(&call, spelling)).unwrap();
            let view = store.view(session(2).id()).unwrap();
            let found = view.history().into_iter().find(|item| item.call.as_deref() == Some(&call)).unwrap();
            assert_eq!(view.text(found.params.unwrap()).unwrap(), r#"{"erased":true}"#, "{spelling}");
        }
        let todo = |content: &str| serde_json::json!({"id": "1", "content": content, "status": "pending", "priority": "low"});
        let quoting = serde_json::json!([todo("harmless"), todo(&output())]).to_string();
        let todos = Entry::from(fact::TodosReplaced { list: quoting.into_bytes().into() });
        let _ = store.append(&session(2), vec![todos]).unwrap();
        let change = TodoChangeEntry {
            id: "2".to_owned(),
            status: Some("pending".to_owned()),
            entry: Some(todo(&output()).to_string().into_bytes().into()),
        };
        let _ = store.append(&session(2), vec![Entry::from(fact::TodoChanged { change })]).unwrap();
        let mut said = String::new();
        for recorded in store.stream_events(session(2).id(), Seq(1), Seq::MAX).unwrap() {
            for body in texts_of(&recorded.unwrap()) {
                said.push_str(&String::from_utf8_lossy(&store.body(body).unwrap()));
            }
        }
        assert!(said.contains("harmless") && said.contains("[erased before; not stored again]"), "{said}");
        assert_eq!(found_in(&world), [""; 0], "it is nowhere again");
        let near = item_of(&store, &session(1), "near");
        let view = store.view(session(1).id()).unwrap();
        let near = view.history().into_iter().find(|item| item.item == near).unwrap();
        assert!(
            view.text(near.params.unwrap()).unwrap().contains("echo other"),
            "what means something else stays"
        );
        assert_sound(&world, "with other spellings");
    }
}
