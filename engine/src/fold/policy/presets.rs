//! The presets, and the lists of names that they begin with.

use crate::event::ToolClass;
use crate::fold::policy_values::{
    Ages, CompressReasoning, FileKind, FileRule, HideInput, IdleRules, Paths, Policy, PurgeErrors, Repeat,
    RepeatMode, ShelfRule, Switches, TaskArchive, Truncate, TurnProtection,
};
use crate::fold::rules::shorten::ages_keys;
use crate::fold::rules::{SHORTENING, switches};
use crate::fold::serving::{FlushRule, ServeSettings};
use crate::fold::todo::{ReflectionSettings, ReminderSettings};
use crate::text::Globs;

/// Tools that are protected unless a policy says otherwise.
pub const PROTECTED_TOOLS: &[&str] = &[
    "context_info",
    "task",
    "todowrite",
    "todoread",
    "discard_tool",
    "discard_msg",
    "distill_tool",
    "distill_msg",
    "restore_tool",
    "restore_msg",
    "context",
    "batch",
    "plan_enter",
    "plan_exit",
];

/// Files that are protected unless a policy says otherwise.
pub const PROTECTED_FILES: &[&str] =
    &["**/.env", "**/.env.*", "**/credentials.json", "**/secrets.json", "**/*.pem", "**/*.key"];

/// Tools whose equal calls are a new answer or a new deed each time: polls, deltas, deeds.
pub const REPEAT_EXCEPT: &[&str] = &[
    "write_stdin",
    "read_bash",
    "stop_bash",
    "TaskOutput",
    "BashOutput",
    "AgentOutputTool",
    "TaskCreate",
    "TaskUpdate",
    "tracker_*",
    "book_*",
    "cancel_*",
    "create_*",
    "delete_*",
    "exchange_*",
    "modify_*",
    "place_*",
    "remove_*",
    "return_*",
    "send_*",
    "submit*",
    "transfer_*",
    "update_*",
];

/// Tools whose outputs steer the work and are never shelved.
pub const SHELF_EXCEPT: &[&str] = &[
    "task*",
    "Task*",
    "agent*",
    "Agent*",
    "skill*",
    "Skill*",
    "*uestion*",
    "*plan*",
    "*Plan*",
    "*todo*",
    "*Todo*",
];

/// Names of the presets, in the order in which they are listed.
pub const PRESETS: &[&str] =
    &["acp", "balanced", "careful", "acp-head", "dcp", "dcp-supersede-reads", "economy", "calm", "safe"];

impl IdleRules {
    /// Those of a preset.
    fn of(preset: &str) -> Self {
        let mut rules =
            Self { tokens_min: 300, cold_share: 1.0, ages: vec![Ages::default(); SHORTENING.len()] };
        for (number, key) in ages_keys() {
            if let Some((_, ages)) = key.presets.iter().find(|(name, _)| *name == preset) {
                rules.set_ages(number, *ages);
            }
        }
        rules
    }
}

impl Switches {
    /// Those of a preset.
    fn of(preset: &str) -> Self {
        let mut all = Self::default();
        for (number, switch) in switches() {
            all.set(number, switch.presets.contains(&preset));
        }
        all
    }
}

impl Default for Policy {
    /// The preset `acp`.
    fn default() -> Self {
        let names = |list: &[&str]| Globs::names(list).unwrap_or_default();
        let mut file = FileRule::default();
        file.set_any_call(false);
        Self {
            preset: "acp".to_owned(),
            automatic: true,
            paths: Paths::Session,
            repeat: Repeat {
                mode: RepeatMode::Hash,
                except: names(REPEAT_EXCEPT),
                protected_tools: Globs::default(),
            },
            file,
            same_turn: false,
            failed: false,
            hide_input: HideInput::None,
            switches: Switches::of("acp"),
            purge_errors: PurgeErrors { on: false, turns: 4, protected_tools: Globs::default() },
            truncate: Truncate {
                on: false,
                max_tokens: 2000,
                head_ratio: 0.4,
                tail_ratio: 0.4,
                turns_min: 2,
                tools: names(&["read", "grep", "glob", "bash"]),
            },
            compress_reasoning: CompressReasoning { on: false, max_tokens: 500, turns_min: 3 },
            protected_tools: names(PROTECTED_TOOLS),
            protected_files: Globs::guarded_paths(PROTECTED_FILES).unwrap_or_default(),
            shelf: ShelfRule {
                on: false,
                read_turns: 40,
                other_turns: 10,
                input_turns: 40,
                tokens_min: 300,
                except: names(SHELF_EXCEPT),
            },
            idle: IdleRules::of("acp"),
            serve: ServeSettings::default(),
            turn_protection: TurnProtection { enabled: false, turns: 4 },
            reminder: ReminderSettings::default(),
            automata: ReflectionSettings::default(),
            task_outputs_max: 20,
            task_archive: TaskArchive::Command,
        }
    }
}

impl Policy {
    /// The preset called `name` ([`PRESETS`]), or `None`.
    pub fn preset(name: &str) -> Option<Self> {
        let (preset, switches, idle) = (name.to_owned(), Switches::of(name), IdleRules::of(name));
        let mut policy = Self { preset, switches, idle, ..Self::default() };
        match name {
            "acp" => {}
            "balanced" => policy.file.edit_quiet_steps = 4,
            "careful" => policy.file.edit_clears.clear(),
            "acp-head" => {
                policy.file.set_any_call(true);
                policy.hide_input = HideInput::Metadata;
            }
            "dcp" => {
                policy.become_dcp();
                policy.repeat.mode = RepeatMode::Dedup;
                policy.file.read_clears = vec![ToolClass::Write];
                policy.file.kind = FileKind::SupersedeWrite;
                policy.hide_input = HideInput::Metadata;
                policy.purge_errors.on = true;
            }
            "dcp-supersede-reads" => {
                policy.become_dcp();
                policy.repeat.mode = RepeatMode::Off;
                policy.file.write_clears = vec![ToolClass::Read];
                policy.file.edit_clears = vec![ToolClass::Read];
                policy.file.delete_clears = vec![ToolClass::Read];
                policy.file.kind = FileKind::SupersedeRead;
            }
            "economy" => {
                policy.file.edit_quiet_steps = 3;
                policy.idle.tokens_min = 40;
                policy.idle.cold_share = 0.5;
                policy.serve.pointing = true;
                policy.serve.pointing_tokens_min = 60;
                policy.serve.pointers_max = 20;
                policy.serve.horizon = 6.0;
            }
            "calm" => {
                policy = Self { preset: name.to_owned(), ..Self::preset("economy")? };
                policy.serve.rule = FlushRule::Prompts;
            }
            "safe" => {
                policy = Self { preset: name.to_owned(), ..Self::preset("economy")? };
                policy.file.edit_clears.clear();
                policy.serve.rule = FlushRule::Cold;
            }
            _ => return None,
        }
        Some(policy)
    }

    /// What both dcp presets have in common; the file rule's matrix is empty.
    fn become_dcp(&mut self) {
        self.file = FileRule::default();
        self.same_turn = true;
        self.failed = true;
        self.protected_tools = Globs::default();
        self.protected_files = Globs::default();
    }
}
