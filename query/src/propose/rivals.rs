//! Things of which a project has one of a kind: a speaker that takes another one has changed their mind.
//!
//! `I'll use PostgreSQL.` and `I'll use MongoDB.` name no subject, and contradict each other all the same. So does `Vue would
//! be better` a decision for React. Decisions that name different subjects do not: a store for orders, another for logs.

use super::scan::{Gap, SENTENCE_MAX, TokenScan, same};

/// Kinds, each with its things; after `=` stand other names of the thing before.
const KINDS: &[&[&str]] = &[
    &[
        "PostgreSQL=Postgres",
        "MySQL",
        "MariaDB",
        "SQLite",
        "MongoDB=Mongo",
        "DynamoDB",
        "CockroachDB",
        "Cassandra",
    ],
    &["React", "Vue=Vue.js", "Svelte", "Angular", "SolidJS", "Preact"],
    &["Express", "Fastify", "NestJS", "Koa", "Hono"],
    &["Django", "Flask", "FastAPI"],
    &["Webpack", "Vite", "Rollup", "esbuild", "Parcel"],
    &["Jest", "Vitest", "Mocha"],
    &["npm", "pnpm", "yarn", "bun"],
    &["REST", "GraphQL", "gRPC"],
    &["RabbitMQ", "Kafka", "NATS"],
    &["tokio", "async-std", "smol"],
    &["axum", "actix-web", "warp", "rocket"],
    &["Tailwind", "Bootstrap", "Bulma"],
    &["Redux", "Zustand", "MobX"],
];

/// Words that lead to the name in a decision.
const LEADS: &[&str] = &["a", "an", "the", "use", "using", "go", "with", "plain"];

/// A thing: its kind, and its number in the kind.
type Named = (usize, usize);

fn lookup(word: &str) -> Option<Named> {
    KINDS.iter().enumerate().find_map(|(kind, things)| {
        let is = |thing: &str| thing.split('=').any(|name| same(name, word));
        things.iter().position(|thing| is(thing)).map(|thing| (kind, thing))
    })
}

/// The thing that a decision takes: the name that it begins with.
fn taken(decision: &str) -> Option<Named> {
    let words = decision.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    words.skip_while(|word| LEADS.iter().any(|lead| same(lead, word))).take(1).find_map(lookup)
}

/// Whether two decisions take different things of one kind, for the same subject as far as both name one.
pub(super) fn contradict(older: &str, newer: &str, subjects: (Option<&str>, Option<&str>)) -> bool {
    let same_kind =
        matches!((taken(older), taken(newer)), (Some(old), Some(new)) if old.0 == new.0 && old.1 != new.1);
    same_kind && !matches!(subjects, (Some(old), Some(new)) if old != new)
}

/// Names that a text calls better than the present thing: the name's token, and the token after the phrase that says so.
pub(super) fn better(scan: &TokenScan<'_>) -> Vec<(usize, usize)> {
    const SAYS: [&str; 5] = [
        "would be better",
        "would be a better",
        "is the better choice",
        "is a better fit",
        "is the better fit",
    ];
    let mut found = Vec::new();
    for index in 0..scan.len() {
        let Some(end) = SAYS.iter().find_map(|says| scan.phrase(index + 1, says)) else { continue };
        let is_named = scan.any_word(index).and_then(lookup).is_some() && scan.gap(index + 1) == Gap::Space;
        if is_named && !is_doubted(scan, index, end) {
            found.push((index, end));
        }
    }
    found
}

/// Whether a sentence asks, denies or supposes.
fn is_doubted(scan: &TokenScan<'_>, index: usize, end: usize) -> bool {
    let sentence = scan.sentence_of(index);
    if sentence.len() > SENTENCE_MAX {
        return true;
    }
    let doubts = [
        "if", "whether", "unless", "not", "never", "nobody", "doubt", "why", "once", "people", "they",
        "said", "says",
    ];
    let before =
        (sentence.start..index).any(|index| scan.is_one_of(index, &doubts) || scan.is_mark(index, '?'));
    before
        || (end..sentence.end).any(|index| scan.is_mark(index, '?') || scan.is_one_of(index, &["if", "but"]))
}
