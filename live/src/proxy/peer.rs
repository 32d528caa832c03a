//! Whose program is at the other end of a connection on this machine.
//!
//! A token may get into other hands. Linux tells the user of each socket: the client's own socket is looked up, and other users are not
//! served whatever they show. Elsewhere, and where that cannot be read, the token alone counts.
//!
//! ```text
//! asked for one socket    50 us     diagnosis of sockets; not in every container
//! the table of all        5 ms      the kernel walks through all that there could be
//! ```

use std::net::{IpAddr, SocketAddr};

use acpdb_engine::storage::effective_user;
use memchr::memmem;

/// Connections that are served at once.
pub const CONNECTION_COUNT_MAX: usize = 256;
/// How long a client may take for the head of a request.
pub const HEAD_WAIT: std::time::Duration = std::time::Duration::from_secs(30);
/// Longest head of a request.
pub const HEAD_BYTES_MAX: usize = 256 << 10;

/// Tables of sockets, and the column of the user in them.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
const USER_COLUMN: usize = 7;
/// The state of a connection that is open.
const OPEN: &str = "01";

/// Whether users of sockets can be looked up here.
pub fn can_tell() -> bool {
    TABLES.iter().any(|table| std::fs::metadata(table).is_ok())
}

/// Whether the program that connected from `peer` to `own` runs as this user, or as the machine's owner.
pub fn is_of_this_user(peer: SocketAddr, own: SocketAddr) -> bool {
    let diagnosed =
        forms_of_kernel(peer, own).into_iter().find_map(|(peer, own)| diagnosis::user_of(peer, own));
    // A table that cannot be read names no user.
    let tables = TABLES.iter().filter_map(|table| std::fs::read_to_string(table).ok());
    let user = diagnosed.or_else(|| tables.into_iter().find_map(|table| user_in(&table, peer, own)));
    user.is_some_and(|user| user == effective_user() || user == 0)
}

/// The ends as the kernel may have them: as they are, and as those of the older kind.
fn forms_of_kernel(peer: SocketAddr, own: SocketAddr) -> Vec<(SocketAddr, SocketAddr)> {
    let older = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let mut all = vec![(older(peer), older(own)), (peer, own)];
    all.dedup();
    all
}

/// One question to the kernel about one socket.
#[cfg(target_os = "linux")]
#[expect(clippy::host_endian_bytes, reason = "the kernel speaks in the machine's own order")]
mod diagnosis {
    use std::net::{IpAddr, SocketAddr};

    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

    /// A question, and an answer, about a socket: `SOCK_DIAG_BY_FAMILY`.
    const BY_FAMILY: u16 = 20;
    const REQUEST: u16 = 1;
    const TCP: u8 = 6;
    /// Bytes of the head of a message.
    const HEAD_BYTES: usize = 16;
    /// Places in an answer: state, the two ports, user.
    const STATE_AT: usize = HEAD_BYTES + 1;
    const PORTS_AT: usize = HEAD_BYTES + 4;
    const USER_AT: usize = HEAD_BYTES + 64;
    const OPEN: u8 = 1;

    /// The user of the open connection from `peer` to `own`; `None`: the kernel does not tell.
    pub(super) fn user_of(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
        let (kind, flags) = (SocketType::DGRAM, SocketFlags::CLOEXEC);
        // Where it does not tell, the tables are read.
        let socket =
            rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, Some(netlink::SOCK_DIAG)).ok()?;
        let question = question(peer, own);
        // As above.
        rustix::net::send(&socket, &question, SendFlags::empty()).ok()?;
        let mut answer = [0; 512];
        // As above. The kernel has answered by now, or does not.
        let (_, count) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::DONTWAIT).ok()?;
        user_in(answer.get(..count)?, peer, own)
    }

    fn question(peer: SocketAddr, own: SocketAddr) -> Vec<u8> {
        let octets = |address: SocketAddr| {
            let mut all = [0; 16];
            match address.ip() {
                IpAddr::V4(ip) => all[..4].copy_from_slice(&ip.octets()),
                IpAddr::V6(ip) => all = ip.octets(),
            }
            all
        };
        let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        // Families are small numbers.
        let family = u8::try_from(family.as_raw()).unwrap_or_default();
        let mut all = Vec::new();
        all.extend_from_slice(&72_u32.to_ne_bytes());
        all.extend_from_slice(&BY_FAMILY.to_ne_bytes());
        all.extend_from_slice(&REQUEST.to_ne_bytes());
        // Number of the question, and the asker: the kernel's choice.
        all.extend_from_slice(&[0; 8]);
        all.extend_from_slice(&[family, TCP, 0, 0]);
        // Connections in any state.
        all.extend_from_slice(&u32::MAX.to_ne_bytes());
        all.extend_from_slice(&peer.port().to_be_bytes());
        all.extend_from_slice(&own.port().to_be_bytes());
        all.extend_from_slice(&octets(peer));
        all.extend_from_slice(&octets(own));
        // Any device, and no mark of a former answer.
        all.extend_from_slice(&0_u32.to_ne_bytes());
        all.extend_from_slice(&[u8::MAX; 8]);
        all
    }

    pub(super) fn user_in(answer: &[u8], peer: SocketAddr, own: SocketAddr) -> Option<u32> {
        let two = |at: usize| answer.get(at..at.saturating_add(2))?.try_into().ok();
        let is_about_it = two(4).map(u16::from_ne_bytes) == Some(BY_FAMILY)
            && answer.get(STATE_AT) == Some(&OPEN)
            && two(PORTS_AT).map(u16::from_be_bytes) == Some(peer.port())
            && two(PORTS_AT + 2).map(u16::from_be_bytes) == Some(own.port());
        let user = answer.get(USER_AT..USER_AT + 4)?.try_into().ok()?;
        is_about_it.then_some(u32::from_ne_bytes(user))
    }
}

