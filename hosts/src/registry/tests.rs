use super::*;
use expect_test::{Expect, expect};
use std::fmt::Write as _;

fn describe(host: &str, tool: &str, params: &str) -> String {
    let facts = HostRegistry.tool(host, tool, &Json::parse(params.as_bytes()).unwrap());
    let mut out = format!("{:?}", facts.class).to_lowercase();
    for key in &facts.keys {
        write!(out, " | {:?} {:?} {}", key.kind, key.class, key.given).unwrap();
        if !key.fields.is_empty() {
            write!(out, " {:?}", key.fields).unwrap();
        }
    }
    if !facts.file_params.is_empty() {
        write!(out, " | resolves {:?}", facts.file_params).unwrap();
    }
    if facts.volatile {
        out.push_str(" | volatile");
    }
    if facts.todo != TodoRole::None {
        write!(out, " | todo {:?}", facts.todo).unwrap();
    }
    if let Some(tasks) = facts.tasks {
        write!(out, " tasks {}", String::from_utf8(tasks).unwrap()).unwrap();
    }
    if let Some(todos) = facts.todos {
        write!(out, " {}", String::from_utf8(todos).unwrap()).unwrap();
    }
    if !facts.shown.is_empty() {
        write!(out, " | shows {}", facts.shown.join(" ")).unwrap();
    }
    out
}

fn check(calls: &[(&str, &str, &str)], expected: &Expect) {
    let mut out = String::new();
    for (host, tool, params) in calls {
        writeln!(out, "{host} {tool}: {}", describe(host, tool, params)).unwrap();
    }
    expected.assert_eq(&out);
}

