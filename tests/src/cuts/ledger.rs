//! The answers that writers got, and whether they are true of the store that is there now. Knows texts and numbers, no files.

use std::collections::{BTreeMap, BTreeSet};

use crate::soak::Dice;

/// The writer of a text: the round of the life, and the process in it.
pub type Writer = (u32, u32);

/// The `number`-th message of one writer: unlike any other, and long now and then.
#[must_use]
pub fn text(seed: u64, (round, process): Writer, number: u32) -> String {
    let place = (u64::from(round) << 40) | (u64::from(process) << 32) | u64::from(number);
    let mut dice = Dice::new(seed ^ place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let length = match dice.below(40) {
        0 => 60_000 + dice.below(120_000),
        1..10 => 2000 + dice.below(3000),
        _ => dice.below(600),
    };
    let mut text = format!("{} {:016x} ", head((round, process), number), dice.roll());
    while text.len() < length {
        text.push_str(&format!("{:016x}", dice.roll()));
    }
    text
}

fn head((round, process): Writer, number: u32) -> String {
    format!("round {round} process {process} message {number}")
}

/// The part of a text that is in no other text: enough to find it again.
#[must_use]
pub fn trace(text: &str) -> &str {
    text.match_indices(' ').nth(6).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}

/// The writer and the number that a text names.
fn sender(text: &str) -> Option<(Writer, u32)> {
    let words: Vec<&str> = text.split(' ').take(6).collect();
    let ["round", round, "process", process, "message", number] = words.as_slice() else { return None };
    Some(((round.parse().ok()?, process.parse().ok()?), number.parse().ok()?))
}

/// Facts about a store, known from outside.
#[derive(Debug, Default)]
pub struct Ledger {
    seed: u64,
    /// How many messages each writer was acknowledged, and how many it was given at most.
    writers: BTreeMap<Writer, (u32, u32)>,
    /// Seqs that were acknowledged, with whose message it was.
    acked: BTreeMap<u64, (Writer, u32)>,
    /// Messages that were listed before.
    shown: BTreeMap<u64, (Writer, u32)>,
    /// Messages that a process set out to erase.
    erasing: BTreeSet<u64>,
    /// Messages whose erasure was acknowledged.
    erased: BTreeSet<u64>,
}

impl Ledger {
    /// An empty one; texts follow from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Nothing was ever acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.acked.is_empty() && self.shown.is_empty()
    }

    /// How many messages were acknowledged, and how many are told to be erased.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.acked.len() as u64, self.erased.len() as u64)
    }

    /// A writer was given `sent` messages and was acknowledged these, in order.
    ///
    /// # Errors
    /// If the seqs do not rise, or one was given before.
    pub fn wrote(&mut self, writer: Writer, sent: u32, acks: &[u64]) -> Result<(), String> {
        if !acks.is_sorted_by(|left, right| left < right) {
            return Err(format!("{writer:?} was told seqs that do not rise: {acks:?}"));
        }
        self.writers.insert(writer, (u32::try_from(acks.len()).unwrap_or(u32::MAX), sent));
        for (number, seq) in (0..).zip(acks) {
            if let Some(other) = self.acked.insert(*seq, (writer, number)) {
                return Err(format!("seq {seq} was told to {writer:?} and to {other:?}"));
            }
        }
        Ok(())
    }

    /// A message that was listed and that no process has set out to erase.
    pub fn pick(&self, dice: &mut Dice) -> Option<u64> {
        let whole: Vec<u64> = self.shown.keys().copied().filter(|seq| !self.erasing.contains(seq)).collect();
        whole.get(dice.below(whole.len())).copied()
    }

    /// A process set out to erase a message, and was told that it is done, or not.
    pub fn erases(&mut self, seq: u64, is_done: bool) {
        self.erasing.insert(seq);
        if is_done {
            self.erased.insert(seq);
        }
    }

    /// Texts that must be in no file.
    #[must_use]
    pub fn gone(&self) -> Vec<String> {
        let sent = self.erased.iter().filter_map(|seq| self.shown.get(seq));
        sent.map(|(writer, number)| trace(&text(self.seed, *writer, *number)).to_owned()).collect()
    }

    /// Compares with the output of `list`: everything acknowledged in its place; of each writer its first messages without a
    /// gap, each once and as it was sent; nothing else; nothing missing that was listed before.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn judge(&mut self, list: &str) -> Result<(), String> {
        let mut found = BTreeMap::new();
        for line in list.lines() {
            let (seq, said) = line.split_once('\t').ok_or_else(|| format!("a line {line:.80?}"))?;
            let seq: u64 = seq.parse().map_err(|_| format!("a line {line:.80?}"))?;
            let known = self.shown.get(&seq).copied();
            let sent = if self.erasing.contains(&seq) && said.starts_with('[') {
                known.ok_or("erased before it was shown")?
            } else if self.erased.contains(&seq) {
                return Err(format!("seq {seq} was told to be erased and says {said:.80?}"));
            } else {
                let (writer, number) =
                    sender(said).ok_or_else(|| format!("seq {seq}: no process said {said:.80?}"))?;
                if said != text(self.seed, writer, number) {
                    return Err(format!("seq {seq}: {writer:?} did not say {said:.80?} as its {number}th"));
                }
                (writer, number)
            };
            if let Some(told) = known.or(self.acked.get(&seq).copied()).filter(|told| *told != sent) {
                return Err(format!("seq {seq} is {sent:?}, and was told to be {told:?}"));
            }
            if found.insert(seq, sent).is_some() {
                return Err(format!("seq {seq} is there twice"));
            }
        }
        if let Some((seq, who)) =
            self.acked.iter().chain(&self.shown).find(|(seq, _)| !found.contains_key(*seq))
        {
            return Err(format!("seq {seq} of {who:?} is lost, though acknowledged or shown"));
        }
        let mut next: BTreeMap<Writer, u32> = BTreeMap::new();
        for (seq, (writer, number)) in &found {
            let next = next.entry(*writer).or_default();
            if number != next {
                return Err(format!("seq {seq}: {writer:?} sent {number} where {next} comes next"));
            }
            *next += 1;
        }
        for (writer, count) in next {
            let (acked, sent) = self.writers.get(&writer).copied().unwrap_or_default();
            if count < acked || count > sent {
                return Err(format!(
                    "{writer:?} sent {sent}, was acknowledged {acked}, and {count} are there"
                ));
            }
        }
        self.shown = found;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Ledger, text};

    fn line(seq: u64, process: u32, number: u32) -> String {
        format!("{seq}\t{}\n", text(1, (0, process), number))
    }

    /// Two writers: one was acknowledged two of its three messages, the other none of one. `change` spoils the list.
    fn judged(change: impl FnOnce(&mut Vec<String>)) -> Result<(), String> {
        let mut ledger = Ledger::new(1);
        ledger.wrote((0, 0), 3, &[3, 5]).unwrap();
        ledger.wrote((0, 1), 1, &[]).unwrap();
        let mut list = vec![line(3, 0, 0), line(4, 1, 0), line(5, 0, 1)];
        ledger.judge(&list.concat())?;
        ledger.erases(4, true);
        if let Some(fourth) = list.get_mut(1) {
            *fourth = "4\t[erased in #9]\n".to_owned();
        }
        change(&mut list);
        ledger.judge(&list.concat())
    }

    #[test]
    fn a_store_that_keeps_its_word_is_content_and_any_other_is_not() {
        judged(|_| ()).unwrap();
        judged(|list| list.push(line(6, 0, 2))).unwrap();
        for (spoil, words) in [
            ((|list| drop(list.pop())) as fn(&mut Vec<String>), "seq 5"),
            (|list| drop(list.remove(1)), "seq 4"),
            (|list| list.swap(0, 2), ""),
            (|list| list[1] = line(4, 1, 0), "was told to be erased"),
            (|list| list[0] = "3\t[erased in #9]\n".to_owned(), "no process said"),
            (|list| list[2] = line(5, 0, 2), "was told to be"),
            (|list| list.push(line(6, 0, 3)), "comes next"),
            (|list| list.push(line(7, 0, 1)), "comes next"),
            (|list| list.push(line(6, 1, 1)), "sent 1"),
            (|list| list[0].insert(60, 'x'), "did not say"),
        ] {
            let said = judged(|list| {
                spoil(list);
                if words.is_empty() {
                    list[0] = list[0].replace("5\t", "3\t");
                }
            });
            assert!(said.clone().is_err_and(|wrong| wrong.contains(words)), "{words}: {said:?}");
        }
    }
}
