//! The rules by age, as one table: which face steps aside after how many turns without a touch of its files.
//!
//! ```text
//! name             which face                                     what stays        turns under `economy`
//! idle_subagents   the answer of a subagent                       a word            60
//! idle_notes       a read of prose, logs, temporary files         a word            7
//! idle_reads       a read                                         a word            30, 80, 80 by size
//! ..
//! idle_reasoning   reasoning from before an earlier prompt        nothing           1 prompt
//! ```
//!
//! The first rule that means a face decides. The order of the table is the order in which they are asked.
//! Reasoning goes in whole runs, at a prompt: all of it between two prompts, or none.

use super::shorten::{Acts, AgesKey, Resting, ShortenedContent, Shortening, TEXT_ASIDE};
use super::{Look, SHORTENING};
use crate::event::{Face, KeyKind, ToolClass};
use crate::fold::facts::ItemKind;
use crate::fold::policy_values::{Ages, Policy};

/// A row: the constant, the rule's names, its reason, what it leaves, its ages under `economy`, and the faces that it means.
macro_rules! idle {
    ($($row:ident $name:literal $key:literal $figure:literal $reason:literal $leaves:expr, $ages:expr, $means:expr;)+) => {
        $(
            pub(crate) const $row: Shortening = Shortening {
                name: $name,
                figure: $figure,
                reason: $reason,
                leaves: |_| $leaves,
                acts: Acts::Idle {
                    ages: Some(AgesKey { key: $key, presets: &[("economy", $ages)] }),
                    turns: |look, resting, ages| {
                        let means: fn(Look<'_>, &Resting<'_>) -> bool = $means;
                        ages.turns(resting.tokens).filter(|_| means(look, resting))
                    },
                },
            };
        )+
    };
}

const ASIDE: ShortenedContent = ShortenedContent::Text(TEXT_ASIDE);
const PARAMS: ShortenedContent = ShortenedContent::SetAside;
const OFF: Ages = Ages::all(0);

idle! {
    SUBAGENTS "idle_subagents" "idle.subagents" "Idle Subagents"
        "an answer of a subagent is set aside after some turns"
        ASIDE, Ages::all(60), |_, resting| resting.face == Face::Output && is_subagent(resting.tool);
    NOTES "idle_notes" "idle.notes" "Idle Notes"
        "a read of notes, logs, temporary or vendored files is set aside after some turns without a touch"
        ASIDE, Ages::all(7), reads_notes;
    READS "idle_reads" "idle.reads" "Idle Reads"
        "a read is set aside after some turns without a touch of its file"
        ASIDE, Ages::of(30, 80, 80), |_, resting| resting.is_output_of(ToolClass::Read);
    SHELL_READS "idle_shell_reads" "idle.shell_reads" "Idle Shell Reads"
        "a file that a command line showed is set aside after some turns without a touch of it"
        ASIDE, Ages::of(10, 20, 30), shows_files;
    SEARCHES "idle_searches" "idle.searches" "Idle Searches"
        "the output of a search or a command line is set aside after some turns"
        ASIDE, Ages::of(2, 3, 4), |look, resting| {
            resting.is_output_of(ToolClass::Search)
                || resting.is_output_of(ToolClass::Other) && resting.is_command(look)
        };
    CHANGES "idle_changes" "idle.changes" "Idle Changes"
        "the answer to a change of a file is set aside after some turns without a touch of it"
        ASIDE, Ages::all(10), |_, resting| {
            [ToolClass::Write, ToolClass::Edit, ToolClass::Delete].into_iter().any(|class| resting.is_output_of(class))
        };
    OTHERS "idle_others" "idle.others" "Idle Others"
        "the output of a call is set aside after some turns"
        ASIDE, Ages::of(5, 10, 16), |look, resting| {
            resting.is_output_of(ToolClass::Other) && !resting.is_command(look)
        };
    // Writes and edits keep their inputs unless a policy gives an age: a model that saw shortened ones wrote marks into files.
    // To take superseded ones at once would save more, and take away twice as much that the model still uses.
    SUPERSEDED "idle_superseded" "idle.superseded" "Idle Superseded"
        "the parameters of a superseded change are set aside after some turns without a touch of the file"
        PARAMS, OFF, |_, resting| {
            resting.is_superseded && resting.is_input_of(&[ToolClass::Write, ToolClass::Edit])
        };
    EDITS "idle_edits" "idle.edits" "Idle Edits"
        "the parameters of an edit are set aside after many turns without a touch of its file"
        PARAMS, OFF, |_, resting| resting.is_input_of(&[ToolClass::Edit]);
    WRITES "idle_writes" "idle.writes" "Idle Writes"
        "the parameters of a write are set aside after many turns without a touch of its file"
        PARAMS, OFF, |_, resting| resting.is_input_of(&[ToolClass::Write]);
    INPUTS "idle_inputs" "idle.inputs" "Idle Inputs"
        "the parameters of a call are set aside after some turns"
        PARAMS, Ages::all(40), |_, resting| {
            resting.is_input_of(&[ToolClass::Read, ToolClass::Search, ToolClass::Delete, ToolClass::Other])
        };
}

