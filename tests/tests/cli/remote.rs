//! Stores that are shipped below a URL, and made anew from there.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use serde_json::Value;

use crate::world::{FEED, Ran, World, contents};

fn url(world: &World) -> String {
    format!("file://{}", world.path("disk").display())
}

fn said(text: &str) -> String {
    format!("{{\"session\":\"more\",\"turn\":true,\"message\":{{\"role\":\"user\",\"text\":\"{text}\"}}}}\n")
}

fn append(world: &World, store: &str, text: &str) {
    world.run_with(&["--db", store, "append", "--stdin"], said(text)).ok();
}

fn json(ran: Ran) -> Value {
    serde_json::from_str(&ran.ok()).unwrap()
}

fn head(world: &World, store: &str) -> String {
    world.run(&["--db", store, "verify", "--head"]).ok()
}

#[test]
fn a_store_is_shipped_once_followed_by_what_is_new_and_restored_with_the_same_head() {
    let world = World::fed();
    let url = url(&world);
    let status = |world: &World| json(world.run(&["backup", &url, "--status", "--json"]))["status"].clone();
    assert_eq!(status(&world), Value::Null);
    let rehearsed = json(world.run(&["backup", &url, "--dry-run", "--json"]));
    assert!(rehearsed["objects"].as_u64().unwrap() > 3, "{rehearsed}");
    assert!(rehearsed["writes"].as_u64() >= rehearsed["objects"].as_u64(), "{rehearsed}");
    assert_eq!(rehearsed["dollars"], Value::Null, "a disk costs nothing a request");
    assert!(!world.path("disk").exists(), "neither of them wrote");
    let first = json(world.run(&["backup", &url, "--json"]));
    assert!(first["chunks"].as_u64().unwrap() > 0, "{first}");
    let before = contents(&world.path("disk"));
    let sent: u64 = before.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    // The head is written more than once.
    assert!(rehearsed["bytes"].as_u64().unwrap() >= sent, "{rehearsed}, {sent}");
    let again = json(world.run(&["backup", &url, "--json"]));
    assert_eq!((&again["chunks"], &again["there"]), (&0.into(), &first["there"]));
    assert!(world.run(&["backup", &url, "--dry-run"]).ok().contains("0 objects"));
    assert_eq!(contents(&world.path("disk")), before, "nothing new, nothing written");
    append(&world, "store", "more");
    assert!(status(&world)["behind"].as_u64().unwrap() > 0);
    world.run(&["backup", &url]).ok();
    assert_eq!(status(&world)["behind"], 0);
    world.run(&["config", "set", "storage_price", "much"]).says(2, &["s3, r2"]);
    world.run(&["config", "set", "storage_price", "5 0.4 0.023 0.09"]).ok();
    let would = world.run(&["restore", &url, "new", "--dry-run"]).ok();
    assert!(
        would.contains("would be read") && would.contains("your prices") && would.contains('$'),
        "{would}"
    );
    let would = json(world.run(&["restore", &url, "new", "--dry-run", "--json"]));
    assert!(
        would["dollars"].as_f64().unwrap() > 0.0 && would["reads"].as_u64() > would["objects"].as_u64(),
        "{would}"
    );
    assert!(!world.path("new").exists());
    let restored = json(world.run(&["restore", &url, "new", "--json"]));
    assert_eq!(restored["schema"], "acpdb.backup/1");
    assert_eq!(head(&world, "new"), head(&world, "store"));
    world.run(&["--db", "new", "verify", "--deep"]).ok();
    world.run(&["restore", &url, "new"]).says(2, &["empty"]);
}

