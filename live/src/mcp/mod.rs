//! Tools for a model, by the Model Context Protocol.
//!
//! ```text
//! tools: name, arguments -> Reply { text, value }        each tool's work, over the store; knows no protocol
//! server (feature `mcp`): the protocol, by rmcp          one request after the other
//! stdio: lines of standard input, each of which gets an answer
//! http (feature `mcp-http`): the same on a socket
//! ```
//!
//! No host says reliably which session a call belongs to. So a session comes from the argument, else from the
//! environment, else it is the newest one of the working folder. Sessions of other folders have to be named.

pub mod catalog;
#[cfg(feature = "mcp-http")]
pub mod http;
#[cfg(feature = "mcp")]
pub mod server;
#[cfg(feature = "mcp")]
mod stdio;
pub mod tools;
#[cfg(feature = "mcp")]
mod uri;

#[cfg(test)]
mod tests;
