//! State query: the same question about the state of folders or the repository, asked again (kind `state_query`).

use super::{Clear, Failed, Guard, Look, Rule, Slot};
use crate::event::KeyKind;
use crate::fold::facts::Ix;
use crate::fold::history::RuleKind;

pub(crate) const RULE: Rule = Rule {
    on: |policy| policy.state_query,
    kind: |_| RuleKind::StateQuery,
    guard: Guard::Common,
    failed: Failed::No,
    any_turn: false,
    lays: |look, ix, lay| slots(look, ix, &mut |_, slot| lay(slot)),
    clears: |look, ix, clear| slots(look, ix, &mut |key, slot| clear(Clear { slot, key, waits: false })),
};

fn slots(look: Look<'_>, ix: Ix, found: &mut dyn FnMut(u32, Slot)) {
    for (index, key) in look.keys(ix) {
        if key.kind == KeyKind::State {
            found(index, Slot { group: 0, key: look.id(key).0 });
        }
    }
}
