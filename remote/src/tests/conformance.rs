//! All remotes do alike: one function over [`Remote`], run for all of them.

use std::sync::Arc;
use std::thread;

use crate::remote::LISTED_COUNT_MAX;
use crate::sim::{SimRemote, SimRemoteFaults};
use crate::{Created, FolderRemote, MemoryRemote, ObjectTag, Remote, RemoteError, Swapped};

fn made(created: Created) -> ObjectTag {
    match created {
        Created::Here(tag) => tag,
        Created::Taken => panic!("it is taken"),
    }
}

fn bytes_of(remote: &dyn Remote, key: &str) -> Option<Vec<u8>> {
    remote.get(key, None).unwrap().map(|(bytes, _)| bytes)
}

fn tag_of(remote: &dyn Remote, key: &str) -> ObjectTag {
    remote.get(key, None).unwrap().unwrap().1
}

fn put(remote: &dyn Remote, key: &str, bytes: &[u8]) -> ObjectTag {
    remote.put(key, &mut &*bytes, bytes.len() as u64).unwrap()
}

fn keys(remote: &dyn Remote, under: &str) -> Vec<String> {
    let (mut after, mut keys) = (String::new(), Vec::new());
    loop {
        let mut page: Vec<String> =
            remote.list(under, &after).unwrap().into_iter().map(|found| found.key).collect();
        page.sort();
        assert!(page.len() <= LISTED_COUNT_MAX);
        let Some(last) = page.last() else { return keys };
        assert!(*last > after, "pages go on");
        after.clone_from(last);
        keys.extend(page);
    }
}

/// All that a remote must do. `race_count` rounds of 16 callers race for one object.
pub(super) fn conforms(remote: &dyn Remote, race_count: usize) {
    // Creation.
    assert_eq!(remote.get("a/none", None).unwrap(), None);
    let first = made(remote.create("a/one", b"first").unwrap());
    assert_eq!(remote.create("a/one", b"second").unwrap(), Created::Taken);
    assert_eq!(remote.create("a/one", b"first").unwrap(), Created::Taken, "its own bytes are no exception");
    assert_eq!(remote.get("a/one", None).unwrap(), Some((b"first".to_vec(), first.clone())));

    // Swaps.
    let Swapped::Here(second) = remote.swap("a/one", b"second", &first).unwrap() else {
        panic!("it was the one")
    };
    assert_eq!(remote.swap("a/one", b"third", &first).unwrap(), Swapped::Moved);
    assert_eq!(remote.swap("a/none", b"third", &first).unwrap(), Swapped::Moved, "a swap makes nothing");
    assert_eq!(bytes_of(remote, "a/none"), None);
    assert_eq!(bytes_of(remote, "a/one"), Some(b"second".to_vec()));
    let Swapped::Here(third) = remote.swap("a/one", b"third", &second).unwrap() else {
        panic!("it was the one")
    };
    assert_eq!(tag_of(remote, "a/one"), third);
    assert_ne!(second, third);

    // Ranges and lengths.
    let large: Vec<u8> = (0..8_u32 << 18).flat_map(u32::to_le_bytes).collect();
    for (key, bytes) in [("b/0", &large[..0]), ("b/1", &large[..1]), ("b/8m", &large[..])] {
        let tag = put(remote, key, bytes);
        assert_eq!(remote.get(key, None).unwrap(), Some((bytes.to_vec(), tag)));
    }
    for (range, expected) in [
        (0..10, &large[..10]),
        (5..5, &large[..0]),
        (large.len() as u64 - 3..u64::MAX, &large[large.len() - 3..]),
        (u64::MAX - 1..u64::MAX, &large[..0]),
    ] {
        assert_eq!(remote.get("b/8m", Some(range.clone())).unwrap().unwrap().0, expected, "{range:?}");
    }
    put(remote, "b/1", b"another");
    assert_eq!(bytes_of(remote, "b/1"), Some(b"another".to_vec()), "a put replaces");
    for announced in [2, 4] {
        assert!(
            remote.put("b/wrong", &mut &b"abc"[..], announced).is_err(),
            "3 bytes, {announced} announced"
        );
        assert_eq!(bytes_of(remote, "b/wrong"), None);
    }

    // Deletion.
    remote.delete("a/one").unwrap();
    remote.delete("a/one").unwrap();
    remote.delete("nowhere/at/all").unwrap();
    assert_eq!(bytes_of(remote, "a/one"), None);
    assert_eq!(remote.swap("a/one", b"fourth", &third).unwrap(), Swapped::Moved);
    let _ = made(remote.create("a/one", b"anew").unwrap());

    // Listings.
    for number in 0..LISTED_COUNT_MAX + 5 {
        put(remote, &format!("c/{number:06}"), b"");
    }
    for key in ["c-1", "cc/1", "d/c/1"] {
        put(remote, key, b"x");
    }
    assert_eq!(keys(remote, "c/").len(), LISTED_COUNT_MAX + 5);
    assert_eq!(keys(remote, "nothing/"), Vec::<String>::new());
    assert_eq!(keys(remote, "d/"), ["d/c/1"]);
    assert_eq!(remote.list("c/", "c/001003").unwrap().len(), 1);

    // Keys that are none.
    for key in [
        "",
        "/",
        "a//b",
        "../a",
        "a/../b",
        "a/.b",
        "/etc/passwd",
        "A",
        "a\0",
        "a\\b",
        "a/",
        "ä",
        &"a".repeat(600),
    ] {
        let refused = [
            remote.create(key, b"x").err(),
            remote.get(key, None).err(),
            remote.delete(key).err(),
            remote.put(key, &mut &b"x"[..], 1).err(),
            remote.swap(key, b"x", &third).err(),
        ];
        for error in refused {
            assert!(matches!(error, Some(RemoteError::Refused { .. })), "{key:?}: {error:?}");
        }
    }

    // Races: one winner, and its bytes.
    for round in 0..race_count {
        let key = format!("e/{round}");
        let winners = race(|number| matches!(remote.create(&key, &[number]), Ok(Created::Here(_))));
        assert_eq!(Some(winners), bytes_of(remote, &key), "created");
        let was = tag_of(remote, &key);
        let winners = race(|number| matches!(remote.swap(&key, &[number, 1], &was), Ok(Swapped::Here(_))));
        assert_eq!(winners.len(), 1, "swapped");
        assert_eq!(bytes_of(remote, &key), Some(vec![winners[0], 1]));
    }
}

