//! Encrypted stores at the command line: nothing in plain in any file, clear words when a key is missing, and shredding.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::world::{FEED, Ran, SESSION, World, contents};

/// Words of the bundled session and of the feed, none of which may lie in a file.
const SECRETS: [&str; 6] = ["clampLimit", "shop-api", "routes.ts", "customer", "e38a074a-4e13", "toolu_"];

/// A world whose store is encrypted and holds the bundled session.
fn sealed() -> World {
    let world = World::new();
    world.run(&["init", "--encrypt"]).ok();
    world.run(&["import", SESSION]).ok();
    world
}

/// The key of the only store that was made in this world.
fn key(world: &World) -> PathBuf {
    let folder = world.path("home/.config/acpdb/keys").read_dir().unwrap();
    let mut files = folder.map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|end| end == "store-key")).unwrap()
}

/// A run as by another user of the machine, with access to the folder and no key.
fn stranger(world: &World, arguments: &[&str]) -> Ran {
    with(world, arguments, &[])
}

/// A run without the home that has the key, with variables.
fn with(world: &World, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let mut command = world.command();
    command.args(arguments).env("HOME", world.path("another"));
    for (name, value) in variables {
        command.env(name, value);
    }
    super::world::finish(command, b"")
}

#[track_caller]
fn assert_hidden(folder: &Path) {
    for (path, bytes) in contents(folder) {
        for secret in SECRETS {
            let is_there = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!is_there, "{} holds {secret:?}", path.display());
        }
    }
}

/// Saved folds, rows of sessions, states of importers and names in the index are all made of sealed texts.
#[test]
fn no_verb_leaves_a_word_in_plain_in_the_store() {
    let world = sealed();
    world.run_with(&["append", "--stdin"], FEED).ok();
    for line in [
        "sessions",
        "sessions --all",
        "context latest",
        "history latest",
        "stats",
        "cost",
        "search clampLimit",
        "log",
        "list",
        "todo list",
        "explain #297",
        "show #297",
        "hosts",
        "reindex",
        "seal --all",
        "head",
        "key new",
        "checkpoint sign",
        "verify --deep",
        "info --space",
        "export html -o page.html",
        "sessions",
        "simulate latest",
        "doctor",
        "backup copy",
        "context discard g_a8834 --session e38a",
        "undo --session e38a",
        "fork e38a",
        "scan",
        "memory list",
        "policy show",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let ran = world.run(&words);
        assert!([0, 1].contains(&ran.code), "{line}: {} {}{}", ran.code, ran.text(), ran.err);
    }
    assert!(world.run(&["search", "clampLimit"]).ok().contains("clampLimit"));
    // A second run of an importer adds nothing, although it left no state.
    assert!(world.run(&["import", SESSION]).ok().contains("nothing new"));
    assert_hidden(&world.path("store"));
    assert_hidden(&world.path("copy"));
}

