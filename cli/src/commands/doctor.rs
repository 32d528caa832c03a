//! `acpdb doctor`: faults, if any, and the next step.
//!
//! Looks at these and changes nothing: the folder, the log and its signed checkpoints as `verify` sees them, files that recovery set aside, the disk,
//! and attached hosts.

use std::path::Path;

use acpdb_engine::Error;
use acpdb_engine::keys::KeyUse;
use acpdb_engine::storage::{Access, FileStorage, Storage as _, free_bytes, untrusted};
use acpdb_engine::store::{VerifyOptions, verify_store};
use acpdb_engine::text::paths::shown;
use acpdb_engine::verify::{Verdict, VerifyReport};
use acpdb_proof::claims::CheckpointStatus;

use super::doctor_git::{self, GitStanding};
use super::{Code, Failure, Global, Output, describe, store_path};
use crate::args::{Doctor, DoctorAct};
use crate::claims;
use crate::rings::Ring;
use crate::verdict;

/// Free bytes on the disk. With fewer, appends will soon fail; reading still works.
const FREE_BYTES_MIN: u64 = 64 << 20;

/// Most signed claims that are listed if they do not agree with the log.
const CLAIM_COUNT_MAX: usize = 8;

/// The result of one check.
#[derive(serde::Serialize)]
struct DoctorFinding {
    /// `ok`, `note` or `problem`.
    state: CheckState,
    /// The thing that was looked at.
    what: &'static str,
    /// The result, in words.
    detail: String,
    /// The next step, if any.
    next: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckState {
    Ok,
    Note,
    Problem,
}

/// Findings, in the order of the looks.
#[derive(Default)]
struct DoctorFindings(Vec<DoctorFinding>);

impl DoctorFindings {
    fn add(
        &mut self,
        state: CheckState,
        what: &'static str,
        detail: impl Into<String>,
        next: Option<String>,
    ) {
        self.0.push(DoctorFinding { state, what, detail: detail.into(), next });
    }

    fn ok(&mut self, what: &'static str, detail: impl Into<String>) {
        self.add(CheckState::Ok, what, detail, None);
    }

    fn note(&mut self, what: &'static str, detail: impl Into<String>, next: impl Into<String>) {
        self.add(CheckState::Note, what, detail, Some(next.into()));
    }

    fn problem(&mut self, what: &'static str, detail: impl Into<String>, next: impl Into<String>) {
        self.add(CheckState::Problem, what, detail, Some(next.into()));
    }