pub(crate) const REASONING: Shortening = Shortening {
    name: "idle_reasoning",
    figure: "Idle Reasoning",
    reason: "reasoning from before an earlier prompt is left out",
    leaves: |_| ShortenedContent::Nothing,
    acts: Acts::AtPrompt {
        ages: AgesKey { key: "idle.reasoning", presets: &[("economy", Ages::all(1))] },
        means: |item| item.kind == ItemKind::Reasoning,
    },
};

/// Tools that start a subagent and give its answer, in any case of letters.
const SUBAGENT_TOOLS: &[&str] =
    &["task", "agent", "subagent", "run_subagent", "dispatch_agent", "spawn_agent", "delegate_to_agent"];

fn is_subagent(tool: &str) -> bool {
    SUBAGENT_TOOLS.iter().any(|named| named.eq_ignore_ascii_case(tool))
}

const NOTE_ENDINGS: &[&str] = &["md", "txt", "rst", "log", "csv"];
const TEMPORARY: &[&str] = &["/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/", "/private/var/folders/"];
const VENDORED: &[&str] = &["node_modules/", "vendor/", "third_party/", ".venv/", "venv/", "site-packages/"];

/// Whether a face is the output of a read of notes alone: such a file is read once, to know it.
fn reads_notes(look: Look<'_>, resting: &Resting<'_>) -> bool {
    if !resting.is_output_of(ToolClass::Read) {
        return false;
    }
    let files = look.keys(resting.ix).filter(|(_, key)| key.kind == KeyKind::File);
    let mut files = files.map(|(_, key)| look.facts.names.text(key.given)).peekable();
    files.peek().is_some() && files.all(is_note)
}

fn is_note(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace('\\', "/");
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let begins = |folder: &&str| path.starts_with(*folder);
    let holds = |folder: &&str| path.starts_with(*folder) || path.contains(&format!("/{folder}"));
    NOTE_ENDINGS.contains(&ending) || TEMPORARY.iter().any(begins) || VENDORED.iter().any(holds)
}

/// Whether a face is the output of a command line that showed files, such as `cat` and `sed -n`.
fn shows_files(look: Look<'_>, resting: &Resting<'_>) -> bool {
    resting.is_output_of(ToolClass::Other)
        && resting.is_command(look)
        && look.keys(resting.ix).any(|(_, key)| key.kind == KeyKind::File)
}

impl Policy {
    /// Turns for which an output of medium size stays, if no rule takes it for another reason; `None`: for ever. Without
    /// `shelf`, the age of searches and command lines counts: most outputs are theirs.
    pub fn other_turns(&self) -> Option<u32> {
        let shelf = self.shelf.on.then_some(self.shelf.other_turns);
        let number = SHORTENING.iter().position(|rule| rule.name == SEARCHES.name);
        let turns = number.map(|number| self.idle.ages(number).medium);
        shelf.or_else(|| turns.filter(|turns| *turns > 0))
    }
}
