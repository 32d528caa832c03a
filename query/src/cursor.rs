//! The end of a page, so that the next page goes on there.
//!
//! ```text
//! c1-90000-812.2-5f3a90c1             version, as of #90000, after #812.2, of the filter with this digest
//! c1-90000-812.2-5f3a90c1-07b1c2d3    of several stores, in the one whose name has this digest
//! ```
//!
//! A cursor names the item that was shown last and the seq that the first page saw: later events shift nothing. A cursor
//! holds for the filter that it came from, and is refused with another filter.

use acpdb_engine::ids::{ItemId, Seq};

/// The end of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageCursor {
    /// The seq that all pages see.
    pub at: Seq,
    /// The item that was shown last.
    pub after: ItemId,
    /// Digest of the question.
    pub question: u32,
    /// Digest of the name of the store that holds the item, where several are read as one.
    pub store: Option<u32>,
}

/// The reason why a text is no cursor here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CursorError {
    /// It has another form.
    #[error("this is no cursor; take it from next_cursor of the page before")]
    Unreadable,
    /// It is of another question.
    #[error("this cursor is of another question; begin again without it")]
    OtherQuestion,
}

impl std::fmt::Display for PageCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seq, part) = (self.after.seq.get(), self.after.part);
        write!(f, "c1-{}-{seq}.{part}-{:08x}", self.at.get(), self.question)?;
        self.store.map_or(Ok(()), |store| write!(f, "-{store:08x}"))
    }
}

impl serde::Serialize for PageCursor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl PageCursor {
    /// Reads a cursor of this question.
    ///
    /// # Errors
    /// [`CursorError`].
    pub fn parse(text: &str, question: u32) -> Result<Self, CursorError> {
        let cursor = Self::read(text).ok_or(CursorError::Unreadable)?;
        if cursor.question == question { Ok(cursor) } else { Err(CursorError::OtherQuestion) }
    }

    fn read(text: &str) -> Option<Self> {
        let mut fields = text.trim().strip_prefix("c1-")?.split('-');
        let at = Seq(fields.next()?.parse().ok()?);
        let (seq, part) = fields.next()?.split_once('.')?;
        let after = ItemId { seq: Seq(seq.parse().ok()?), part: part.parse().ok()? };
        // `None` is an error of the caller's: the text is no cursor.
        let digest = |text: &str| u32::from_str_radix(text, 16).ok();
        let question = digest(fields.next()?)?;
        let store = match fields.next() {
            Some(store) => Some(digest(store)?),
            None => None,
        };
        fields.next().is_none().then_some(Self { at, after, question, store })
    }
}

/// A digest of a question's parts (FNV-1a), to tell questions apart. It guards against mistakes, not against people.
pub fn question(parts: &[&str]) -> u32 {
    let mut digest = 0x811c_9dc5_u32;
    for part in parts {
        for byte in part.bytes().chain([0]) {
            digest = (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_for_its_own_question_only() {
        let asked = question(&["log", "kind:tool"]);
        let after = ItemId { seq: Seq(812), part: 2 };
        let cursor = PageCursor { at: Seq(90_000), after, question: asked, store: None };
        for cursor in [cursor, PageCursor { store: Some(0x7b_1c2d), ..cursor }] {
            assert_eq!(PageCursor::parse(&cursor.to_string(), asked), Ok(cursor));
        }
        let other = question(&["log", "kind:todo"]);
        assert_eq!(PageCursor::parse(&cursor.to_string(), other), Err(CursorError::OtherQuestion));
        for text in [
            "",
            "c1",
            "c1-1-2-3",
            "c2-1-2.1-00000000",
            "c1-1-2.1-zz",
            "c1-1-2.1-00000000-",
            "c1-x-2.1-00",
            "c1-1-2.1-00-0-0",
        ] {
            assert_eq!(PageCursor::parse(text, 0), Err(CursorError::Unreadable), "{text:?}");
        }
    }

    #[test]
    fn parts_of_a_question_do_not_run_together() {
        assert_ne!(question(&["ab", "c"]), question(&["a", "bc"]));
    }
}
