//! The acpdb store.
pub mod codec;
pub mod command;
pub mod entry;
pub mod event;
pub mod ids;
pub mod registry;
pub mod text;
