//! Messages with secrets in them, of which threads erase one stretch each, at the same time. A secret is as long as the mark that takes its
//! place, so that every stretch stays where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use acpdb_engine::entry::Entry;
use acpdb_engine::event::Role;
use acpdb_engine::{Error, Store};

use super::board::{Post, item};
use super::diary::{Line, Note};
use super::thread::{Hand, seqs};
use super::{session, told};

/// The session that has the pages.
pub(super) const PAGES: &str = "pages";
const MARK: &str = "[17 bytes erased]";
/// Secrets in a page.
const SECRET_COUNT: usize = 4;
const FIRST: usize = 24;
const STEP: usize = 40;

/// The bytes of a page's secret.
fn span(number: usize) -> Range<usize> {
    let start = FIRST + number * STEP;
    start..start + MARK.len()
}

/// A page without these secrets.
fn without(page: &str, secrets: impl IntoIterator<Item = usize>) -> String {
    let mut text = page.to_owned();
    for secret in secrets {
        text.replace_range(span(secret), MARK);
    }
    text
}

/// The secrets that a text lacks, if it is the page without some of its secrets.
fn lacking(page: &str, text: &str) -> Option<BTreeSet<usize>> {
    let secrets: BTreeSet<usize> =
        (0..SECRET_COUNT).filter(|number| text.get(span(*number)) == Some(MARK)).collect();
    (without(page, secrets.iter().copied()) == text).then_some(secrets)
}

impl Hand<'_> {
    /// A message with secrets.
    pub(super) fn writes_page(&mut self) -> Result<(), String> {
        let tag = self.tag();
        let mut page = format!("{:-<FIRST$}", format!("{tag} is a page "));
        for number in 0..SECRET_COUNT {
            let secret = format!("{:x<17}", format!("<{tag}.{number}>"));
            page.push_str(&format!("{:-<STEP$}", secret.get(..MARK.len()).unwrap_or(&secret)));
        }
        let end = self.text("");
        page.push_str(&end);
        let mut items = Vec::new();
        let lines = vec![Line::new(PAGES, "message_recorded", &page)];
        let entries = vec![Entry::message("", Role::User, &page)];
        let is_done = self.records("page", lines, |store| {
            let receipt = store.append(&session(PAGES), entries)?;
            items.clone_from(&receipt.items);
            Ok(seqs(&receipt))
        })?;
        match items.first().copied().flatten() {
            Some(item) if is_done => self.member.board.post(&Post::Page(item.seq.get(), item.part, page)),
            _ => Ok(()),
        }
    }

    /// Erases one secret of a page.
    pub(super) fn erases_span(&mut self) -> Result<(), String> {
        let pages = self.member.board.posts()?.into_iter().filter_map(|post| match post {
            Post::Page(seq, part, page) => Some((item(seq, part), page)),
            Post::TextGone(_) => None,
        });
        let pages: Vec<_> = pages.collect();
        // The newest pages first, so that threads meet.
        let back = self.dice.below(pages.len().min(2));
        let Some((item, page)) = pages.iter().rev().nth(back) else { return self.writes_page() };
        let (number, reason) = (self.dice.below(SECRET_COUNT), self.tag());
        let store = self.store();
        self.member.begins(self.thread, "erase span");
        self.diary.note(&Note::Erases(reason.clone(), Vec::new()))?;
        self.diary.note(&Note::ErasesSpan(page.clone(), number))?;
        match store.erase_span(session(PAGES).id(), *item, &span(number), "crowd", &reason) {
            Ok(_) => {
                self.diary.note(&Note::ErasedSpan(page.clone(), number))?;
                let secret = page.get(span(number)).unwrap_or_default();
                self.member.board.post(&Post::TextGone(secret.to_owned()))
            }
            // The stretch is gone already, or the text changed meanwhile, as often as others erase in it; the others as for an erasure.
            Err(
                Error::Rejected(_)
                | Error::HeadMoved { .. }
                | Error::Busy { .. }
                | Error::NotFound { .. }
                | Error::Erased { .. },
            ) => Ok(()),
            Err(error) if self.is_stale(&error) => Ok(()),
            Err(error) => Err(format!("erase span: {} ({error:?})", told(&error))),
        }
    }
}

/// The pages of a round, with the secrets whose erasure was begun, and whether it ended well.
#[derive(Debug, Default)]
pub(super) struct Pages(BTreeMap<String, BTreeMap<usize, bool>>);

impl Pages {
    /// An erasure of a stretch was begun.
    pub(super) fn begins(&mut self, page: String, secret: usize) {
        self.0.entry(page).or_default().entry(secret).or_default();
    }

    /// It ended well.
    pub(super) fn ends(&mut self, page: String, secret: usize) {
        self.0.entry(page).or_default().insert(secret, true);
    }

    /// Whether the text of a page may be gone: another one without a secret took its place.
    #[must_use]
    pub(super) fn may_lack(&self, page: &str) -> bool {
        self.0.contains_key(page)
    }

    /// Whether a text is that of a page without secrets whose erasure was begun.
    #[must_use]
    pub(super) fn is_revision(&self, text: &str) -> bool {
        self.0.iter().any(|(page, begun)| {
            lacking(page, text).is_some_and(|gone| gone.iter().all(|secret| begun.contains_key(secret)))
        })
    }

    /// The secrets that were told to be erased.
    pub(super) fn gone(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|(page, begun)| {
            begun.iter().filter(|(_, done)| **done).filter_map(|(secret, _)| page.get(span(*secret)))
        })
    }

    /// Each page is there without the secrets that were told to be erased, and with all of its other bytes.
    ///
    /// # Errors
    /// The first that is not.
    pub(super) fn check(&self, store: &Store) -> Result<(), String> {
        if self.0.is_empty() {
            return Ok(());
        }
        let fail = |error: Error| format!("pages: {}", told(&error));
        let view = store.view(session(PAGES).id()).map_err(fail)?;
        let mut shown = Vec::new();
        for item in view.history() {
            for part in item.content {
                shown.push(
                    view.text(part.body).map_err(|error| format!("page {}: {}", item.item, told(&error)))?,
                );
            }
        }
        for (page, begun) in &self.0 {
            let found = shown.iter().find_map(|text| lacking(page, text));
            let Some(found) = found else {
                return Err(format!("page {page:.60?} is not there, or has other bytes; erased: {begun:?}"));
            };
            let is_right = (0..SECRET_COUNT).all(|secret| match begun.get(&secret) {
                Some(true) => found.contains(&secret),
                Some(false) => true,
                None => !found.contains(&secret),
            });
            if !is_right {
                return Err(format!("page {page:.60?} lacks the secrets {found:?}; erased: {begun:?}"));
            }
        }
        Ok(())
    }
}
