use super::*;

fn cut(text: &str, files: &[&str]) -> Option<String> {
    let files = files.iter().map(|file| (*file).to_owned()).collect();
    FirstAndTouched { files }.cut(text.as_bytes())
}

#[test]
fn a_list_keeps_its_first_lines_and_those_that_name_files() {
    let lines: Vec<String> =
        (0..40).map(|n| format!("./src/part{n}.rs:{n}: a line with some words in it")).collect();
    let text = lines.join("\n");
    for (files, named) in [
        (&["/p/src/part30.rs"][..], &["part30.rs"][..]),
        (&["src/part30.rs", "part31.rs"], &["part30.rs", "part31.rs"]),
        (&["art30.rs", "/p/other/part30.rs", "src/part99.rs", ""], &[]),
        (&[], &[]),
    ] {
        let short = cut(&text, files).unwrap();
        assert!(short.starts_with(&lines[0]) && short.len() < text.len(), "{short}");
        let told = short.lines().last().unwrap();
        let left_out = 40 - (short.lines().count() - 1);
        assert_eq!(told, format!("[... {left_out} more lines left out: search again]"));
        for n in 25..40 {
            let name = format!("part{n}.rs");
            assert_eq!(short.contains(&name), named.contains(&&*name), "{name} in {short}");
        }
    }
    // Nothing to leave out, or a result that is longer.
    assert_eq!(cut("a\nb", &[]), None);
    assert_eq!(cut("", &[]), None);
}
