//! Importer of `codex`: the bytes are a file.
#![no_main]

use acpdb_hosts::import::ImportFormat;

libfuzzer_sys::fuzz_target!(|file: &[u8]| acpdb_fuzz::check_import(ImportFormat::Codex, file));
