//! The page in a browser without a window. They are run by `--ignored` where there is one.
//!
//! A second script is let in, which acts as a person would and reports what it sees.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use acpdb_engine::entry::fact;
use expect_test::expect;

use super::*;

/// Names under which the browser is known.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

pub(super) fn browser() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).flat_map(|folder| NAMES.map(|name| folder.join(name)));
    found.into_iter().find(|path| path.is_file()).unwrap_or_else(|| panic!("none of {}", NAMES.join(", ")))
}

/// The document after its scripts have run, as HTML.
pub(super) fn dumped(browser: &Path, page: &str, size: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, page).unwrap();
    let mut command = Command::new("timeout");
    command.arg("120").arg(browser).args(["--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
    command.args(["--virtual-time-budget=20000", "--no-first-run", "--disable-extensions"]);
    command.arg(format!("--window-size={size}"));
    command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
    let done = command.arg(format!("file://{}", file.display())).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Lets a script act on the page, and returns its report.
pub(super) fn driven(browser: &Path, page: &str, script: &str, size: &str) -> String {
    let driver = format!(
        "const out = []; const say = (what, is) => out.push(what + ': ' + is);\n\
         const frame = () => {{ $('list').dispatchEvent(new Event('scroll')); return new Promise(done => setTimeout(done, 20)); }};\n\
         const press = key => document.body.dispatchEvent(new KeyboardEvent('keydown', {{ key, bubbles: true }}));\n\
         (async () => {{ {script} }})().catch(error => say('failed', error.stack)).then(() => {{\n\
         document.body.textContent = '[[[\\n' + out.join('\\n') + '\\n]]]'; }});"
    );
    let page = page.replacen("script-src '", "script-src 'nonce-test' '", 1);
    let page = page.replacen("</body>", &format!("<script nonce=\"test\">{driver}</script></body>"), 1);
    let html = dumped(browser, &page, size);
    let said = html.split_once("[[[\n").and_then(|(_, rest)| rest.split_once("]]]")).map(|(said, _)| said);
    said.unwrap_or_else(|| panic!("the script said nothing: {html}"))
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// The style and the script are allowed by their own digests: as it is written, the page shows its rows, and recorded
/// scripts do not run.
#[test]
#[ignore = "needs a browser: chromium"]
fn the_page_runs_as_it_is_and_what_was_recorded_does_not() {
    let browser = browser();
    let store = store();
    let hostile =
        "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">";
    record(&store, &exchange(0, hostile, hostile, hostile));
    let html = dumped(&browser, &rendered(&store), "1200,800");
    assert!(html.contains("class=\"said user"), "the conversation is shown: {html}");
    assert!(html.contains("&lt;/script&gt;&lt;script&gt;document.title"), "as text");
    assert!(!html.contains("<img") && !html.contains("<title>taken"), "nothing of it is markup");
    assert!(html.contains("--back"), "the style is there");
}

#[test]
#[ignore = "needs a browser: chromium"]
fn ten_thousand_events_are_scrolled_searched_and_followed() {
    let browser = browser();
    let store = store();
    let mut entries = Vec::new();
    for number in 0..2500 {
        entries.extend(exchange(
            number,
            &format!("prompt {number}"),
            &format!("/src/{}.rs", number % 1250),
            &"line of a file\n".repeat(8),
        ));
    }
    record(&store, &entries);
    let script = "
        setTab('history');
        say('rows', list.rows.length);
        let most = 0;
        for (let n = 0; n <= 40; n += 1) {
          $('list').scrollTop = $('list').scrollHeight * n / 40;
          await frame();
          most = Math.max(most, document.querySelectorAll('.row').length);
        }
        say('rows in the document at most 60', most <= 60);
        const rows = [...document.querySelectorAll('.row')].sort((a, b) => a.dataset.place - b.dataset.place);
        say('the last row', rows[rows.length - 1].querySelector('.id').textContent === items[items.length - 1].id);
        $('list').scrollTop = 0;
        await frame();
        const old = [...document.querySelectorAll('.row')].find(row => row.querySelector('.jump'));
        say('dimmed', old.classList.contains('faded') + ', ' + old.querySelector('.stands').textContent.replace(/#\\d+/, '#N'));
        const target = old.querySelector('.jump').dataset.item;
        old.querySelector('.jump').click();
        await frame();
        say('followed', now.selected.id === target && document.querySelector('.row[aria-selected=true] .id').textContent === target);
        say('chain', document.querySelectorAll('#detail .link').length + ' members, ' + document.querySelectorAll('#detail .chain path').length + ' edge');
        press('p'); say('back', now.selected.newer[0].next === byId.get(target).ix);
        press('n'); say('forth', now.selected.id === target);
        press('Escape'); say('closed', $('detail').hidden);
        $('search').value = 'prompt 1234'; setQuery('prompt 1234'); show();
        say('found', list.rows.length);
        say('network', await fetch('data:,x').then(() => 'allowed', () => 'refused'));
    ";
    expect![[r#"
        rows: 5000
        rows in the document at most 60: true
        the last row: true
        dimmed: true, superseded by #N repeat
        followed: true
        chain: 2 members, 1 edge
        back: true
        forth: true
        closed: true
        found: 1
        network: refused
    "#]]
    .assert_eq(&driven(&browser, &rendered(&store), script, "1200,800"));
}

/// The slider shows the context of any turn; the same answer as the engine's, turn by turn.
#[test]
#[ignore = "needs a browser: chromium"]
fn the_context_at_each_turn_is_what_the_engine_says() {
    let browser = browser();
    let store = store();
    for number in 0..12 {
        record(
            &store,
            &exchange(
                number,
                &format!("prompt {number}"),
                &format!("/src/{}.rs", number % 3),
                &"line\n".repeat(40),
            ),
        );
        if number == 7 {
            let order = Vec::new();
            let replaced = fact::ContextReplaced {
                cause: acpdb_engine::event::ReplaceCause::Compaction,
                order,
                tokens_before: None,
            };
            record(&store, &[Entry::from(replaced)]);
        }
    }
    let session = store.find_stream("s1").unwrap();
    let view = store.view(session.id).unwrap();
    let mut expected = String::new();
    for turn in 1..=12 {
        let at = view.state().turn_end(acpdb_engine::ids::Turn(turn)).unwrap();
        let then = view.with_at(at);
        let current = then.current();
        let shown = current.iter().map(|item| {
            let cause = if item.output.cause.is_some() { "-" } else { "" };
            format!("{cause}{}", item.item)
        });
        let shown: Vec<String> = shown.collect();
        writeln!(expected, "{turn}: {} ~{}", shown.join(" "), view.state().tokens(at).shown).unwrap();
    }
    let script = "
        setTab('context');
        for (let n = 0; n < turns.length; n += 1) {
          $('turn').value = n;
          $('turn').dispatchEvent(new Event('input'));
          const total = list.rows.reduce((sum, item) => sum + stands(item, seqNow()).tokens, 0);
          say(turns[n].turn, list.rows.map(item => (stands(item, seqNow()).cause ? '-' : '') + item.id).join(' ') + ' ~' + total);
        }
    ";
    assert_eq!(driven(&browser, &rendered(&store), script, "390,800"), expected);
}
