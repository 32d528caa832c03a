//! Answers of commands, in the words of the program's JSON: an item has its name, `#12`, as in all rows and all commands.

use acpdb_engine::ids::{ItemId, Seq, StreamId};
use acpdb_engine::store::{ActReply, MemoryReceipt};
use serde::Serialize;

use crate::fault::Fault;

/// An answer as JSON.
pub fn told(value: &(impl Serialize + ?Sized)) -> Result<String, Fault> {
    serde_json::to_string(value)
        .map_err(|error| Fault::new("error", format!("the answer has no form in JSON: {error}")))
}

/// The result of a command on the context.
#[derive(Clone, Debug, Serialize)]
pub struct ActAnswer {
    reply: String,
    last_seq: Option<Seq>,
    hidden: Vec<String>,
    shown: Vec<String>,
}

impl From<ActReply> for ActAnswer {
    fn from(reply: ActReply) -> Self {
        let names = |items: &[ItemId]| items.iter().map(ToString::to_string).collect();
        Self {
            hidden: names(&reply.hidden),
            shown: names(&reply.shown),
            reply: reply.text,
            last_seq: reply.last_seq,
        }
    }
}

/// The result of a command on memory.
#[derive(Clone, Debug, Serialize)]
pub struct MemoryAnswer {
    id: String,
    stream: StreamId,
    item: Option<String>,
    last_seq: Seq,
}

impl From<MemoryReceipt> for MemoryAnswer {
    fn from(receipt: MemoryReceipt) -> Self {
        let MemoryReceipt { id, stream, item, last_seq } = receipt;
        Self { id, stream, item: item.map(|item| item.to_string()), last_seq }
    }
}
