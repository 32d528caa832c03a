//! Serving: one more step of a long session, as items and as bytes.

use std::fmt::Write as _;
use std::process::Command;

use acpdb_engine::Store;
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_serve::{PlainText, Renderer, ServeOptions, Served, Step};

use acpdb_hosts::export::{Exporter, Format};

use crate::measure::{float, median, own, peak_mb, reset_peak_mb};
use crate::report::{Report, Target};
use crate::{Options, Outcome};

/// Bytes of an output.
const OUTPUT_BYTES: usize = 1_500;

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let items = if options.quick { 1_000 } else { 10_000 };
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let store = Store::builder(folder.path()).registry(acpdb_hosts::registry()).open()?;
    let session = store.session(StreamInfo::session("opencode", "long"));
    let mut entries = vec![Entry::message("", Role::User, "look at everything")];
    for number in 0..items {
        let call = format!("c{number}");
        let mut output = String::new();
        while output.len() < OUTPUT_BYTES {
            let _ = writeln!(output, "line {} of file {number}", output.len());
        }
        entries.push(Entry::step(format!("s{number}")));
        entries.push(Entry::tool_started(
            call.as_str(),
            "read",
            format!(r#"{{"filePath":"src/f{number}.rs"}}"#),
        ));
        entries.push(Entry::tool_completed(call, output));
        if entries.len() > 3_000 {
            let _ = session.append(std::mem::take(&mut entries))?;
        }
    }
    let _ = session.append(entries)?;
    let warm = Step::begin(&session, "warm")?.context(&PlainText, &ServeOptions::default())?;
    report.row("serve: bytes of the context", float(warm.bytes.len()) / 1e6, "MB", Target::None);
    let rounds = if options.quick { 3 } else { 15 };
    let mut round = 0;
    let delta = median(rounds, || {
        round += 1;
        let _ = session.append([
            Entry::tool_started(format!("n{round}"), "read", r#"{"filePath":"src/new.rs"}"#),
            Entry::tool_completed(format!("n{round}"), "one line"),
        ])?;
        let view = session.view()?;
        let (served, seconds) = own(|| view.state().served_places(view.at()));
        assert!(served.len() > items, "the session is there");
        Ok(seconds * 1e3)
    })?;
    report.row(format!("serve: what is new among {items} items"), delta, "ms", Target::AtMost(1.0));
    let bytes = median(rounds, || {
        let view = session.view()?;
        let (rendered, seconds) = own(|| PlainText.render(&Served::of(&view)));
        let _ = rendered?;
        Ok(seconds * 1e3)
    })?;
    report.row(format!("serve: all bytes of {items} items"), bytes, "ms", Target::AtMost(20.0));
    let exporter = Exporter::new(Format::Anthropic);
    let mut size = 0;
    let request = median(rounds, || {
        let view = session.view()?;
        let (rendered, seconds) = own(|| exporter.render(&Served::of(&view)));
        size = rendered?.bytes.len();
        Ok(seconds * 1e3)
    })?;
    report.row("serve: all bytes as Anthropic's messages", request, "ms", Target::AtMost(20.0));
    report.row("serve: the same, of text", float(size) / request / 1e3, "MB/s", Target::AtLeast(500.0));
    // In a process of its own: this process keeps the memory that it freed after each rendering, and would show no growth.
    let output = Command::new(std::env::current_exe()?)
        .args(["child-export", &folder.path().to_string_lossy(), "long"])
        .output()?;
    let share = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>()?;
    report.row("serve: memory of an export, to its output", share, "x", Target::AtMost(2.0));
    let mut step = 0;
    let whole = median(rounds, || {
        step += 1;
        let next = Step::begin(&session, format!("more {step}"))?;
        let (context, seconds) = own(|| next.context(&PlainText, &ServeOptions::default()));
        let _ = context?;
        Ok(seconds * 1e3)
    })?;
    report.row("serve: a step's context, planned, made and recorded", whole, "ms", Target::None);
    Ok(())
}

/// Exports a session, and prints the growth of the peak of memory in relation to the bytes of the output.
pub(crate) fn child(folder: &str, name: &str) -> Outcome<()> {
    let store = Store::builder(folder).registry(acpdb_hosts::registry()).read_only().open()?;
    let view = store.view(store.find_stream(name)?.id)?;
    let before = reset_peak_mb().ok_or("the system does not tell of peaks of memory")?;
    let rendered = Exporter::new(Format::Anthropic).render(&Served::of(&view))?;
    println!("{}", (peak_mb() - before) * 1e6 / float(rendered.bytes.len()));
    Ok(())
}
