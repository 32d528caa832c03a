//! Parts that the targets share: a small store on a simulated disk, and how to read everything in it.
//!
//! ```text
//! template (made once)  -> fork -> the target changes files -> open -> read everything -> each event as it was, or an error
//! ```

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::{Payload, Recorded, Role};
use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::storage::{FixedClock, FixedEntropy, SimWorld};
use acpdb_engine::verify::verify_storage;
use acpdb_engine::{Builder, Error, Store};
use acpdb_hosts::import::{ImportBatch, ImportFormat, ImportOptions, Sink, SinkStop, read};

/// The file of the store's secret.
const SECRET: &str = "secret";

/// A store, with its contents before anything was done to it.
pub struct Template {
    world: SimWorld,
    events: Vec<Recorded>,
}

/// How every store here is opened: no index (no threads), small segments, a clock that stands.
pub fn builder(world: &SimWorld, process: u32) -> Builder {
    Store::builder("/sim")
        .storage(Arc::new(world.process(process)))
        .registry(acpdb_hosts::registry())
        .clock(Arc::new(FixedClock::new(Micros(1_767_225_600_000_000), 1)))
        .entropy(Arc::new(FixedEntropy::new(u64::from(process))))
        .index(false)
        .segment_bytes_max(4096 + 3000)
        .lock_wait(Duration::from_millis(1))
}

fn write(world: &SimWorld) -> Result<Vec<Recorded>, Error> {
    let store = builder(world, 1).open()?;
    let one = StreamInfo { project: Some("shop".to_owned()), ..StreamInfo::session("opencode", "s1") };
    let two = StreamInfo { project: Some("shop".to_owned()), ..StreamInfo::session("opencode", "s2") };
    for round in 0..4 {
        let call = format!("c{round}");
        let entries = vec![
            Entry::step(format!("step {round}")),
            Entry::message(format!("m{round}"), Role::User, format!("please read it, round {round}")),
            Entry::tool_started(call.clone(), "read", r#"{"filePath":"src/a.rs"}"#),
            Entry::tool_completed(call, format!("line {round}\n").repeat(30)),
        ];
        let _receipt = store.append(if round == 2 { &two } else { &one }, entries)?;
    }
    let events = store.events(Seq(1), Seq::MAX)?.collect::<Result<Vec<_>, _>>()?;
    store.close()?;
    Ok(events)
}

impl Template {
    /// The template, made at its first use.
    pub fn get() -> &'static Self {
        static TEMPLATE: OnceLock<Template> = OnceLock::new();
        TEMPLATE.get_or_init(|| {
            let world = SimWorld::new(1);
            let events = write(&world).expect("a simulated disk without faults takes a store");
            assert!(
                world.files().iter().filter(|name| name.ends_with(".seg")).count() > 1,
                "more than one segment"
            );
            Template { world, events }
        })
    }

    /// A copy of its disk.
    pub fn world(&self) -> SimWorld {
        self.world.fork(2)
    }

    /// Opens the changed store, reads everything, and compares each event shown with the recorded one.
    ///
    /// Errors are right; other events than those that were recorded are not, nor are bodies that were not.
    pub fn judge(&self, world: &SimWorld) {
        let _verdict = verify_storage(Arc::new(world.process(7)), true);
        for read_only in [true, false] {
            let builder = builder(world, if read_only { 8 } else { 9 }).create(false);
            let Ok(store) = (if read_only { builder.read_only() } else { builder }).open() else { continue };
            self.read(&store, world.file(SECRET) == self.world.file(SECRET));
            drop(store.close());
        }
    }

    /// Without the store's secret the labels of calls are as they lie in the log: they cannot be told.
    fn read(&self, store: &Store, knows_labels: bool) {
        let unlabelled = |recorded: &Recorded| {
            let mut recorded = recorded.clone();
            if let Payload::ToolCallStarted(started) = &mut recorded.event.payload
                && !knows_labels
            {
                started.label = 0;
            }
            recorded
        };
        let Ok(events) = store.events(Seq(1), Seq::MAX) else { return };
        for recorded in events.flatten().take(10_000) {
            let index = usize::try_from(recorded.seq.0).unwrap_or(usize::MAX).wrapping_sub(1);
            let Some(original) = self.events.get(index) else {
                // Only events that this program itself notes may follow.
                assert!(
                    recorded.event.payload.label().contains("noted"),
                    "an event that was never recorded: {recorded:?}"
                );
                continue;
            };
            let (original, shown) = (unlabelled(original), unlabelled(&recorded));
            assert_eq!(original, shown, "an event is shown as it was recorded, or not at all");
            if let Ok(Some(raw)) = store.record(&recorded) {
                drop(raw);
            }
        }
        for name in store.stream_names().unwrap_or_default() {
            let Ok(view) = store.view(name.id) else { continue };
            let _stats = view.stats();
            for item in view.history() {
                let _ = (view.chain(item.item), view.explain(item.item));
            }
        }
    }
}

/// Keeps the facts of an import, up to a number that no small input should reach.
struct Kept(Vec<ImportBatch>);

impl Sink for Kept {
    fn batch(&mut self, batch: ImportBatch) -> Result<(), SinkStop> {
        self.0.push(batch);
        if self.0.len() < 100_000 { Ok(()) } else { Err(SinkStop) }
    }
}

fn import(format: ImportFormat, file: &[u8]) -> Vec<ImportBatch> {
    let mut kept = Kept(Vec::new());
    let _report = read(format, "fuzz", file, &ImportOptions::default(), &mut kept);
    kept.0
}

/// The import of any file ends, offsets never go back, and the same bytes give the same facts.
pub fn check_import(format: ImportFormat, file: &[u8]) {
    let first = import(format, file);
    assert!(first.windows(2).all(|pair| pair[0].offset <= pair[1].offset), "offsets never go back");
    assert_eq!(first, import(format, file), "the same bytes give the same facts");
}
