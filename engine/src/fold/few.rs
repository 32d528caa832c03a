//! A list that is nearly always of one element, and costs no allocation until the second.
//!
//! Open calls by the host's id, names of memory items: there is one for each, and a vector each would be the greater part
//! of what a fold allocates.

/// None, one, or many.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) enum Few<T> {
    #[default]
    None,
    One(T),
    Many(Vec<T>),
}

impl<T: Copy> Few<T> {
    pub(crate) fn push(&mut self, value: T) {
        *self = match std::mem::take(self) {
            Self::None => Self::One(value),
            Self::One(first) => Self::Many(vec![first, value]),
            Self::Many(mut all) => {
                all.push(value);
                Self::Many(all)
            }
        };
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        match self {
            Self::None => None,
            Self::One(value) => {
                let value = *value;
                *self = Self::None;
                Some(value)
            }
            Self::Many(all) => all.pop(),
        }
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::None => &[],
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(all) => all,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// It is a vector: pushes and pops give the same.
        #[test]
        fn a_few_is_a_short_vector(steps in proptest::collection::vec(0_u8..12, 0..24)) {
            let (mut few, mut all) = (Few::default(), Vec::new());
            for (number, step) in steps.into_iter().enumerate() {
                if let 0..=5 = step {
                    few.push(number);
                    all.push(number);
                } else { prop_assert_eq!(few.pop(), all.pop()) }
                prop_assert_eq!(few.as_slice(), all.as_slice());
                prop_assert_eq!(few.is_empty(), all.is_empty());
            }
        }
    }
}
