//! Todo lists: the list that a host keeps beside its sessions equals the one in its calls, so nothing has to be read
//! from there.

use acpdb_hosts::sqlite::{Database, Source, SqlValue};
use acpdb_query::todos;
use acpdb_tests::support::bytes_of;

use super::scenes::{folder, imported};

/// The rows of the table `todo`: session, position, content, status, priority.
fn kept(scene: &str) -> Vec<(String, i64, [String; 3])> {
    let bytes = bytes_of(&folder().join(scene).join("recording/opencode.db")).unwrap();
    let file: &dyn Source = &&bytes[..];
    let database = Database::open(file, None).unwrap();
    let tables = database.tables().unwrap();
    let table = tables.iter().find(|table| table.name == "todo").unwrap();
    let places =
        table.places(["session_id", "position", "content", "status", "priority"]).map(Option::unwrap);
    let mut rows = Vec::new();
    let mut each = |_, row: Vec<SqlValue>| {
        let [session, position, words @ ..] = places.map(|place| row[place].clone());
        let words = words.map(|word| word.text().unwrap().to_owned());
        rows.push((session.text().unwrap().to_owned(), position.integer().unwrap(), words));
        Ok(())
    };
    database.rows(table, &mut each).unwrap();
    rows.sort();
    rows
}

#[test]
fn the_table_of_todos_says_what_the_calls_said() {
    let mut row_count = 0;
    for scene in
        ["opencode/main", "opencode/chat", "opencode/responses", "opencode/compact", "opencode/agent"]
    {
        let played = imported(scene);
        let mut told = Vec::new();
        for stream in played.store.stream_names().unwrap() {
            let view = played.store.view(stream.id).unwrap();
            for entry in todos::list(&view).unwrap().entries {
                let priority = entry.priority.unwrap_or_default();
                told.push((
                    stream.name.clone(),
                    i64::from(entry.position),
                    [entry.content, entry.status, priority],
                ));
            }
        }
        told.sort();
        let kept = kept(scene);
        row_count += kept.len();
        assert_eq!(told, kept, "{scene}");
    }
    assert_eq!(row_count, 8, "four sessions with a list of two");
}
