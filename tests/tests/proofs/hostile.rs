//! The folder `checkpoints` of a store that comes from an attacker: nothing is read outside of it, nothing hangs, all is named.

use std::os::unix::fs::symlink;
use std::path::Path;

use acpdb_engine::ids::Seq;
use acpdb_proof::tree::Hash;
use acpdb_proof::{Checkpoint, Note, SignerKey};

use super::world::World;
use super::{contents, key, signed, tells};

const OWN_KEY: &str = "home/.config/acpdb/keys/default.key";

/// A change that an attacker makes to the folder and its newest note, and the exit code and the words that follow.
type Row = (&'static str, fn(&World, &Path, &Path), i32, &'static [&'static str]);

fn note(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn own_key(world: &World) -> SignerKey {
    SignerKey::parse(&note(&world.path(OWN_KEY))).unwrap()
}

fn claimed(path: &Path) -> Checkpoint {
    Checkpoint::parse(Note::parse(&note(path)).unwrap().text_unchecked()).unwrap()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn nothing_in_a_folder_of_checkpoints_leads_out_of_it_or_passes() {
    let table: [Row; 14] = [
        (
            "a link in place of the folder",
            |world, folder, _| {
                std::fs::rename(folder, world.path("outside")).unwrap();
                symlink(world.path("outside"), folder).unwrap();
            },
            3,
            &["checkpoints", "symbolic link", "move it out of the store"],
        ),
        (
            "a file in place of the folder",
            |_, folder, _| {
                std::fs::remove_dir_all(folder).unwrap();
                std::fs::write(folder, "x").unwrap();
            },
            3,
            &["checkpoints", "move it out of the store"],
        ),
        (
            "a link in place of a note",
            |world, _, newest| {
                std::fs::rename(newest, world.path("outside")).unwrap();
                symlink(world.path("outside"), newest).unwrap();
            },
            3,
            &["is damaged", "symbolic link"],
        ),
        (
            "a link to what others may not read",
            |_, _, newest| {
                std::fs::remove_file(newest).unwrap();
                symlink("/proc/self/environ", newest).unwrap();
            },
            3,
            &["is damaged", "symbolic link"],
        ),
        (
            "a pipe",
            |world, _, newest| {
                std::fs::remove_file(newest).unwrap();
                assert_eq!(world.shell(&format!("mkfifo '{}'", newest.display())).code, 0);
            },
            3,
            &["is damaged"],
        ),
        (
            "a folder in place of a note",
            |_, _, newest| {
                std::fs::remove_file(newest).unwrap();
                std::fs::create_dir(newest).unwrap();
            },
            3,
            &["is damaged"],
        ),
        (
            "a note without an end",
            |_, _, newest| {
                std::fs::File::create(newest).unwrap().set_len(1 << 40).unwrap();
            },
            3,
            &["is damaged"],
        ),
        (
            "no text",
            |_, _, newest| std::fs::write(newest, [0xff; 99]).unwrap(),
            3,
            &["is damaged", "is no text"],
        ),
        (
            "thousands of signatures",
            |_, _, newest| {
                let text = note(newest);
                let line = text.lines().last().unwrap();
                std::fs::write(newest, text.clone() + &format!("{line}\n").repeat(5000)).unwrap();
            },
            3,
            &["is damaged"],
        ),
        (
            "hundreds of signatures",
            |_, _, newest| {
                let lines = (0..100).map(|number| format!("\u{2014} a{number} AAAAAAAA\n"));
                std::fs::write(newest, note(newest) + &lines.collect::<String>()).unwrap();
            },
            3,
            &["is damaged", "more than 100 signatures"],
        ),
        (
            "a note under another number",
            |_, folder, newest| {
                std::fs::copy(newest, folder.join("000000000009.note")).unwrap();
            },
            3,
            &["is damaged", "it lies where that of #9 should"],
        ),
        (
            "a size that no log has",
            |world, folder, newest| {
                let far = Checkpoint { seq: Seq(u64::MAX), ..claimed(newest) };
                let name = format!("{}.note", u64::MAX);
                std::fs::write(folder.join(name), far.sign(&own_key(world)).unwrap()).unwrap();
            },
            4,
            &["is ahead: the log was set back"],
        ),
        (
            "a tree without events",
            |world, folder, newest| {
                let none = Checkpoint { seq: Seq(0), root: Hash([0; 32]), ..claimed(newest) };
                std::fs::write(folder.join("000000000000.note"), none.sign(&own_key(world)).unwrap())
                    .unwrap();
            },
            4,
            &["at #0 is ahead"],
        ),
        (
            "names that are not ours",
            |_, folder, newest| {
                for name in ["+7.note", "7.note", "-1.note", "x.note", "000000000007.note.bak", ".note"] {
                    std::fs::copy(newest, folder.join(name)).unwrap();
                }
            },
            0,
            &["agrees"],
        ),
    ];
    for (name, change, code, words) in table {
        let world = signed();
        let folder = world.path("store/checkpoints");
        let newest = contents(&folder).pop().unwrap().0;
        change(&world, &folder, &newest);
        for arguments in [vec!["verify"], vec!["checkpoint", "show"]] {
            println!("{name}: {arguments:?}");
            let ran = world.run(&arguments);
            tells(&ran, code, words);
            assert!(!ran.text().contains("HOME=") && !ran.err.contains("HOME="), "{}", ran.text());
        }
        let signs = world.run(&["checkpoint", "sign"]);
        assert_eq!(signs.code, code, "{name}: {}", signs.err);
        // The rest of the store works.
        world.run(&["context", "s1"]).ok();
        let proves = world.run(&["checkpoint", "prove", "#6", "--event"]);
        assert!([0, 3, 4].contains(&proves.code), "{name}: {}", proves.err);
    }
}

/// A note whose key is not known was checked against nothing but the log beside it, which its writer wrote as well.
#[test]
fn what_a_stranger_signed_is_no_success_until_the_key_is_known() {
    let world = World::fed();
    world.run(&["key", "new"]).ok();
    world.run(&["checkpoint", "sign"]).ok();
    let key = key(&world);
    let elsewhere = |arguments: &[&str]| {
        let mut command = world.command();
        command.args(arguments).env("HOME", world.path("another"));
        super::world::finish(command, b"")
    };
    tells(&elsewhere(&["verify"]), 8, &["store: sound", "proves nothing here", "its key is not known"]);
    tells(&elsewhere(&["verify", "--json"]), 8, &["\"standing\":\"unproven\""]);
    tells(&elsewhere(&["checkpoint", "show"]), 8, &["proves nothing here"]);
    tells(&elsewhere(&["key", "new"]), 0, &[]);
    tells(&elsewhere(&["checkpoint", "sign"]), 8, &["nothing was signed", "acpdb key trust KEY"]);
    tells(&elsewhere(&["verify", "--key", &key]), 0, &["agrees"]);
    tells(&elsewhere(&["key", "trust", &key]), 0, &[]);
    tells(&elsewhere(&["verify"]), 0, &["agrees"]);
    tells(&elsewhere(&["checkpoint", "sign"]), 0, &["signed with default"]);
    // A key that is given has to have signed something: without its notes the check would be one of nothing.
    std::fs::remove_dir_all(world.path("store/checkpoints")).unwrap();
    std::fs::remove_dir_all(world.path("another")).unwrap();
    tells(&elsewhere(&["verify"]), 0, &["store: sound"]);
    tells(
        &elsewhere(&["verify", "--key", &key]),
        8,
        &["no checkpoint here agrees that was signed with the key"],
    );
}
