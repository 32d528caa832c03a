//! A payload as JSON that can be read back: `{"turn_started": {"kind": "step", ..}}`.
//!
//! Answers have `kind` beside the fields, which is easier on the eye. But some payloads have a field of that name, so answers
//! cannot be read back. For `#[serde(with = "told")]`.

use serde::{Deserialize, Serialize};

use super::{Payload, for_each_kind};

macro_rules! forms {
    ($( $number:literal $name:ident $label:literal ),+) => {
        #[derive(Serialize)]
        #[serde(rename_all = "snake_case")]
        enum Telling<'a> {
            $( $name(&'a super::$name), )+
        }

        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Told {
            $( $name(super::$name), )+
        }

        /// Writes a payload. A payload of an unknown kind cannot be written.
        pub fn serialize<S: serde::Serializer>(payload: &Payload, serializer: S) -> Result<S::Ok, S::Error> {
            match payload {
                $( Payload::$name(payload) => Telling::$name(payload).serialize(serializer), )+
                Payload::Unknown { .. } => Err(serde::ser::Error::custom("an event of an unknown kind")),
            }
        }

        /// Reads a payload.
        pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Payload, D::Error> {
            Ok(match Told::deserialize(deserializer)? {
                $( Told::$name(payload) => payload.into(), )+
            })
        }
    };
}
for_each_kind!(forms);
