//! The index over sessions, and the picture of a session's tokens.

use acpdb_engine::ids::Seq;
use acpdb_query::export::index_page::{IndexEntry, index};
use acpdb_query::export::poster::poster;
use acpdb_query::filter::Filter;
use expect_test::expect;

use super::browser::{browser, driven};
use super::*;

fn sessions(count: usize) -> Store {
    let store = store();
    for number in 0..count {
        let host = if number % 3 == 0 { "codex" } else { "claude-code" };
        let mut info = StreamInfo::session(host, format!("session-{number}"));
        info.cwd = Some(format!("/home/me/project-{}", number % 4));
        if number % 10 == 9 {
            info.parent = Some((StreamInfo::session("claude-code", "session-1").id(), None));
        }
        let prompt = format!("prompt number {number} </script><b>");
        let batch = Batch { stream: info, entries: exchange(number, &prompt, "/src/a.rs", "text") };
        let _ = store.commit(&[batch], acpdb_engine::Atomicity::Split).unwrap();
    }
    store
}

fn rendered_index(store: &Store) -> String {
    let rows: Vec<_> =
        acpdb_query::sessions(store, Seq::MAX, &Filter::default()).unwrap().map(Result::unwrap).collect();
    let entries: Vec<IndexEntry<'_>> =
        rows.iter().map(|row| IndexEntry { row, file: Some("pages/1-x.html") }).collect();
    let mut out = Vec::new();
    let report = index(&entries, &PageOptions::default(), &mut out).unwrap();
    assert_eq!(report.sessions, rows.len());
    String::from_utf8(out).unwrap()
}

#[test]
fn an_index_holds_a_row_for_each_session_and_no_markup_of_theirs() {
    let page = rendered_index(&sessions(30));
    let (_, behind) = page.split_once("id=\"data\">").unwrap();
    let data: serde_json::Value = serde_json::from_str(behind.split_once("</script>").unwrap().0).unwrap();
    let rows = data["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 30);
    assert_eq!(rows.iter().filter(|row| row[16] == true).count(), 3, "subagents");
    assert!(rows.iter().any(|row| row[2] == "prompt number 7 </script><b>"), "{:?}", rows[7]);
    assert_eq!(page.matches("<script").count(), 2);
    assert!(
        !page.contains("http:")
            || page.matches("http:").count() == page.matches("http://www.w3.org/2000/svg").count()
    );
    assert!(page.contains("default-src 'none'"));
}

#[test]
#[ignore = "needs a browser: chromium"]
fn an_index_is_filtered_ordered_and_summed() {
    let script = "
        const rows = () => document.querySelectorAll('tbody tr').length;
        say('rows', rows() + ' ' + document.querySelector('tfoot td').textContent);
        $('subagents').checked = true; show(); say('with subagents', rows());
        $('subagents').checked = false;
        $('host').value = 'codex'; show(); say('of a host', rows() + ' ' + document.querySelector('tfoot td').textContent + ', ' + $('count').textContent);
        $('host').value = ''; $('search').value = 'number 7 prompt'; show(); say('searched', rows());
        $('search').value = ''; $('project').value = '/home/me/project-2'; show(); say('of a project', rows());
        $('project').value = '';
        const titles = () => [...document.querySelectorAll('td.title')].map(it => it.textContent);
        document.querySelector('th.title button').click();
        say('ordered', titles()[0] < titles()[5] && document.querySelector('th.title').getAttribute('aria-sort'));
        document.querySelector('th.title button').click(); say('and back', titles()[0] > titles()[5]);
        say('a link', document.querySelector('td.title a').getAttribute('href'));
        say('a picture', document.querySelectorAll('.spark path').length === rows());
        say('markup', document.querySelectorAll('td b').length);
    ";
    let driver = script.replace("$('list')", "$('table')");
    expect![[r#"
        rows: 27 27 sessions
        with subagents: 30
        of a host: 9 9 sessions, 9 of 30 sessions
        searched: 3
        of a project: 7
        ordered: ascending
        and back: true
        a link: pages/1-x.html
        a picture: true
        markup: 0
    "#]]
    .assert_eq(&driven(&browser(), &rendered_index(&sessions(30)), &driver, "1200,800"));
}

/// A poster says figures, and nothing that was recorded.
#[test]
fn a_poster_shows_what_was_stale_and_no_text_of_the_session() {
    let store = store();
    let entries = (0..10).flat_map(|n| exchange(n, "a secret plan", "/src/secret.rs", &"line\n".repeat(50)));
    record(&store, &entries.collect::<Vec<_>>());
    let session = store.find_stream("s1").unwrap();
    let mut out = Vec::new();
    let report = poster(&store.view(session.id).unwrap(), "acpdb <b>", &mut out).unwrap();
    let picture = String::from_utf8(out).unwrap();
    assert_eq!(report.turns, 10);
    let share = report.tokens_hidden as f64 * 100.0 / report.tokens_whole as f64;
    assert!((share - report.percent).abs() < 1e-9 && share > 50.0, "{report:?}");
    assert!(picture.contains(&format!("{share:.0} % was stale")), "{picture}");
    assert!(!picture.contains("secret") && !picture.contains("<b>") && picture.contains("acpdb &lt;b&gt;"));
    assert_eq!(picture.matches("<path").count(), 2);
    assert!(!picture.contains("NaN") && !picture.contains("inf"));
}
