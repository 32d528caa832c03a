//! The acpdb store.
pub mod codec;
pub mod ids;
pub mod log;
pub mod storage;
pub mod text;
