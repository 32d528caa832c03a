//! Patterns of the context tool and of policies: any text is a pattern or is refused, and matching ends.
//!
//! The first line is the pattern, the rest the text to match; the whole is also given to the context tool as its call.
#![no_main]

use acpdb_engine::text::globs::Globs;
use acpdb_engine::text::pattern::Pattern;
use acpdb_fuzz::{Template, builder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (line, rest) = text.split_once('\n').unwrap_or((&text, "src/app.ts"));
    if let Some(pattern) = Pattern::parse(line) {
        assert_eq!(pattern.is_match(rest), pattern.is_match(rest), "the same answer twice");
    }
    for globs in [Globs::names([line]), Globs::paths([line])].into_iter().flatten() {
        let _ = (globs.is_match(rest), globs.is_match_tool(rest));
    }
    let template = Template::get();
    let Ok(store) = builder(&template.world(), 3).open() else { return };
    let Ok(name) = store.find_stream("s1") else { return };
    // A call as a model may send it, and the text as a target.
    let _ = store.context_tool(name.id, &text);
    let call = serde_json::json!({ "action": "distill", "targets": [[line, rest]] }).to_string();
    let _ = store.context_tool(name.id, &call);
});