#[test]
fn of_several_stores_one_is_named() {
    let world = World::fed();
    let url = url(&world);
    world.run_with(&["--db", "other", "append", "--stdin"], FEED).ok();
    append(&world, "other", "more");
    let first = json(world.run(&["backup", &url, "--json"]))["store"].as_str().unwrap().to_owned();
    let other = json(world.run(&["--db", "other", "backup", &url, "--json"]));
    let other = other["store"].as_str().unwrap();
    world.run(&["restore", &url, "new"]).says(2, &["2 stores", &first, other, "--store"]);
    world.run(&["restore", &url, "new", "--store", "zz"]).says(7, &[other]);
    world.run(&["restore", &url, "new", "--store", &"0".repeat(32)]).says(7, &["no store"]);
    assert!(!world.path("new").exists());
    world.run(&["restore", &url, "new", "--store", other]).ok();
    assert_eq!(head(&world, "new"), head(&world, "other"));
}

/// The example of a folder that was set back: a backup of the day before was put in the store's place.
#[test]
fn a_store_that_was_set_back_and_one_that_went_on_elsewhere_are_refused() {
    let world = World::fed();
    let url = url(&world);
    world.run(&["backup", "old"]).ok();
    append(&world, "store", "first");
    world.run(&["backup", &url]).ok();
    let before = contents(&world.path("disk"));
    world.run(&["--db", "old", "backup", &url]).says(4, &["set back", "acpdb restore"]);
    append(&world, "old", "second");
    append(&world, "old", "third");
    world.run(&["--db", "old", "backup", &url]).says(5, &["acpdb import"]);
    assert_eq!(contents(&world.path("disk")), before);
    world.run(&["backup", &url]).ok();
}

#[test]
fn a_place_that_is_none_is_refused_before_anything_is_written() {
    let world = World::fed();
    let before = contents(&world.path(""));
    let inside = format!("file://{}", world.path("store/remote").display());
    let others = format!("file://{}", world.path("home").display());
    let away = format!("file://{}", world.path("away/disk").display());
    for (target, code, words) in [
        ("s3://key:word@bucket/prefix", 2, &["with a user or a password", "AWS_"][..]),
        ("s3://bucket/prefix", 2, &["built without s3", "file:///"]),
        ("https://example.org/x", 2, &["https:// URLs are not in this version"]),
        ("file:/x", 2, &["file:///"]),
        ("file://host/x", 2, &["file:///"]),
        (&inside, 2, &["in the store itself"]),
        (&away, 7, &["mounted"]),
    ] {
        let ran = world.run(&["backup", target]);
        assert!(!ran.err.contains("word@"), "{}", ran.err);
        ran.says(code, words);
    }
    world.write("home/notes.txt", "mine");
    world.run(&["backup", &others]).says(2, &["notes.txt"]);
    std::fs::remove_file(world.path("home/notes.txt")).unwrap();
    world.run(&["restore", &url(&world), "new"]).says(7, &["has no store"]);
    world.run(&["restore", "disk", "new"]).says(2, &["no URL"]);
    world.run(&["backup", "copy", "--follow"]).says(2, &["no URL"]);
    assert_eq!(contents(&world.path("")), before);
}

#[test]
fn damage_there_is_named_and_leaves_no_store_and_a_lost_head_is_found_again() {
    let world = World::fed();
    let url = url(&world);
    let store = json(world.run(&["backup", &url, "--json"]))["store"].as_str().unwrap().to_owned();
    let head_file = world.path("disk/heads").join(&store);
    let kept = std::fs::read(&head_file).unwrap();
    std::fs::write(&head_file, &kept[..9]).unwrap();
    world.run(&["backup", &url, "--status"]).says(3, &["no head"]);
    // A rehearsal finds the store as the restore does.
    world.run(&["restore", &url, "torn", "--dry-run"]).says(0, &["head of the store is lost"]);
    world.run(&["restore", &url, "torn"]).says(0, &["head of the store is lost"]);
    std::fs::remove_file(&head_file).unwrap();
    world.run(&["restore", &url, "gone", "--store", &store]).ok();
    assert!(!head_file.exists(), "what is there was only read");
    for restored in ["torn", "gone"] {
        assert_eq!(head(&world, restored), head(&world, "store"));
    }
    append(&world, "store", "more");
    world.run(&["backup", &url]).says(0, &["made anew"]);
    let file = world.path("disk/s").join(&store).join("meta/acpdb.json");
    std::fs::write(file, "{}").unwrap();
    world.run(&["restore", &url, "damaged"]).says(3, &["acpdb.json", "no store file"]);
    assert!(!world.path("damaged").exists());
}