#[test]
fn without_its_key_a_store_is_checked_and_copied_and_not_read() {
    let world = sealed();
    for line in ["sessions", "context latest", "list", "search clampLimit", "export html -o page.html"] {
        let words: Vec<&str> = line.split(' ').collect();
        let ran = stranger(&world, &words);
        ran.says(9, &["key", "--key-file", "acpdb help encryption"]);
        assert!(ran.out.is_empty(), "{line}: {}", ran.text());
    }
    for line in ["verify", "head", "backup copy", "info", "doctor"] {
        let words: Vec<&str> = line.split(' ').collect();
        stranger(&world, &words).ok();
    }
    stranger(&world, &["append", "--stdin"]).ok();
    let mut command = world.command();
    command.args(["append", "--stdin"]).env("HOME", world.path("another"));
    super::world::finish(command, FEED.as_bytes()).says(9, &["key"]);
    // The file of the key, wherever it is.
    let path = world.path("elsewhere.key");
    std::fs::rename(key(&world), &path).unwrap();
    let told = path.to_str().unwrap();
    world.run(&["sessions"]).says(9, &["--key-file"]);
    world.run(&["sessions", "--key-file", told]).ok();
    with(&world, &["sessions"], &[("ACPDB_KEY_FILE", told)]).ok();
    // A copy needs the folder of keys, which it has only if asked.
    world.run(&["--key-file", told, "--db", "copy", "sessions"]).says(9, &["key"]);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    world.run(&["sessions", "--key-file", told]).says(9, &["chmod 600", "key rotate"]);
    world.write("wrong.key", "acpdb-key-1 00");
    std::fs::set_permissions(world.path("wrong.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    world.run(&["sessions", "--key-file", "wrong.key"]).says(9, &["64 hex digits"]);
    world.run(&["sessions", "--key-file", "none.key"]).says(9, &["none.key"]);
}

/// A program without the keyring says how to get one with it, and makes nothing.
#[test]
fn what_needs_the_keyring_says_how_to_get_it_and_changes_nothing() {
    let world = World::new();
    for line in ["--db new init --encrypt --keyring", "key new --keyring"] {
        let words: Vec<&str> = line.split(' ').collect();
        world
            .run(&words)
            .says(2, &["built without the system's keyring", "--features keyring", "passphrase"]);
    }
    assert!(!world.path("new").exists());
    assert!(!world.path("home/.config/acpdb/keys").exists());
    // A key that another program put there is not taken for a damaged one.
    world.run(&["key", "new"]).ok();
    let path = world.path("home/.config/acpdb/keys/default.key");
    std::fs::write(&path, "acpdb-in-keyring-1 signing key default 00\n").unwrap();
    world.run_with(&["append", "--stdin"], FEED).ok();
    world.run(&["checkpoint", "sign"]).says(2, &["--features keyring"]);
    // Its public part lies beside it.
    world.run(&["key", "show"]).ok();
}

/// A store that a stranger made can have anything under the names of keys. None of it is followed, waited for or written to.
#[test]
fn what_leads_out_of_the_folder_of_keys_is_refused() {
    let world = sealed();
    let own = format!("{}.key", "0".repeat(32));
    std::fs::write(world.path("bait"), [7; 512]).unwrap();
    let shell = |line: &str| assert_eq!(world.shell(line).code, 0, "{line}");
    for (set, words) in [
        (format!("rm t/keys/{own} && mkfifo t/keys/{own}"), "a named pipe"),
        (format!("rm t/keys/{own} && ln -s ../../bait t/keys/{own}"), "a symbolic link"),
        ("mv t/keys away && ln -s ../away t/keys".to_owned(), "a symbolic link"),
        (format!("rm t/keys/{own} && mkdir t/keys/{own}"), "a folder"),
    ] {
        shell(&format!("rm -rf t away && cp -a store t && {set}"));
        for line in [
            "sessions",
            "doctor",
            "append --stdin",
            "key rotate",
            "erase --session e38a --shred --reason x",
            "backup copy --keys",
        ] {
            let words_of: Vec<&str> = ["--db", "t"].into_iter().chain(line.split(' ')).collect();
            let ran = world.run_with(&words_of, FEED);
            assert!(line == "doctor" || ran.code != 0, "{set}: {line}: {}", ran.text());
            let said = format!("{}{}", ran.text(), ran.err);
            assert!(!said.contains("panicked"), "{set}: {line}: {said}");
            assert!(line != "sessions" || said.contains(words), "{set}: {line}: {said}");
        }
        assert_eq!(std::fs::read(world.path("bait")).unwrap(), [7; 512], "{set}");
        if world.path("away").exists() {
            let away = |name: &str| std::fs::read(world.path(name)).unwrap();
            assert_eq!(away(&format!("away/{own}")), away(&format!("store/keys/{own}")), "{set}");
        }
        std::fs::remove_dir_all(world.path("copy")).ok();
    }
}

/// The wrapped keys are part of the store: a lost key is named, and streams that it does not seal go on.
#[test]
fn a_lost_key_is_named() {
    let world = sealed();
    world.run_with(&["append", "--stdin"], FEED).ok();
    let own = world.path(&format!("store/keys/{}.key", "0".repeat(32)));
    let bytes = std::fs::read(&own).unwrap();
    std::fs::remove_file(&own).unwrap();
    world.run(&["sessions"]).says(9, &["there is no such file", "copy of the folder keys"]);
    std::fs::write(&own, [&bytes[..100], &[bytes[100] ^ 1], &bytes[101..]].concat()).unwrap();
    world.run(&["sessions"]).says(9, &["its file is damaged"]);
    std::fs::write(&own, bytes).unwrap();
    world.run(&["sessions"]).ok();
    let one = world.path("store/keys").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let one = one.filter(|path| *path != own).min().unwrap();
    std::fs::remove_file(&one).unwrap();
    // The others are shown, and the lost one is told as damage, with its file and the way back.
    let file = one.file_name().unwrap().to_str().unwrap();
    for words in ["sessions", "sessions --all", "list", "stats", "search the", "cost", "log"] {
        let words: Vec<&str> = words.split(' ').collect();
        world.run(&words).says(3, &[file, "there is no such file", "copy of the folder keys"]);
    }
    // Nothing is added to it: a second key would make the first one useless.
    let again = [world.run_with(&["append", "--stdin"], FEED), world.run(&["import", SESSION])];
    assert!(again.iter().any(|ran| ran.code != 0), "one of them is about the session whose key is lost");
    assert!(!one.exists());
    let verified = world.run(&["verify"]);
    assert!(verified.code == 3 && verified.text().contains(file), "{}", verified.text());
}

#[test]
fn a_passphrase_opens_what_it_was_given_for() {
    let world = World::new();
    let says =
        |arguments: &[&str], passphrase: &str| with(&world, arguments, &[("ACPDB_PASSPHRASE", passphrase)]);
    says(&["init", "--encrypt", "--passphrase"], "short").says(2, &["8 bytes"]);
    says(&["init", "--encrypt", "--passphrase"], "").says(2, &["no terminal", "ACPDB_PASSPHRASE"]);
    assert!(!world.path("store").exists());
    says(&["init", "--encrypt", "--passphrase"], "correct horse").ok();
    says(&["import", SESSION], "correct horse").ok();
    assert!(says(&["sessions"], "correct horse").ok().contains("e38a"));
    says(&["sessions"], "correct house").says(9, &["the passphrase is key"]);
    stranger(&world, &["sessions"]).says(9, &["ACPDB_PASSPHRASE"]);
    let both = [("ACPDB_PASSPHRASE", "correct horse"), ("ACPDB_NEW_PASSPHRASE", "battery staple")];
    with(&world, &["key", "rotate", "--to-passphrase"], &both).ok();
    says(&["sessions"], "correct horse").says(9, &[]);
    says(&["sessions"], "battery staple").ok();
    assert_hidden(&world.path("store"));
}

#[test]
fn a_shredded_session_is_in_no_copy_without_its_keys() {
    let world = sealed();
    world.run_with(&["append", "--stdin"], FEED).ok();
    world.run(&["key", "new"]).ok();
    world.run(&["checkpoint", "sign"]).ok();
    world.run(&["prove", "#297", "-o", "event.tlog-proof"]).ok();
    world.run(&["backup", "bare"]).ok();
    world.run(&["backup", "whole", "--keys"]).ok();
    let shred = ["erase", "--session", "e38a", "--shred", "--reason", "asked for"];
    assert!(world.run(&[&shred[..], &["--dry-run"]].concat()).ok().contains("would be unreadable"));
    world.run(&["erase", "--session", "absent", "--shred", "--reason", "x"]).says(7, &[]);
    let said = world.run(&shred).ok();
    assert!(said.contains("shredded, on record in"), "{said}");
    world.run(&["context", "e38a"]).says(7, &[]);
    let rows = world.run(&["sessions"]).ok();
    assert!(!rows.contains("e38a"), "{rows}");
    assert_eq!(world.run(&["search", "clampLimit"]).code, 1);
    world.run(&["check", "event.tlog-proof"]).ok();
    world.assert_sound();
    // The rest of the store is there, and more can be recorded.
    world.run_with(&["append", "--stdin"], FEED).ok();
    // The same host file again does not bring it back.
    world.run(&["import", SESSION]).says(0, &["left out: shredded here"]);
    let log = world.run(&["log"]).ok();
    assert!(log.contains("shredded ") && !log.contains("unknown"), "{log}");
    let read = |folder: &str| world.run(&["--db", folder, "context", "e38a"]);
    read("bare").says(9, &[]);
    // That is why keys are not in a backup by themselves.
    read("whole").ok();
    // The keys that are left do not open it either.
    std::fs::remove_dir_all(world.path("bare/keys")).ok();
    let mut copy = std::process::Command::new("cp");
    assert!(
        copy.arg("-a").arg(world.path("store/keys")).arg(world.path("bare/keys")).status().unwrap().success()
    );
    assert_ne!(read("bare").code, 0);
    assert_hidden(&world.path("bare"));
}

/// Two sessions about one person, one about another, one about none.
const ABOUT: &str = concat!(
    r#"{"session":"s1","subject":"zebra of the meadow","message":{"role":"user","text":"customer one"}}"#,
    "\n",
    r#"{"session":"s2","subject":"zebra of the meadow","message":{"role":"user","text":"customer two"}}"#,
    "\n",
    r#"{"session":"s3","subject":"walrus","message":{"role":"user","text":"customer three"}}"#,
    "\n",
    r#"{"session":"s4","message":{"role":"user","text":"customer four"}}"#,
    "\n",
);

#[test]
fn all_sessions_about_a_subject_are_shredded_and_no_others() {
    let world = World::new();
    world.run(&["init", "--encrypt"]).ok();
    world.run_with(&["append", "--stdin"], ABOUT).ok();
    world.run(&["import", SESSION, "--subject", "zebra of the meadow"]).ok();
    world.run(&["fork", "s1"]).ok();
    assert_hidden(&world.path("store"));
    for (path, bytes) in contents(&world.path("store")) {
        assert!(!bytes.windows(5).any(|part| part == b"zebra"), "{} names the subject", path.display());
    }
    world.run(&["import", SESSION, "--subject", "walrus"]).says(2, &["about another subject"]);
    let other = r#"{"session":"s4","subject":"walrus","message":{"role":"user","text":"x"}}"#;
    assert!(world.run_with(&["append", "--stdin"], other).err.contains("begun without a subject"));
    world.run(&["key", "new"]).ok();
    world.run(&["checkpoint", "sign"]).ok();
    world.run(&["prove", "#3", "-o", "event.tlog-proof"]).ok();
    world.run(&["backup", "bare"]).ok();
    // Other keys in between, so that several of a session have to go.
    world.run(&["key", "rotate", "--data"]).ok();
    world.run(&["key", "rotate", "--data", "--session", "s2"]).ok();
    world
        .run_with(&["append", "--stdin"], r#"{"session":"s2","message":{"role":"user","text":"later"}}"#)
        .ok();
    let shred = |name, more: &[&str]| {
        let words = ["erase", "--subject", name, "--shred", "--reason", "asked for"];
        world.run(&[&words[..], more].concat())
    };
    shred("zebra of the meadows", &[]).says(7, &["did you mean zebra of the meadow?"]);
    let said = shred("zebra of the meadow", &["--dry-run"]).ok();
    for session in ["s1", "s2", "s1-fork-1", "e38a"] {
        assert!(
            said.lines().any(|line| line.starts_with(session) && line.contains("would be unreadable")),
            "{said}"
        );
    }
    assert!(!said.contains("s3") && !said.contains("s4"), "{said}");
    assert!(world.run(&["context", "s1"]).ok().contains("customer one"), "nothing was changed");
    let said = shred("zebra of the meadow", &[]).ok();
    assert_eq!(said.matches("shredded, on record in").count(), said.lines().count(), "{said}");
    for session in ["s1", "s2", "s1-fork-1", "e38a"] {
        world.run(&["context", session]).says(7, &[]);
    }
    assert!(world.run(&["context", "s3"]).ok().contains("customer three"));
    assert!(world.run(&["context", "s4"]).ok().contains("customer four"));
    world.run(&["check", "event.tlog-proof"]).ok();
    world.assert_sound();
    let new = r#"{"session":"s5","subject":"zebra of the meadow","message":{"role":"user","text":"x"}}"#;
    assert!(world.run_with(&["append", "--stdin"], new).err.contains("the subject was shredded"));
    shred("zebra of the meadow", &[]).says(1, &["was shredded before"]);
    // A line about it, or for one of its sessions, ended the whole of `append`.
    let old = r#"{"session":"s1","message":{"role":"user","text":"x"}}"#;
    let other = r#"{"session":"s6","message":{"role":"user","text":"x"}}"#;
    let ran = world.run_with(&["append", "--stdin", "--ack"], [new, old, other].join("\n"));
    ran.says(8, &["line 1 was not recorded", "line 2 was not recorded", "2 lines were not recorded"]);
    assert_eq!(ran.text().lines().count(), 1);
    world.run(&["import", SESSION]).says(0, &["left out: shredded here"]);
    let mut copy = std::process::Command::new("cp");
    let (from, to) = (world.path("store/keys"), world.path("bare/keys"));
    assert!(copy.arg("-a").arg(from).arg(to).status().unwrap().success());
    assert_ne!(world.run(&["--db", "bare", "context", "s1"]).code, 0, "yesterday's copy, with today's keys");
    assert!(world.run(&["--db", "bare", "context", "s3"]).ok().contains("customer three"));
    let json = world.run(&["--json", "erase", "--subject", "walrus", "--shred", "--dry-run"]).ok();
    assert!(json.contains(r#""subject":"walrus""#), "{json}");
    world.run(&["--db", "plain", "init"]).ok();
    assert!(world.run_with(&["--db", "plain", "append", "--stdin"], ABOUT).err.contains("is not encrypted"));
}

#[test]
fn keys_are_wrapped_anew_and_an_interruption_is_gone_on_with() {
    let world = sealed();
    world.run_with(&["append", "--stdin"], FEED).ok();
    let old = key(&world);
    let before = contents(&world.path("store/keys"));
    assert!(before.len() >= 3, "{before:?}");
    // Files that are not the store's stay, whatever their names.
    world.write("store/keys/mine.tmp", "mine");
    world.write("store/keys/mine.old", "mine");
    let said = world.run(&["key", "rotate"]).ok();
    assert!(said.contains("keys wrapped anew"), "{said}");
    for name in ["mine.tmp", "mine.old"] {
        assert_eq!(std::fs::read(world.path(&format!("store/keys/{name}"))).unwrap(), b"mine");
        std::fs::remove_file(world.path(&format!("store/keys/{name}"))).unwrap();
    }
    world.run(&["sessions", "--key-file", old.to_str().unwrap()]).says(9, &["wrapped by key"]);
    // As if it had stopped after the first: the store's own key comes last.
    let own = "0".repeat(32);
    for (path, bytes) in before.iter().filter(|(path, _)| path.to_str().unwrap().contains(&own)) {
        std::fs::write(path, bytes).unwrap();
    }
    assert_ne!(world.run(&["sessions"]).code, 0);
    let count = world.path("home/.config/acpdb/keys").read_dir().unwrap().count();
    world.run(&["key", "rotate"]).ok();
    world.run(&["sessions"]).ok();
    assert_eq!(
        world.path("home/.config/acpdb/keys").read_dir().unwrap().count(),
        count,
        "no third key was made"
    );
    std::fs::remove_file(old).unwrap();
    world.run(&["context", "latest"]).ok();
    world.run(&["key", "rotate", "--to", "mine.key"]).ok();
    world.run(&["context", "latest", "--key-file", "mine.key"]).ok();
}

/// It said that this was not tried, whatever key it was given. A wrong key passed `doctor` as the one that opens the store.
#[test]
fn a_deep_verification_opens_what_is_sealed_with_the_key_that_is_given() {
    let world = sealed();
    let key = key(&world);
    let told = key.to_str().unwrap();
    assert!(world.run(&["verify"]).ok().contains("only a deep verification with the key tries"));
    assert!(
        stranger(&world, &["verify", "--deep"]).ok().contains("only a deep verification with the key tries")
    );
    for said in
        [world.run(&["verify", "--deep"]), stranger(&world, &["--key-file", told, "verify", "--deep"])]
    {
        let said = said.ok();
        assert!(!said.contains("not proven"), "{said}");
    }
    world.run(&["--db", "vault", "init", "--encrypt", "--key-file", "wrong.key"]).ok();
    let wrong = world.run(&["--key-file", "wrong.key", "verify", "--deep"]).ok();
    assert!(wrong.contains("was not opened: ") && wrong.contains("wrong.key is key"), "{wrong}");
    let doctor = world.run(&["--key-file", "wrong.key", "doctor"]).text();
    assert!(doctor.contains("problem  encryption") && doctor.contains("wrong.key is key"), "{doctor}");
    assert!(world.run(&["doctor"]).ok().contains("encryption  opened by"));
    let passphrase = [("ACPDB_PASSPHRASE", "a crossing of horses")];
    with(&world, &["--db", "other", "init", "--encrypt", "--passphrase"], &passphrase).ok();
    let said = with(&world, &["--db", "other", "verify", "--deep"], &passphrase).ok();
    assert!(!said.contains("not proven"), "{said}");
    // The file of a session's keys is older than its newest events: sound, and it does not open them.
    let files: Vec<(PathBuf, Vec<u8>)> = contents(&world.path("store/keys"));
    world.run(&["key", "rotate", "--data"]).ok();
    world.run(&["import", SESSION]).ok();
    world.run(&["context", "discard", "g_a8834", "--session", "e38a"]).ok();
    for (path, bytes) in &files {
        std::fs::write(path, bytes).unwrap();
    }
    world.run(&["verify"]).ok();
    let damaged = world.run(&["verify", "--deep"]);
    assert!(
        damaged.code == 3 && damaged.text().contains("it may be older than the log"),
        "{}",
        damaged.text()
    );
}

/// Without this file nothing opens. The store was called sound.
#[test]
fn a_damaged_file_of_the_own_key_is_damage() {
    let world = sealed();
    let name = format!("store/keys/{}.key", "0".repeat(32));
    let mut bytes = std::fs::read(world.path(&name)).unwrap();
    bytes[100] ^= 1;
    std::fs::write(world.path(&name), bytes).unwrap();
    for words in [&["verify"][..], &["verify", "--deep"]] {
        let verified = world.run(words);
        let said = verified.text();
        assert!(
            verified.code == 3 && said.contains(&name) && said.contains("copy of the folder keys"),
            "{said}"
        );
    }
    let doctor = world.run(&["doctor"]);
    let said = doctor.text();
    assert!(
        doctor.code == 3 && said.contains("problem  encryption") && said.contains("made with --keys"),
        "{said}"
    );
}

#[test]
fn what_is_asked_of_the_wrong_store_says_so() {
    let world = World::fed();
    world.run(&["init"]).ok();
    world.run(&["init", "--encrypt"]).says(5, &["is not encrypted", "acpdb --db NEW import"]);
    world.run(&["key", "rotate"]).says(2, &["not encrypted"]);
    world.run(&["key", "rotate", "--data"]).says(2, &["not encrypted"]);
    world.run(&["erase", "--subject", "x", "--shred", "--reason", "x"]).says(2, &["not encrypted"]);
    world.run(&["erase", "--session", "latest", "--shred", "--reason", "x"]).says(2, &["not encrypted"]);
    world.run(&["backup", "copy", "--keys"]).says(2, &["not encrypted"]);
    assert!(!world.path("copy").exists(), "what is refused leaves nothing");
    world.run(&["--db", "other", "init", "--key-file", "k"]).says(2, &["--encrypt"]);
    // A key that a plain store does not need is no fault: the variable may stand for other stores.
    world.run(&["sessions", "--key-file", "none"]).ok();
    world.run(&["--db", "vault", "init", "--encrypt"]).ok();
    assert!(world.run(&["--db", "vault", "init", "--encrypt"]).ok().contains("already"));
    assert!(world.run(&["--db", "vault", "info"]).ok().contains("encrypted"));
}
