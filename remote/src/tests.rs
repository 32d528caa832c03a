//! Tests of the crate: conformance of remotes, the chain on its own, and the chain under simulated faults.

mod ahead;
#[cfg(feature = "s3")]
mod bucket;
mod checks;
mod conformance;
mod counted;
mod encrypted;
mod flawed;
mod hostile;
mod mirrors;
mod objects;
mod repairs;
#[cfg(feature = "servers")]
mod servers;
mod shipping;
mod simulation;
mod workers;
mod world;
