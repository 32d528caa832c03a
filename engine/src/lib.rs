//! The acpdb store.
pub mod command;
pub mod entry;
pub mod event;
pub mod fold;
pub mod ids;
pub mod propose;
pub mod registry;
pub mod text;
