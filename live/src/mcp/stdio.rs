//! Lines of standard input on their way to the protocol's library, and answers to lines that the library would pass over.
//!
//! ```text
//! bytes -> halves of characters mended -> lines, no longer than the library reads -> JSON? -> the library
//!                                                         | no                        | no
//!                                                         '---------- refused --------'--> an error without an id
//! ```
//!
//! The library says nothing to a line that is no JSON, too long or nested too deeply: its client would wait. The protocol has
//! an error without an id for lines that cannot be read. The library itself answers JSON that is no request.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use acpdb_engine::locks::steady;
use acpdb_hosts::lines::{self, LineError, Noise};
use acpdb_hosts::surrogates::Halves;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{AsyncRwTransport, DEFAULT_MAX_LINE_LENGTH};
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinHandle;

/// A mark that some programs write before all else.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Errors for refused lines that are not answered yet.
#[derive(Clone, Default)]
struct PendingErrors(Arc<Mutex<Vec<ErrorData>>>);

impl PendingErrors {
    fn push(&self, error: ErrorData) {
        steady(&self.0).push(error);
    }

    fn take(&self) -> Vec<ErrorData> {
        std::mem::take(&mut *steady(&self.0))
    }

    fn is_empty(&self) -> bool {
        steady(&self.0).is_empty()
    }
}

/// The library's transport over an input and an output, with answers to all lines that come in.
pub(super) struct Stdio<R: AsyncRead + Unpin, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, JsonLines<R>, W>,
    refused: PendingErrors,
    answers: Vec<JoinHandle<Result<(), io::Error>>>,
}

impl<R, W> Stdio<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(input: R, output: W) -> Self {
        let refused = PendingErrors::default();
        let inner = AsyncRwTransport::new_server(JsonLines::new(input, refused.clone()), output);
        Self { inner, refused, answers: Vec::new() }
    }

    /// Answers refused lines, in tasks of their own: the caller may be dropped while it waits.
    fn answer(&mut self) {
        self.answers.retain(|answer| !answer.is_finished());
        for error in self.refused.take() {
            let answer = self.inner.send(TxJsonRpcMessage::<RoleServer>::error(error, None));
            self.answers.push(tokio::spawn(answer));
        }
    }
}

impl<R, W> Transport<RoleServer> for Stdio<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let refused = self.refused.clone();
            // Nothing is lost when this is dropped: the library goes on in the middle of a line.
            let next = {
                let mut receive = pin!(self.inner.receive());
                poll_fn(|context| match receive.as_mut().poll(context) {
                    Poll::Ready(message) => Poll::Ready(Some(message)),
                    Poll::Pending if refused.is_empty() => Poll::Pending,
                    Poll::Pending => Poll::Ready(None),
                })
                .await
            };
            self.answer();
            match next {
                Some(Some(message)) => return Some(message),
                Some(None) => break,
                None => {}
            }
        }
        for answer in self.answers.drain(..) {
            // A client that is gone needs no answer.
            let _ = answer.await;
        }
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// Lines that are JSON, out of an input.
struct JsonLines<R> {
    input: R,
    halves: Halves,
    /// The line so far.
    line: Vec<u8>,
    is_too_long: bool,
    has_ended: bool,
    /// Lines that the library may read.
    ready: Vec<u8>,
    refused: PendingErrors,
    noise: Noise,
}

impl<R> JsonLines<R> {
    fn new(input: R, refused: PendingErrors) -> Self {
        let (line, ready) = (Vec::new(), Vec::new());
        let (halves, noise) = (Halves::default(), Noise::default());
        Self { input, halves, line, is_too_long: false, has_ended: false, ready, refused, noise }
    }

    /// Takes a piece of the input, in which halves are mended.
    fn take(&mut self, piece: &[u8]) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            // Room for the line feed that the last line may lack.
            if self.line.len() + part.len() >= DEFAULT_MAX_LINE_LENGTH {
                self.is_too_long = true;
                self.line = Vec::new();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") && !self.end_line() {
                self.refused.push(ErrorData::invalid_request(Noise::TOLD, None));
                self.has_ended = true;
                return;
            }
        }
    }

    /// Passes a line on, or refuses it. `false`: there was too much noise.
    fn end_line(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line).trim_ascii();
        if std::mem::take(&mut self.is_too_long) {
            let why = format!("the line is longer than {DEFAULT_MAX_LINE_LENGTH} bytes");
            self.refused.push(ErrorData::invalid_request(why, None));
            return true;
        }
        if line.is_empty() {
            return true;
        }
        let mut is_message = false;
        match lines::text(line) {
            Ok(text) => match serde_json::from_str::<Value>(text) {
                Ok(value) => {
                    is_message = value.get("jsonrpc").is_some();
                    self.ready.extend_from_slice(line);
                    self.ready.push(b'\n');
                }
                Err(error) => {
                    self.refused.push(ErrorData::parse_error(format!("the line is no JSON: {error}"), None));
                }
            },
            Err(error @ LineError::Encoding(_)) => {
                self.refused.push(ErrorData::parse_error(format!("the line is {error}"), None));
            }
            Err(error) => {
                self.refused.push(ErrorData::invalid_request(format!("the line is refused: {error}"), None));
            }
        }
        if is_message {
            self.noise.meant();
        }
        is_message || !self.noise.meant_nothing(line.len())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for JsonLines<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let lines = self.get_mut();
        while lines.ready.is_empty() && !lines.has_ended {
            let mut bytes = [0; 4096];
            let mut piece = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut lines.input).poll_read(context, &mut piece))?;
            let mut mended = Vec::new();
            if piece.filled().is_empty() {
                lines.has_ended = true;
                lines.halves.end(&mut mended);
                // The last line may lack its line feed.
                mended.push(b'\n');
            } else {
                lines.halves.pass(piece.filled(), &mut mended);
            }
            lines.take(&mended);
        }
        let count = lines.ready.len().min(buffer.remaining());
        buffer.put_slice(lines.ready.drain(..count).as_slice());
        Poll::Ready(Ok(()))
    }
}
