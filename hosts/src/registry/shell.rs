//! The subject of a command line: a plain question about folders or the repository, or a patch.

/// Characters that make a command line more than one plain question.
const MORE_THAN_PLAIN: &[char] = &[';', '&', '|', '<', '>', '(', ')', '$', '`', '\n', '\r'];

/// A question about state: how its key prints, and its operands in order.
///
/// `ls`, `find`, `tree`, `pwd` alone, and `git status`, `git branch`, `git log`. Options are no operands.
pub(super) fn state_query(command: &str) -> Option<(String, Vec<String>)> {
    if command.contains(MORE_THAN_PLAIN) {
        return None;
    }
    let mut words = command.split_whitespace();
    let first = words.next()?;
    let key = match first {
        "ls" | "find" | "tree" => format!("bash:{first}"),
        "pwd" if words.clone().next().is_none() => "bash:pwd".to_owned(),
        "git" => match words.next()? {
            question @ ("status" | "branch" | "log") => format!("bash:git:{question}"),
            _ => return None,
        },
        _ => return None,
    };
    let operands = words.filter(|word| !word.starts_with('-')).map(str::to_owned);
    Some((key, operands.collect()))
}

/// The patch that a command line applies, if it does.
pub(super) fn patch(command: &str) -> Option<&str> {
    let (before, _) = command.split_once("*** Begin Patch")?;
    before.contains("apply_patch").then(|| command.get(before.len()..)).flatten()
}
