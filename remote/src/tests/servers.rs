//! Servers that are no part of the tests: a bucket and a database that `tests/scripts/remote_servers.py` starts. The chain has to do there what it does in memory.

use std::sync::Arc;

use acpdb_engine::ids::StoreId;
use acpdb_engine::storage::{Entropy, SystemEntropy};

use super::conformance::conforms;
use super::world::{piece_behind, read_commits};
use crate::{ChainError, EncryptedRemote, Remote, RemoteChain, RemotePlace, repair};

/// The remote of a URL that the script names, below a prefix that no other test has.
fn remote(variable: &str, prefix: &str) -> Arc<EncryptedRemote> {
    let url = std::env::var(variable).unwrap_or_else(|_| panic!("remote_servers.py sets {variable}"));
    let drawn = crate::chain::random(&SystemEntropy).unwrap();
    Arc::new(RemotePlace::of_url(&format!("{url}/{prefix}-{drawn:016x}")).unwrap().open().unwrap())
}

/// Workers take a chain over while others go on: each commit that was acknowledged is there once, in order.
fn hands_over(remote: &Arc<EncryptedRemote>, rounds: u64) {
    let store = StoreId([9; 16]);
    let take = || {
        let remote: Arc<dyn Remote> = Arc::<EncryptedRemote>::clone(remote);
        RemoteChain::take_over(remote, Arc::new(SystemEntropy), store, "worker")
    };
    let mut acked = Vec::new();
    let mut former: Option<RemoteChain> = None;
    for round in 0..rounds {
        let mut chain = take().unwrap();
        for commit in round * 100..round * 100 + 7 {
            chain.append(&piece_behind(chain.place(), commit)).unwrap();
            acked.push(commit);
        }
        if round % 3 == 2 {
            chain.pack().unwrap();
        }
        if let Some(mut late) = former.replace(chain) {
            let told = late.append(&piece_behind(late.place(), 7_777_777));
            assert!(matches!(told, Err(ChainError::Fenced { .. })), "{told:?}");
        }
    }
    assert_eq!(read_commits(&**remote, store), acked);
    remote.delete(&format!("heads/{store}")).unwrap();
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    assert!(repair(&**remote, &entropy, store).unwrap());
    assert_eq!(read_commits(&**remote, store), acked);
}

#[test]
fn a_real_bucket_does_what_is_asked() {
    conforms(&*remote("ACPDB_TEST_BUCKET", "conforms"), 40);
    hands_over(&remote("ACPDB_TEST_BUCKET", "hands"), 12);
}

#[test]
fn a_real_database_does_what_is_asked() {
    conforms(&*remote("ACPDB_TEST_DATABASE", "conforms"), 40);
    hands_over(&remote("ACPDB_TEST_DATABASE", "hands"), 12);
}
