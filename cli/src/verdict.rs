//! The exit code of what a check found.

use acpdb_engine::verify::{Contradiction, ERASURE_INVARIANT, Verdict, VerifyReport};

use crate::failure::Code;

/// The worse of two codes: damage, then a lost end, then all others.
pub(crate) fn worse(left: Code, right: Code) -> Code {
    match (left, right) {
        (Code::Damage, _) | (_, Code::Damage) => Code::Damage,
        (Code::LostTail, _) | (_, Code::LostTail) => Code::LostTail,
        (Code::Ok, right) => right,
        (left, _) => left,
    }
}

/// The exit code of a report.
pub(crate) fn code_of(report: &VerifyReport) -> Code {
    match report.verdict() {
        Verdict::Sound => Code::Ok,
        Verdict::Damaged => Code::Damage,
        Verdict::TailLost => Code::LostTail,
        Verdict::Unreadable => Code::Locked,
        // A file is not as the record of an erasure says.
        Verdict::Contradicted if is_only_erasures(report) => Code::Damage,
        // A fault of this program.
        Verdict::Contradicted => Code::Failure,
    }
}

/// Whether all contradictions are erased texts that can be read.
pub(crate) fn is_only_erasures(report: &VerifyReport) -> bool {
    report.contradictions.iter().all(is_erasure)
}

pub(crate) fn is_erasure(contradiction: &Contradiction) -> bool {
    contradiction.invariant == ERASURE_INVARIANT
}
