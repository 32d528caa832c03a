//! The acpdb store.
pub mod codec;
pub mod entry;
pub mod event;
pub mod ids;
pub mod registry;
pub mod text;
