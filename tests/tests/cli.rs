//! The program as a user and as another program meet it: what goes in, what comes out, and the exit code.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::format_collect, reason = "helpers of tests")]

#[path = "cli/bad_input.rs"]
mod bad_input;
#[path = "cli/processes.rs"]
mod processes;
#[path = "cli/transcript.rs"]
mod transcript;
#[path = "cli/world.rs"]
mod world;

use world::{FEED, World};

#[test]
fn reads_of_the_bundled_session_in_words() {
    let world = World::new();
    transcript::play(&world, "reads.md");
}

#[test]
fn acts_on_a_small_session_in_words() {
    let world = World::new();
    world.write("feed.jsonl", FEED);
    transcript::play(&world, "acts.md");
}

#[test]
fn answers_for_programs_keep_their_fields() {
    let world = World::fed();
    transcript::play(&world, "json.md");
}

#[test]
fn mistakes_say_what_to_do() {
    let world = World::fed();
    transcript::play(&world, "mistakes.md");
}

#[test]
fn queries_choose_events_items_and_sessions() {
    let world = World::fed();
    transcript::play(&world, "query.md");
}

#[test]
fn points_in_time_differences_and_branches() {
    let world = World::fed();
    transcript::play(&world, "travel.md");
}

#[test]
fn what_is_erased_and_what_is_said_of_it() {
    let world = World::fed();
    transcript::play(&world, "erase.md");
}
