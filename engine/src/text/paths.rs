//! One spelling for one file, by text alone.
//!
//! Hosts name a file as the model typed it: `lib/m.c`, `./lib/m.c`, `/p/lib/m.c`. [`resolve`] makes these equal where
//! text shows that they are: it joins relative paths to the session's folder, if that is known, and tidies the rest.
//! It never asks a file system, so symbolic links stay, and a replay elsewhere says the same.
//!
//! Drive letters and backslashes mean something if the session's folder is a Windows path, or if no folder is known and
//! the path itself is one of Windows; elsewhere they are characters of a name. Windows does not tell case apart, so
//! neither does its key. Letters with marks have one spelling (NFC), however the platform spells them. The given path is
//! kept and shown as given; all this is for comparing.

use std::borrow::Cow;
use std::path::Path;

use serde::Serializer;
use unicode_normalization::{UnicodeNormalization as _, is_nfc};

/// A path of this machine, as text for JSON and for people. A name may hold bytes that are no UTF-8; each stands as U+FFFD here.
///
/// `Path` itself must not be serialized: that fails at such a name, and `json!` panics then.
pub fn shown(path: &Path) -> Cow<'_, str> {
    path.to_string_lossy()
}

/// [`shown`] in the form that `#[serde(serialize_with)]` takes.
///
/// # Errors
/// Errors of the serializer.
pub fn serialize_shown<S: Serializer>(path: impl AsRef<Path>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&shown(path.as_ref()))
}

/// The path that `given` means in the folder `cwd`.
///
/// - A relative path is joined to `cwd`, if there is one.
/// - `.` is dropped, `..` takes the part before it away (not above the root; a leading one of a relative path
///   stays), repeated and trailing `/` go.
/// - If `cwd` is a Windows path (`C:\p`, `C:/p`, `\\host\p`), or there is none and `given` is: `\` becomes `/`, letters
///   lower-case.
/// - The result is in NFC.
///
/// An empty path stays empty: it names no file. A relative path that goes nowhere is `.`.
pub fn resolve(given: &str, cwd: Option<&str>) -> String {
    if given.is_empty() {
        return String::new();
    }
    let cwd = cwd.filter(|cwd| !cwd.is_empty());
    let alone_is_windows = |path: &str| path.len() > 2 && is_windows(path);
    let windows = cwd.map_or_else(|| alone_is_windows(given), is_windows);
    let resolved = resolved(given, cwd, windows);
    let resolved = if windows {
        resolved.to_lowercase()
    } else if cwd.is_none() && alone_is_windows(&resolved) {
        // A name that only looks like one of Windows, as it did not begin the path.
        format!("./{resolved}")
    } else {
        resolved
    };
    match composed(&resolved) {
        Cow::Owned(composed) => composed,
        Cow::Borrowed(_) => resolved,
    }
}

/// A path in NFC.
fn composed(path: &str) -> Cow<'_, str> {
    if path.is_ascii() || is_nfc(path) { path.into() } else { path.nfc().collect::<String>().into() }
}

/// A path for looking something up: in NFC, with `/` between its parts.
pub fn plain(path: &str) -> Cow<'_, str> {
    let composed = composed(path);
    if composed.contains('\\') { composed.replace('\\', "/").into() } else { composed }
}