    fn failed(&mut self, what: &'static str, failure: Failure) {
        self.add(CheckState::Problem, what, failure.message, failure.hint);
    }
}

pub(crate) fn run(global: &Global, args: &Doctor, output: &mut Output) -> Result<Code, Failure> {
    match &args.act {
        Some(DoctorAct::Reindex) => return super::reindex::run(global, output),
        Some(DoctorAct::Salvage(args)) => return super::salvage::run(global, args, output),
        Some(DoctorAct::Seal(args)) => return super::seal::run(global, args, output),
        None => {}
    }

    super::at::refuse_now(global, "doctor")?;
    let folder = store_path::folder(global, output)?;
    let mut findings = DoctorFindings::default();
    let code = look(&folder, global, &mut findings);
    passed_over(global, &mut findings);
    let findings = findings.0;
    if output.json {
        output.json_object(
            "acpdb.doctor/1",
            &serde_json::json!({ "path": shown(&folder), "items": findings }),
        )?;
        return Ok(code);
    }
    output.line(format!("{}:", folder.display()))?;
    for finding in &findings {
        let state = match finding.state {
            CheckState::Ok => output.paint(describe::GOOD, "ok     "),
            CheckState::Note => "note   ".to_owned(),
            CheckState::Problem => output.paint(describe::BAD, "problem"),
        };
        output.line(format!("  {state}  {:<11} {}", finding.what, finding.detail))?;
        if let Some(next) = &finding.next {
            output.line(format!("{:23}next: {next}", ""))?;
        }
    }
    let problems = findings.iter().filter(|finding| finding.state == CheckState::Problem).count() as u64;
    output.line(match problems {
        0 => "Nothing needs to be done.".to_owned(),
        count => format!("{}. Begin with the first.", describe::count(count, "problem")),
    })?;
    Ok(code)
}

/// The stores that hooks find from this folder and pass over.
fn passed_over(global: &Global, findings: &mut DoctorFindings) {
    match store_path::find_unasked(global) {
        Ok(found) => {
            for passed in &found.passed {
                let next = passed.next.as_ref().map(|trust| format!("if you trust who made it: {trust}"));
                findings.add(CheckState::Note, "hooks", passed.line_only(), next);
            }
        }
        Err(failure) => findings.failed("hooks", failure),
    }
}

fn look(folder: &Path, global: &Global, findings: &mut DoctorFindings) -> Code {
    match untrusted(folder) {
        Ok(Some(name)) => findings.problem(
            "file system",
            format!("{name}: locks and syncs cannot be relied on"),
            "move the folder to a local disk, or set ACPDB_ANY_FILE_SYSTEM=1 to use it all the same",
        ),
        _ => findings.ok("file system", "local"),
    }
    if let Some(free) = free_bytes(folder) {
        let detail = format!("{} free", describe::bytes(free));
        if free < FREE_BYTES_MIN {
            let next = "free some space; the store stays readable, and nothing acknowledged is lost";
            findings.problem("disk", detail, next);
        } else {
            findings.ok("disk", detail);
        }
    }
    if let Some(mode) = open_to_others(folder) {
        let next = format!("chmod -R go-rwx {}", folder.display());
        findings.note("access", format!("others may enter the folder (mode {mode:o})"), next);
    }
    git(folder, findings);
    hosts(findings);
    let code = match verify_store(folder, &VerifyOptions { keys: KeyUse::Bytes, ..VerifyOptions::default() })
    {
        Ok(report) => {
            let code = log(&report, folder, findings);
            let ring = crate::rings::given_for_store(folder, global.key_file.as_deref());
            // Why there is no key is told of below.
            let given = ring.as_ref().ok().and_then(Option::as_ref);
            let code = verdict::worse(code, signed(&report, folder, given, findings));
            // A store that cannot be read for another reason is told of above.
            let locked = if code == Code::Ok { unopened(folder, ring) } else { None };
            locked.map_or(code, |failure| {
                let code = failure.code;
                findings.failed("key", failure);
                code
            })
        }
        Err(error) => {
            let next = match &error {
                Error::NotAStore { .. } => "make one with acpdb import, or name one with --db PATH",
                Error::NewerFormat { .. } => "update acpdb",
                _ => "see whether the folder can be read by this user",
            };
            findings.problem("log", error.to_string(), next);
            Failure::from(error).code
        }
    };
    if acpdb_engine::store::erasure_is_pending(folder) {
        let next = format!(
            "see that there is space and that nothing in the folder is a link; acpdb --db {} doctor seal, like every verb \
             that writes, then ends it",
            store_path::quoted(folder)
        );
        let detail = "begun and not ended: texts that are on record as erased may still be on the disk";
        findings.problem("erasure", detail, next);
    }
    match held(folder) {
        Err(error) => {
            findings.problem("quarantine", error, "see whether the folder can be read by this user");
        }
        Ok((0, _)) => {}
        Ok((files, bytes)) => {
            let files = describe::count(files, "file");
            let detail = format!("{} in {files}, from unfinished writes", describe::bytes(bytes));
            findings.note(
                "quarantine",
                detail,
                "nothing in it was ever acknowledged; delete it when you like",
            );
        }
    }
    code
}

/// Why no key at hand opens the store: sound bytes that their owner cannot read are no healthy store.
fn unopened(folder: &Path, ring: Result<Option<Ring>, Failure>) -> Option<Failure> {
    let open = || -> Result<(), Failure> {
        let ring = ring?;
        let builder = acpdb_engine::Store::builder(folder).read_only();
        let builder = ring.into_iter().fold(builder, acpdb_engine::Builder::keys);
        builder.open()?;
        Ok(())
    };
    open().err().filter(|failure| failure.code == Code::Locked)
}

/// Adds whether git would take the store.
fn git(folder: &Path, findings: &mut DoctorFindings) {
    match doctor_git::standing(folder) {
        GitStanding::Apart => {}
        GitStanding::WouldTake => findings.note(
            "git",
            "git add would take it, and a commit would publish what sessions hold",
            format!("echo '*' > {}", store_path::quoted(&folder.join(".gitignore"))),
        ),
        GitStanding::Taken => {
            let store = store_path::quoted(folder);
            findings.problem(
                "git",
                "git has taken it: each commit publishes what sessions hold",
                format!("git rm -r -q --cached {store}; commits that hold it stay until you rewrite them"),
            );
        }
    }
}

/// Adds the state of each host to which acpdb is attached.
fn hosts(findings: &mut DoctorFindings) {
    match super::attach::standings() {
        Ok(standings) => {
            for standing in standings {
                let state = if standing.next.is_some() { CheckState::Problem } else { CheckState::Ok };
                findings.add(state, standing.host, standing.detail, standing.next);
            }
        }
        Err(failure) => findings.failed("hosts", failure),
    }
}

/// The state of the log, and the remedy.
fn log(report: &VerifyReport, folder: &Path, findings: &mut DoctorFindings) -> Code {
    let events = describe::count(report.events, "event");
    let are = if report.events == 1 { "is" } else { "are" };
    let (path, store) = (folder.display(), store_path::quoted(folder));
    match report.verdict() {
        Verdict::Sound => findings.ok("log", format!("{events}, every digest and link holds")),
        Verdict::Damaged if report.violations.is_empty() && report.has_no_tail() => findings.problem(
            "log",
            format!("{events} {are} sound, and the file that says where the log ends is gone: later ones may be lost"),
            format!(
                "look for the file tail, in a backup or on the disk; without it acpdb --db {store} doctor seal, like every verb that writes, \
                 makes one from what is there"
            ),
        ),
        Verdict::Damaged => {
            let places = describe::count(report.violations.len() as u64, "place");
            let detail = if report.lost_texts_alone() {
                format!("texts are damaged in {places}; {events} {are} readable but for these")
            } else {
                format!("damaged in {places}; {events} {are} sound and readable")
            };
            let next = format!(
                "copy {path} elsewhere; acpdb verify lists the damage; acpdb --db {store} doctor salvage --into NEW saves \
                 the rest"
            );
            findings.problem("log", detail, next);
        }
        Verdict::Unreadable => findings.problem(
            "log",
            format!("cannot be read: {}", report.not_proven.join("; ")),
            "see whether this user may read the folder and its files, and whether the disk is sound",
        ),
        Verdict::Contradicted => {
            findings.add(CheckState::Problem, "fold", "what this program concludes cannot be", None);
        }
        Verdict::TailLost => {
            let range = report.missing.map(|(first, last)| format!("{first} to {last}")).unwrap_or_default();
            let next = format!(
                "a disk that lied, or a folder put back from an older copy: look for a newer one; without one, \
                 acpdb --db {store} doctor salvage --into NEW goes on from what is there"
            );
            findings.problem("log", format!("acknowledged events {range} are missing at the end"), next);
        }
    }
    if report.torn_bytes > 0 || report.unconfirmed_events > 0 {
        let detail = format!("{} of an unfinished write", describe::bytes(report.torn_bytes));
        findings.note("end", detail, "the next append sets it aside by itself");
    }
    let notes: &[String] = if report.verdict() == Verdict::Unreadable { &[] } else { &report.not_proven };
    for note in notes {
        findings.add(CheckState::Note, "not proven", note.as_str(), None);
    }
    verdict::code_of(report)
}

/// Compares the log with its signed checkpoints, and adds the remedy.
fn signed(report: &VerifyReport, folder: &Path, ring: Option<&Ring>, findings: &mut DoctorFindings) -> Code {
    let judged = match super::verify::signed(report, folder, ring, &[]) {
        Ok(None) => return Code::Ok,
        Ok(Some(judged)) => judged,
        Err(failure) => {
            let code = failure.code;
            findings.failed("signed", failure);
            return code;
        }
    };
    let (agreeing, others): (Vec<_>, Vec<_>) =
        judged.claims.iter().partition(|claim| claim.standing == CheckpointStatus::Agrees);
    if !agreeing.is_empty() {
        let agree = if agreeing.len() == 1 { "agrees" } else { "agree" };
        let count = describe::count(agreeing.len() as u64, "checkpoint");
        findings.ok("signed", format!("{count} {agree} with the log"));
    }
    let mut code = Code::Ok;
    for claim in others.iter().take(CLAIM_COUNT_MAX) {
        // A key that is not known here, or a clock that was wrong, is no fault of the store.
        let is_remark = matches!(
            claim.standing,
            CheckpointStatus::Unproven | CheckpointStatus::Misdated | CheckpointStatus::Newer
        );
        let next = match claims::code_of(claim.standing) {
            _ if claim.standing == CheckpointStatus::Misdated => Some(
                "see whether the clock of this machine is right; the log is as it was signed, and signing goes on",
            ),
            _ if is_remark => None,
            Code::LostTail => Some("look for the newer log: a copy, a snapshot of the disk, another machine"),
            _ => Some("acpdb checkpoint show compares all that was signed with the log"),
        };
        let state = if is_remark { CheckState::Note } else { CheckState::Problem };
        findings.add(state, "signed", claims::line(claim), next.map(str::to_owned));
    }
    for claim in others.iter().filter(|claim| claim.standing != CheckpointStatus::Unproven) {
        code = verdict::worse(code, claims::code_of(claim.standing));
    }
    if others.len() > CLAIM_COUNT_MAX {
        let more = others.len() - CLAIM_COUNT_MAX;
        let detail = format!("{more} more that do not agree; acpdb verify lists them");
        findings.add(CheckState::Note, "signed", detail, None);
    }
    code
}

/// Files that recovery set aside, and their bytes.
fn held(folder: &Path) -> Result<(u64, u64), String> {
    let files = FileStorage::new(folder).read_only();
    let failed = |error: &std::io::Error| format!("what recovery set aside cannot be read: {error}");
    let names = match files.list("quarantine") {
        Ok(names) => names,
        // The folder is made when a file is set aside for the first time.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((0, 0)),
        Err(error) => return Err(failed(&error)),
    };
    let mut bytes = 0;
    for name in &names {
        let file = files.open(&format!("quarantine/{name}"), Access::Read).map_err(|error| failed(&error))?;
        bytes += file.len().map_err(|error| failed(&error))?;
    }
    Ok((names.len() as u64, bytes))
}

/// The mode of a folder that others than its owner may enter.
fn open_to_others(folder: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    // If the folder's mode cannot be read, the verb that opens the folder tells why.
    let mode = std::fs::metadata(folder).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}
