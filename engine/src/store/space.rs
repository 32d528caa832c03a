//! Sealing on demand, and where the bytes of a store are.

use std::collections::BTreeMap;

use crate::error::Error;
use crate::event::{Face, KIND_LABELS};
use crate::fold::CauseView;
use crate::log::{KindSpace, SealFigures, SealOutcome, SegmentSpace};

use super::Store;

/// The result of sealing a store.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
#[must_use]
pub struct SealReport {
    /// Segments sealed now.
    pub sealed: Vec<SealFigures>,
    /// Complete segments that are not sealed: damaged, or another process is at it.
    pub left: u64,
    /// Damage that kept segments from being sealed, a line each.
    pub damage: Vec<String>,
    /// Another process was sealing or erasing.
    pub busy: bool,
}

/// Faces of items in one state, in figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct StateSpace {
    /// Faces.
    pub faces: u64,
    /// Their bytes, as recorded.
    pub bytes: u64,
}

/// Where the bytes of a store are.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Space {
    /// Bytes of the log's files.
    pub log_bytes: u64,
    /// Bytes of bodies as recorded, those that are named again counted each time.
    pub body_bytes_recorded: u64,
    /// Bytes of different bodies as far as the log knows.
    pub body_bytes_unique: u64,
    /// Unique by recorded; 1 where nothing repeats.
    #[serde(serialize_with = "thousandths")]
    pub dedupe_ratio: u64,
    /// Length of sealed files by what they unpack to; 1 where nothing is sealed.
    #[serde(serialize_with = "thousandths")]
    pub compression_ratio: u64,
    /// Events, headers and spines included, by kind.
    pub kinds: BTreeMap<String, KindSpace>,
    /// Faces of items by their state: `live`, `superseded`, `discarded` ..; bytes as recorded.
    pub states: BTreeMap<String, StateSpace>,
    /// Segment by segment.
    pub segments: Vec<SegmentSpace>,
    /// Damaged stretches that are in no figure.
    pub damaged: u64,
}

/// Ratios are kept in thousandths, so that figures can be compared, and shown as numbers.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn thousandths<S: serde::Serializer>(ratio: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    serializer.serialize_f64(*ratio as f64 / 1000.0)
}

fn ratio(part: u64, whole: u64) -> u64 {
    part.saturating_mul(1000).checked_div(whole).unwrap_or(1000)
}

fn kind_name(number: u16) -> String {
    let known = KIND_LABELS.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("unknown_{number}"), |(_, label)| (*label).to_owned())
}

impl Store {
    /// Seals every complete segment; with `active`, the one that is being written is completed first.
    ///
    /// Durable when it returns. Cost: about half a second for 64 MiB. A damaged segment stays as it is and is named.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NoSpace`], [`Error::Io`]; segments that are sealed by then stay sealed.
    #[cfg_attr(
        feature = "tracing",
        tracing::instrument(name = "acpdb.seal", level = "debug", skip_all, err(level = "debug"))
    )]
    pub fn seal(&self, active: bool) -> Result<SealReport, Error> {
        self.inner.check_writable()?;
        let log = &self.inner.log;
        // Refreshed so that all commits are seen.
        let _ = log.refresh()?;
        if active {
            log.begin_segment()?;
        }
        let mut report = SealReport::default();
        for number in log.unsealed()? {
            match log.seal(number, &|| false) {
                Ok(SealOutcome::Sealed(figures)) => report.sealed.push(figures),
                Ok(SealOutcome::Busy) => report.busy = true,
                Ok(SealOutcome::NotNeeded | SealOutcome::Stopped) => {}
                Err(crate::log::LogError::Corrupt(damage)) => report.damage.push(damage.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        report.left = log.unsealed()?.len() as u64;
        Ok(report)
    }

    /// Where the bytes are. Cost: one pass over all spines, and a fold of every session.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn space(&self) -> Result<Space, Error> {
        let head = self.inner.refresh()?;
        let log = self.inner.log.space()?;
        let sum = |of: fn(&SegmentSpace) -> u64| log.segments.iter().map(of).fold(0, u64::saturating_add);
        let recorded = log
            .kinds
            .values()
            .fold(0, |sum: u64, kind| sum.saturating_add(kind.body_bytes).saturating_add(kind.shared_bytes));
        let sealed = || log.segments.iter().filter(|segment| segment.sealed);
        let packed = sealed().fold(0, |sum: u64, segment| sum.saturating_add(segment.file_bytes));
        let unpacked = sealed().fold(0, |sum: u64, segment| sum.saturating_add(segment.log_bytes));
        let kinds = log.kinds.iter().map(|(kind, space)| (kind_name(*kind), *space)).collect();
        let unique = sum(|segment| segment.body_bytes);
        Ok(Space {
            log_bytes: sum(|segment| segment.file_bytes),
            body_bytes_recorded: recorded,
            body_bytes_unique: unique,
            dedupe_ratio: ratio(unique, recorded),
            compression_ratio: ratio(packed, unpacked),
            kinds,
            states: self.states(head)?,
            segments: log.segments,
            damaged: log.damaged,
        })
    }

    fn states(&self, head: crate::ids::Seq) -> Result<BTreeMap<String, StateSpace>, Error> {
        let mut states: BTreeMap<String, StateSpace> = BTreeMap::new();
        for place in self.inner.stream_places()? {
            let loaded = self.inner.fold_once(place.stream)?;
            let Some(state) = loaded.world.stream(place.stream) else { continue };
            for ix in state.items(head) {
                // A fork shows its parent's items; they are counted with the parent.
                if state.item_id(ix).is_none_or(|item| item.seq < state.first()) {
                    continue;
                }
                for face in [Face::Input, Face::Output] {
                    let view = state.face(ix, face, head);
                    if view.bytes == 0 {
                        continue;
                    }
                    let counted = states.entry(state_name(view.cause.as_ref()).to_owned()).or_default();
                    counted.faces += 1;
                    counted.bytes = counted.bytes.saturating_add(view.bytes);
                }
            }
        }
        Ok(states)
    }
}

fn state_name(cause: Option<&CauseView>) -> &'static str {
    match cause {
        None => "live",
        Some(CauseView::Erased { .. }) => "erased",
        Some(CauseView::Lost { .. }) => "lost",
        Some(CauseView::OffBranch { .. }) => "off_branch",
        Some(CauseView::Left { .. }) => "left",
        Some(CauseView::Abandoned { .. }) => "abandoned",
        Some(CauseView::ClearedByHost { .. }) => "cleared_by_host",
        Some(CauseView::Distilled { .. }) => "distilled",
        Some(CauseView::Evicted { .. }) => "evicted",
        Some(CauseView::Superseded { .. }) => "superseded",
        Some(CauseView::Discarded { .. }) => "discarded",
        Some(CauseView::Shortened { .. }) => "shortened",
    }
}
