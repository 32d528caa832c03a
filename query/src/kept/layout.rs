//! The kept data, as bytes. Names of streams, models and tiers stand once and are numbers elsewhere; numbers that grow are
//! differences. Nothing is made of any other bytes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use acpdb_engine::event::Usage;
use acpdb_engine::ids::{BodyId, Micros, Seq, StreamId, Turn};

use super::Figures;
use super::bytes::{KeptWriter, Reader};
use crate::cost::BilledRequest;
use crate::cost::told::{RequestTelling, RequestTellings, Times};
use crate::sessions::{ForkPoint, RewindPoint};

/// Changes with the code below, and with the meaning of a row.
const LAYOUT: u64 = 9;

/// Things that stand once.
struct UniqueTable<T>(Vec<T>, HashMap<T, usize>);

impl<T: Clone + Eq + std::hash::Hash> UniqueTable<T> {
    fn of(things: impl Iterator<Item = T>) -> Self {
        let mut table = Self(Vec::new(), HashMap::new());
        for thing in things {
            if !table.1.contains_key(&thing) {
                table.1.insert(thing.clone(), table.0.len());
                table.0.push(thing);
            }
        }
        table
    }

    /// 0 is none.
    fn number(&self, thing: Option<&T>) -> u64 {
        let place = thing.and_then(|thing| self.1.get(thing));
        place.map_or(0, |place| (*place as u64).saturating_add(1))
    }
}

pub(super) fn encode(told: &RequestTellings, figures: &BTreeMap<StreamId, Figures>) -> Vec<u8> {
    let requests = || told.all.iter().map(|telling| &telling.request);
    let streams = told.times.keys().chain(told.titles.keys()).chain(told.forks.keys());
    let streams = streams.chain(told.forks.values()).chain(figures.keys()).copied();
    let forked = figures.values().filter_map(|row| Some(row.forked_from?.stream));
    let streams = UniqueTable::of(streams.chain(requests().map(|request| request.stream)).chain(forked));
    let words =
        |of: fn(&BilledRequest) -> Option<&Arc<str>>| UniqueTable::of(requests().filter_map(of).cloned());
    let models = words(|request| request.model.as_ref());
    let tiers = words(|request| request.tier.as_ref());
    let mut out = KeptWriter::default();
    out.number(LAYOUT);
    out.number(told.until.get());
    out.each(streams.0.iter(), |out, stream| out.exactly(&stream.0));
    for table in [&models, &tiers] {
        out.each(table.0.iter(), |out, word| out.text(word));
    }
    let stream = |out: &mut KeptWriter, id: &StreamId| out.number(streams.number(Some(id)));
    let (mut seq, mut at) = (0, 0);
    out.each(told.all.iter(), |out, telling| {
        let RequestTelling { request, key, identity, answer, store: _ } = telling;
        stream(out, &request.stream);
        // In the order of the log, so never negative.
        out.number(request.seq.get().saturating_sub(seq));
        seq = request.seq.get();
        out.maybe(request.at, |out, time| {
            out.signed(time.get().wrapping_sub(at));
            at = time.get();
        });
        out.number(models.number(request.model.as_ref()));
        out.number(tiers.number(request.tier.as_ref()));
        let Usage { input, output, cache_read, cache_write, cache_write_long, reasoning, searches } =
            request.usage;
        for count in [input, output, cache_read, cache_write, cache_write_long, reasoning, searches] {
            out.maybe(count, KeptWriter::number);
        }
        out.maybe(request.host_says, |out, says| out.exactly(&says.to_le_bytes()));
        out.exactly(key);
        out.maybe(identity.as_ref(), KeptWriter::exactly);
        out.maybe(answer.as_ref(), KeptWriter::exactly);
    });
    out.each(told.titles.iter(), |out, (id, seq)| {
        stream(out, id);
        out.number(seq.get());
    });
    out.each(told.forks.iter(), |out, (fork, from)| {
        stream(out, fork);
        stream(out, from);
    });
    out.each(told.times.iter(), |out, (id, times)| {
        stream(out, id);
        for span in [times.host, times.recorded] {
            out.maybe(span, |out, (first, last)| {
                out.signed(first.get());
                out.signed(last.get().wrapping_sub(first.get()));
            });
        }
    });
    out.each(figures.iter(), |out, (id, row)| {
        stream(out, id);
        put_row(out, row, &stream);
    });
    out.into_bytes()
}

fn put_row(out: &mut KeptWriter, row: &Figures, stream: &impl Fn(&mut KeptWriter, &StreamId)) {
    out.maybe(row.project.as_deref(), KeptWriter::text);
    for number in [
        u64::from(row.turns.get()),
        u64::from(row.prompts),
        row.calls,
        row.superseded,
        row.tokens,
        row.tokens_shown,
        row.tokens_freed,
        row.first.get(),
    ] {
        out.number(number);
    }
    out.maybe(row.ended, |out, at| out.signed(at.get()));
    out.each(row.tokens_by_turn.iter().copied(), KeptWriter::number);
    out.maybe(row.forked_from, |out, fork| {
        stream(out, &fork.stream);
        out.number(fork.at.get());
    });
    out.each(row.rewinds.iter(), |out, rewind| {
        out.number(rewind.seq.get());
        out.number(rewind.to.get());
        out.count(rewind.item_count);
    });
    out.maybe(row.call.as_deref(), KeptWriter::text);
    out.maybe(row.prompt, |out, body| {
        out.number(body.seq.get());
        out.number(u64::from(body.first));
        out.number(u64::from(body.chunks));
    });
}