/// The numbers of the callers that won.
fn race(call: impl Fn(u8) -> bool + Sync) -> Vec<u8> {
    let call = &call;
    thread::scope(|scope| {
        let callers: Vec<_> = (0..16).map(|number| (number, scope.spawn(move || call(number)))).collect();
        callers.into_iter().filter_map(|(number, caller)| caller.join().unwrap().then_some(number)).collect()
    })
}

#[test]
fn a_remote_in_memory_conforms() {
    conforms(&MemoryRemote::new(), 100);
}

#[test]
fn a_folder_conforms_and_leaves_nothing_half_made() {
    let folder = tempfile::tempdir().unwrap();
    let remote = FolderRemote::new(folder.path().join("not/there/yet"));
    assert_eq!(keys(&remote, ""), Vec::<String>::new(), "a folder that is not there has no objects");
    conforms(&remote, 20);
    let mut left = Vec::new();
    let mut folders = vec![folder.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if entry.file_name().to_str().unwrap().ends_with(".tmp") {
                left.push(entry.path());
            }
        }
    }
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
}

/// As two processes that share a folder: each caller has a remote of its own, and each has made as many objects as the others.
#[test]
fn of_many_folder_remotes_one_creates_an_object_and_its_bytes_stay() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..40 {
        let key = format!("log/{round}");
        let winners = race(|number| {
            let remote = FolderRemote::new(folder.path());
            matches!(remote.create(&key, &[number]), Ok(Created::Here(_)))
        });
        assert_eq!(bytes_of(&FolderRemote::new(folder.path()), &key), Some(winners), "round {round}");
    }
}

/// A link in a shared folder leads a reader out of it, or a writer over a file of its own.
#[test]
fn a_folder_follows_no_link_to_an_object() {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside");
    std::fs::write(&outside, "own").unwrap();
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("a")).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("a/link")).unwrap();
    let remote = FolderRemote::new(root);
    assert!(remote.get("a/link", None).is_err());
    assert_eq!(remote.create("a/link", b"new").unwrap(), Created::Taken);
    assert!(remote.swap("a/link", b"new", &ObjectTag::of(b"own")).is_err());
    assert_eq!(keys(&remote, ""), Vec::<String>::new());
    put(&remote, "a/link", b"new");
    assert_eq!(std::fs::read(outside).unwrap(), b"own", "the link was replaced");
}

#[test]
fn a_simulated_remote_without_faults_conforms() {
    conforms(&SimRemote::new(1, SimRemoteFaults::default(), Arc::new(thread::yield_now)), 20);
}
