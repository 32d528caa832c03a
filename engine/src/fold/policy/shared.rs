//! Policies that were read lately, so that each is read once in a process.
//!
//! Every fold begins with the store's policy. To read one and to compile its patterns takes a tenth of a millisecond, more than the
//! fold of a short session; the same text always gives the same policy, and a process meets few of them.

use std::sync::{Arc, Mutex, OnceLock};

use super::{Policy, PolicyError};
use crate::locks::renewed;

/// How many are kept.
const KEPT_COUNT: usize = 8;

type Kept = Vec<(String, Arc<Policy>)>;

static KEPT: Mutex<Kept> = Mutex::new(Kept::new());

impl Policy {
    /// As [`Policy::from_json`]; one that was read lately is shared.
    pub(crate) fn shared(text: &str) -> Result<Arc<Self>, PolicyError> {
        let kept = || renewed(&KEPT, Vec::clear);
        if let Some((_, policy)) = kept().iter().find(|(known, _)| known == text) {
            return Ok(Arc::clone(policy));
        }
        let policy = Arc::new(Self::from_json(text)?);
        let mut kept = kept();
        if kept.len() >= KEPT_COUNT {
            kept.remove(0);
        }
        kept.push((text.to_owned(), Arc::clone(&policy)));
        Ok(policy)
    }

    /// The default policy, shared.
    pub(crate) fn standard() -> Arc<Self> {
        static STANDARD: OnceLock<Arc<Policy>> = OnceLock::new();
        Arc::clone(STANDARD.get_or_init(Arc::default))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_policy_is_the_one_that_its_text_says() {
        let text = |turns: usize| format!(r#"{{"preset":"economy","purge_errors.turns":{turns}}}"#);
        for turns in (1..=KEPT_COUNT + 3).chain(1..4) {
            let read = Policy::from_json(&text(turns)).unwrap();
            assert_eq!(*Policy::shared(&text(turns)).unwrap(), read, "{turns}");
            assert_eq!(*Policy::shared(&text(turns)).unwrap(), read, "{turns}");
        }
        assert_eq!(Policy::shared("nonsense").unwrap_err(), Policy::from_json("nonsense").unwrap_err());
        assert_eq!(*Policy::standard(), Policy::default());
    }
}
