//! Text and JSON.
/// JSON values.
pub mod json {
    /// A JSON value.
    #[derive(Debug)]
    pub struct Json;
}
