//! Accepted proposals become memory, each proposal after the ones before.

use acpdb_engine::command::memory::decide;
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Lifespan;
use acpdb_engine::testing::memory::{Bench, preference, record, stream};

use super::*;

fn bench() -> Bench {
    let mut bench = Bench::default();
    bench.item(preference("p1", "package_manager", ""), "npm");
    bench.item(preference("p2", "package_manager", ""), "pnpm");
    bench.item(record("d1", MemoryKind::Decision, "implementation", ""), "React for frontend");
    bench
}

#[test]
fn what_is_decided_folds_to_what_was_asked() {
    let mut bench = bench();
    for (text, current) in
        [("not pnpm, use yarn", "yarn"), ("I prefer YARN", "yarn"), ("I've switched to bun, always", "bun")]
    {
        let proposals = bench.view(|view| propose(Role::User, text, view));
        for proposal in proposals {
            let source = ItemId::first(Seq(77));
            let accepting = command(&proposal, Some(source));
            let decision = bench.view(|view| decide(view, &accepting)).unwrap();
            assert_eq!(decision.stream, stream(Lifespan::Project));
            for draft in decision.drafts {
                let bodies: Vec<_> =
                    draft.bodies.iter().map(|body| std::str::from_utf8(body).unwrap()).collect();
                bench.push(Lifespan::Project, draft.event.payload, &bodies);
            }
        }
        bench.view(|view| {
            let (_, item) = view.by_key("tooling", "package_manager").unwrap();
            assert_eq!(view.text(&item).as_deref(), Some(current), "{text}");
            assert!(item.facts().record.source.is_some_and(|source| source.end > source.start));
        });
    }
    bench.view(|view| {
        let (_, item) = view.by_key("tooling", "package_manager").unwrap();
        let (_, memory) = view.stream(stream(Lifespan::Project)).unwrap();
        let values: Vec<_> =
            memory.chain(&item).members.iter().filter_map(|member| view.text(&member.item?)).collect();
        assert_eq!(values, ["npm", "pnpm", "yarn", "bun"]);
    });
}

#[test]
fn proposals_are_accepted_once_and_each_sees_the_ones_before() {
    let store = crate::testing::store();
    let info = StreamInfo { project: Some("p".to_owned()), ..StreamInfo::session("acpdb", "s1") };
    for text in ["I always use npm here.", "Not npm, use pnpm."] {
        let _ = store.append(&info, vec![Entry::message("", Role::User, text)]).unwrap();
    }
    let found = of_session(&store, info.id()).unwrap();
    let values: Vec<&str> = found.iter().map(|it| it.proposal.item.value.as_str()).collect();
    assert_eq!(values, ["npm", "pnpm"]);
    let scope = MemoryScope::session(info.id());
    for proposal in &found {
        let accepting = acceptance(&store, info.id(), proposal).unwrap();
        let _ = store.remember(&scope, &accepting).unwrap();
    }
    let memory = store.memory(&scope, Seq::MAX).unwrap();
    memory.read(store.now(), |view| {
        let current = view.current().into_iter();
        let current: Vec<_> = current.map(|(_, item)| (item.id().to_owned(), view.text(&item))).collect();
        assert_eq!(current, [("p2".to_owned(), Some("pnpm".to_owned()))]);
        let source = view.by_id("p2").unwrap().1.facts().record.source;
        assert_eq!(source.unwrap().item, found[1].source);
    });
    assert_eq!(of_session(&store, info.id()).unwrap(), []);
}
