//! The program when it is killed, and when the system fails under it: calls that return errors, as `strace` injects them.
//!
//! In every case acknowledged commits are there, an unfinished run ends with code 1 and a message that names the store, and
//! the next run goes on.

use std::process::Command;

use acpdb_tests::binary::binary;
use acpdb_tests::cuts::{self, End};
use acpdb_tests::support::cases;

use crate::world::{Ran, World, finish};

/// The soak example does this for as long as one likes: `.. soak -- kill --rounds 1000`.
#[test]
fn a_program_that_is_killed_at_any_moment_keeps_its_word() {
    match cuts::many(binary().unwrap(), End::Kill, u64::from(cases(10)), 1) {
        Ok(tally) => assert!(tally.acked > 0, "{tally:?}"),
        Err(finding) => panic!("{finding}"),
    }
}

fn injected(world: &World, fault: &str, arguments: &[&str], input: &str) -> Ran {
    let plain = world.command();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={fault}")]);
    command.arg(plain.get_program()).args(arguments);
    command.current_dir(world.path(".")).env_clear();
    for (name, value) in plain.get_envs() {
        value.map(|value| command.env(name, value));
    }
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    finish(command, input.as_bytes())
}

const LINE_COUNT: usize = 12;

fn lines(tag: &str) -> String {
    let line = |n: usize| {
        format!(
            "{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"{tag} {n} {}\"}}}}\n",
            "x".repeat(n * 400)
        )
    };
    (0..LINE_COUNT).map(line).collect()
}

/// Appends under a fault, and judges; returns the number of lines that were acknowledged, and the run.
fn under(fault: &str) -> (usize, Ran) {
    let world = World::new();
    world.run_with(&["append", "--stdin"], lines("before")).ok();
    let ran = injected(&world, fault, &["append", "--stdin", "--ack"], &lines("under"));
    let acks: Vec<u64> = ran.text().lines().map(|line| line.parse().unwrap()).collect();
    assert!(!ran.err.contains("panicked"), "{fault}: {}", ran.err);
    let is_killed = fault.contains("signal=");
    if !is_killed {
        let expected = if acks.len() == LINE_COUNT { [0, 0] } else { [1, 6] };
        assert!(
            expected.contains(&ran.code),
            "{fault}: {} acknowledged, {}: {}",
            acks.len(),
            ran.code,
            ran.err
        );
        if ran.code != 0 {
            assert!(ran.err.starts_with("error: ") && ran.err.contains("store"), "{fault}: {}", ran.err);
        }
    }
    world.run(&["verify"]).ok();
    // Later lines go on behind the lines that were kept.
    let after = world.run_with(&["append", "--stdin", "--ack"], lines("after")).ok();
    assert_eq!(after.lines().count(), LINE_COUNT, "{fault}");
    let list = world.list();
    let said = |seq: u64| {
        let line = list.lines().find(|line| line.starts_with(&format!("{seq}\t")));
        line.and_then(|line| line.split_once('\t')).map_or("", |(_, said)| said)
    };
    for (number, seq) in acks.iter().enumerate() {
        assert!(
            said(*seq).starts_with(&format!("under {number} ")),
            "{fault}: {seq} says {:.40}",
            said(*seq)
        );
    }
    let count = |tag: &str| list.lines().filter(|line| line.contains(&format!("\t{tag} "))).count();
    assert_eq!((count("before"), count("after")), (LINE_COUNT, LINE_COUNT), "{fault}");
    // At most the line that was under way when it ended is there without an acknowledgement.
    assert!(
        (acks.len()..=acks.len() + 1).contains(&count("under")),
        "{fault}: {} {}",
        acks.len(),
        count("under")
    );
    world.assert_sound();
    (acks.len(), ran)
}

/// Each call of a run fails, one after the other, once or from then on.
#[test]
#[ignore = "makes system calls fail: needs strace"]
fn whatever_call_fails_nothing_acknowledged_is_lost_and_the_next_run_goes_on() {
    let step = usize::max(1, 6 / cases(2).clamp(1, 6) as usize);
    let (mut failed, mut survived) = (0, 0);
    for call in [
        "fdatasync:error=EIO",
        "fdatasync:error=ENOSPC",
        "pwrite64:error=EIO",
        "pwrite64:error=ENOSPC",
        "pread64:error=EIO",
        "openat:error=EMFILE",
        "ftruncate:error=EIO",
        "flock:error=ENOLCK",
        "fdatasync:signal=SIGKILL",
        "pwrite64:signal=SIGKILL",
    ] {
        // The first calls of some kinds are those of the loader.
        let first = if call.starts_with("openat") {
            7
        } else if call.starts_with("pread64") {
            4
        } else {
            1
        };
        for when in (first..first + 6).step_by(step) {
            let more = if when % 2 == 0 { "+" } else { "" };
            let (acked, _) = under(&format!("{call}:when={when}{more}"));
            if acked < LINE_COUNT { failed += 1 } else { survived += 1 }
        }
    }
    assert!(failed > 5, "{failed} runs met a fault, {survived} did not");
}

/// A message names the failed call and the file, and says that a run after it is safe.
#[test]
#[ignore = "makes system calls fail: needs strace"]
fn what_failed_is_said_with_what_to_do() {
    let (acked, ran) = under("fdatasync:error=EIO:when=3+");
    assert!(acked < 4, "{acked}");
    ran.says(1, &["line", "may be recorded or not", "sync of it failed", "disk", "run this again"]);
    // The index is written by the same call, and a write of it that fails costs no line.
    let ran = (1..12)
        .map(|when| under(&format!("pwrite64:error=ENOSPC:when={when}")))
        .find_map(|(acked, ran)| (acked < LINE_COUNT).then_some(ran))
        .expect("one of the writes is a line's");
    ran.says(1, &["no space left", "store", "free some"]);
    // The bytes written by half could not even be zeroed.
    let (_, ran) = under("pwrite64:error=ENOSPC:when=3+");
    ran.says(1, &["may be recorded or not", "write or sync of it failed", "again"]);
    // A call that was interrupted is made again.
    for call in ["fdatasync:error=EINTR:when=2", "pwrite64:error=EINTR:when=2", "pread64:error=EINTR:when=5"]
    {
        let (acked, ran) = under(call);
        assert_eq!((acked, ran.code), (LINE_COUNT, 0), "{call}: {}", ran.err);
    }
}
