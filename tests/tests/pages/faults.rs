//! Faults that a reader of the page met, each with the behaviour that is right now. In a browser.

use acpdb_engine::entry::fact;
use expect_test::expect;

use super::browser::{browser, driven};
use super::*;

/// A session with edits, a compaction, Markdown and forty turns.
fn session() -> Store {
    let store = store();
    let mut entries = Vec::new();
    for number in 0..40 {
        entries.extend(exchange(
            number,
            &format!(
                "prompt {number}: *please* look at `f{number}`\n\n- one\n- two\n\n```rust\nfn f() {{}}\n```"
            ),
            &format!("/src/{}.rs", number % 5),
            &"line of a file\n".repeat(6),
        ));
        if number == 20 {
            let cause = acpdb_engine::event::ReplaceCause::Compaction;
            entries.push(fact::ContextReplaced { cause, order: Vec::new(), tokens_before: None }.into());
        }
        if number == 30 {
            let edit = serde_json::json!({
                "filePath": "/src/0.rs", "oldString": "let a = 1;\nlet b = 2;\nend", "newString": "let a = 1;\nlet b = 3;\nend",
            });
            entries.push(Entry::tool_started("edit-1", "edit", edit.to_string()));
            entries.push(Entry::tool_completed("edit-1", "done"));
        }
    }
    record(&store, &entries);
    store
}

