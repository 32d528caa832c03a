//! Stores in a bucket, through the program: a server on a port of this machine, credentials of the environment.
#![cfg(feature = "s3")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod done;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use acpdb_remote::s3::{S3Conditions, S3Fault, S3Server};

use done::{Done, finish};

const URL: &str = "s3://bucket/team";

struct World {
    home: tempfile::TempDir,
    server: S3Server,
}

struct Ran {
    code: Option<i32>,
    text: String,
}

impl Ran {
    fn says(self, code: i32, words: &[&str]) -> String {
        assert_eq!(self.code, Some(code), "{}", self.text);
        for word in words {
            assert!(self.text.contains(word), "{word:?} is not in {}", self.text);
        }
        assert!(!self.text.contains("secret") && !self.text.contains("X-Amz"), "{}", self.text);
        self.text
    }
}

impl World {
    fn new() -> Self {
        let world = Self { home: tempfile::tempdir().unwrap(), server: S3Server::start().unwrap() };
        world.append("first");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.home.path())
            .env("ACPDB_PATH", self.path("store"))
            .env("ACPDB_ANY_FILE_SYSTEM", "1")
            .env("AWS_ENDPOINT_URL", self.server.endpoint())
            .env("AWS_ACCESS_KEY_ID", "key")
            .env("AWS_SECRET_ACCESS_KEY", "secret")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let Done { out, err, code } = finish(&mut self.command(arguments), "");
        Ran { code: Some(code), text: out + &err }
    }

    fn append(&self, text: &str) {
        let line = format!(
            "{{\"session\":\"s\",\"turn\":true,\"message\":{{\"role\":\"user\",\"text\":\"{text}\"}}}}\n"
        );
        assert_eq!(finish(&mut self.command(&["append", "--stdin"]), &line).code, 0);
    }
}

#[test]
fn a_store_is_shipped_to_a_bucket_and_restored_and_nothing_new_is_not_sent() {
    let world = World::new();
    world.run(&["backup", URL, "--dry-run"]).says(0, &["would be sent"]);
    assert_eq!(world.server.count(Some("PUT")), 0);
    world.run(&["backup", URL]).says(0, &["shipped in"]);
    let puts = world.server.count(Some("PUT"));
    world.run(&["backup", URL]).says(0, &["nothing new"]);
    assert_eq!(world.server.count(Some("PUT")), puts);
    world.append("second");
    world.run(&["backup", URL, "--status"]).says(0, &["behind"]);
    world.run(&["backup", URL]).says(0, &["shipped in"]);
    world.run(&["restore", URL, "again"]).says(0, &["verified"]);
    let head = |folder: &str| world.run(&["--db", folder, "head"]).says(0, &[]);
    assert_eq!(head("again"), head("store"));
    let is_below = |key: &String| key.starts_with("team/");
    assert!(world.server.objects().all().keys().all(is_below));
}

/// A follower may run for months, and told nothing of what `backup` warns of.
#[test]
fn a_follower_warns_as_a_single_backup_does() {
    let world = World::new();
    world.run(&["backup", URL]).says(0, &["shipped in"]);
    world.server.keep_versions();
    for (is_head_lost, words) in
        [(false, &["keeps old versions"][..]), (true, &["made anew", "keeps old versions"])]
    {
        if is_head_lost {
            let heads: Vec<String> =
                world.server.objects().all().into_keys().filter(|key| key.contains("/heads/")).collect();
            assert_eq!(heads.len(), 1);
            world.server.objects().set(&heads[0], None);
        }
        world.append("more");
        let mut child = world
            .command(&["backup", URL, "--follow"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("is there"), "{line}");
        let killed = Command::new("kill").arg(child.id().to_string()).status();
        assert!(killed.unwrap().success());
        let ended = child.wait_with_output().unwrap();
        let text = String::from_utf8(ended.stderr).unwrap();
        let ran = Ran { code: ended.status.code(), text };
        let told = ran.says(0, words);
        assert_eq!(told.matches("keeps old versions").count(), 1, "{told}");
    }
}

#[test]
fn what_a_bucket_refuses_is_said() {
    let world = World::new();
    world.server.set_conditions(S3Conditions::Ignored);
    world.run(&["backup", URL]).says(8, &["If-None-Match", "--alone"]);
    world.run(&["backup", URL, "--alone"]).says(0, &["shipped in"]);
    world.server.set_conditions(S3Conditions::Kept);
    world.server.keep_versions();
    world.append("more");
    world.run(&["backup", URL]).says(0, &["keeps old versions"]);
    // The bucket keeps what was erased: that is said, and no success.
    world.append("a word that leaked");
    world.run(&["backup", URL]).says(0, &["keeps old versions"]);
    let found = world.run(&["search", "leaked", "--json"]).says(0, &[]);
    let item = found.split("\"item\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    world.run(&["erase", &item, "--by", "ada", "--reason", "it leaked"]).says(0, &[]);
    world.run(&["backup", URL]).says(8, &["what was erased is there still"]);
    world.server.objects().set("other/notes.txt", Some(Vec::new()));
    world.run(&["backup", "s3://bucket/other"]).says(2, &["notes.txt"]);
    world.run(&["backup", "s3://none/x"]).says(8, &["no such bucket"]);
    world.run(&["backup", "s3://user:word@bucket/x"]).says(2, &["s3://BUCKET/PREFIX"]);
    world.run(&["backup", "s3://bucket/a/../b"]).says(2, &["s3://BUCKET/PREFIX"]);
    world.server.set_key("key", "another");
    world.run(&["backup", URL]).says(8, &["SignatureDoesNotMatch"]);
    world.server.set_key("key", "secret");
    world.server.plan(|_, _| Some(S3Fault::Refuse(507, "QuotaExceeded")));
    world.run(&["backup", URL]).says(8, &["full"]);
    let ran = world.command(&["backup", URL]).env_remove("AWS_ACCESS_KEY_ID").output().unwrap();
    let text = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.code() == Some(8) && text.contains("AWS_ACCESS_KEY_ID"), "{text}");
}
