//! Importer of `pi`: the bytes are a file.
#![no_main]

use acpdb_hosts::import::Format;

libfuzzer_sys::fuzz_target!(|file: &[u8]| acpdb_fuzz::check_import(Format::Pi, file));
