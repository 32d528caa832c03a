//! Stores in a bucket: a server of this process, which fails in all the ways that servers were seen to fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use acpdb_engine::storage::SystemEntropy;

use super::conformance::conforms;
use super::world::{STORE, piece_behind, read_commits};
use crate::s3::{S3Conditions, S3Fault, S3Place, S3Remote, S3Server, S3Settings};
use crate::{ChainError, Created, Remote, RemoteChain, RemoteError, Swapped};

fn settings_of(server: &S3Server, key: &str, secret: &str) -> S3Settings {
    let endpoint = server.endpoint();
    let find = |name: &str| match name {
        "AWS_ENDPOINT_URL" => Some(endpoint.clone()),
        "AWS_ACCESS_KEY_ID" => Some(key.to_owned()),
        "AWS_SECRET_ACCESS_KEY" => Some(secret.to_owned()),
        _ => None,
    };
    S3Settings::read(&find, None).unwrap().pause(Duration::from_millis(1))
}

fn remote_at(server: &S3Server, prefix: &str) -> S3Remote {
    let place = S3Place::new(S3Server::BUCKET, prefix).unwrap();
    S3Remote::new(place, &settings_of(server, "key", "secret")).unwrap()
}

fn take_over(remote: &Arc<S3Remote>) -> Result<RemoteChain, ChainError> {
    RemoteChain::take_over(Arc::<S3Remote>::clone(remote), Arc::new(SystemEntropy), STORE, "worker")
}

#[test]
fn a_bucket_conforms_with_and_without_a_prefix() {
    for prefix in ["", "a team/one"] {
        let server = S3Server::start().unwrap();
        conforms(&remote_at(&server, prefix), 5);
        let is_below = |key: &String| key.starts_with(prefix);
        assert!(server.objects().all().keys().all(is_below), "nothing is beside the prefix");
        assert!(!server.objects().all().keys().any(|key| key.contains("probe")), "no probe is left");
    }
}

/// Each fault on each of the first calls of a writer: what it was told is there, once.
#[test]
fn a_chain_in_a_bucket_survives_each_fault_of_each_request() {
    let faults = [
        S3Fault::Refuse(409, "ConditionalRequestConflict"),
        S3Fault::Refuse(429, "SlowDown"),
        S3Fault::Refuse(503, "SlowDown"),
        S3Fault::Refuse(500, "InternalError"),
        S3Fault::Refuse(400, "RequestTimeout"),
        S3Fault::Deny(500, "InternalError"),
        S3Fault::Deny(502, "BadGateway"),
        S3Fault::Deny(409, "ConditionalRequestConflict"),
        S3Fault::Lose,
        S3Fault::Silence,
        S3Fault::Tear,
    ];
    for fault in faults {
        for at in 0..24 {
            let server = S3Server::start().unwrap();
            let remote = Arc::new(remote_at(&server, "p"));
            let count = AtomicU32::new(0);
            server.plan(move |method, key| {
                // Servers were seen to tear creations; what a key has alone is put again by its owner.
                let is_one = fault != S3Fault::Tear || method == "PUT" && key.contains("/log/");
                (is_one && count.fetch_add(1, SeqCst) == at).then_some(fault)
            });
            let (mut acknowledged, mut in_doubt, mut commit) = (Vec::new(), Vec::new(), 0);
            while acknowledged.len() < 4 {
                let Ok(mut chain) = take_over(&remote) else { continue };
                for _ in 0..2 {
                    commit += 1;
                    match chain.append(&piece_behind(chain.place(), commit)) {
                        Ok(()) => acknowledged.push(commit),
                        Err(ChainError::Remote(_)) => {
                            in_doubt.push(commit);
                            break;
                        }
                        Err(error) => panic!("{fault:?} at {at}: {error}"),
                    }
                }
                // It may fail as any request; what is there is read below.
                drop(chain.pack());
            }
            let found: Vec<u64> =
                read_commits(&*remote, STORE).into_iter().filter(|found| !in_doubt.contains(found)).collect();
            assert_eq!(found, acknowledged, "{fault:?} at {at}");
        }
    }
}

#[test]
fn two_owners_of_a_store_in_a_bucket_fence_each_other() {
    let server = S3Server::start().unwrap();
    let remotes = [Arc::new(remote_at(&server, "p")), Arc::new(remote_at(&server, "p"))];
    let mut first = take_over(&remotes[0]).unwrap();
    first.append(&piece_behind(first.place(), 1)).unwrap();
    let mut second = take_over(&remotes[1]).unwrap();
    second.append(&piece_behind(second.place(), 2)).unwrap();
    let late = first.append(&piece_behind(first.place(), 3));
    assert!(matches!(late, Err(ChainError::Fenced { .. })), "{late:?}");
    assert_eq!(read_commits(&*remotes[0], STORE), [1, 2]);
}

