//! Which files a command line shows: `cat a`, `nl -ba a | sed -n 1,9p`, `cd x && head a`, `rg pattern a`.
//!
//! Hosts without a tool for reading read through the shell. A call that does nothing but show files is about them, as a
//! read is: so later changes of a file count as touches of the shown text. A command line that does more names no file.

/// Programs that show files.
const READERS: &[&str] = &["cat", "head", "tail", "nl", "bat", "batcat", "less", "more"];
/// Programs that search in files; the files are named after a pattern.
const SEARCHERS: &[&str] = &["rg", "grep", "egrep", "fgrep"];
/// Options of `head` and `tail` that take a value of their own.
const VALUED_BY_READERS: &[&str] = &["-n", "-c", "--lines", "--bytes"];
/// Options of searches that take a value.
const VALUED_BY_SEARCHERS: &[&str] = &["-A", "-B", "-C", "-g", "-t", "-e", "-m", "--glob", "--type"];
/// Most files of one command line.
const FILE_COUNT_MAX: usize = 8;

/// The files that a command line shows or searches one by one; none if it does anything else. `folder`: where it runs, if
/// that is known. Cost: O(its length).
pub(super) fn files(command: &str, folder: Option<&str>) -> Vec<String> {
    // The text behind `<<` is no command.
    if command.contains("<<") {
        return Vec::new();
    }
    let quiet = command.replace("2>/dev/null", "").replace("2>&1", "");
    let mut found = Vec::new();
    let mut folder = folder.unwrap_or_default().to_owned();
    for step in steps(&quiet) {
        let mut words = words(step);
        let program = if words.is_empty() { "" } else { words.remove(0) };
        let program = program.rsplit('/').next().unwrap_or_default();
        if step.contains(['>', '`']) || step.contains("$(") {
            return Vec::new();
        }
        let searches = SEARCHERS.contains(&program);
        let valued = match program {
            "head" | "tail" => VALUED_BY_READERS,
            _ if searches => VALUED_BY_SEARCHERS,
            _ => &[],
        };
        let is_sed = program == "sed" && words.iter().any(|word| word.starts_with("-n"));
        let operands = match program {
            "cd" => {
                folder = join(&folder, words.first().copied().unwrap_or_default());
                continue;
            }
            "pwd" | "echo" | "wc" | "printf" => continue,
            "git" => {
                let shown = shown_by_git(&words);
                if shown.is_empty() || !shown.iter().all(|file| is_plain(file) && has_ending(file)) {
                    return Vec::new();
                }
                found.extend(shown.into_iter().map(|file| join(&folder, file)));
                continue;
            }
            _ if is_sed => words.into_iter().filter(|word| !word.starts_with('-')).collect(),
            _ if searches || READERS.contains(&program) => operands(&words, valued),
            _ => return Vec::new(),
        };
        // The script of `sed` and the pattern of a search come first.
        let named = operands.get(usize::from(is_sed || searches)..).unwrap_or_default();
        // A reader takes files only; a search may take a folder, and that is no view of a file.
        if named.is_empty() || !named.iter().all(|file| is_plain(file) && (!searches || has_ending(file))) {
            return Vec::new();
        }
        found.extend(named.iter().map(|file| join(&folder, file)));
    }
    found.truncate(FILE_COUNT_MAX);
    found
}

/// The file that an action of SWE-agent opens in its editor: `open PATH [LINE]`, `create PATH`. An `edit` names none.
pub(super) fn opened(action: &str) -> Option<&str> {
    let path = match words(action)[..] {
        ["open" | "create", path] => path,
        ["open", path, line] if line.bytes().all(|byte| byte.is_ascii_digit()) => path,
        _ => return None,
    };
    is_plain(path).then(|| path.strip_prefix("./").unwrap_or(path))
}

/// The files that `git show REVISION:FILE` and `git diff -- FILE` show.
fn shown_by_git<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let words = words.iter().copied().filter(|word| *word != "--no-pager");
    let words: Vec<&str> = words.collect();
    match words.split_first() {
        Some((&"show", rest)) => {
            let named = rest.iter().filter(|word| !word.starts_with('-'));
            named.map(|word| word.split_once(':').map_or("", |(_, file)| file)).collect()
        }
        Some((&("diff" | "blame"), rest)) => {
            rest.iter().skip_while(|word| **word != "--").skip(1).copied().collect()
        }
        _ => Vec::new(),
    }
}