/// Whether a path ends in another one, part by part, with either separator; case counts but on Windows.
pub fn ends_in(path: &str, ending: &str) -> bool {
    let fold = |text: &str| {
        let text = plain(text);
        if is_windows(path) { text.to_lowercase() } else { text.into_owned() }
    };
    let (path, ending) = (fold(path), fold(ending));
    let ending = ending.trim_start_matches("./").trim_start_matches('/');
    let rest = path.strip_suffix(ending);
    !ending.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

fn resolved(given: &str, cwd: Option<&str>, windows: bool) -> String {
    let given = if windows { given.replace('\\', "/") } else { given.to_owned() };
    let absolute = given.starts_with('/') || windows && drive(&given).is_some();
    match cwd {
        Some(cwd) if !absolute => {
            let cwd = if windows { cwd.replace('\\', "/") } else { cwd.to_owned() };
            tidy(&format!("{cwd}/{given}"), windows)
        }
        _ => tidy(&given, windows),
    }
}

/// Whether this absolute path is one of Windows: begins with a drive or two backslashes.
fn is_windows(path: &str) -> bool {
    path.starts_with("\\\\") || drive(&path.replace('\\', "/")).is_some()
}

/// The drive letter of a path such as `C:/x` or `C:`, and the rest from the slash on.
fn drive(path: &str) -> Option<(char, &str)> {
    let mut characters = path.chars();
    let letter = characters.next().filter(char::is_ascii_alphabetic)?;
    let rest = characters.as_str().strip_prefix(':')?;
    (rest.is_empty() || rest.starts_with('/')).then_some((letter, rest))
}

fn tidy(path: &str, windows: bool) -> String {
    let drive = if windows { drive(path) } else { None };
    let mut tidied = String::with_capacity(path.len());
    if let Some((letter, _)) = drive {
        tidied.push(letter.to_ascii_lowercase());
        tidied.push(':');
    }
    let rest = drive.map_or(path, |(_, rest)| rest);
    let rooted = drive.is_some() || rest.starts_with('/');
    if rooted {
        tidied.push('/');
    }
    let root_bytes = tidied.len();
    // Parts that a `..` may take away; the leading `..` of a relative path are not among them.
    let mut removable: usize = 0;
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." if removable > 0 => {
                removable -= 1;
                let parent = tidied.rfind('/').unwrap_or(0).max(root_bytes);
                tidied.truncate(parent);
            }
            ".." if rooted => {}
            _ => {
                if tidied.len() > root_bytes {
                    tidied.push('/');
                }
                tidied.push_str(part);
                removable += usize::from(part != "..");
            }
        }
    }
    if tidied.is_empty() {
        tidied.push('.');
    }
    tidied
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_resolve_by_text() {
        let rows = [
            // given, cwd, meant
            ("lib/m.c", None, "lib/m.c"),
            ("./lib/m.c", None, "lib/m.c"),
            ("/p/lib/m.c", None, "/p/lib/m.c"),
            ("lib/m.c", Some("/p"), "/p/lib/m.c"),
            ("./lib//m.c", Some("/p/"), "/p/lib/m.c"),
            ("/p/lib/m.c", Some("/p"), "/p/lib/m.c"),
            ("/q/../p/./lib/m.c", Some("/z"), "/p/lib/m.c"),
            ("../m.c", None, "../m.c"),
            ("../../m.c", Some("/p"), "/m.c"),
            ("a/../../m.c", None, "../m.c"),
            ("a/../../../m.c", None, "../../m.c"),
            ("../a/../b", None, "../b"),
            ("/../m.c", None, "/m.c"),
            ("/a/..", None, "/"),
            ("a/b/", None, "a/b"),
            ("a/..", None, "."),
            (".", None, "."),
            (".", Some("/p"), "/p"),
            ("./", None, "."),
            ("/", Some("/p"), "/"),
            ("//", None, "/"),
            ("", None, ""),
            ("", Some("/p"), ""),
            ("a", Some(""), "a"),
            ("a", Some("sub"), "sub/a"),
            ("...", None, "..."),
            (" a", None, " a"),
            ("Größe/é.ts", Some("/p"), "/p/Größe/é.ts"),
            // Without a Windows folder these are characters of a name.
            ("a\\b", None, "a\\b"),
            ("C:\\a", Some("/p"), "/p/C:\\a"),
            ("src\\m.c", Some("C:\\P"), "c:/p/src/m.c"),
            ("D:\\p\\Src\\a.ts", None, "d:/p/src/a.ts"),
            ("D:/p/src/a.ts", None, "d:/p/src/a.ts"),
            ("src/Größe.ts", None, "src/Größe.ts"),
            ("src/Gro\u{308}ße.ts", None, "src/Größe.ts"),
            ("D:\\x\\.\\m.c", Some("C:\\P"), "d:/x/m.c"),
            ("C:/P/src/../m.c", Some("c:/P"), "c:/p/m.c"),
            ("C:\\..\\..\\m.c", Some("C:\\P"), "c:/m.c"),
            ("..\\..\\..", Some("C:\\P"), "c:/"),
            ("C:", Some("C:\\P"), "c:/"),
            ("/c/m.c", Some("C:\\P"), "/c/m.c"),
            ("m.c", Some("\\\\host\\p"), "/host/p/m.c"),
            ("C:m.c", Some("C:\\P"), "c:/p/c:m.c"),
            // Names that look like a drive or a server, in a folder that is not known.
            ("./\\\\:", None, "./\\\\:"),
            ("./C:/a", None, "./C:/a"),
            ("x/../C:/A/b", None, "./C:/A/b"),
        ];
        for (given, cwd, meant) in rows {
            assert_eq!(resolve(given, cwd), meant, "{given:?} in {cwd:?}");
        }
    }

    #[test]
    fn a_path_ends_in_whole_parts_with_either_separator() {
        for (path, ending, ends) in [
            ("/p/src/a.ts", "src/a.ts", true),
            ("/p/src/a.ts", "./a.ts", true),
            ("/p/src/aa.ts", "a.ts", false),
            ("D:\\p\\src\\a.ts", "src/a.ts", true),
            ("D:\\p\\src\\a.ts", "SRC\\A.ts", true),
            ("D:/p/src/a.ts", "rc/a.ts", false),
            ("/p/src/a.ts", "SRC/a.ts", false),
            ("/p/cafe\u{301}.ts", "café.ts", true),
            ("/p/a.ts", "", false),
        ] {
            assert_eq!(ends_in(path, ending), ends, "{path} {ending}");
        }
    }

    proptest! {
        #[test]
        fn a_resolved_path_stays(given in "[ab./\\\\C:é]{0,16}", cwd in proptest::option::of("(/|C:\\\\)[ab./]{0,8}")) {
            let once = resolve(&given, cwd.as_deref());
            prop_assert_eq!(resolve(&once, cwd.as_deref()), once);
        }
    }
}
