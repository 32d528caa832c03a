//! Bodies of answers: a thread writes each one, piece by piece, as fast as the browser takes them.

use std::convert::Infallible;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of a piece.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that wait for the browser.
const PIECE_COUNT_MAX: usize = 4;
/// How long a piece waits for a browser that has stopped reading: its thread is one of few.
const PIECE_WAIT: Duration = Duration::from_secs(10);
/// The wait between two looks for room.
const LOOK_WAIT: Duration = Duration::from_millis(2);

/// The body of an answer.
pub(super) enum ResponseBody {
    /// A short text.
    Text(Option<Bytes>),
    /// Pieces that a thread writes, and whether they are all. An error ends the connection, so that a part is not taken for the whole.
    Pieces(Receiver<io::Result<Bytes>>, Arc<AtomicBool>),
}

impl ResponseBody {
    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        Self::Text(Some(text.into()))
    }

    /// An answer, and its writer.
    pub(super) fn pieces() -> (BodyWriter, Self) {
        let (sender, receiver) = channel(PIECE_COUNT_MAX);
        let is_whole = Arc::new(AtomicBool::new(false));
        (
            BodyWriter { sender, piece: Vec::new(), is_whole: Arc::clone(&is_whole) },
            Self::Pieces(receiver, is_whole),
        )
    }
}

impl From<Infallible> for ResponseBody {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Pieces(pieces, is_whole) => pieces.poll_recv(context).map(|piece| match piece {
                Some(piece) => Some(piece.map(Frame::data)),
                None if is_whole.swap(true, Ordering::SeqCst) => None,
                None => Some(Err(io::ErrorKind::BrokenPipe.into())),
            }),
        }
    }
}

/// Writes an answer. An answer without an end has failed.
pub(super) struct BodyWriter {
    sender: Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
    is_whole: Arc<AtomicBool>,
}

impl BodyWriter {
    /// Ends the answer, or ends the connection with the error.
    pub(super) fn end<E: std::error::Error>(mut self, result: Result<(), E>) {
        let result = result.map_err(|error| io::Error::other(error.to_string())).and_then(|()| self.flush());
        match result {
            Ok(()) => self.is_whole.store(true, Ordering::SeqCst),
            // A browser that has gone away receives no error; one that reads no more finds that the answer has no end.
            Err(error) => drop(self.sender.try_send(Err(error))),
        }
    }

    fn send(&self, mut piece: io::Result<Bytes>) -> io::Result<()> {
        let end = Instant::now() + PIECE_WAIT;
        loop {
            match self.sender.try_send(piece) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Closed(_)) => return Err(io::ErrorKind::BrokenPipe.into()),
                Err(TrySendError::Full(_)) if Instant::now() >= end => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(TrySendError::Full(back)) => piece = back,
            }
            std::thread::sleep(LOOK_WAIT);
        }
    }
}

impl Write for BodyWriter {
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
        self.send(Ok(piece.into()))
    }
}
