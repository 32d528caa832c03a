//! The table of all kinds and fields, for the test that compares it with `docs/FORMAT.md`.

#[allow(clippy::wildcard_imports, reason = "one of everything there is")]
use super::*;
use cbor::{CborRecord as _, FieldRow};

/// One row a field: owner, key, name, type, default. The owner of a kind's field is its number and label.
pub fn fields() -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    let mut add = |owner: &str, fields: Vec<FieldRow>| {
        let row = |(key, name, form, default): FieldRow| {
            [owner.to_owned(), key.to_string(), name.to_owned(), form, default.to_owned()]
        };
        rows.extend(fields.into_iter().map(row));
    };
    add("every kind", Stamp::fields());
    macro_rules! kinds {
        ($( $number:literal $name:ident $label:literal ),+) => {
            $( add(concat!(stringify!($number), " ", $label), super::$name::fields()); )+
        };
    }
    for_each_kind!(kinds);
    macro_rules! parts {
        ($( $name:ident ),+) => { $( add(stringify!($name), $name::fields()); )+ };
    }
    parts!(Part, Key, Parent, Report, Usage, TodoList, TodoHead, TodoChange, TaskFields, Validation, Hidden);
    parts!(MemorySource);
    add(
        "TodoUpdate",
        vec![
            (0, "list", "TodoList".to_owned(), "one of both"),
            (1, "change", "TodoChange".to_owned(), "one of both"),
        ],
    );
    macro_rules! arrays {
        ($( $name:ident ),+) => { $( add(stringify!($name), $name::elements()); )+ };
    }
    arrays!(Body, Shown, ItemId, BodyAddress);
    rows
}

/// The numbers of each enum.
pub fn numbers() -> Vec<(&'static str, Vec<(u64, &'static str)>)> {
    macro_rules! all {
        ($( $name:ident ),+ $(,)?) => { vec![ $( (stringify!($name), $name::values()) ),+ ] };
    }
    all![
        Actor,
        Role,
        PartKind,
        Face,
        Scope,
        TurnKind,
        ReplaceCause,
        ToolClass,
        KeyKind,
        SignatureForm,
        TodoRole,
        Outcome,
        FileChanger,
        TaskStatus,
        MemoryKind,
        Lifespan,
        InjectedKind,
        RebaseCause,
    ]
}

/// The words that stand in payloads as numbers, from 1.
pub const fn words() -> &'static [&'static str] {
    text::WORDS
}
