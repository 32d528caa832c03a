//! The values of a policy: which rules are on, and their settings.
//!
//! Rules read these values, so nothing here knows a rule. Reading and writing a policy, and the presets, stand in
//! [`policy`](super::policy).

use crate::event::ToolClass;
use crate::text::Globs;

/// How paths are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Paths {
    /// As given.
    Raw,
    /// Resolved by text against the session's folder.
    #[default]
    Session,
}

/// The place where, as a tombstone says, a task's logs can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskArchive {
    /// By the command that prints them.
    #[default]
    Command,
    /// In the file to which a host writes them, `.sigma/archives/SESSION/TASK.log`.
    File,
}

/// The comparison by which two calls are a repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatMode {
    /// None: the rule is off.
    Off,
    /// Equal tool and canonical parameters.
    #[default]
    #[serde(alias = "on")]
    Hash,
    /// The same, top-level nulls left out.
    Dedup,
}

/// The part of its input that a superseded call shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HideInput {
    /// All of it.
    #[default]
    None,
    /// An object of the shown parameters.
    Metadata,
    /// The same, but only for writes and edits: the text that they wrote stands in the file.
    Changes,
}

impl HideInput {
    /// Whether the input of a superseded call of this class is hidden.
    pub(super) const fn is_meant(self, class: Option<ToolClass>) -> bool {
        match self {
            Self::None => false,
            Self::Metadata => true,
            Self::Changes => matches!(class, Some(ToolClass::Write | ToolClass::Edit)),
        }
    }
}

/// The names of the file rule's edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// `file`.
    #[default]
    File,
    /// `supersede_write`.
    SupersedeWrite,
    /// `supersede_read`.
    SupersedeRead,
}

/// The repeat rule.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Repeat {
    /// The comparison, or off.
    pub mode: RepeatMode,
    /// Tools the rule never means.
    pub except: Globs,
    /// Tools protected from this rule, besides the common ones.
    pub protected_tools: Globs,
}

/// The file rule: which class of call clears which class of view.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileRule {
    /// Classes of views that a whole-file write clears.
    pub write_clears: Vec<ToolClass>,
    /// Classes of views that an edit clears.
    pub edit_clears: Vec<ToolClass>,
    /// Classes of views that a delete clears.
    pub delete_clears: Vec<ToolClass>,
    /// Classes of views that a read clears.
    pub read_clears: Vec<ToolClass>,
    /// Classes of views that a search clears (by an equal search key).
    pub search_clears: Vec<ToolClass>,
    /// Any file call clears: true stands for the matrix of `acp-head`, false for that of `acp`.
    pub any_call: bool,
    /// Name of the edges.
    pub kind: FileKind,
    /// Turns in which the file must rest before an edit clears earlier views; 0: at once.
    pub edit_quiet_steps: u32,
    /// Tools protected from this rule, besides the common ones.
    pub protected_tools: Globs,
}

impl FileRule {
    /// Classes of views that a call of class `class` clears.
    pub fn clears(&self, class: ToolClass) -> &[ToolClass] {
        match class {
            ToolClass::Write => &self.write_clears,
            ToolClass::Edit => &self.edit_clears,
            ToolClass::Delete => &self.delete_clears,
            ToolClass::Read => &self.read_clears,
            ToolClass::Search => &self.search_clears,
            ToolClass::Other => &[],
        }
    }

    /// Sets the matrix that `any_call` stands for.
    pub(super) fn set_any_call(&mut self, any_call: bool) {
        let views = vec![ToolClass::Read, ToolClass::Write, ToolClass::Edit];
        self.any_call = any_call;
        self.write_clears.clone_from(&views);
        self.edit_clears.clone_from(&views);
        self.delete_clears.clone_from(&views);
        self.read_clears = if any_call { views } else { Vec::new() };
        self.search_clears = if any_call { vec![ToolClass::Search] } else { Vec::new() };
    }
}

/// Failed calls lose their long parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PurgeErrors {
    /// Whether the rule is on.
    pub on: bool,
    /// Age in turns at which it acts; 0 counts as 1.
    pub turns: u32,
    /// Tools protected from this rule, besides the common ones.
    pub protected_tools: Globs,
}

