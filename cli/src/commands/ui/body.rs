//! Bodies of answers: a thread writes each one, piece by piece, as fast as the browser takes them.

use std::convert::Infallible;
use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of a piece.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that wait for the browser.
const PIECE_COUNT_MAX: usize = 4;

/// The body of an answer.
pub(super) enum Answer {
    /// A short text.
    Text(Option<Bytes>),
    /// Pieces that a thread writes. An error ends the connection, so that a part is not taken for the whole.
    Pieces(Receiver<io::Result<Bytes>>),
}

impl Answer {
    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        Self::Text(Some(text.into()))
    }

    /// An answer, and its writer.
    pub(super) fn pieces() -> (Pieces, Self) {
        let (sender, receiver) = channel(PIECE_COUNT_MAX);
        (Pieces { sender, piece: Vec::new() }, Self::Pieces(receiver))
    }
}

impl From<Infallible> for Answer {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Pieces(pieces) => pieces.poll_recv(context).map(|piece| Some(piece?.map(Frame::data))),
        }
    }
}

/// Writes an answer. An answer without an end has failed.
pub(super) struct Pieces {
    sender: Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Pieces {
    /// Ends the answer, or ends the connection with the error.
    pub(super) fn end<E: std::error::Error>(mut self, result: Result<(), E>) {
        let result = result.map_err(|error| io::Error::other(error.to_string())).and_then(|()| self.flush());
        if let Err(error) = result {
            // A browser that has gone away receives no error.
            let _ = self.sender.blocking_send(Err(error));
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        if piece.is_empty() {
            return Ok(());
        }
        // An error means that the browser has gone away.
        self.sender.blocking_send(Ok(piece.into())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
