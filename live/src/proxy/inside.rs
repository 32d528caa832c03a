//! Proxies inside a program that has something else to do: each on a free port, on a thread of their own.
//!
//! ```text
//! begin: ports are bound, so the addresses are known: what connects waits
//! open: a thread takes connections until the process ends
//! finish: the exchanges that are under way are waited for, so that their records are there
//! ```

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use acpdb_engine::Store;

use super::flow::Flow;
use super::identity::RequestIdentity;
use super::server::{ProxyOptions, ProxyState, accept, client};
use super::{ProxyError, may_listen};

/// Proxies that run beside their program.
#[derive(Debug)]
pub struct Inside {
    /// Their addresses, in the order of their options.
    pub addresses: Vec<SocketAddr>,
    flow: Arc<Flow>,
    /// Its end lets connections be taken.
    closed: Option<Sender<()>>,
}

/// Starts proxies that take no connection before they are opened. Without a store they pass on all bytes blindly.
///
/// # Errors
/// If one may not or cannot listen, an address of a provider is none, or the system gives no thread.
pub fn begin(store: Option<&Store>, all: &[ProxyOptions]) -> Result<Inside, ProxyError> {
    let mut bound = Vec::new();
    for options in all {
        may_listen(options.listen, options.access.clients)?;
        let failed = |source| ProxyError::Listen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        bound.push((listener.local_addr().map_err(failed)?, listener, options));
    }
    // The system's certificates are read for ports that are there: some callers try again and again.
    let (flow, client) = (Arc::new(Flow::default()), client()?);
    let (mut addresses, mut ports) = (Vec::new(), Vec::new());
    for (address, listener, options) in bound {
        let proxy = ProxyState::new(store.cloned(), options, client.clone(), Arc::clone(&flow))?;
        addresses.push(address);
        ports.push((listener, Arc::new(proxy)));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(ProxyError::Start)?;
    let listeners: Vec<_> = {
        let _context = runtime.enter();
        let own = |(listener, proxy)| Ok((tokio::net::TcpListener::from_std(listener)?, proxy));
        ports.into_iter().map(own).collect::<Result<_, std::io::Error>>().map_err(ProxyError::Start)?
    };
    let thread = std::thread::Builder::new().name("proxy".to_owned());
    let (closed, opened) = channel::<()>();
    let running = thread.spawn(move || {
        // Nothing is ever sent: the other end is dropped.
        let _ = opened.recv();
        runtime.block_on(async {
            for (listener, proxy) in listeners {
                tokio::spawn(accept(listener, proxy));
            }
            std::future::pending::<()>().await;
        });
    });
    // It ends with the process.
    let _thread = running.map_err(ProxyError::Start)?;
    Ok(Inside { addresses, flow, closed: Some(closed) })
}

impl Inside {
    /// Lets connections be taken, those that wait first.
    pub fn open(&mut self) {
        self.closed = None;
    }

    /// The exchanges so far.
    pub fn exchange_count(&self) -> u64 {
        self.flow.count()
    }

    /// The sessions that exchanges belonged to.
    pub fn seen(&self) -> Vec<RequestIdentity> {
        self.flow.seen()
    }

    /// Waits for the records of exchanges that are under way, at most so long. `false`: one is not recorded yet.
    pub fn finish(&self, longest: Duration) -> bool {
        self.flow.wait(longest)
    }
}