/// Long outputs keep head and tail.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Truncate {
    /// Whether the rule is on.
    pub on: bool,
    /// Estimated tokens above which it acts.
    pub max_tokens: u32,
    /// Part of `max_tokens` for the leading lines.
    pub head_ratio: f64,
    /// Part of `max_tokens` for the trailing lines.
    pub tail_ratio: f64,
    /// Age in turns at which it acts.
    pub turns_min: u32,
    /// Tools it means.
    pub tools: Globs,
}

/// Long reasoning keeps its beginning and its conclusions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CompressReasoning {
    /// Whether the rule is on.
    pub on: bool,
    /// Estimated tokens above which it acts.
    pub max_tokens: u32,
    /// Age in turns at which it acts.
    pub turns_min: u32,
}

/// Faces that nothing has touched for some turns step aside.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShelfRule {
    /// Whether the rule is on.
    pub on: bool,
    /// Turns without a touch after which a read is shelved.
    pub read_turns: u32,
    /// The same for outputs of all other tools.
    pub other_turns: u32,
    /// The same for the parameters of writes and edits.
    pub input_turns: u32,
    /// Estimated tokens from which on it acts.
    pub tokens_min: u32,
    /// Tools it never means.
    pub except: Globs,
}

/// Turns without a touch, by size; 0: never.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ages {
    /// For 1,500 tokens and more.
    pub large: u32,
    /// For 300 tokens and more.
    pub medium: u32,
    /// For fewer tokens.
    pub small: u32,
}

/// Tokens from which on a face is large.
const LARGE_TOKENS_MIN: u64 = 1_500;
/// Tokens from which on a face is of medium size.
const MEDIUM_TOKENS_MIN: u64 = 300;

/// Turns that any output stays: in the next turn it is sent for the first time.
pub(crate) const TURNS_MIN: u32 = 2;

impl Ages {
    /// Ages of three sizes.
    pub const fn of(large: u32, medium: u32, small: u32) -> Self {
        Self { large, medium, small }
    }

    /// One age for all sizes.
    pub const fn all(turns: u32) -> Self {
        Self::of(turns, turns, turns)
    }

    /// The age for so many tokens; `None`: never.
    pub(crate) fn turns(self, tokens: u64) -> Option<u32> {
        self.turns_from_birth(tokens).map(|turns| turns.max(TURNS_MIN))
    }

    /// The same for a rule that may act before an output is first sent: an age of 1 is its birth, and the answer then 0.
    pub(crate) const fn turns_from_birth(self, tokens: u64) -> Option<u32> {
        let turns = match tokens {
            LARGE_TOKENS_MIN.. => self.large,
            MEDIUM_TOKENS_MIN.. => self.medium,
            _ => self.small,
        };
        match turns {
            0 => None,
            1 => Some(0),
            turns => Some(turns),
        }
    }
}

/// Rules that set aside faces that nothing has touched, each with ages of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct IdleRules {
    /// Estimated tokens from which on they act.
    pub tokens_min: u32,
    /// Part of an age that is enough when the cache is cold; 1: no part.
    pub cold_share: f64,
    /// Ages by the number of the rule.
    pub(super) ages: Vec<Ages>,
}

impl IdleRules {
    pub(crate) fn ages(&self, number: usize) -> Ages {
        self.ages.get(number).copied().unwrap_or_default()
    }

    pub(crate) fn set_ages(&mut self, number: usize, ages: Ages) {
        if let Some(known) = self.ages.get_mut(number) {
            *known = ages;
        }
    }

    /// The age that is enough when the cache is cold; `None` if no part of an age is.
    pub(crate) fn turns_when_cold(&self, turns: u32) -> Option<u32> {
        if self.cold_share >= 1.0 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a u32")]
        let part = (f64::from(turns) * self.cold_share.max(0.0)).ceil() as u32;
        Some(part.max(TURNS_MIN))
    }
}

/// The rules with a switch and no settings that are on: a bit each, by their place among the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Switches(u32);

impl Switches {
    pub(crate) const fn is_on(self, number: u8) -> bool {
        self.0 & (1 << number) != 0
    }

    pub(crate) const fn set(&mut self, number: u8, on: bool) {
        self.0 = if on { self.0 | 1 << number } else { self.0 & !(1 << number) };
    }
}

/// Calls of the newest turns supersede nothing yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TurnProtection {
    /// Whether it is on.
    pub enabled: bool,
    /// Turns.
    pub turns: u32,
}