/// The commands between `&&`, `;` and line ends, each up to its first pipe.
fn steps(command: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    let mut piped = false;
    let mut from = 0;
    let mut end = None;
    let mut steps = Vec::new();
    for (at, letter) in command.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, ';' | '&' | '\n') => {
                steps.push(command.get(from..end.unwrap_or(at)).unwrap_or_default());
                (from, end, piped) = (at + letter.len_utf8(), None, false);
            }
            (None, '|') if !piped => {
                end = Some(at);
                piped = true;
            }
            _ => {}
        }
    }
    steps.push(command.get(from..end.unwrap_or(command.len())).unwrap_or_default());
    steps.into_iter().map(str::trim).filter(|step| !step.is_empty())
}

/// Words of one step; a text in quotes is one word.
fn words(step: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = step.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = if first == '"' || first == '\'' {
            let inner = rest.get(1..).unwrap_or_default();
            inner.split_once(first).unwrap_or((inner, ""))
        } else {
            rest.split_once(char::is_whitespace).unwrap_or((rest, ""))
        };
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// Words without options and the values of those that take one.
fn operands<'w>(words: &[&'w str], valued: &[&str]) -> Vec<&'w str> {
    let mut found = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') {
            found.push(*word);
        } else if valued.contains(word) {
            // The option's value is no operand.
            let _ = words.next();
        }
    }
    found
}

/// Whether a word is a path as it stands.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|letter| letter.is_alphanumeric() || "/._-+@~ ".contains(letter))
}

/// Whether the last part of a path has an ending, as files have and folders have not.
fn has_ending(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').is_some_and(|(stem, ending)| !stem.is_empty() && !ending.is_empty() && stem != ".")
}

fn join(folder: &str, file: &str) -> String {
    let file = file.strip_prefix("./").unwrap_or(file);
    if folder.is_empty() || file.starts_with('/') {
        file.to_owned()
    } else {
        format!("{}/{file}", folder.trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::{files, opened};

    #[test]
    fn command_lines_that_only_show_files_name_them() {
        for (command, shown) in [
            ("cat a.rs", &["a.rs"][..]),
            ("/bin/cat -n a.rs src/b", &["a.rs", "src/b"]),
            ("sed -n 1,9p a.rs", &["a.rs"]),
            ("sed -n '1,9p;20p' ./a.rs", &["a.rs"]),
            ("cd x && nl -ba a.rs | sed -n 1,9p", &["x/a.rs"]),
            ("cd /w/x; cat a.rs && wc -l a.rs", &["/w/x/a.rs"]),
            ("head -n 20 a.rs; tail -20 b.rs", &["a.rs", "b.rs"]),
            ("rg -n \"one|two; three\" src/a.rs", &["src/a.rs"]),
            ("grep -A 3 needle a.rs | head -5", &["a.rs"]),
            ("cat a.rs 2>/dev/null || true", &["a.rs"]),
            ("git show HEAD:src/a.rs | sed -n 1,9p", &["src/a.rs"]),
            ("git diff HEAD -- src/a.rs b.rs", &["src/a.rs", "b.rs"]),
            ("cat 'with a blank.md'", &["with a blank.md"]),
        ] {
            assert_eq!(files(command, None), shown, "{command}");
        }
        assert_eq!(files("cat a.rs /b.rs", Some("/w")), ["/w/a.rs", "/b.rs"]);
    }

    #[test]
    fn an_action_that_opens_a_file_names_it() {
        for (action, file) in [
            ("open setup.py\n", Some("setup.py")),
            ("open \"src/a b.py\" 1474", Some("src/a b.py")),
            ("create ./reproduce.py", Some("reproduce.py")),
            ("open", None),
            ("open a.py b.py", None),
            ("open a.py\nls", None),
            ("create a.py && ls", None),
            ("open $FILE", None),
            ("edit 1:1\nopen a.py\nend_of_edit", None),
        ] {
            assert_eq!(opened(action), file, "{action}");
        }
    }

    #[test]
    fn other_command_lines_do_more_or_show_no_file() {
        for command in [
            "cat",
            "cat -",
            "cat a.rs > b.rs",
            "sed -i s/a/b/ c.rs",
            "cat a.rs && make",
            "rg needle src",
            "rg --files src",
            "cd x",
            "ls | head -3",
            "cat *.rs",
            "cat $(ls)",
            "cat a <<'E'\ncat b\nE",
            "make && cat out.log",
            "",
            "'",
            "&&;|",
            "cat token=12345",
            "git diff",
            "git diff -- src",
            "git show HEAD",
            "git show HEAD:src",
        ] {
            assert_eq!(files(command, None), [""; 0], "{command}");
        }
    }
}