/// The seq up to which data is kept, if the bytes are of this layout.
pub(super) fn until(bytes: &[u8]) -> Option<Seq> {
    let mut from = Reader(bytes);
    (from.number()? == LAYOUT).then_some(())?;
    Some(Seq(from.number()?))
}

/// The kept data; `None`: the bytes are not of this layout.
pub(super) fn decode(bytes: &[u8]) -> Option<(RequestTellings, BTreeMap<StreamId, Figures>)> {
    let until = until(bytes)?;
    let mut from = Reader(bytes);
    // The two numbers that `until` has read.
    let _ = (from.number()?, from.number()?);
    let from = &mut from;
    let streams = from.each(|from| from.exactly().map(StreamId))?;
    let mut words = || from.each(|from| from.text().map(Arc::<str>::from));
    let (models, tiers) = (words()?, words()?);
    let stream = |from: &mut Reader<'_>| named(&streams, from)?;
    let (mut seq, mut at) = (0_u64, 0_i64);
    let all = from.each(|from| {
        let stream = stream(from)?;
        seq = seq.checked_add(from.number()?)?;
        let time = from.maybe(|from| {
            at = at.wrapping_add(from.signed()?);
            Some(Micros(at))
        })?;
        let (model, tier) = (named(&models, from)?, named(&tiers, from)?);
        let mut count = || from.maybe(Reader::number);
        let usage = Usage {
            input: count()?,
            output: count()?,
            cache_read: count()?,
            cache_write: count()?,
            cache_write_long: count()?,
            reasoning: count()?,
            searches: count()?,
        };
        let says = from.maybe(|from| from.exactly().map(f64::from_le_bytes))?;
        let (key, identity) = (from.exactly()?, from.maybe(Reader::exactly)?);
        let answer = from.maybe(Reader::exactly)?;
        // Sums are of finite numbers.
        let host_says = says.filter(|says| says.is_finite());
        let request = BilledRequest { stream, seq: Seq(seq), at: time, model, tier, usage, host_says };
        Some(RequestTelling { request, key, identity, answer, store: 0 })
    })?;
    let titles = from.each(|from| Some((stream(from)?, Seq(from.number()?))))?;
    let forks = from.each(|from| Some((stream(from)?, stream(from)?)))?;
    let times = from.each(|from| {
        let id = stream(from)?;
        let mut span = || {
            from.maybe(|from| {
                let first = from.signed()?;
                Some((Micros(first), Micros(first.wrapping_add(from.signed()?))))
            })
        };
        Some((id, Times { host: span()?, recorded: span()? }))
    })?;
    let figures = from.each(|from| Some((stream(from)?, take_row(from, &stream)?)))?;
    from.0.is_empty().then_some(())?;
    let (titles, forks, times) =
        (titles.into_iter().collect(), forks.into_iter().collect(), times.into_iter().collect());
    Some((RequestTellings { until, all, titles, forks, times }, figures.into_iter().collect()))
}

/// A thing of a table by its number. The outer `None`: there is no such number.
#[expect(clippy::option_option, reason = "no thing, and a number of no thing, are two answers")]
fn named<T: Clone>(table: &[T], from: &mut Reader<'_>) -> Option<Option<T>> {
    match from.count()?.checked_sub(1) {
        None => Some(None),
        Some(place) => table.get(place).cloned().map(Some),
    }
}

fn take_row(from: &mut Reader<'_>, stream: &impl Fn(&mut Reader<'_>) -> Option<StreamId>) -> Option<Figures> {
    Some(Figures {
        project: from.maybe(|from| from.text().map(str::to_owned))?,
        turns: Turn(from.small()?),
        prompts: from.small()?,
        calls: from.number()?,
        superseded: from.number()?,
        tokens: from.number()?,
        tokens_shown: from.number()?,
        tokens_freed: from.number()?,
        first: Seq(from.number()?),
        ended: from.maybe(|from| from.signed().map(Micros))?,
        tokens_by_turn: from.each(Reader::number)?,
        forked_from: from.maybe(|from| Some(ForkPoint { stream: stream(from)?, at: Seq(from.number()?) }))?,
        rewinds: from.each(|from| {
            Some(RewindPoint { seq: Seq(from.number()?), to: Seq(from.number()?), item_count: from.count()? })
        })?,
        call: from.maybe(|from| from.text().map(str::to_owned))?,
        prompt: from.maybe(|from| {
            Some(BodyId { seq: Seq(from.number()?), first: from.small()?, chunks: from.small()? })
        })?,
    })
}
