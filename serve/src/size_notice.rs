//! A notice to the model that its context has passed a size that the policy names (`size_notice.tokens`), once each.

use acpdb_engine::View;
use acpdb_engine::event::InjectedKind;
use serde::Serialize;

/// A notice that is due.
#[derive(Serialize, Clone, PartialEq, Eq, Hash, Debug)]
pub struct SizeNotice {
    /// The largest size that was passed.
    pub size: u64,
    /// Estimated tokens of the context, without system prompt and tools.
    pub tokens: u64,
    /// The text to show.
    pub text: String,
}

impl SizeNotice {
    /// The notice that is due at a view's watermark. A host that shows it records it as injected; after that no notice of this size, or of a smaller one, is
    /// due in the session.
    pub fn due(view: &View) -> Option<Self> {
        let (state, at) = (view.state(), view.at());
        let policy = state.policy(at);
        let tokens = state.context_tokens(at);
        let size =
            policy.size_notices.iter().rev().map(|size| u64::from(*size)).find(|size| *size <= tokens)?;
        let told = state.injected(InjectedKind::Size, at);
        let is_told = told.iter().any(|seq| state.context_tokens(*seq) >= size);
        (!is_told).then(|| Self { size, tokens, text: text(size, tokens) })
    }

    /// [`SizeNotice::due`] for a host that tells texts with prompts and keeps no record of its own: it is due with the first prompt behind the size.
    pub fn due_with_prompt(view: &View) -> Option<Self> {
        Self::due(view).filter(|notice| !view.state().had_passed(notice.size, view.at()))
    }
}

fn text(size: u64, tokens: u64) -> String {
    format!(
        "---
📏 **Context size** (~{tokens} tokens, more than {size})
Put finished work behind a summary: distill a range of it, such as #12..#40. Discard results that are not needed any more.
---"
    )
}