/// A follower that is killed left what it had shipped; the next one goes on. One that is told to end, ends well.
#[test]
fn a_follower_ships_what_is_recorded_meanwhile_until_it_is_killed_or_told_to_end() {
    let world = World::fed();
    let url = url(&world);
    for (number, is_killed) in [true, false].into_iter().enumerate() {
        let mut command = world.command();
        command.args(["backup", &url, "--follow", "--every", "1s", "--json"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut there = || {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            line["there"].as_u64().unwrap()
        };
        let first = there();
        append(&world, "store", &format!("told {number}"));
        let last = world.run(&["verify", "--head", "--json"]).ok();
        let last = serde_json::from_str::<Value>(&last).unwrap()["seq"].as_u64().unwrap();
        assert!(last > first);
        while there() < last {}
        if is_killed {
            child.kill().unwrap();
            child.wait().unwrap();
        } else {
            let ended = std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap();
            assert!(ended.success());
            assert_eq!(child.wait().unwrap().code(), Some(0));
        }
        let new = format!("new{number}");
        world.run(&["restore", &url, &new]).ok();
        assert_eq!(head(&world, &new), head(&world, "store"));
        world.run(&["--db", &new, "verify", "--deep"]).ok();
    }
}

#[test]
fn an_encrypted_store_goes_there_as_it_is_and_its_key_only_if_asked_for() {
    let world = World::new();
    world.run(&["init", "--encrypt"]).ok();
    append(&world, "store", "a word that is read by few");
    let url = url(&world);
    world.run(&["backup", &url]).ok();
    let is_there = |name: &str| contents(&world.path("disk")).iter().any(|(path, _)| path.ends_with(name));
    assert!(is_there("meta/acpdb.json") && !is_there("meta/key"));
    for (path, bytes) in contents(&world.path("disk")) {
        assert!(!bytes.windows(11).any(|part| part == b"read by few"), "{}", path.display());
    }
    // No byte needs the key to be proven; what is restored waits for it.
    world.run(&["restore", &url, "new"]).says(0, &["key was not shipped", "new/key"]);
    world.run(&["--db", "new", "log", "--texts"]).says(9, &["key is missing"]);
    std::fs::copy(world.path("store/key"), world.path("new/key")).unwrap();
    world.run(&["--db", "new", "verify", "--deep"]).ok();
    assert!(world.run(&["--db", "new", "log", "--texts"]).ok().contains("read by few"));
    append(&world, "store", "more");
    world.run(&["backup", &url, "--keys"]).ok();
    assert!(is_there("meta/key"));
    world.run(&["restore", &url, "whole"]).ok();
    assert!(world.run(&["--db", "whole", "log", "--texts"]).ok().contains("read by few"));
}

/// As a team reads the sessions of all its machines. Nothing is asked but the URL; the second answer comes from what was fetched.
#[test]
fn stores_below_a_url_are_read_as_one_through_a_cache() {
    let world = World::fed();
    let url = url(&world);
    world.run(&["backup", &url]).ok();
    assert_eq!(world.run(&["--db", &url, "log", "--texts"]).ok(), world.run(&["list"]).ok());
    append(&world, "other", "a word of the other one");
    let other = json(world.run(&["--db", "other", "backup", &url, "--json"]));
    let other = other["store"].as_str().unwrap()[..8].to_owned();
    let found = world.run(&["--db", &url, "search", "other one"]).ok();
    assert!(found.contains(&other), "{found}");
    let before = contents(&world.path("disk"));
    append(&world, "other", "a later word");
    assert!(
        !world.run(&["--db", &url, "sessions", "--json"]).ok().contains("a later word"),
        "not shipped yet"
    );
    assert_eq!(contents(&world.path("disk")), before, "what is there was only read");
    world.run(&["--db", "other", "backup", &url]).ok();
    world.run(&["--db", &url, "search", "later word"]).ok();
    for verb in [
        &["append", "--stdin"][..],
        &["erase", "--from-scan", "--by", "ada", "--reason", "x"],
        &["backup", "copy"],
    ] {
        world.run(&[&["--db", &url], verb].concat()).says(2, &["a URL is named", "acpdb restore"]);
    }
    let none = format!("file://{}", world.path("none").display());
    world.run(&["--db", &none, "sessions"]).says(7, &["has no store"]);
    let ftp = world.run(&["--db", "ftp://user:word@host/x", "sessions"]);
    ftp.says(2, &["ftp:// URLs are not in this version"]);
}

/// Of several stores one was set back there, and one is damaged: the first is shown as it was, the second is left out, and both are said.
#[test]
fn a_store_that_is_damaged_or_set_back_below_a_url_is_told_and_the_others_are_shown() {
    let world = World::fed();
    let url = url(&world);
    append(&world, "other", "a word of the other one");
    let ship = |store: &str| {
        json(world.run(&["--db", store, "backup", &url, "--json"]))["store"].as_str().unwrap().to_owned()
    };
    let (first, other) = (ship("store"), ship("other"));
    world.run(&["--db", &url, "sessions"]).ok();
    let log = world.path("disk/s").join(&other).join("log");
    let mut entries: Vec<_> = std::fs::read_dir(log).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    std::fs::remove_file(entries.last().unwrap()).unwrap();
    std::fs::write(world.path("disk/heads").join(&first), "junk").unwrap();
    let ran = world.run(&["--db", &url, "search", "other one"]);
    assert!(String::from_utf8_lossy(&ran.out).contains("other one"), "{}", ran.err);
    ran.says(0, &["was set back", "left out", &first[..8]]);
}

/// Two programs ship one store, and each takes it over from the other; some are killed at any moment. All that one of them said to be there is there.
#[test]
fn programs_that_take_a_store_over_and_are_killed_lose_nothing_that_was_said_to_be_there() {
    let world = World::fed();
    let url = url(&world);
    let (sender, said) = std::sync::mpsc::channel();
    let start = || {
        let mut command = world.command();
        command.args(["backup", &url, "--follow", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, sender) = (child.stdout.take().unwrap(), sender.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let line: Value = serde_json::from_str(&line).unwrap();
                // The test may be over.
                let _ = sender.send(line["there"].as_u64().unwrap());
            }
        });
        child
    };
    let mut running = vec![start(), start()];
    let (mut killed, mut fenced, mut there) = (0, 0, 0);
    for round in 0..200 {
        append(&world, "store", &format!("round {round}"));
        let head = json(world.run(&["head", "--json"]))["seq"].as_u64().unwrap();
        // One of them ships it: which one, the chain decides.
        while there < head {
            for child in &mut running {
                let Some(ended) = child.try_wait().unwrap() else { continue };
                // Fenced, or at work at the same moment as the other one.
                let mut said = String::new();
                child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                assert!(matches!(ended.code(), Some(5 | 6)), "{ended:?}: {said}");
                fenced += 1;
                *child = start();
            }
            if let Ok(line) = said.recv_timeout(std::time::Duration::from_millis(50)) {
                there = there.max(line);
            }
        }
        let new = format!("new{round}");
        if round % 4 == 3 {
            let restored = json(world.run(&["restore", &url, &new, "--json"]));
            assert!(restored["head"].as_u64().unwrap() >= there, "round {round}: {restored}");
        }
        let child = &mut running[round % 2];
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
        *child = start();
        if killed >= 8 && fenced >= 3 {
            break;
        }
    }
    for mut child in running {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(killed >= 8 && fenced >= 3, "{killed} killed, {fenced} fenced");
    world.run(&["backup", &url]).ok();
    world.run(&["restore", &url, "last"]).ok();
    assert_eq!(head(&world, "last"), head(&world, "store"));
    world.run(&["--db", "last", "verify", "--deep"]).ok();
}

/// Ends with a code and shows words.
fn shows(ran: &Ran, code: i32, words: &[&str]) {
    ran.says(code, &[]);
    let out = String::from_utf8_lossy(&ran.out);
    for word in words {
        assert!(out.contains(word), "{word:?} is not in {out}");
    }
}

/// The file was lost, and the next backup said nothing: what it shipped could not be restored.
#[test]
fn a_store_without_its_secret_is_shipped_and_restored_and_that_is_said_at_each_door() {
    let world = World::fed();
    let url = url(&world);
    std::fs::rename(world.path("store/secret"), world.path("secret")).unwrap();
    world.run(&["backup", &url]).says(8, &["file secret", "nothing can be appended"]);
    world.run(&["backup", &url]).says(8, &["file secret"]);
    world.run(&["backup", &url, "--status"]).says(0, &["secret is not there"]);
    assert_eq!(json(world.run(&["backup", &url, "--status", "--json"]))["status"]["lacks_secret"], true);
    shows(&world.run(&["--db", &url, "verify"]), 8, &["sound", "secret"]);
    world.run(&["restore", &url, "new"]).says(8, &["without its file secret", "new/secret"]);
    world.run(&["--db", &url, "log", "--texts"]).ok();
    assert_eq!(
        world.run(&["--db", "new", "log", "--texts"]).ok(),
        world.run(&["--db", "store", "log", "--texts"]).ok()
    );
    world.run_with(&["--db", "new", "append", "--stdin"], said("more")).says(1, &["secret"]);
    std::fs::copy(world.path("secret"), world.path("new/secret")).unwrap();
    world.run(&["--db", "new", "verify", "--deep"]).ok();
    append(&world, "new", "more");
    std::fs::rename(world.path("secret"), world.path("store/secret")).unwrap();
    world.run(&["backup", &url]).ok();
    assert_eq!(json(world.run(&["backup", &url, "--status", "--json"]))["status"]["lacks_secret"], false);
    world.run(&["restore", &url, "whole"]).ok();
    append(&world, "whole", "more");
    // It is there: a store that loses it here finds it there.
    std::fs::remove_file(world.path("store/secret")).unwrap();
    world.run(&["backup", &url]).ok();
}

#[test]
fn objects_below_a_url_are_verified_where_they_lie() {
    let world = World::fed();
    let url = url(&world);
    append(&world, "other", "a word of the other one");
    let first = json(world.run(&["backup", &url, "--json"]))["store"].as_str().unwrap().to_owned();
    world.run(&["--db", "other", "backup", &url]).ok();
    let before = contents(&world.path(""));
    for quick in [&[][..], &["--quick"]] {
        let verify = |more: &[&str]| world.run(&[&["--db", &url, "verify"], quick, more].concat());
        shows(&verify(&[]), 0, &[&first, if quick.is_empty() { "head" } else { "is there" }]);
        let found = json(verify(&["--json"]));
        assert_eq!(found["schema"], "acpdb.verify_remote/1");
        let items = found["items"].as_array().unwrap();
        assert_eq!(items.len(), 2);
        assert!(items.iter().all(|item| item["is_sound"] == true), "{found}");
    }
    assert_eq!(contents(&world.path("")), before, "nothing is kept");
    world.run(&["--db", &url, "verify", "--deep"]).says(2, &["acpdb restore"]);
    world.run(&["verify", "--quick"]).says(2, &["for a URL"]);
    let none = format!("file://{}", world.path("none").display());
    world.run(&["--db", &none, "verify"]).says(7, &["has no store"]);
    let log = world.path("disk/s").join(&first).join("log");
    let chunk = std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let mut bytes = std::fs::read(&chunk).unwrap();
    bytes[260] ^= 1;
    // The last entry that is unsound is one that was torn: it counts for nothing, and the log ends before it.
    std::fs::write(&chunk, &bytes).unwrap();
    shows(&world.run(&["--db", &url, "verify"]), 0, &["passed over"]);
    std::fs::remove_file(world.path("disk/s").join(&first).join("meta/acpdb.json")).unwrap();
    shows(&world.run(&["--db", &url, "verify"]), 3, &["damaged", "meta/acpdb.json"]);
    std::fs::write(world.path("disk/heads").join(&first), "junk").unwrap();
    for quick in [&["--quick"][..], &[]] {
        let damaged = world.run(&[&["--db", &url, "verify"], quick].concat());
        shows(&damaged, 3, &["damaged", "heads/", &first]);
    }
}

#[test]
fn the_setting_says_where_a_store_is_shipped_and_no_password_is_written() {
    let world = World::fed();
    let url = url(&world);
    let service = ["service", "--manager", "systemd", "install", "--dry-run", "--backup"];
    world.run(&["backup"]).says(2, &["acpdb config set backup URL"]);
    world.run(&service).says(2, &["acpdb config set backup URL"]);
    for wrong in ["folder", "ftp://key:geheim@host/x", "file://key:geheim@host/x", "file://host/x"] {
        let ran = world.run(&["config", "set", "backup", wrong]);
        assert!(!ran.err.contains("geheim"), "{}", ran.err);
        ran.says(2, &["backup cannot be that"]);
    }
    world.run(&["config", "get", "backup"]).says(7, &["is not set"]);
    world.run(&["config", "set", "backup", &url]).ok();
    world.run(&["backup", "--dry-run"]).ok();
    assert!(!world.path("disk").exists());
    world.run(&["backup"]).ok();
    assert!(world.run(&["backup", "--status"]).ok().contains("0 events behind"));
    world.run(&["backup", "copy"]).ok();
    world.run(&["restore", &url, "new"]).ok();
    let mut command = world.command();
    command
        .args(service)
        .env("AWS_PROFILE", "team")
        .env("AWS_ACCESS_KEY_ID", "AKIA0")
        .env("AWS_SECRET_ACCESS_KEY", "geheim");
    let shown = command.output().unwrap();
    let (out, err) = (String::from_utf8(shown.stdout).unwrap(), String::from_utf8(shown.stderr).unwrap());
    assert!(shown.status.success(), "{err}");
    assert!(
        out.contains("\"import\" \"--follow\"")
            && out.contains(&format!("\"backup\" \"{url}\" \"--follow\"")),
        "{out}"
    );
    assert!(out.contains("AWS_PROFILE=team") && !out.contains("AKIA0") && !out.contains("geheim"), "{out}");
    assert!(err.contains("AWS_ACCESS_KEY_ID"), "{err}");
    // The first service was written, and the second one refused: a half of what was asked for.
    let mut half = world.command();
    half.args(["service", "--manager", "systemd", "install", "--no-start", "--backup"]);
    let half = half.env("AWS_CONFIG_FILE", "a\nb").output().unwrap();
    assert_eq!(half.status.code(), Some(2), "{half:?}");
    assert!(!world.path("home/.config/systemd/user/acpdb-import.service").exists());
    // Two services are one answer: it was two documents, which no program reads as one.
    let install = ["service", "--manager", "systemd", "install", "--no-start", "--backup", "--json"];
    let written = json(world.run(&install));
    let items = written["items"].as_array().unwrap();
    assert!(items.len() == 2 && items.iter().all(|item| item["installed"] == true), "{written}");
    let told = json(world.run(&["service", "--manager", "systemd", "status", "--json"]));
    assert_eq!(told["items"].as_array().map(Vec::len), Some(2), "{told}");
    assert!(world.path("home/.config/systemd/user/acpdb-backup.service").is_file());
    let removed = world.run(&["service", "--manager", "systemd", "remove"]);
    assert!(matches!(removed.code, 0 | 8), "{}", removed.err);
    assert!(!world.path("home/.config/systemd/user/acpdb-backup.service").exists());
}