impl TurnProtection {
    /// Turns that a call must be old to be ready: 0 if off.
    pub const fn age_min(&self) -> u32 {
        if self.enabled { self.turns } else { 0 }
    }
}

/// All settings that decide which call supersedes which, and how a context is served.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let _ = session.append([acpdb_engine::Entry::step("step-1")])?;
/// use acpdb_engine::{Policy, Seq};
///
/// let policy = Policy::from_json(r#"{"preset": "economy", "same_turn": false}"#)?;
/// store.set_policy(Some(session.id()), &policy, Some("repeats matter here"))?;
/// assert_eq!(store.policy(Some(session.id()), Seq::MAX)?.preset, "economy");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// Name of the preset it began with.
    pub preset: String,
    /// Whether any rule acts by itself. Commands always work.
    pub automatic: bool,
    /// How paths are compared.
    pub paths: Paths,
    /// The repeat rule.
    pub repeat: Repeat,
    /// The file rule.
    pub file: FileRule,
    /// Whether a call may supersede one of its own turn.
    pub same_turn: bool,
    /// Whether repeat and file take failed calls too.
    pub failed: bool,
    /// The part of its input that a superseded call shows.
    pub hide_input: HideInput,
    /// Rules with a switch and no settings.
    pub switches: Switches,
    /// Failed calls lose long parameters.
    pub purge_errors: PurgeErrors,
    /// Long outputs keep head and tail.
    pub truncate: Truncate,
    /// Long reasoning keeps beginning and conclusions.
    pub compress_reasoning: CompressReasoning,
    /// Tools that no rule but `todo` hides.
    pub protected_tools: Globs,
    /// Files whose calls no rule hides or shortens.
    pub protected_files: Globs,
    /// Faces that nothing has touched for some turns.
    pub shelf: ShelfRule,
    /// The same by kind and size.
    pub idle: IdleRules,
    /// How a context is served.
    pub serve: ServeSettings,
    /// Calls of the newest turns.
    pub turn_protection: TurnProtection,
    /// Todo reminders.
    pub reminder: ReminderSettings,
    /// Reflection.
    pub automata: ReflectionSettings,
    /// Tokens of a context of which the model is told once it passes them, in order.
    pub size_notices: Vec<u32>,
    /// Outputs of the active task that stay; older ones are hidden.
    pub task_outputs_max: u32,
    /// The place where, as tombstones say, an evicted output can be read.
    pub task_archive: TaskArchive,
}

impl Policy {
    /// Whether any rule sets idle faces aside.
    pub(crate) fn has_idle_rules(&self) -> bool {
        self.shelf.on || self.idle.ages.iter().any(|ages| *ages != Ages::default())
    }

    /// Whether hashes are shown as six digits without a letter, as `acp-head` does.
    pub fn bare_hashes(&self) -> bool {
        self.preset == "acp-head"
    }
}

/// When to remind of the todo list. Turns are steps of the model.
#[derive(serde::Serialize, serde::Deserialize, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct ReminderSettings {
    /// Remind at all.
    pub enabled: bool,
    /// Turns from the list's last update to the first reminder.
    pub initial_turns: u32,
    /// Turns from one reminder to the next.
    pub repeat_turns: u32,
    /// Turns in progress after which a task counts as stuck.
    pub stuck_task_turns: u32,
}

impl Default for ReminderSettings {
    fn default() -> Self {
        Self { enabled: true, initial_turns: 8, repeat_turns: 4, stuck_task_turns: 12 }
    }
}

/// When to reflect, in automata mode.
#[derive(serde::Serialize, serde::Deserialize, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct ReflectionSettings {
    /// Reflect at all.
    pub enabled: bool,
    /// Turns from activation, or from one reflection, to the next.
    pub initial_turns: u32,
}

impl Default for ReflectionSettings {
    fn default() -> Self {
        Self { enabled: true, initial_turns: 8 }
    }
}

// --- serving -------------------------------------------------------------------------------------------------------------

// How a context is served: mode, rule, weights and prices.
//
// mode        append_only   batched (default)   eager
// rule        hybrid (default)   ski_rental   cold   prompts    when a batch is worth its rewrite
// price       read, write, input, ttl                        of one token, in any unit that all share
//
// Data only, as all here; `crate::serve` decides by it.