/// Elsewhere nothing is told.
#[cfg(not(target_os = "linux"))]
mod diagnosis {
    pub(super) fn user_of(_: std::net::SocketAddr, _: std::net::SocketAddr) -> Option<u32> {
        None
    }
}

/// The user of the socket that is bound to `peer` and connected to `own`.
fn user_in(table: &str, peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    let (peers, owns) = (forms(peer), forms(own));
    peers.iter().flat_map(|form| rows_with(table, form)).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, state, ..] = columns.as_slice() else { return None };
        let is_it = *state == OPEN
            && peers.iter().any(|form| form == local)
            && owns.iter().any(|form| form == remote);
        // A row without a number of a user is none.
        columns.get(USER_COLUMN).filter(|_| is_it)?.parse().ok()
    })
}

/// The rows in which an address stands: a table has thousands of rows.
fn rows_with<'t>(table: &'t str, form: &str) -> Vec<&'t str> {
    let row = |place| {
        let start = table.get(..place)?.rfind('\n').map_or(0, |end| end + 1);
        table.get(start..)?.lines().next()
    };
    memmem::find_iter(table.as_bytes(), form.as_bytes()).filter_map(row).collect()
}

/// An address as the tables write it: words in the machine's order, as it is and as one of the newer kind.
fn forms(address: SocketAddr) -> Vec<String> {
    let words = |bytes: &[u8]| -> String {
        let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap_or_default()));
        words
            .map(|word| if cfg!(target_endian = "little") { word } else { word.swap_bytes() })
            .map(|word| format!("{word:08X}"))
            .collect()
    };
    let port = address.port();
    match address.ip() {
        IpAddr::V4(ip) => vec![
            format!("{}:{port:04X}", words(&ip.octets())),
            format!("{}:{port:04X}", words(&ip.to_ipv6_mapped().octets())),
        ],
        IpAddr::V6(ip) => {
            let mut all = vec![format!("{}:{port:04X}", words(&ip.octets()))];
            all.extend(ip.to_ipv4_mapped().map(|ip| format!("{}:{port:04X}", words(&ip.octets()))));
            all
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every user of the machine could read a store of mode 0700 through its server.
    #[test]
    fn the_user_of_a_connection_is_looked_up() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:102D 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0\n   \
                     1: 0100007F:C001 0100007F:102D 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20 4 0 10 -1\n   \
                     2: 0100007F:C002 0100007F:102D 06 00000000:00000000 00:00000000 00000000     0        0 0 3 0\n";
        let at = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(user_in(table, at(0xC001), at(0x102D)), Some(1001));
        assert_eq!(user_in(table, at(0xC002), at(0x102D)), None, "a connection that has ended");
        assert_eq!(user_in(table, at(0x102D), at(0xC001)), None, "the server's own end");
        assert_eq!(user_in("", at(1), at(2)), None);
        if !can_tell() {
            return;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, peer) = listener.accept().unwrap();
        assert!(is_of_this_user(peer, server.local_addr().unwrap()));
        // Where the kernel answers for one socket, it answers the same.
        let own = server.local_addr().unwrap();
        for told in [diagnosis::user_of(peer, own), diagnosis::user_of(own, peer)].into_iter().flatten() {
            assert_eq!(told, effective_user());
        }
        assert_eq!(diagnosis::user_of(at(1), own), None, "no such connection");
        assert_eq!(diagnosis::user_of(own, own), None, "a server that listens is no client");
        assert!(!is_of_this_user(at(1), server.local_addr().unwrap()));
        drop(client);
    }
}
