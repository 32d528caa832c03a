//! Queries and points in time: any text is one or is refused with the spot that is wrong; a text that was read reads the same
//! again.
#![no_main]

use acpdb_engine::ids::Micros;
use acpdb_query::{Filter, when};
use libfuzzer_sys::fuzz_target;

/// Far from both ends of the calendar.
const NOW: Micros = Micros(1_767_225_600_000_000);

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    match Filter::parse(&text, NOW) {
        Ok(filter) => {
            let again = Filter::parse(filter.text(), NOW).expect("what was read can be read again");
            assert_eq!((again.bounds(), again.is_empty()), (filter.bounds(), filter.is_empty()));
            let _ = filter.needs();
            let both = filter.clone().and(filter.clone());
            assert_eq!(both.is_empty(), filter.is_empty());
            let _ = (both.bounds(), filter.or(both).bounds());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Err(error) = when::parse(&text, NOW) {
        assert!(!error.to_string().is_empty());
    }
    // A day is a stretch: its beginning is not after its end.
    if let Ok(found) = when::moment(&text, NOW) {
        assert!(found.from <= found.to, "{text:?} begins at {:?} and ends at {:?}", found.from, found.to);
    }
    for now in [Micros(i64::MIN), Micros(i64::MAX), Micros(0)] {
        let _ = (when::moment(&text, now), when::parse(&text, now), Filter::parse(&text, now));
    }
});