/// When conclusions reach the model.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ServeMode {
    /// Sent text is never changed, unless a request asks for it or the budget needs it.
    AppendOnly,
    /// In batches, when a rewrite pays.
    #[default]
    Batched,
    /// At once.
    Eager,
}

impl ServeMode {
    /// All modes, in order.
    pub const ALL: &'static [Self] = &[Self::AppendOnly, Self::Batched, Self::Eager];

    /// Its name in policies and JSON.
    pub const fn label(self) -> &'static str {
        match self {
            Self::AppendOnly => "append_only",
            Self::Batched => "batched",
            Self::Eager => "eager",
        }
    }
}

/// When a batch is worth its rewrite.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum FlushRule {
    /// The saving over the horizon, and the cost of waiting so far times `waiting`, are at least twice the cost of the rewrite.
    #[default]
    Hybrid,
    /// The cost of waiting so far outweighs the rewrite: never worse than twice the best, and seldom the first to move.
    SkiRental,
    /// Only when the cache is cold and the rewrite costs nothing.
    Cold,
    /// As `hybrid`, but only with the first request after a prompt: while the model works, nothing changes under it.
    Prompts,
}

/// Prices of a token of input, in a unit that all share: providers' price lists are relative to the plain input price.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// A token that is neither read from the cache nor written to it.
    pub input: f64,
    /// A token that is read from the cache.
    pub read: f64,
    /// A token that is written to the cache.
    pub write: f64,
    /// Seconds after its last use at which the cache is cold; 0: it never is.
    pub ttl_seconds: u32,
}

/// A price that cannot be reckoned with.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("the price `{name}` is {value}; a price is a number, 0 or more, and reading costs more than nothing")]
pub struct PriceError {
    /// The price's name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

impl Default for Prices {
    /// A provider's cache of five minutes: reading costs a tenth, writing a quarter more.
    fn default() -> Self {
        Self { input: 1.0, read: 0.1, write: 1.25, ttl_seconds: 300 }
    }
}

impl Prices {
    /// No cache: every token costs the same every time.
    pub const FLAT: Self = Self { input: 1.0, read: 1.0, write: 1.0, ttl_seconds: 0 };

    /// Checks that the prices can be reckoned with.
    ///
    /// # Errors
    /// [`PriceError`], naming the first price that is negative or not a number, or a reading price of zero.
    pub fn checked(self) -> Result<Self, PriceError> {
        for (name, value) in [("input", self.input), ("read", self.read), ("write", self.write)] {
            if !value.is_finite() || value < 0.0 || name == "read" && value == 0.0 {
                return Err(PriceError { name, value });
            }
        }
        Ok(self)
    }

    /// The price of a request of so many tokens, of which so many are read from the cache; the others are written to it.
    pub fn of(&self, tokens: u64, read: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
        let float = |tokens: u64| tokens as f64;
        // No more is read than is sent.
        let read = read.min(tokens);
        self.read * float(read) + self.write * float(tokens - read)
    }

    /// The cost of rewriting a token beyond reading it, in readings of it.
    pub fn kappa(&self) -> f64 {
        if self.read > 0.0 { ((self.write - self.read) / self.read).max(0.0) } else { 0.0 }
    }
}

/// How a context is served.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ServeSettings {
    /// When conclusions reach the model.
    pub mode: ServeMode,
    /// When a batch is worth its rewrite.
    pub rule: FlushRule,
    /// Requests for which a saving counts in advance.
    pub horizon: f64,
    /// Weight of the cost of waiting so far.
    pub waiting: f64,
    /// The most that a rewrite may cost beyond what the session has saved so far, as a part of what it would have cost without any
    /// rule; 1: no limit.
    pub debt_max: f64,
    /// Runs of lines that the model sees elsewhere become pointers before they are first sent.
    pub pointing: bool,
    /// Estimated tokens that a pointer must save.
    pub pointing_tokens_min: u32,
    /// Most pointers in one output.
    pub pointers_max: u32,
    /// Prices of a token.
    pub price: Prices,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            mode: ServeMode::Batched,
            rule: FlushRule::Hybrid,
            horizon: 8.0,
            waiting: 0.5,
            debt_max: 0.01,
            pointing: true,
            pointing_tokens_min: 100,
            pointers_max: 6,
            price: Prices::default(),
        }
    }
}
