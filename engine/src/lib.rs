//! The acpdb store.
pub mod event;
pub mod ids;
pub mod text;