#[test]
fn a_bucket_without_conditions_is_refused_unless_one_writes_alone() {
    for conditions in [S3Conditions::Unknown, S3Conditions::Ignored] {
        let server = S3Server::start().unwrap();
        server.set_conditions(conditions);
        let remote = remote_at(&server, "p");
        let refused = remote.create("a/one", b"1");
        assert!(matches!(refused, Err(RemoteError::Unable { .. })), "{conditions:?}: {refused:?}");
        assert!(server.objects().all().is_empty(), "{conditions:?}: nothing was made");
        let place = S3Place::new(S3Server::BUCKET, "p").unwrap();
        let alone = S3Remote::new(place, &settings_of(&server, "key", "secret").alone(true)).unwrap();
        let Created::Here(tag) = alone.create("a/one", b"1").unwrap() else { panic!("it is taken") };
        assert_eq!(alone.create("a/one", b"2").unwrap(), Created::Taken);
        assert!(matches!(alone.swap("a/one", b"3", &tag).unwrap(), Swapped::Here(_)));
        assert_eq!(alone.swap("a/one", b"4", &tag).unwrap(), Swapped::Moved);
    }
}

#[test]
fn refusals_say_why_and_hold_no_credential() {
    let server = S3Server::start().unwrap();
    let place = || S3Place::new(S3Server::BUCKET, "p").unwrap();
    let told = |remote: &S3Remote| match remote.get("a/one", None) {
        Err(error @ (RemoteError::Refused { .. } | RemoteError::Slow { .. } | RemoteError::Full { .. })) => {
            error.to_string()
        }
        other => panic!("{other:?}"),
    };
    let wrong = |key: &str, secret: &str| S3Remote::new(place(), &settings_of(&server, key, secret)).unwrap();
    let mut said = vec![told(&wrong("other-id", "secret")), told(&wrong("key", "hidden-word"))];
    assert!(said[0].contains("InvalidAccessKeyId") && said[1].contains("SignatureDoesNotMatch"), "{said:?}");
    let none = S3Place::new("none", "").unwrap();
    said.push(told(&S3Remote::new(none, &settings_of(&server, "key", "secret")).unwrap()));
    assert!(said[2].contains("no such bucket"), "{said:?}");
    server.set_ahead(4000);
    said.push(told(&remote_at(&server, "p")));
    assert!(said[3].contains("clock") && said[3].contains("s behind"), "{said:?}");
    server.set_ahead(0);
    for (status, code, word) in [
        (400, "ExpiredToken", "ExpiredToken"),
        (301, "PermanentRedirect", "AWS_REGION"),
        (503, "SlowDown", "wait"),
        (507, "QuotaExceeded", "full"),
    ] {
        server.plan(move |_, _| Some(S3Fault::Refuse(status, code)));
        said.push(told(&remote_at(&server, "p")));
        assert!(said.last().unwrap().contains(word), "{said:?}");
    }
    for said in said {
        let is_told =
            ["hidden-word", "other-id", "X-Amz", "127.0.0.1"].iter().any(|word| said.contains(word));
        assert!(!is_told, "{said}");
    }
}

/// Temporary credentials end while a follower runs; the file has new ones.
#[test]
fn credentials_that_were_renewed_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credentials");
    let write = |key: &str| {
        std::fs::write(
            &file,
            format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = s-{key}\n"),
        )
        .unwrap();
    };
    let server = S3Server::start().unwrap();
    let find = |name: &str| match name {
        "AWS_ENDPOINT_URL" => Some(server.endpoint()),
        "AWS_SHARED_CREDENTIALS_FILE" => Some(file.display().to_string()),
        _ => None,
    };
    write("one");
    server.set_key("one", "s-one");
    let settings = S3Settings::read(&find, None).unwrap().pause(Duration::from_millis(1));
    let remote = S3Remote::new(S3Place::new(S3Server::BUCKET, "").unwrap(), &settings).unwrap();
    assert!(matches!(remote.create("a", b"1").unwrap(), Created::Here(_)));
    server.set_key("two", "s-two");
    assert!(matches!(remote.get("a", None), Err(RemoteError::Refused { .. })));
    write("two");
    assert_eq!(remote.get("a", None).unwrap().unwrap().0, b"1");
}

#[test]
fn a_bucket_that_keeps_versions_is_told_of() {
    let server = S3Server::start().unwrap();
    let remote = remote_at(&server, "p");
    let _ = remote.create("a", b"1").unwrap();
    assert!(!remote.has_versions());
    server.keep_versions();
    let _ = remote.put("a", &mut &b"2"[..], 1).unwrap();
    assert!(remote.has_versions());
}

/// Answers of a server that lies are no list and no object.
#[test]
fn a_server_that_is_none_is_an_error() {
    let remote = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let find = |name: &str| match name {
            "AWS_ENDPOINT_URL" => Some(endpoint.clone()),
            "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("x".to_owned()),
            _ => None,
        };
        S3Remote::new(S3Place::new("bucket", "").unwrap(), &S3Settings::read(&find, None).unwrap()).unwrap()
    };
    assert!(matches!(remote.get("a", None), Err(RemoteError::Broken { .. })));
    assert!(remote.create("a", b"1").is_err());
    let server = S3Server::start().unwrap();
    let remote = remote_at(&server, "p");
    server.plan(|_, _| Some(S3Fault::Refuse(200, "NoList")));
    assert!(matches!(remote.list("", ""), Err(RemoteError::Broken { .. })));
    assert!(matches!(remote.get("a", None), Err(RemoteError::Broken { .. })), "no ETag");
}
