//! Compactions of a running host: the index that the model gets, the list for people, and the status line.

use serde_json::{Value, json};

use super::{Desk, file, finish, long, numbered};

/// After a compaction the model knew of nothing that it had seen, and had no way to it: users of these hosts ask for nothing more often.
#[test]
fn after_a_compaction_the_model_is_given_an_index_once_and_what_it_names_comes_back() {
    let mut desk = Desk::new();
    desk.prompt("Find the magic word.");
    desk.asks("c1", "Read", &json!({"file_path": "/p/long.py"}));
    desk.gets("c1", &numbered(&long()), &file(&long()));
    desk.asks("c2", "Bash", &json!({"command": "cargo test"}));
    let block = json!({"type": "tool_result", "tool_use_id": "c2", "content": "error: no magic here", "is_error": true});
    desk.write("user", &json!({"role": "user", "content": [block]}), &json!({}));
    desk.says("We decided to use PostgreSQL for the store.");
    assert_eq!(desk.hook("suggest", "Stop", &json!({})), json!({}));
    let nothing = json!({});
    assert_eq!(
        desk.hook("suggest", "UserPromptSubmit", &json!({"prompt": "Go on."})),
        nothing,
        "nothing left yet"
    );
    let more = json!({"subtype": "compact_boundary", "content": "Conversation compacted",
        "compactMetadata": {"trigger": "manual", "preTokens": 5000}, "logicalParentUuid": format!("u{}", desk.lines)});
    desk.write("system", &Value::Null, &more);
    desk.write(
        "user",
        &json!({"role": "user", "content": "This session is being continued from a previous conversation."}),
        &json!({"isCompactSummary": true}),
    );
    assert_eq!(
        desk.hook("record", "SessionStart", &json!({"source": "compact"})),
        nothing,
        "record tells nothing"
    );
    let told = desk.hook("suggest", "SessionStart", &json!({"source": "compact"}));
    let index = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned();
    for part in ["/p/long.py", "cargo test", "no magic here", "Find the magic word.", "PostgreSQL", "recall"]
    {
        assert!(index.contains(part), "{part}: {index}");
    }
    // The list for people has the same rows, and more of them.
    let listed = desk.ok(&["lost", "s1"]);
    let answer: Value = serde_json::from_str(&desk.ok(&["lost", "s1", "--json"])).unwrap();
    assert_eq!(desk.ok(&["lost", "s1", "--index"]).trim_end(), index.trim_end());
    let file = answer["items"].as_array().unwrap().iter().find(|row| row["kind"] == "file").unwrap();
    assert!(listed.contains("claude --resume s1") && listed.contains("acpdb resume s1 --at"), "{listed}");
    // Each id leads back to the exact text: for people, and for the model.
    let id = file["recall"].as_str().unwrap();
    assert!(index.contains(&format!("- {id} read /p/long.py")), "{index}");
    assert!(desk.ok(&["show", id]).contains("value_39 = compute(39, other_39)"));
    // It is given once, whatever the host records of it.
    let prompt = json!({"prompt": "Go on."});
    assert_eq!(desk.hook("suggest", "UserPromptSubmit", &prompt), nothing, "it is told already");
}

/// A host shows nothing of a program that fails, and an own line only as far as it is short.
#[test]
fn the_status_line_is_one_line_whatever_it_is_given() {
    let mut desk = Desk::new();
    let told = json!({"session_id": "s1", "cwd": desk.path("project"), "cost": {"total_cost_usd": 0.53},
        "context_window": {"used_percentage": 42.0, "context_window_size": 200_000}});
    let line = |desk: &Desk, stdin: &str| {
        let done = desk.run(&["statusline"], stdin);
        assert_eq!((done.code, &*done.err), (0, ""), "{done:?}");
        assert!(done.out.lines().count() == 1 && done.out.chars().count() <= 81, "{done:?}");
        done.out.trim_end().to_owned()
    };
    assert_eq!(line(&desk, &told.to_string()), "ctx 42% of 200k · $0.53", "before there is a store");
    assert!(!desk.path("store").exists(), "a line makes no store");
    for call in ["c1", "c2"] {
        desk.asks(call, "Read", &json!({"file_path": "/p/long.py"}));
        desk.gets(call, &numbered(&long()), &file(&long()));
    }
    desk.hook("record", "Stop", &json!({}));
    let said = line(&desk, &told.to_string());
    assert!(said.starts_with("ctx 42% of 200k · $0.53 · ") && said.ends_with(" stale"), "{said}");
    for strange in ["", "{", "[]", "null", "{\"session_id\":7}", "{\"session_id\":\"no such\"}", "\u{0}"] {
        line(&desk, strange);
    }
    std::fs::remove_dir_all(desk.path("store")).unwrap();
    std::fs::write(desk.path("store"), "no store").unwrap();
    assert_eq!(line(&desk, &told.to_string()), "ctx 42% of 200k · $0.53", "a store that cannot be read");
}

