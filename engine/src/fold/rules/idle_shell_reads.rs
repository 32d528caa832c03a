//! Idle shell reads: a file that a command line showed (`cat`, `sed -n`) steps aside some turns later.
use super::Look;
use super::shorten::{Acts, Ages, AgesKey, Leaves, Resting, Shortening, TEXT_ASIDE};
use crate::event::ToolClass;

pub(crate) const RULE: Shortening = Shortening {
    name: "idle_shell_reads",
    figure: "Idle Shell Reads",
    reason: "a file that a command line showed is set aside after some turns",
    leaves: |_| Leaves::Text(TEXT_ASIDE),
    acts: Acts::Idle { ages: Some(AgesKey { key: "idle.shell_reads", presets: PRESETS }), turns },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::of(12, 24, 36))];

const READERS: &[&str] = &["cat", "head", "tail", "nl", "bat", "batcat", "less", "more"];

fn turns(look: Look<'_>, resting: &Resting<'_>, ages: Ages) -> Option<u32> {
    if !resting.is_output_of(ToolClass::Other) {
        return None;
    }
    let command = resting.command(look)?;
    ages.turns(resting.tokens).filter(|_| is_read(command))
}

/// Whether a command line does nothing but show files, from a folder or through a filter if it likes.
fn is_read(command: &str) -> bool {
    let mut steps = command.split("&&").flat_map(|step| step.split(';')).map(str::trim).filter(|step| !step.is_empty());
    let mut reads = false;
    let all = steps.all(|step| {
        let first = step.split('|').next().unwrap_or_default();
        let mut words = first.split_whitespace();
        let program = words.next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default();
        if matches!(program, "cd" | "pwd" | "echo" | "wc") {
            return true;
        }
        let shows = READERS.contains(&program) || program == "sed" && words.clone().any(|word| word == "-n");
        // Without an operand it would read its standard input.
        let named = words.any(|word| !word.starts_with('-'));
        reads |= shows && named;
        shows && named && !first.contains('>')
    });
    all && reads
}

#[cfg(test)]
mod tests {
    use super::is_read;

    #[test]
    fn a_command_line_that_only_shows_files_is_a_read() {
        for command in [
            "cat a",
            "/bin/cat -n a b",
            "sed -n 1,9p a",
            "cd x && nl a | sed -n 1,9p",
            "head -20 a; tail -20 b",
            "cd x && cat a && wc -l a",
        ] {
            assert!(is_read(command), "{command}");
        }
        for command in ["cat", "cat -", "cat a > b", "sed -i s/a/b/ c", "cat a && make", "grep a b", "cd x", "ls | head -3", ""] {
            assert!(!is_read(command), "{command}");
        }
    }
}
