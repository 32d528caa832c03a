//! Requests to a provider: valid, stable, and as recorded.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::cast_possible_truncation,
    reason = "tests: a failed step is a failed test"
)]

#[path = "exports/copying.rs"]
mod copying;
#[path = "exports/laws.rs"]
mod laws;
#[path = "exports/life.rs"]
mod life;
#[path = "exports/recordings.rs"]
mod recordings;
#[path = "exports/round_trip.rs"]
mod round_trip;
#[path = "exports/serving.rs"]
mod serving;
#[path = "exports/truth.rs"]
mod truth;

use acpdb_engine::View;
use acpdb_hosts::export::{Export, ExportChoices, Format, export};
use acpdb_hosts::lint::{RequestFacts, lint};
use acpdb_tests::adjacency::complaints;
use serde_json::Value;

/// Exports, and lets both judges look at it.
fn judged(view: &View, format: Format, options: &ExportChoices, context: &str) -> Export {
    let export = export(view, format, options).unwrap();
    let model = options.model.as_deref();
    let findings = lint(format, &export.bytes, RequestFacts { model, previous: None });
    let text = || String::from_utf8_lossy(&export.bytes[..export.bytes.len().min(4000)]).into_owned();
    assert_eq!(findings, [], "{context} {format}: {}", text());
    let body: Value = serde_json::from_slice(&export.bytes).unwrap();
    assert_eq!(complaints(format.name(), &body), [""; 0], "{context} {format}: {}", text());
    export
}
