//! Many sessions in little memory give the same answers as in much.

use super::*;

const SESSION_COUNT: usize = 60;
const ROUND_COUNT: usize = 6;

fn named(number: usize) -> StreamInfo {
    StreamInfo::session("acpdb", format!("s{number}"))
}

/// Some calls of a session; the same file again and again, so that each supersedes those before.
fn calls(round: usize) -> Vec<Entry> {
    let call = |number: usize| {
        let name = format!("call-{round}-{number}");
        let params = format!(r#"{{"file_path":"/src/{number}.rs"}}"#);
        let start = Entry::tool_started(&name, "Read", params).origin(format!("{name}:start"));
        [start, Entry::tool_completed(&name, format!("text {round}")).origin(format!("{name}:end"))]
    };
    (0..5).flat_map(call).collect()
}

/// Records the rounds in all sessions in turn, and reads each session after each round.
fn shown(store: &Store) -> Vec<String> {
    let mut all = Vec::new();
    for round in 0..ROUND_COUNT {
        for number in 0..SESSION_COUNT {
            let receipt = store.append(&named(number), calls(round)).unwrap();
            assert!(receipt.event_count >= 10, "{receipt:?}");
            // Facts that were recorded before are known, whether they are in memory or not.
            let again = store.append(&named(number), calls(round / 2)).unwrap();
            assert_eq!((again.event_count, again.known_count), (0, 10));
            let view = store.view(named(number).id()).unwrap();
            let items = view.current().into_iter().map(|item| format!("{:?}", item.item));
            all.push(items.collect::<Vec<_>>().join(" "));
        }
    }
    all
}

#[test]
fn sessions_that_leave_the_memory_come_back_as_they_were() {
    let folder = TempDir::new().unwrap();
    let open = |name: &str, bytes: u64| {
        Store::builder(folder.path().join(name))
            .registry(Arc::new(crate::testing::TestTools))
            .memory_max(bytes)
            .open()
            .unwrap()
    };
    let (much, little) = (open("much", 1 << 30), open("little", 400 << 10));
    assert_eq!(shown(&little), shown(&much));
    let (folds, bytes) = little.inner.folds.lock().unwrap().figures_for_test();
    assert!(bytes <= 300 << 10 && folds > 0 && folds < SESSION_COUNT, "{folds} folds, {bytes} bytes");
    let (writers, bytes) = little.inner.writers.lock().unwrap().figures_for_test();
    assert!(bytes <= 101 << 10 && writers > 0 && writers < SESSION_COUNT, "{writers} writers, {bytes} bytes");
    let (folds, _) = much.inner.folds.lock().unwrap().figures_for_test();
    assert!(folds >= SESSION_COUNT);
}

/// A view keeps its fold whatever leaves the memory meanwhile, and a view made later shows the same.
#[test]
fn a_view_outlives_its_fold_in_memory() {
    let folder = TempDir::new().unwrap();
    let store = Store::builder(folder.path().join("store")).memory_max(1).open().unwrap();
    let session = |number| {
        let _ = store.append(&named(number), vec![Entry::message("", Role::User, "text")]).unwrap();
        store.view(named(number).id()).unwrap()
    };
    let views: Vec<_> = (0..8).map(session).collect();
    assert!(views.iter().all(|view| view.current().len() == 1));
    drop(views);
    let _ = session(9);
    let (folds, _) = store.inner.folds.lock().unwrap().figures_for_test();
    assert!(folds <= 2, "{folds}");
}

/// A placed commit that is not durable is in no file: its writer stays, and the next commit knows of it.
#[test]
fn a_writer_of_what_is_not_durable_stays() {
    let folder = TempDir::new().unwrap();
    let store = Store::builder(folder.path().join("store")).memory_max(1).open().unwrap();
    let message = |number: usize| vec![Entry::message("m", Role::User, "text").origin(format!("o{number}"))];
    let first: Vec<_> =
        (0..40).map(|number| store.submit(&named(number), message(number)).unwrap()).collect();
    let second: Vec<_> =
        (0..40).map(|number| store.submit(&named(number), message(number)).unwrap()).collect();
    for ticket in first {
        assert!(ticket.wait().unwrap().event_count > 0);
    }
    for ticket in second {
        let receipt = ticket.wait().unwrap();
        assert_eq!((receipt.event_count, receipt.known_count), (0, 1));
    }
}
