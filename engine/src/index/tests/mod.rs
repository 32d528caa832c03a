//! Tests of the index. [`sample`] makes logs from scripts and judges answers by scanning the script.

mod backend;
mod crash;
mod damage;
mod indexer;
mod laws;
mod opening;
mod rebuild;
mod sample;
mod source;
mod tables;