/// Without a store that is known, the line still has what the host tells.
#[test]
fn the_status_line_ends_well_whatever_names_the_store() {
    let mut desk = Desk::new();
    desk.prompt("Go on.");
    desk.hook("record", "Stop", &json!({}));
    let other = desk.path("other");
    desk.ok(&["--db", other.to_str().unwrap(), "import", desk.path("s1.jsonl").to_str().unwrap()]);
    let told = json!({"session_id": "s1", "context_window": {"used_percentage": 42.0}}).to_string();
    let line = |named: &str| {
        let done = finish(desk.command(&["statusline"]).env("ACPDB_PATH", named), &told);
        assert_eq!((done.code, &*done.out, &*done.err), (0, "ctx 42%\n", ""), "{named}: {done:?}");
    };
    let folder = desk.path("").display().to_string();
    for named in [
        &format!("{folder}store:{folder}other"),
        &format!("{folder}store:{folder}none"),
        &folder,
        "s3://bucket/team",
        "file:///nowhere/at/all",
        "other://place",
    ] {
        line(named);
    }
    let settings = desk.path("home/.config/acpdb/config.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    for text in ["db = [", "color = 7\n"] {
        std::fs::write(&settings, text).unwrap();
        line(&format!("{folder}store"));
    }
}

/// Hooks recorded into a store that the line did not find: it looked below the agent's folder, and the hook where the host runs it.
#[test]
fn the_status_line_reads_the_store_that_hooks_fill() {
    let mut desk = Desk::new();
    std::fs::create_dir_all(desk.path("project/deeper/still")).unwrap();
    for call in ["c1", "c2"] {
        desk.asks(call, "Read", &json!({"file_path": "/p/long.py"}));
        desk.gets(call, &numbered(&long()), &file(&long()));
    }
    desk.hook("record", "Stop", &json!({}));
    let told = |folder: &str| json!({"session_id": "s1", "cwd": desk.path(folder)}).to_string();
    for folder in ["project", "project/deeper/still", "project/gone/long ago"] {
        let mut named = desk.command(&["statusline"]);
        let mut by_option = desk.command(&["statusline", "--db", "../store"]);
        by_option.env_remove("ACPDB_PATH");
        for command in [named.env("ACPDB_PATH", "../store"), &mut by_option] {
            let done = finish(command, &told(folder));
            assert!(done.out.ends_with(" stale\n") && done.code == 0, "{folder}: {done:?}");
        }
    }
    // Without a name the search goes up from the agent's folder, or from what is left above it.
    let store = desk.path("project/deeper/.acpdb");
    std::fs::rename(desk.path("store"), &store).unwrap();
    // A store that came from elsewhere is not used unasked.
    assert_eq!(
        finish(desk.command(&["statusline"]).env_remove("ACPDB_PATH"), &told("project/deeper/still")).out,
        "\n"
    );
    let trusted = finish(&mut desk.command(&["config", "trust", store.to_str().unwrap()]), "");
    assert_eq!(trusted.code, 0, "{trusted:?}");
    for (folder, is_found) in
        [("project/deeper/still", true), ("project/deeper/gone/long ago", true), ("project/gone", false)]
    {
        let done = finish(desk.command(&["statusline"]).env_remove("ACPDB_PATH"), &told(folder));
        assert_eq!(done.out.ends_with(" stale\n"), is_found, "{folder}: {done:?}");
    }
}

/// With two stores each line put its sum in the place of the other's, so that every line read all requests.
#[test]
fn the_sum_of_a_day_is_kept_for_each_store() {
    let mut desk = Desk::new();
    desk.prompt("Go on.");
    desk.hook("record", "Stop", &json!({}));
    let (first, second) = (desk.path("store"), desk.path("second"));
    desk.ok(&["--db", second.to_str().unwrap(), "import", desk.path("s1.jsonl").to_str().unwrap()]);
    let line = |store: &std::path::Path| {
        let done = finish(desk.command(&["statusline"]).env("ACPDB_PATH", store), "{}");
        assert_eq!(done.code, 0, "{done:?}");
        done.out
    };
    for store in [&first, &second, &first] {
        assert!(!line(store).contains("today"), "nothing was paid");
    }
    // A sum that no requests give can only come from what is kept.
    let file = desk.path("home/.local/state/acpdb/today.json");
    let kept = std::fs::read_to_string(&file).unwrap();
    let changed = kept.replace("\"dollars\":0.0", "\"dollars\":7.0");
    std::fs::write(&file, &changed).unwrap();
    for store in [&first, &second, &first] {
        assert!(line(store).contains("today $7.00"), "{changed}");
    }
    // A damaged file keeps nothing, and is made anew; nor does one of another day.
    for other in ["{".to_owned(), changed.replace("\"day\":\"2", "\"day\":\"1")] {
        std::fs::write(&file, other).unwrap();
        assert!(!line(&first).contains("today"));
        assert_eq!(std::fs::read_to_string(&file).unwrap().matches("\"store\"").count(), 1);
    }
}
