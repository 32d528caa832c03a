//! The acpdb store.
pub mod ids;
pub mod text;
