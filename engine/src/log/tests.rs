//! Smoke.
use super::*;
use crate::codec::{EncodedBody, Envelope};
use crate::ids::Origin;
use crate::storage::{FileStorage, SystemClock, SystemEntropy};

#[test]
fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        Log::create_or_open(
            Arc::new(FileStorage::new(dir.path().join("store"))),
            Arc::new(SystemClock::new()),
            Arc::new(SystemEntropy),
            LogOptions::default(),
        )
        .unwrap()
    };
    let (log, recovery) = open();
    assert!(recovery.created && recovery.was_clean);
    for i in 0..10_u8 {
        let event = EncodedEvent {
            envelope: Envelope {
                kind: 1,
                version: 1,
                stream: StreamId([i; 16]),
                origin: Origin::ZERO,
                host_time: None,
            },
            payload: vec![i; 33],
            bodies: vec![EncodedBody::New { bytes: vec![i; 100].into(), salt: log.salt().unwrap() }],
        };
        let prepared = log.prepare(&[event]).unwrap();
        let appended = log.append(prepared, &[]).unwrap();
        assert_eq!(appended.first_seq, Seq(u64::from(i) + 1));
        assert_eq!(log.body(&appended.rows[0]).unwrap(), vec![i; 100]);
    }
    log.close().unwrap();
    let (log, recovery) = open();
    assert!(recovery.was_clean, "{recovery:?}");
    assert_eq!(log.frames(Position::default(), log.head()).filter(Result::is_ok).count(), 10);
    assert_eq!(log.locate(Seq(5)).unwrap().unwrap().header().first_seq, Seq(5));
    let report = log.verify(true).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.events, 10);
}