#[test]
fn files_by_host_and_exact_name() {
    check(
        &[
            ("opencode", "read", r#"{"filePath":"a.rs","offset":3}"#),
            ("opencode", "Read", r#"{"filePath":"a.rs","file_path":"a.rs"}"#),
            ("opencode", "edit", r#"{"filePath":""}"#),
            ("opencode", "write", r#"{"filePath":null}"#),
            ("opencode", "multiedit", r#"{"filePath":"a","edits":[{"filePath":"b"},{"filePath":"a"},{}]}"#),
            ("claude-code", "Read", r#"{"file_path":"/a"}"#),
            ("claude-code", "NotebookEdit", r#"{"notebook_path":"/n.ipynb"}"#),
            ("gemini-cli", "read_file", r#"{"absolute_path":"/a","path":"b"}"#),
            ("gemini-cli", "read_many_files", r#"{"paths":["a","b","a"]}"#),
            ("gemini-cli", "replace", r#"{"file_path":"a"}"#),
            ("copilot-cli", "edit", r#"{"path":"a"}"#),
            ("acpdb", "edit", r#"{"filePath":"a"}"#),
            ("acpdb", "Edit", r#"{"file_path":"a"}"#),
            ("other", "read", r#"{"filePath":"a"}"#),
        ],
        &expect![[r#"
            opencode read: read | File Read a.rs | resolves ["filePath"] | shows filePath
            opencode Read: other
            opencode edit: edit
            opencode write: write
            opencode multiedit: edit | File Edit a | File Edit b | resolves ["filePath", "edits[].filePath"] | shows filePath
            claude-code Read: read | File Read /a | resolves ["file_path"] | shows file_path
            claude-code NotebookEdit: edit | File Edit /n.ipynb | resolves ["notebook_path"] | shows notebook_path
            gemini-cli read_file: read | File Read /a | resolves ["absolute_path"] | shows absolute_path
            gemini-cli read_many_files: read | File Read a | File Read b | resolves ["paths[]"] | shows paths[]
            gemini-cli replace: edit | File Edit a | resolves ["file_path"] | shows file_path
            copilot-cli edit: edit | File Edit a | resolves ["path"] | shows path
            acpdb edit: edit | File Edit a | resolves ["filePath"] | shows filePath
            acpdb Edit: edit | File Edit a | resolves ["file_path"] | shows file_path
            other read: read | File Read a | resolves ["filePath"] | shows filePath
        "#]],
    );
}

#[test]
fn agents_of_ones_own_have_general_names() {
    check(
        &[
            ("my-agent", "read", r#"{"path":"a"}"#),
            ("my-agent", "read", r#"{"path":"/w","filePath":"a"}"#),
            ("my-agent", "read", r#"{"book":"a"}"#),
            ("my-agent", "write_file", r#"{"file_path":"a","content":"x"}"#),
            ("my-agent", "read_multiple_files", r#"{"paths":["a","b"]}"#),
            ("my-agent", "delete_file", r#"{"target_file":"a"}"#),
            (
                "my-agent",
                "str_replace_based_edit_tool",
                r#"{"command":"view","path":"a","view_range":[1,9]}"#,
            ),
            ("my-agent", "str_replace_based_edit_tool", r#"{"command":"create","path":"a","file_text":"x"}"#),
            ("my-agent", "str_replace_editor", r#"{"command":"str_replace","path":"a","old_str":"x"}"#),
            ("my-agent", "str_replace_editor", r#"{"command":"annotate","path":"a"}"#),
            ("my-agent", "str_replace_editor", r#"{"command":["view"],"path":7}"#),
            ("my-agent", "grep", r#"{"pattern":"x","glob":"*.py"}"#),
            ("my-agent", "execute", r#"{"command":"cat a"}"#),
            ("my-agent", "execute", r#"{"sql":"select 1"}"#),
            ("my-agent", "write_todos", r#"{"todos":[{"content":"a","status":"pending"}]}"#),
            ("my-agent", "bash", r#"{"command":"ls"}"#),
            ("openai-messages", "edit_file", r#"{"path":"a"}"#),
            ("openai-messages", "Edit", r#"{"file_path":"a"}"#),
            ("codex", "edit_file", r#"{"path":"a"}"#),
        ],
        &expect![[r#"
            my-agent read: read | File Read a | resolves ["path"] | shows path
            my-agent read: read | File Read a | resolves ["filePath"] | shows filePath
            my-agent read: read
            my-agent write_file: write | File Write a | resolves ["file_path"] | shows file_path
            my-agent read_multiple_files: read | File Read a | File Read b | resolves ["paths[]"] | shows paths[]
            my-agent delete_file: delete | File Delete a | resolves ["target_file"] | shows target_file
            my-agent str_replace_based_edit_tool: read | File Read a | resolves ["path"] | shows command path
            my-agent str_replace_based_edit_tool: write | File Write a | resolves ["path"] | shows command path
            my-agent str_replace_editor: edit | File Edit a | resolves ["path"] | shows command path
            my-agent str_replace_editor: other | File Other a | resolves ["path"] | shows command path
            my-agent str_replace_editor: other | resolves ["path"] | shows command path
            my-agent grep: search | Search Search grep::x:*.py ["grep", "", "x", "*.py"] | shows pattern include glob type path
            my-agent execute: other | Exec Other cat a | File Other a | shows command
            my-agent execute: other | shows command
            my-agent write_todos: other | todo Write [{"content":"a","status":"pending"}]
            my-agent bash: other | Exec Other ls | State Other bash:ls ["bash:ls"] | shows command description
            openai-messages edit_file: edit | File Edit a | resolves ["path"] | shows path
            openai-messages Edit: other
            codex edit_file: other
        "#]],
    );
}

#[test]
fn patches_name_several_files() {
    let patch = "*** Begin Patch\\n*** Update File: a.rs \\n@@\\n+ *** Add File: no\\n*** Update File: b.rs\\n\
                 *** Move to: c.rs\\n*** Add File: d.rs\\r\\n+x\\n*** Delete File: e.rs\\n*** Update File: a.rs\\n*** End Patch";
    check(
        &[
            ("opencode", "apply_patch", &format!(r#"{{"patchText":"{patch}"}}"#)),
            ("codex", "apply_patch", &format!(r#""{patch}""#)),
            ("copilot-cli", "apply_patch", &format!(r#""{patch}""#)),
            (
                "codex",
                "shell_command",
                r#"{"command":"apply_patch <<'X'\n*** Begin Patch\n*** Add File: z\n+1\n*** End Patch\nX"}"#,
            ),
            ("codex", "shell", r#"{"command":["bash","-lc","ls src"]}"#),
            ("codex", "apply_patch", r#"{"input":"no patch"}"#),
        ],
        &expect![[r#"
            opencode apply_patch: edit | File Edit a.rs | File Delete b.rs | File Write c.rs | File Write d.rs | File Delete e.rs | shows patchText
            codex apply_patch: edit | File Edit a.rs | File Delete b.rs | File Write c.rs | File Write d.rs | File Delete e.rs
            copilot-cli apply_patch: edit | File Edit a.rs | File Delete b.rs | File Write c.rs | File Write d.rs | File Delete e.rs
            codex shell_command: edit | File Write z | Exec Other apply_patch <<'X'
            *** Begin Patch
            *** Add File: z
            +1
            *** End Patch
            X | shows command
            codex shell: other | Exec Other ls src | State Other bash:ls ["bash:ls", "src"] | shows command
            codex apply_patch: edit | shows input
        "#]],
    );
}

#[test]
fn searches_are_compared_field_by_field() {
    check(
        &[
            ("opencode", "glob", r#"{"pattern":"*.rs"}"#),
            ("opencode", "grep", r#"{"pattern":"x:y","path":"/s","include":"*.rs"}"#),
            ("opencode", "list", r#"{"path":"/s"}"#),
            ("claude-code", "Grep", r#"{"pattern":"x","glob":"*.rs","type":"rust","-A":3}"#),
            ("gemini-cli", "list_directory", r#"{"dir_path":"d"}"#),
        ],
        &expect![[r#"
            opencode glob: search | Search Search glob::*.rs ["glob", "", "*.rs", ""] | shows pattern path
            opencode grep: search | Search Search grep:/s:x:y:*.rs ["grep", "/s", "x:y", "*.rs"] | shows pattern include path
            opencode list: search | Search Search list:/s ["list", "/s", "", ""] | shows path
            claude-code Grep: search | Search Search grep::x:*.rs rust ["grep", "", "x", "*.rs rust"] | shows pattern glob type path
            gemini-cli list_directory: search | Search Search list:d ["list", "d", "", ""] | shows dir_path
        "#]],
    );
}

#[test]
fn commands_addresses_and_questions() {
    check(
        &[
            ("opencode", "bash", r#"{"command":"git status --short src","description":"d"}"#),
            ("opencode", "bash", r#"{"command":"ls -la a b","workdir":"/w"}"#),
            ("opencode", "bash", r#"{"command":"pwd"}"#),
            ("opencode", "bash", r#"{"command":"pwd -P x"}"#),
            ("opencode", "bash", r#"{"command":"ls | wc"}"#),
            ("opencode", "bash", r#"{"command":"git push"}"#),
            ("opencode", "bash", r#"{"command":""}"#),
            ("opencode", "bash", r#"{"command":"cat src/a.rs","workdir":"/w"}"#),
            ("codex", "shell_command", r#"{"command":"nl -ba src/a.rs | sed -n '1,9p'"}"#),
            ("codex", "shell", r#"{"command":["bash","-lc","rg -n needle src/a.rs"]}"#),
            ("codex", "shell_command", r#"{"command":"cat a.rs && make"}"#),
            ("opencode", "webfetch", r#"{"url":"https://example.com","format":"text"}"#),
            ("opencode", "websearch", r#"{"query":"rust redb","n":5}"#),
            ("claude-code", "WebFetch", r#"{"url":"https://example.com","prompt":"p"}"#),
            ("claude-code", "TaskOutput", r#"{"task_id":"1"}"#),
            ("codex", "write_stdin", r#"{"chars":""}"#),
        ],
        &expect![[r#"
            opencode bash: other | Exec Other git status --short src | State Other bash:git:status ["bash:git:status", "src"] | shows command description
            opencode bash: other | Exec Other ls -la a b | State Other bash:ls ["bash:ls", "a", "b", "in /w"] | shows command description
            opencode bash: other | Exec Other pwd | State Other bash:pwd ["bash:pwd"] | shows command description
            opencode bash: other | Exec Other pwd -P x | shows command description
            opencode bash: other | Exec Other ls | wc | shows command description
            opencode bash: other | Exec Other git push | shows command description
            opencode bash: other | shows command description
            opencode bash: other | Exec Other cat src/a.rs | File Other /w/src/a.rs | shows command description
            codex shell_command: other | Exec Other nl -ba src/a.rs | sed -n '1,9p' | File Other src/a.rs | shows command
            codex shell: other | Exec Other rg -n needle src/a.rs | File Other src/a.rs | shows command
            codex shell_command: other | Exec Other cat a.rs && make | shows command
            opencode webfetch: other | Url Other https://example.com | shows url
            opencode websearch: other | Url Other search:rust redb | shows query
            claude-code WebFetch: other | shows url
            claude-code TaskOutput: other | volatile
            codex write_stdin: other | volatile
        "#]],
    );
}

#[test]
fn todo_lists_have_one_form() {
    check(
        &[
            (
                "claude-code",
                "TodoWrite",
                r#"{"todos":[{"content":"a","status":"pending","activeForm":"b"},{"content":"c"}]}"#,
            ),
            ("claude-code", "TodoWrite", r#"{"todos":["a"]}"#),
            ("claude-code", "TaskUpdate", r#"{"taskId":"3","status":"completed"}"#),
            ("claude-code", "TaskList", "{}"),
            ("codex", "update_plan", r#"{"plan":[{"step":"s","status":"in_progress"}]}"#),
            ("gemini-cli", "write_todos", r#"{"todos":[{"description":"d","status":"blocked"}]}"#),
            ("gemini-cli", "tracker_create_task", "{}"),
            ("opencode", "todowrite", r#"{"todos":[]}"#),
            ("opencode", "todoread", "{}"),
            (
                "my-agent",
                "SigmaTaskUpdate",
                r#"{"todos":[{"id":1,"status":"completed","result_summary":"r","acceptance_criteria":["c"]}]}"#,
            ),
            ("my-agent", "SigmaTaskUpdate", r#"{"todos":"none"}"#),
        ],
        &expect![[r#"
            claude-code TodoWrite: other | todo Write [{"content":"a","status":"pending","activeForm":"b"},{"content":"c","status":"pending"}]
            claude-code TodoWrite: other | todo Write
            claude-code TaskUpdate: other | Task Other 3 | todo Delta
            claude-code TaskList: other | todo Read
            codex update_plan: other | todo Write [{"content":"s","status":"in_progress"}]
            gemini-cli write_todos: other | todo Write [{"content":"d","status":"blocked"}]
            gemini-cli tracker_create_task: other | todo Delta
            opencode todowrite: other | todo Write
            opencode todoread: other | todo Read
            my-agent SigmaTaskUpdate: other | todo Delta tasks {"tasks":[{"id":1,"status":"completed","result_summary":"r","acceptance_criteria":["c"]}]}
            my-agent SigmaTaskUpdate: other | todo Delta
        "#]],
    );
    let output = br#"[ {"priority":"high","status":"pending","content":"a","id":"1"} ]"#;
    let list = HostRegistry.todos_in_output("opencode", "todowrite", output).unwrap();
    assert_eq!(list, br#"[{"content":"a","status":"pending","priority":"high","id":"1"}]"#);
    assert_eq!(HostRegistry.todos_in_output("opencode", "todowrite", b"Updated."), None);
    assert_eq!(HostRegistry.todos_in_output("claude-code", "TodoWrite", output), None);
}

#[test]
fn keys_have_limits() {
    let long = format!(r#"{{"command":"{}"}}"#, "x".repeat(KEY_BYTES_MAX + 1));
    assert_eq!(describe("opencode", "bash", &long), "other | shows command description");
    let mut patch = String::from("*** Begin Patch");
    for file in 0..3000 {
        write!(patch, "\\n*** Add File: {file}{}", "y".repeat(200)).unwrap();
    }
    let params = Json::parse(format!("\"{patch}\"").as_bytes()).unwrap();
    let keys = HostRegistry.tool("codex", "apply_patch", &params).keys;
    let bytes: usize = keys.iter().map(|key| key.given.len()).sum();
    assert!((KEYS_BYTES_MAX..KEYS_BYTES_MAX + KEY_BYTES_MAX).contains(&bytes), "{bytes}");
}
