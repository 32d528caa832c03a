//! The acpdb store.
pub mod entry;
pub mod event;
pub mod ids;
pub mod registry;
pub mod text;
