//! Rules of the chain that a simulation breaks on purpose, to show that it would find such a fault.

/// A rule that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code, reason = "rules are broken in tests alone"))]
pub(crate) enum Flaw {
    /// No rule.
    None,
    /// Who takes over leaves the fence out.
    NoFence,
    /// Who takes over does not look at the head once the fence is there.
    NoLookAfterFence,
    /// An append without an answer goes on at the next number.
    NewNumberAfterDoubt,
    /// Any head is replaced by the head of a pack, not the own one alone.
    TrimWithoutSwap,
    /// Chunks are deleted before their pack is there.
    TrimBeforePack,
    /// Fences are deleted with the chunks.
    FencesDeleted,
    /// Unsound entries are deleted with the chunks.
    JunkDeleted,
    /// A reader does not look at the head again.
    OneHead,
    /// A number that is taken counts as success.
    TakenIsMine,
    /// A chunk counts before the answer is there.
    DoubtIsMine,
}
