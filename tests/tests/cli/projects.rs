//! Projects whose folder was moved: what goes by the new name, and that renaming back brings back what was there.

use serde_json::Value;

use crate::world::World;

fn session(world: &World, id: &str, folder: &str) {
    let line = serde_json::json!({
        "host": "my-agent", "session": id, "project": folder, "cwd": folder,
        "message": {"role": "user", "text": format!("words of {id}")},
    });
    world.run_with(&["append", "--stdin"], format!("{line}\n")).ok();
}

fn json(world: &World, arguments: &[&str]) -> Value {
    let ran = world.run(&[arguments, &["--json", "-q"]].concat());
    assert!([0, 1].contains(&ran.code), "{arguments:?}: {ran:?}");
    serde_json::from_slice(&ran.out).unwrap()
}

/// Each session with its project.
fn projects(world: &World) -> Vec<(String, String)> {
    let items = json(world, &["sessions"]);
    let text = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().to_owned();
    let items = items["items"].as_array().unwrap().iter();
    let mut rows: Vec<_> = items.map(|item| (text(item, "id"), text(item, "project"))).collect();
    rows.sort();
    rows
}

fn values(world: &World, project: &str) -> Vec<String> {
    let items = json(world, &["memory", "list", "--project", project]);
    items["items"].as_array().unwrap().iter().map(|item| item["value"].as_str().unwrap().to_owned()).collect()
}

