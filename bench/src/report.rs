//! Rows with their targets, as a Markdown table.

use std::path::Path;

use crate::Options;

/// The target of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// No target: shown for comparison.
    None,
}

#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<[String; 4]>,
    missed: usize,
    judged: usize,
    /// File system of the stores that grow, if they are in a folder of their own.
    grown_on: Option<String>,
}

impl Report {
    /// Adds a row, and shows it at once on stderr: a run takes minutes.
    pub(crate) fn row(&mut self, name: impl Into<String>, measured: f64, unit: &str, target: Target) {
        let (target, met) = match target {
            Target::AtMost(limit) => (format!("<= {} {unit}", figure(limit)), Some(measured <= limit)),
            Target::AtLeast(limit) => (format!(">= {} {unit}", figure(limit)), Some(measured >= limit)),
            Target::None => (String::new(), None),
        };
        let met = match met {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "",
        };
        self.judged += usize::from(!met.is_empty());
        self.missed += usize::from(met == "**no**");
        let row = [name.into(), format!("{} {unit}", figure(measured)), target, met.to_owned()];
        eprintln!("{}", row.join(" | "));
        self.rows.push(row);
    }

    /// Says that stores which grow are in a folder of their own.
    pub(crate) fn grown_in(&mut self, folder: &Path) {
        self.grown_on = Some(crate::measure::file_system(folder));
    }

    pub(crate) fn print(&self, options: &Options) {
        let (scratch, machine) = (crate::measure::file_system(&options.scratch), crate::measure::machine());
        match &self.grown_on {
            Some(grown_on) => println!("Stores that grow on {grown_on}, others on {scratch}; {machine}."),
            None => println!("Store on {scratch}; {machine}."),
        }
        println!("\n| what | measured | target | met |\n|---|---|---|---|");
        for row in &self.rows {
            println!("| {} |", row.join(" | "));
        }
        println!("\n{} of {} targets met.", self.judged - self.missed, self.judged);
    }
}

/// Three significant digits.
fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 2.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}
