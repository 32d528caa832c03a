//! Arguments of an operation: a JSON object of the names that `surface.toml` has. An error names the one that cannot be used.

use serde_json::{Map, Value};

use crate::fault::Fault;

/// The arguments of one call. A value that is `null` was not given.
#[derive(Clone, Debug, Default)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// Reads an object.
    pub fn read(json: &str) -> Result<Self, Fault> {
        match serde_json::from_str(json) {
            Ok(Value::Object(values)) => Ok(Self(values)),
            Ok(_) => Err(Fault::invalid("arguments are an object")),
            Err(error) if error.to_string().contains("hex escape") => Err(Fault::invalid(
                "a text holds half of a surrogate pair, which is no character; replace it",
            )),
            Err(error) => Err(Fault::invalid(format!("an argument cannot be used: {error}"))),
        }
    }

    /// Any value.
    pub(crate) fn any(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A value of one kind, if it was given.
    fn of<'a, T>(
        &'a self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        self.any(name).map(|value| read(value).ok_or_else(|| wrong(name, expected, value))).transpose()
    }

    fn given<T>(name: &str, expected: &str, found: Option<T>) -> Result<T, Fault> {
        found.ok_or_else(|| wrong(name, expected, &Value::Null))
    }

    pub(crate) fn word(&self, name: &str) -> Result<Option<&str>, Fault> {
        self.of(name, STRING, Value::as_str)
    }

    /// A text, if it was given.
    pub fn owned(&self, name: &str) -> Result<Option<String>, Fault> {
        Ok(self.word(name)?.map(str::to_owned))
    }

    /// A text that has to be there.
    pub fn text(&self, name: &str) -> Result<&str, Fault> {
        Self::given(name, STRING, self.word(name)?)
    }

    /// A seq or a count.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Fault> {
        match self.any(name) {
            Some(value @ Value::Number(number)) if !number.is_u64() => Err(Fault::invalid(format!(
                "{name} is out of range or negative: a whole number from 0 is meant, not {value}"
            ))),
            _ => self.of(name, NUMBER, Value::as_u64),
        }
    }

    pub(crate) fn count(&self, name: &str) -> Result<u64, Fault> {
        Self::given(name, NUMBER, self.number(name)?)
    }

    /// A count of things in memory.
    pub(crate) fn size(&self, name: &str) -> Result<Option<usize>, Fault> {
        Ok(self.number(name)?.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
    }

    pub(crate) fn seconds(&self, name: &str) -> Result<f64, Fault> {
        const SECONDS: &str = "a number of seconds";
        Self::given(name, SECONDS, self.of(name, SECONDS, Value::as_f64)?)
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Fault> {
        const BOOL: &str = "a bool, true or false";
        Self::given(name, BOOL, self.of(name, BOOL, Value::as_bool)?)
    }

    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Fault> {
        const TEXTS: &str = "a list of strings";
        let all = Self::given(name, TEXTS, self.of(name, TEXTS, Value::as_array)?)?;
        let text = |value: &Value| {
            value.as_str().map(str::to_owned).ok_or_else(|| wrong_inside(name, "strings", value))
        };
        all.iter().map(text).collect()
    }

    pub(crate) fn counts(&self, name: &str) -> Result<Vec<u64>, Fault> {
        const COUNTS: &str = "a list of integers";
        let all = Self::given(name, COUNTS, self.of(name, COUNTS, Value::as_array)?)?;
        let each = |value: &Value| match value {
            Value::Number(number) => number
                .as_u64()
                .ok_or_else(|| Fault::invalid(format!("{name}: {value} is out of range for a seq"))),
            _ => Err(wrong_inside(name, "integers", value)),
        };
        all.iter().map(each).collect()
    }

    /// Texts by names, in their order.
    pub(crate) fn pairs(&self, name: &str) -> Result<Vec<(String, Option<String>)>, Fault> {
        const PAIRS: &str = "an object of strings";
        let all = Self::given(name, PAIRS, self.of(name, PAIRS, Value::as_object)?)?;
        let pair = |(name, value): (&String, &Value)| {
            let text = value.as_str().ok_or_else(|| wrong(name, STRING, value))?;
            Ok((name.clone(), Some(text.to_owned())))
        };
        all.iter().map(pair).collect()
    }
}

const STRING: &str = "a string";
const NUMBER: &str = "a whole number";

/// An argument of another type: the languages have an error of their own for it.
fn wrong(name: &str, expected: &str, found: &Value) -> Fault {
    Fault::new(Fault::TYPE, format!("{name} is {expected}, not {}", kind(found)))
}

fn wrong_inside(name: &str, expected: &str, found: &Value) -> Fault {
    Fault::new(Fault::TYPE, format!("{name} holds {expected}, not {}", kind(found)))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => STRING,
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
