//! Witnesses: one that keeps to the standard, written from its text alone in another language, and those that do not.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use acpdb_engine::ids::StoreId;
use acpdb_proof::tree::empty_root;
use acpdb_proof::{Note, WitnessKey};

use super::world::World;
use super::{copy, key, python, said, signed, tells};
use acpdb_tests::binary::root;
use acpdb_tests::support::base64;

/// A witness that runs; it ends with the test.
struct Witness {
    child: Child,
    key: String,
    url: String,
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Witness {
    /// One that has seen nothing yet.
    fn new(mode: &str, number: u8, log: &str) -> Self {
        Self::seen(mode, number, log, 0, empty_root().0)
    }

    /// One that saw a tree.
    fn seen(mode: &str, number: u8, log: &str, size: u64, tree: [u8; 32]) -> Self {
        let seed = format!("{number:02x}").repeat(32);
        let mut command = Command::new("python3");
        command.arg("-B").arg(root().join("tests/tests/proofs/witness.py"));
        command.arg(root().join("docs/check_proof.py")).args([mode, &format!("w{number}"), &seed, log]);
        command.args([size.to_string(), base64(&tree)]).stdout(Stdio::piped()).stdin(Stdio::null());
        // Without a second make of witness this proves nothing, so it does not pass.
        let mut child = command.spawn().unwrap_or_else(|error| panic!("python3 is needed here: {error}"));
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (key, port) = line.trim().split_once(' ').unwrap_or_else(|| panic!("no witness: {line}"));
        Self { child, key: key.to_owned(), url: format!("http://127.0.0.1:{port}") }
    }

    fn line(&self) -> String {
        let name = self.key.split('+').next().unwrap();
        format!("witness {name} {} {}\n", self.key, self.url)
    }

    /// A policy that needs this witness.
    fn alone(&self) -> String {
        format!("{}quorum {}\n", self.line(), self.key.split('+').next().unwrap())
    }
}

fn push(world: &World, witness: &Witness, more: &[&str]) -> super::world::Ran {
    world.write("alone", witness.alone());
    let mut arguments = vec!["checkpoint", "push", "--policy", "alone"];
    arguments.extend(more);
    world.run(&arguments)
}

#[test]
#[ignore = "needs python3"]
fn enough_witnesses_sign_and_what_is_missing_is_said() {
    let world = signed();
    let key = key(&world);
    let witnesses: Vec<Witness> = (1..=3).map(|number| Witness::new("honest", number, &key)).collect();
    let lines: String = witnesses.iter().map(Witness::line).collect();
    world.write("policy", format!("log {key}\n{lines}\n# two of them\ngroup two 2 w1 w2 w3\nquorum two\n"));
    world.write("all", format!("{lines}group all all w1 w2 w3\nquorum all\n"));
    // Nothing is signed by a witness yet.
    world.write("note", world.run(&["checkpoint", "export"]).out);
    tells(
        &world.run(&["checkpoint", "check", "note", "--policy", "policy"]),
        3,
        &["too few witnesses", "missing: w1, w2, w3"],
    );
    // An older checkpoint first; then the newer one goes on from there.
    tells(&push(&world, &witnesses[0], &["#29"]), 0, &["w1 signed #29", "enough: needed: w1"]);
    let mut witnesses = witnesses;
    drop(witnesses.pop());
    let ran = world.run(&["checkpoint", "push", "--policy", "policy"]);
    let words = [
        "w1 signed",
        "w2 signed",
        "w3 did not sign",
        "cannot ask http://127.0.0.1:",
        "enough:",
        "missing: w3",
    ];
    tells(&ran, 0, &words);
    tells(&world.run(&["checkpoint", "push", "--policy", "all"]), 8, &["not enough", "missing: w3"]);
    let json = world.run(&["checkpoint", "push", "--policy", "all", "--json"]);
    tells(&json, 8, &["\"is_enough\":false", "\"missing\":[\"w3\"]", "acpdb.push/1"]);
    // The note has their signatures; all that checked it before still does, and so does the proof of an event.
    world.write("note", world.run(&["checkpoint", "export"]).out);
    tells(
        &world.run(&["checkpoint", "check", "note", "--policy", "policy"]),
        0,
        &["witnesses", "signed: w1 ", "missing: w3"],
    );
    tells(
        &world.run(&["checkpoint", "check", "note", "--policy", "all"]),
        3,
        &["too few witnesses", "missing: w3"],
    );
    world.run(&["checkpoint", "prove", "#6", "--event", "-o", "event"]).ok();
    tells(
        &world.run(&["checkpoint", "check", "event", "--policy", "policy"]),
        0,
        &["tool_call_started was recorded"],
    );
    let (code, text) = python(&world, "event", &key);
    assert_eq!(code, 0, "{text}");
    tells(&world.run(&["verify"]), 0, &["agrees"]);
    let note = Note::parse(&std::fs::read_to_string(world.path("note")).unwrap()).unwrap();
    for witness in &witnesses {
        assert!(WitnessKey::parse(&witness.key).unwrap().cosigned(&note).unwrap().is_some());
    }
    // Signed anew it can be asked again, from the size that it is known to have seen.
    world.run_with(&["append", "--stdin"], said("k8", "more")).ok();
    world.run(&["checkpoint", "sign"]).ok();
    tells(&world.run(&["checkpoint", "push", "--policy", "policy"]), 0, &["w1 signed", "w2 signed"]);
}

#[test]
#[ignore = "needs python3"]
fn what_a_witness_does_wrong_is_said_and_nothing_of_it_is_kept() {
    let world = signed();
    let key = key(&world);
    let export = || world.run(&["checkpoint", "export"]).ok();
    let before = export();
    let table: [(&str, &[&str]); 12] = [
        ("forged", &["is named by a signature that is not its own"]),
        ("another-text", &["is named by a signature that is not its own"]),
        ("others", &["answered with the signatures of others only"]),
        ("garbage", &["did not answer with signatures"]),
        ("empty", &["did not answer with signatures"]),
        ("cut", &["did not answer with signatures"]),
        ("endless", &["its answer has no end"]),
        ("elsewhere", &["answers with status 302"]),
        ("broken", &["answers with status 500"]),
        ("no-size", &["does not say which"]),
        ("moving", &["another size each time"]),
        ("slow", &["cannot ask", "timeout"]),
    ];
    for (mode, words) in table {
        let witness = Witness::new(mode, 1, &key);
        let ran = push(&world, &witness, &["--timeout", "1"]);
        tells(&ran, 1, &["w1 did not sign", "not enough"]);
        tells(&ran, 1, words);
        assert_eq!(export(), before, "{mode}");
    }
    // One that is not there, and one that does not know the store or its key.
    let mut gone = Witness::new("honest", 1, &key);
    gone.child.kill().unwrap();
    gone.child.wait().unwrap();
    tells(&push(&world, &gone, &[]), 1, &["cannot ask http://127.0.0.1:"]);
    let other = signed();
    let stranger = Witness::new("honest", 1, &super::key(&other));
    tells(&push(&world, &stranger, &[]), 1, &["it does not know this store", "acpdb key show"]);
    let (name, _) = key.split_once('+').unwrap();
    let thief = acpdb_proof::SignerKey::from_seed(&[3; 32]).verifier(name).unwrap().to_string();
    tells(&push(&world, &Witness::new("honest", 1, &thief), &[]), 1, &["does not believe the key"]);
    assert_eq!(export(), before);
}

#[test]
#[ignore = "needs python3"]
fn witnesses_that_saw_more_or_another_history_are_heard() {
    let world = signed();
    let key = key(&world);
    let size = world.run(&["checkpoint", "export"]).ok().lines().nth(1).unwrap().parse::<u64>().unwrap();
    // It saw events that the log does not have: the folder was set back.
    let longer = Witness::seen("honest", 1, &key, 1 << 40, [1; 32]);
    tells(&push(&world, &longer, &[]), 4, &["it saw events up to #1099511627776", "the log was set back"]);
    // It saw a newer checkpoint than this one.
    let newer = Witness::seen("honest", 1, &key, size, [1; 32]);
    tells(&push(&world, &newer, &["#29"]), 1, &["it signed up to", "push a newer checkpoint"]);
    // Another history of the same length, and a shorter one.
    tells(&push(&world, &newer, &[]), 3, &["it signed another history", "rewritten, or forked"]);
    let shorter = Witness::seen("honest", 1, &key, 7, [1; 32]);
    tells(&push(&world, &shorter, &[]), 3, &["is not the beginning of", "rewritten, or forked"]);
    // The owner of the key shows another face to a witness that saw the first one.
    let witness = Witness::new("honest", 1, &key);
    tells(&push(&world, &witness, &[]), 0, &["w1 signed"]);
    copy(&world.path("base"), &world.path("face"));
    let lines = said("k1", "un") + &said("k2", "deux") + &said("k3", "trois");
    world.run_with(&["--db", "face", "append", "--stdin"], lines).ok();
    std::fs::create_dir_all(world.path("another/.config/acpdb/keys")).unwrap();
    let own = "home/.config/acpdb/keys/default.key";
    std::fs::copy(world.path(own), world.path("another/.config/acpdb/keys/default.key")).unwrap();
    let elsewhere = |arguments: &[&str]| {
        let mut command = world.command();
        command.args(arguments).env("HOME", world.path("another"));
        super::world::finish(command, b"")
    };
    elsewhere(&["--db", "face", "checkpoint", "sign"]).ok();
    world.write("alone", witness.alone());
    tells(
        &elsewhere(&["--db", "face", "checkpoint", "push", "--policy", "alone"]),
        3,
        &["rewritten, or forked"],
    );
}

#[test]
#[ignore = "needs python3"]
fn nothing_waits_for_a_witness() {
    let world = signed();
    let key = key(&world);
    let witness = Witness::new(&format!("until:{}", world.path("go").display()), 1, &key);
    std::thread::scope(|scope| {
        let pushing = scope.spawn(|| push(&world, &witness, &["--timeout", "300"]));
        // Recorded and signed while the witness is silent.
        world.run_with(&["append", "--stdin"], said("k7", "meanwhile")).ok();
        world.run(&["checkpoint", "sign"]).ok();
        assert!(!pushing.is_finished());
        world.write("go", "");
        tells(&pushing.join().unwrap(), 0, &["w1 signed"]);
    });
    world.assert_sound();
}

#[test]
#[ignore = "needs python3"]
fn addresses_keys_and_policies_that_are_none_are_refused() {
    let world = signed();
    let key = key(&world);
    let witness = Witness::new("honest", 1, &key);
    let at = |url: &str| {
        world.write("alone", witness.alone().replace(&witness.url, url));
        world.run(&["checkpoint", "push", "--policy", "alone"])
    };
    tells(&at("http://example.org"), 1, &["http is for witnesses of this machine only"]);
    tells(&at("ftp://127.0.0.1"), 1, &["is no address of a witness"]);
    tells(&at("nonsense"), 1, &["is no address of a witness"]);
    world.write("alone", witness.alone().replace(&witness.key, &key));
    let wrong = world.run(&["checkpoint", "push", "--policy", "alone"]);
    tells(&wrong, 2, &["no key of a witness"]);
    tells(&world.run(&["checkpoint", "push"]), 2, &["--policy"]);
    tells(&world.run(&["checkpoint", "push", "--policy", "none"]), 7, &["there is no policy none"]);
    let line = witness.line();
    for (policy, word) in [
        (String::new(), "there is no line with a quorum"),
        ("quorum w1\n".to_owned(), "line 1: the quorum is no witness"),
        (format!("{line}{line}quorum w1\n"), "line 2: this name is taken"),
        (
            format!("{line}{}quorum w1\n", line.replace("witness w1", "witness w9")),
            "line 2: this witness is there",
        ),
        (format!("{line}group g 2 w1\nquorum g\n"), "cannot need that many"),
        (
            format!("{line}group g any w1\ngroup h any w1\nquorum g\n"),
            "line 3: a member is in a group already",
        ),
        (format!("{line}quorum w1\nquorum w1\n"), "a second line with a quorum"),
        (format!("{line}quorum none\nfoo\n"), "line 3: this is no line of a policy"),
        (format!("log {key} \u{1}\nlog {key}\nquorum none\n"), "line 2: this log is there already"),
    ] {
        world.write("policy", policy);
        tells(&world.run(&["checkpoint", "push", "--policy", "policy"]), 2, &[word]);
    }
    // A policy that needs no witness is kept to.
    world.write("policy", "quorum none\n");
    tells(&world.run(&["checkpoint", "push", "--policy", "policy"]), 0, &["enough: needed: none"]);
    assert!(StoreId::from_hex(&key[6..38]).is_some());
}