/// Parts of the conversation that are laid out apart count their places from themselves in newer browsers. So nothing behind the first
/// few turns was ever made, and a late turn was an empty page. And heights that the browser guesses are right only once it has drawn,
/// which a busy machine does late: the rows around a turn are laid out at once.
#[test]
#[ignore = "needs a browser: chromium"]
fn the_conversation_shows_each_turn_that_is_asked_for() {
    let script = "
        const box = $('talk').getBoundingClientRect();
        const inSight = () => [...document.querySelectorAll('#talk h2.turn span:first-child')].filter(it => {
          const at = it.getBoundingClientRect();
          return at.height > 0 && at.top >= box.top - 4 && at.bottom <= box.bottom + 4;
        }).map(it => it.textContent);
        for (const turn of [38, 5, 30, 18]) {
          goTo('#t' + turn);
          say('turn ' + turn, inSight().includes('Turn ' + turn));
          // Some frames, in which it could still leave.
          for (let n = 0; n < 6; n += 1) await frame();
          say('and stays', inSight().includes('Turn ' + turn));
        }
        goTo('#t40');
        $('talk').scrollTop = $('talk').scrollHeight / 2;
        for (let n = 0; n < 6; n += 1) await frame();
        say('half way', inSight().length > 0);
    ";
    let driver = script.replace("await frame()", "await (talk.fill(), frame())");
    expect![[r#"
        turn 38: true
        and stays: true
        turn 5: true
        and stays: true
        turn 30: true
        and stays: true
        turn 18: true
        and stays: true
        half way: true
    "#]]
    .assert_eq(&driven(&browser(), &rendered(&session()), &driver, "1200,800"));
}

/// To press a view's key while an item was open stopped the page: the list drew rows of one view with the makers of another.
#[test]
#[ignore = "needs a browser: chromium"]
fn keys_lead_anywhere_with_an_item_open() {
    let script = "
        let errors = 0;
        window.addEventListener('error', () => { errors += 1; });
        for (const first of TABS) {
          for (let n = 1; n <= TABS.length; n += 1) {
            setTab(first[0]);
            press('j'); press('j');
            await frame();
            press(String(n));
            await frame();
            list.draw();
            if (now.tab !== TABS[n - 1][0]) say('not followed', first[0] + ' ' + n);
          }
        }
        say('errors', errors);
        setTab('history');
        press('j'); press('j'); press('j');
        say('open', !$('detail').hidden);
        press('Escape');
        say('closed', $('detail').hidden);
    ";
    expect![[r#"
        errors: 0
        open: true
        closed: true
    "#]]
    .assert_eq(&driven(&browser(), &rendered(&session()), script, "1200,800"));
}

/// Ids were cut to `#17...` as soon as the detail was open, since the list became narrow.
#[test]
#[ignore = "needs a browser: chromium"]
fn ids_are_whole_with_the_detail_open() {
    let script = "
        setTab('history');
        select(list.rows[list.rows.length - 1]);
        await frame(); list.draw();
        const ids = [...document.querySelectorAll('#rows .id')];
        say('some', ids.length > 5);
        say('cut', ids.filter(id => id.scrollWidth > id.clientWidth).map(id => id.textContent).join(' '));
        const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
        say('wider than the window', wide);
    ";
    let page = rendered(&session());
    for size in ["1280,850", "900,700", "390,800"] {
        let said = driven(&browser(), &page, script, size);
        assert_eq!(said, "some: true\ncut: \nwider than the window: 0\n", "{size}");
    }
}

/// The slider moved the context and left the history where it was; the address told nothing.
#[test]
#[ignore = "needs a browser: chromium"]
fn the_slider_moves_every_view_and_the_address_follows() {
    let script = "
        const inSight = element => { const box = element.getBoundingClientRect(), around = element.closest('#list, #talk').getBoundingClientRect(); return box.bottom > around.top && box.top < around.bottom; };
        const slide = async turn => { $('turn').value = turn - 1; $('turn').dispatchEvent(new Event('input')); await frame(); list.draw(); talk.fill(); };
        say('at first', location.hash);
        await slide(10);
        say('conversation', [...document.querySelectorAll('.part')].filter(part => !part.hidden).length + ' ' + location.hash);
        for (const tab of ['history', 'context', 'turns', 'chains', 'memory']) {
          setTab(tab);
          await slide(30);
          const newest = [...document.querySelectorAll('#rows .row:not(.later)')].pop();
          say(tab, (newest ? inSight(newest) : 'no row') + ' ' + location.hash);
        }
        setTab('todos'); await slide(12); say('todos', location.hash);
        const before = { tab: now.tab, turn: now.turn };
        goTo('#t40'); say('t40', now.tab + ' ' + (now.turn + 1) + ' ' + $('point').textContent.split(',')[0]);
        const id = items[50].id;
        goTo('#context/t35/' + id.slice(1)); say('an item', now.tab + ' ' + (now.turn + 1) + ' ' + (now.selected && now.selected.id === id) + ' ' + (address() === '#context/t35/' + id.slice(1)));
        goTo(id); say('an id alone', now.tab + ' ' + (now.turn + 1) + ' ' + (now.selected.id === id));
        goTo('#t999'); goTo('#%%%'); goTo('#nonsense/s9'); say('nonsense is passed over', true);
    ";
    expect![[r##"
        at first: 
        conversation: 10 #t10
        history: true #history/t30
        context: true #context/t30
        turns: true #turns/t30
        chains: true #chains/t30
        memory: no row #memory/t30
        todos: #todos/t12
        t40: talk 40 turn 40 of 40
        an item: context 35 true true
        an id alone: talk 40 true
        nonsense is passed over: true
    "##]]
    .assert_eq(&driven(&browser(), &rendered(&session()), script, "1200,800"));
}

/// On paper there were the 22 rows that were in sight.
#[test]
#[ignore = "needs a browser: chromium"]
fn everything_is_printed() {
    let script = "
        setTab('history');
        window.dispatchEvent(new Event('beforeprint'));
        say('rows', document.querySelectorAll('#rows .row').length === timeline.length);
        window.dispatchEvent(new Event('afterprint'));
        say('then', document.querySelectorAll('#rows .row').length < 60);
        setTab('talk');
        window.dispatchEvent(new Event('beforeprint'));
        say('conversation', document.querySelectorAll('.said').length === timeline.length);
    ";
    expect![[r#"
        rows: true
        then: true
        conversation: true
    "#]]
    .assert_eq(&driven(&browser(), &rendered(&session()), script, "1200,800"));
}

/// Edits were JSON with `\n` in it, and prompts were plain text.
#[test]
#[ignore = "needs a browser: chromium"]
fn texts_are_read_as_they_were_meant() {
    let script = r"
        talk.all = true; talk.fill();
        const first = document.querySelector('.said.user .markdown');
        say('markdown', [...first.children].map(it => it.nodeName + ':' + it.textContent.replace(/\n/g, '|')).join(' / '));
        say('inline', first.querySelector('em').textContent + ' ' + first.querySelector('code').textContent);
        const edit = document.querySelector('.said .diff');
        say('diff', [...edit.children].map(it => (it.className || 'same') + '=' + it.textContent.trim()).join(', '));
        say('cuts', [...document.querySelectorAll('.cut')].map(it => it.className + ' ' + it.title).join());
        say('ticks', document.querySelectorAll('.axis span').length);
        setQuery('line of a'); show(); talk.fill();
        say('marks', document.querySelectorAll('#talk mark').length > 0 && document.querySelector('#talk mark').textContent);
        setTab('history'); say('in rows', document.querySelector('#rows mark').textContent);
        const diff = (a, b) => diffLines(a, b).map(([kind, line]) => kind + line).join('|');
        say('empty', diff('', 'a\nb') + ' ' + diff('a', '') + ' ' + diff('', ''));
        say('moved', diff('a\nb\nc\nd', 'a\nc\nx\nd'));
        const deep = markdown('> '.repeat(200) + 'x\n' + '- '.repeat(200) + 'y\n' + '*'.repeat(4000) + '\n[a](javascript:alert(1)) <b>not</b>\n|a|b|\n|-|-|\n|1|2|');
        say('hostile', deep.querySelectorAll('a, b, script').length + ' ' + deep.querySelectorAll('td').length + ' ' + deep.textContent.includes('<b>not</b>'));
    ";
    expect![[r##"
        markdown: P:prompt 0: please look at f0 / UL:onetwo / PRE:fn f() {}
        inline: please f0
        diff: same=let a = 1;, gone=-let b = 2;, new=+let b = 3;, same=end
        cuts: cut compaction compaction in turn 21: compaction, 0 items kept
        ticks: 7
        marks: line of a
        in rows: line of a
        empty: +a|+b -a 
        moved:  a|-b| c|+x| d
        hostile: 0 2 true
    "##]]
    .assert_eq(&driven(&browser(), &rendered(&session()), script, "1200,800"));
}

/// Times, tokens, usage and cost were recorded and shown nowhere.
#[test]
#[ignore = "needs a browser: chromium"]
fn turns_say_what_they_took() {
    let store = store();
    let second = |seconds: i64| Micros(1_768_000_000_000_000 + seconds * 1_000_000);
    for number in 0..3 {
        let mut entries = exchange(number, "look", "/src/a.rs", "text");
        let usage = acpdb_engine::event::Usage {
            input: Some(1000),
            output: Some(500),
            cache_read: Some(20_000),
            cache_write: Some(2000),
            ..Default::default()
        };
        let report = acpdb_engine::event::Report {
            model: Some("claude-opus-4-5".to_owned()),
            usage,
            ..Default::default()
        };
        entries.push(fact::MessageFinished { key: format!("m{number}"), report }.into());
        for (place, entry) in entries.iter_mut().enumerate() {
            entry.host_time = Some(second(60 * number as i64 + 3 * place as i64));
        }
        record(&store, &entries);
    }
    let script = "
        setTab('turns');
        say('heads', [...$('columns').children].map(it => it.textContent).join(' '));
        for (const row of document.querySelectorAll('#rows .row')) say('row', [...row.children].map(it => it.textContent).join(' | '));
        select(list.rows[1]);
        say('requests', [...document.querySelectorAll('#detail td')].map(it => it.textContent.replace(/#\\d+/, '#N')).join(' '));
    ";
    expect![[r#"
        heads: turn time duration calls context input read written output cost
        row: t1 | 2026-01-09 23:06:40 | 12 s | 1 | 12 | 1k | 20k | 2k | 500 | $0.040
        row: t2 | 2026-01-09 23:07:40 | 12 s | 1 | 24 | 1k | 20k | 2k | 500 | $0.040
        row: t3 | 2026-01-09 23:08:40 | 12 s | 1 | 36 | 1k | 20k | 2k | 500 | $0.040
        requests: #N claude-opus-4-5 1k 20k 2k 500 $0.040
    "#]]
    .assert_eq(&driven(&browser(), &rendered(&store), script, "1200,800"));
}

/// A subagent's session opens within the page, and leads back.
#[test]
#[ignore = "needs a browser: chromium"]
fn a_subagent_opens_within_the_page() {
    let store = store();
    record(&store, &exchange(0, "ask another", "/src/a.rs", "text"));
    let mut info = StreamInfo::session("acpdb", "helper");
    info.parent = Some((StreamInfo::session("acpdb", "s1").id(), Some("call-0".to_owned())));
    let batch = Batch { stream: info, entries: exchange(1, "what the helper was told", "/src/b.rs", "seen") };
    let _ = store.commit(&[batch], acpdb_engine::Atomicity::Split).unwrap();
    let script = "
        talk.all = true; talk.fill();
        say('at the call', document.querySelector('.said.tool .way').textContent);
        document.querySelector('.said.tool .way').click();
        talk.fill();
        say('inside', $('title').textContent + ' ' + location.hash + ' ' + document.querySelector('.said.user').textContent.includes('helper was told'));
        document.querySelector('#ways .way').click();
        say('back', $('title').textContent + ' ' + location.hash);
        goTo('#s1/t1'); say('by address', $('title').textContent);
    ";
    expect![[r##"
        at the call: subagent: what the helper was told · 1 turn · 2 items
        inside: what the helper was told #s1 true
        back: ask another 
        by address: what the helper was told
    "##]]
    .assert_eq(&driven(&browser(), &rendered(&store), script, "1200,800"));
}
