//! The hosts that acpdb can be attached to, and the acts that each of them allows a hook.

use acpdb_hosts::import::ImportFormat;

/// A host that runs a program for its events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Host {
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    GeminiCli,
    /// Copilot CLI.
    CopilotCli,
    /// opencode, which takes a plug-in.
    Opencode,
    /// Pi, which takes an extension.
    Pi,
    /// Cursor.
    Cursor,
    /// The chat of VS Code.
    VsCode,
}

/// The acts that acpdb may do in a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AttachMode {
    /// Records, and says nothing.
    Record,
    /// Records, and gives the texts that are due.
    Suggest,
    /// Gives the texts that are due, and replaces a result that the model still sees by a pointer.
    Prune,
}

impl AttachMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Record, Self::Suggest, Self::Prune];

    /// Its name, as commands spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Suggest => "suggest",
            Self::Prune => "prune",
        }
    }

    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl Host {
    /// All hosts.
    pub const ALL: [Self; 8] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::GeminiCli,
        Self::CopilotCli,
        Self::Cursor,
        Self::VsCode,
        Self::Opencode,
        Self::Pi,
    ];

    /// Its name, as commands spell it. For hosts whose recordings are imported it is also the host's name in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::CopilotCli => "copilot-cli",
            Self::Opencode => "opencode",
            Self::Pi => "pi",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
        }
    }

    /// The host of this name, or of the short name that people type.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = match name {
            "claude" => "claude-code",
            "gemini" => "gemini-cli",
            "copilot" => "copilot-cli",
            "vs-code" | "code" => "vscode",
            name => name,
        };
        Self::ALL.into_iter().find(|host| host.name() == name)
    }

    /// The format of its own recording; `None`: there is only the hook's JSON.
    pub const fn format(self) -> Option<ImportFormat> {
        match self {
            Self::ClaudeCode => Some(ImportFormat::ClaudeCode),
            Self::Codex => Some(ImportFormat::Codex),
            Self::GeminiCli => Some(ImportFormat::GeminiCli),
            Self::CopilotCli => Some(ImportFormat::CopilotCli),
            Self::Pi => Some(ImportFormat::Pi),
            // Its plug-in tells more than a hook could.
            Self::Cursor | Self::VsCode | Self::Opencode => None,
        }
    }

    /// Whether a result can be replaced there without becoming an error.
    pub const fn can_replace(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Codex | Self::CopilotCli | Self::Opencode | Self::Pi)
    }

    /// Whether it reads settings with comments. Others leave such settings aside, and so their hooks.
    pub const fn takes_comments(self) -> bool {
        matches!(self, Self::GeminiCli)
    }

    /// Whether it takes a plug-in, which asks all the time, rather than hooks.
    pub const fn takes_plugin(self) -> bool {
        matches!(self, Self::Opencode | Self::Pi)
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

impl std::fmt::Display for AttachMode {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}