fn found(world: &World, filter: &str) -> Vec<String> {
    let items = json(world, &["sessions", filter]);
    let items = items["items"].as_array().unwrap().iter();
    let mut names: Vec<_> = items.map(|item| item["id"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

fn pairs(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(one, two)| ((*one).to_owned(), (*two).to_owned())).collect()
}

#[test]
fn a_moved_folder_is_told_and_told_back() {
    for (old, below, worktree, new, new_below, other) in [
        (
            "/old/app",
            "/old/app/lib",
            "/old/app/.claude/worktrees/x",
            "/new/app",
            "/new/app/lib",
            "/old/apple",
        ),
        (r"D:\LD\P", "d:/ld/p/Lib", r"D:/LD/P\.worktrees\x", r"e:\p", r"e:\p\lib", r"D:\LD\Pear"),
    ] {
        let world = World::new();
        for (id, folder) in [("s1", old), ("s2", below), ("s3", worktree), ("s4", other)] {
            session(&world, id, folder);
        }
        world.run(&["memory", "add", "preference", "style/indent", "two spaces", "--project", old]).ok();
        let listed = projects(&world);
        world.run(&["project", "rename", old, new]).ok();
        let other_name = listed[3].1.clone();
        let moved = [("s1", new), ("s2", new_below), ("s3", new), ("s4", other_name.as_str())];
        assert_eq!(projects(&world), pairs(&moved));
        assert_eq!(values(&world, new), ["two spaces"]);
        assert_eq!(values(&world, old), ["two spaces"], "the old name leads to the same memory");
        assert_eq!(found(&world, &format!("project:\"{new}\"")), ["s1", "s2", "s3"]);
        // Words of a condition may stand anywhere in a name.
        assert_eq!(found(&world, &format!("project:\"{old}\"")), ["s4"]);

        // Both names lead to one project afterwards.
        world.run(&["memory", "add", "preference", "style/indent", "tabs", "--project", new]).ok();
        world.run(&["memory", "add", "preference", "style/quotes", "single", "--project", old]).ok();
        assert_eq!(values(&world, new), ["tabs", "single"]);
        session(&world, "s5", old);
        session(&world, "s6", new);
        assert_eq!(projects(&world)[4..], pairs(&[("s5", new), ("s6", new)]));
        world.run(&["verify"]).ok();

        // The folder goes back, and its name is typed in another spelling.
        world.run(&["project", "rename", &format!("{new}/"), old]).ok();
        let back = projects(&world);
        assert_eq!(back[..4], listed);
        assert_eq!((&back[4].1, &back[5].1), (&listed[0].1, &listed[0].1));
        let mut remembered = values(&world, old);
        remembered.sort();
        assert!(remembered.contains(&"single".to_owned()) && remembered.len() == 2, "{remembered:?}");
    }
}

#[test]
fn two_projects_that_were_made_one_are_separated_again() {
    let world = World::new();
    session(&world, "s1", "/a");
    session(&world, "s2", "/b");
    world.run(&["memory", "add", "decision", "of a", "--project", "/a"]).ok();
    world.run(&["memory", "add", "decision", "of b", "--project", "/b"]).ok();
    let listed = projects(&world);
    let ran = world.run(&["project", "rename", "/a", "/b"]);
    assert!(ran.err.contains("project rename /a /a"), "{ran:?}");
    assert_eq!(projects(&world), pairs(&[("s1", "/b"), ("s2", "/b")]));
    assert_eq!(values(&world, "/b"), ["of a", "of b"]);
    let list = json(&world, &["project", "list"]);
    assert_eq!(list["items"][0]["sessions"], 2, "{list}");
    assert_eq!(list["items"][0]["names_before"], serde_json::json!(["/a"]), "{list}");
    world.run(&["project", "rename", "/a", "/a"]).ok();
    assert_eq!(projects(&world), listed);
    assert_eq!(values(&world, "/a"), ["of a"]);
    assert_eq!(values(&world, "/b"), ["of b"]);

    let ran = world.run(&["project", "rename", "/nowhere", "/c"]);
    assert_eq!(ran.code, 7, "{ran:?}");
}

#[test]
fn the_cost_of_a_moved_project_stands_in_one_row() {
    let world = World::new();
    world.run(&["import", crate::world::SESSION, "-q"]).ok();
    let rows = |world: &World| json(world, &["cost", "--by", "project"])["items"].clone();
    let before = rows(&world);
    let folder = before[0]["key"].as_str().unwrap().to_owned();
    world.run(&["project", "rename", &folder, "/srv/moved"]).ok();
    assert_eq!(rows(&world)[0]["key"], "/srv/moved");
    // The file says nothing new when it is read again.
    world.run(&["import", crate::world::SESSION, "-q"]).ok();
    assert_eq!(rows(&world)[0]["key"], "/srv/moved");
    world.run(&["project", "rename", "/srv/moved", &folder]).ok();
    assert_eq!(rows(&world), before);
}

/// A program could not tell which project a remembered item is of, and only acts knew an item by its words.
#[test]
fn what_several_projects_remember_has_its_project_and_is_named_by_its_words() {
    let world = World::new();
    world.run(&["memory", "add", "preference", "style/indent", "tabs", "--project", "/a"]).ok();
    world.run(&["memory", "add", "fact", "the port is 9090", "--project", "/b"]).ok();
    world.run(&["memory", "add", "decision", "Jobs wait in Redis", "--project", "/b"]).ok();
    world
        .run(&["memory", "add", "decision", "Jobs wait in Kafka", "--project", "/b", "--replaces", "redis"])
        .ok();
    let all = json(&world, &["memory", "list"]);
    let row = |item: &Value| {
        (item["project"].as_str().unwrap().to_owned(), item["value"].as_str().unwrap().to_owned())
    };
    let mut rows: Vec<_> = all["items"].as_array().unwrap().iter().map(row).collect();
    rows.sort();
    assert_eq!(rows, pairs(&[("/a", "tabs"), ("/b", "Jobs wait in Kafka"), ("/b", "the port is 9090")]));
    let of = |words: &[&str]| world.run(&[words, &["--project", "/b"]].concat());
    assert_eq!(of(&["memory", "get", "port"]).ok(), "the port is 9090\n");
    let chain = of(&["memory", "history", "kafka"]).ok();
    assert!(chain.contains("Redis") && chain.contains("superseded by d2"), "{chain}");
    let chain = world.run(&["history", "--chain", "Jobs wait in Kafka"]).ok();
    assert!(chain.contains("Redis") && chain.contains("superseded by d2"), "{chain}");
    of(&["memory", "get", "jobs wait in redis"]).says(7, &["jobs wait in redis"]);
}
