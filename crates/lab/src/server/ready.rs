//! When a server counts as ready. Listeners are looked up in /proc/net and nothing is sent to them: a full table or queue, the fault itself, is neither
//! touched nor in the way.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use crate::machine::{netns, process};

/// /proc/net/tcp takes 150 bytes a socket: enough for 100,000 sockets.
const TABLE_BYTES_MAX: u64 = 16 << 20;
const HTTP_WAIT: Duration = Duration::from_secs(1);

/// A readiness condition, placeholders replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// A TCP listener at this address.
    Tcp(SocketAddr),
    /// A unix listener at this path.
    Unix(String),
    /// A GET answers with 2xx or 3xx.
    Http(String),
    /// The server has any listening socket.
    Listening,
    /// The program ended with status 0.
    Finished,
    /// The program was started.
    Started,
}

/// A listening socket.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listener {
    address: Option<SocketAddr>,
    path: Option<String>,
    inode: u64,
}

/// True where the condition holds in the namespace for the server's session. Unreadable tables count as empty.
pub(crate) fn holds(condition: &Condition, netns_path: &Path, session: u32) -> bool {
    netns::inside(netns_path, || match condition {
        Condition::Tcp(wanted) => listeners().iter().filter_map(|listener| listener.address).any(|address| covers(address, *wanted)),
        Condition::Unix(wanted) => listeners().iter().any(|listener| listener.path.as_deref() == Some(wanted)),
        Condition::Http(url) => http_get(url).is_ok_and(|status| (200..400).contains(&status)),
        Condition::Listening => {
            let own = socket_inodes(session);
            listeners().iter().any(|listener| own.contains(&listener.inode))
        }
        Condition::Finished | Condition::Started => false,
    })
    .unwrap_or(false)
}

fn covers(listener: SocketAddr, wanted: SocketAddr) -> bool {
    let any = listener.ip().is_unspecified() && (listener.is_ipv4() == wanted.is_ipv4() || listener.is_ipv6());
    listener.port() == wanted.port() && (any || listener.ip() == wanted.ip())
}

/// All listening sockets of the calling thread's namespace.
fn listeners() -> Vec<Listener> {
    let mut all = Vec::new();
    for table in ["tcp", "tcp6"] {
        all.extend(read_table(table).lines().filter_map(parse_tcp_listener));
    }
    all.extend(read_table("unix").lines().filter_map(parse_unix_listener));
    all
}

fn read_table(name: &str) -> String {
    let mut bytes = Vec::new();
    // A missing table (no IPv6) has no listeners.
    if let Ok(file) = std::fs::File::open(format!("/proc/thread-self/net/{name}")) {
        let _ = file.take(TABLE_BYTES_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A line of /proc/net/tcp or tcp6 (proc_net_tcp.rst); `None` for the heading and for sockets that do not listen.
fn parse_tcp_listener(line: &str) -> Option<Listener> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    if *fields.get(3)? != "0A" {
        return None;
    }
    let (ip, port) = fields[1].split_once(':')?;
    // Each 32-bit word is printed in host byte order, so its bytes in memory order are the address.
    let words: Option<Vec<u8>> = (0..ip.len() / 8)
        .map(|word| u32::from_str_radix(ip.get(word * 8..word * 8 + 8)?, 16).ok().map(u32::to_ne_bytes))
        .collect::<Option<Vec<_>>>()
        .map(|words| words.concat());
    let ip: IpAddr = match words?.as_slice() {
        v4 if ip.len() == 8 => Ipv4Addr::from(<[u8; 4]>::try_from(v4).ok()?).into(),
        v6 if ip.len() == 32 => Ipv6Addr::from(<[u8; 16]>::try_from(v6).ok()?).into(),
        _ => return None,
    };
    let address = SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?);
    Some(Listener { address: Some(address), path: None, inode: fields.get(9)?.parse().ok()? })
}

/// A line of /proc/net/unix (proc(5)): `Num RefCount Protocol Flags Type St Inode Path`; flag 0x10000 marks a listener.
fn parse_unix_listener(line: &str) -> Option<Listener> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let flags = u32::from_str_radix(fields.get(3)?, 16).ok()?;
    if flags & 0x1_0000 == 0 {
        return None;
    }
    let inode = fields.get(6)?.parse().ok()?;
    // The path may contain blanks: it is everything after the inode.
    let path = line.split_once(&format!(" {} ", fields[6])).map(|(_, path)| path.to_owned());
    Some(Listener { address: None, path, inode })
}

/// Inodes of the sockets open in the processes of a session.
fn socket_inodes(session: u32) -> BTreeSet<u64> {
    let members = process::all().into_iter().filter(|process| process.session == session);
    let files = members.filter_map(|process| std::fs::read_dir(format!("/proc/{}/fd", process.pid)).ok()).flatten().flatten();
    files
        .filter_map(|file| {
            let target = std::fs::read_link(file.path()).ok()?;
            target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
        })
        .collect()
}

/// Splits "http://10.0.0.2:80/x" into address, host and path. Names are not resolved: a lab has no name service.
pub(crate) fn split_url(url: &str) -> Result<(SocketAddr, String, String), String> {
    let wrong = || {
        format!("\"{url}\" is not a URL with an address, such as \"http://10.0.0.2:80/\" (names are not resolved, https is not supported)")
    };
    let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
    let (authority, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
    let address = authority.parse::<SocketAddr>().or_else(|_| {
        let ip = authority.strip_prefix('[').and_then(|ip| ip.strip_suffix(']')).unwrap_or(authority);
        ip.parse().map(|ip: IpAddr| SocketAddr::new(ip, 80))
    });
    let good = !path.contains(|c: char| c.is_whitespace() || c.is_control());
    address
        .ok()
        .filter(|address| good && address.port() != 0)
        .map(|address| (address, authority.to_owned(), path.to_owned()))
        .ok_or_else(wrong)
}

/// The status of one GET.
fn http_get(url: &str) -> io::Result<u16> {
    let (address, host, path) = split_url(url).map_err(io::Error::other)?;
    let mut stream = TcpStream::connect_timeout(&address, HTTP_WAIT)?;
    stream.set_read_timeout(Some(HTTP_WAIT))?;
    stream.set_write_timeout(Some(HTTP_WAIT))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut head = Vec::new();
    stream.take(64).read_to_end(&mut head)?;
    parse_status(&head).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no HTTP answer"))
}

fn parse_status(head: &[u8]) -> Option<u16> {
    let text = head.strip_prefix(b"HTTP/1.")?;
    std::str::from_utf8(text.get(2..5)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    const OWN: &str = "/proc/self/ns/net";

    fn may_enter() -> bool {
        let may = netns::inside(Path::new(OWN), || ()).is_ok();
        if !may {
            println!("skipped: entering a namespace needs CAP_SYS_ADMIN");
        }
        may
    }

    #[test]
    fn listeners_are_found_without_connecting() {
        if !may_enter() {
            return;
        }
        let session = process::read(std::process::id()).unwrap().session;
        let v4 = TcpListener::bind("127.0.0.1:0").unwrap();
        v4.set_nonblocking(true).unwrap();
        let address = v4.local_addr().unwrap();
        assert!(holds(&Condition::Tcp(address), Path::new(OWN), 0));
        assert!(!holds(&Condition::Tcp("127.0.0.1:1".parse().unwrap()), Path::new(OWN), 0));
        assert!(!holds(&Condition::Tcp(SocketAddr::new("127.0.0.9".parse().unwrap(), address.port())), Path::new(OWN), 0));
        assert!(holds(&Condition::Listening, Path::new(OWN), session) && !holds(&Condition::Listening, Path::new(OWN), u32::MAX));
        assert!(v4.accept().is_err(), "nothing was sent to it");
        if let Ok(v6) = TcpListener::bind("[::]:0") {
            let port = v6.local_addr().unwrap().port();
            assert!(holds(&Condition::Tcp(SocketAddr::new("127.0.0.1".parse().unwrap(), port)), Path::new(OWN), 0), "dual stack");
            assert!(holds(&Condition::Tcp(SocketAddr::new("::1".parse().unwrap(), port)), Path::new(OWN), 0));
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a socket").display().to_string();
        assert!(!holds(&Condition::Unix(path.clone()), Path::new(OWN), 0));
        let _unix = UnixListener::bind(&path).unwrap();
        assert!(holds(&Condition::Unix(path), Path::new(OWN), 0));
    }

    #[test]
    fn lines_are_parsed_and_cut_ones_cause_no_panic() {
        let line = "   0: 0100007F:2328 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 0 100 0 0 10 0";
        let line6 = "   1: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 77 1";
        if cfg!(target_endian = "little") {
            assert_eq!(parse_tcp_listener(line).unwrap().address, Some("127.0.0.1:9000".parse().unwrap()));
        }
        assert_eq!(parse_tcp_listener(line6), Some(Listener { address: Some("[::]:80".parse().unwrap()), path: None, inode: 77 }));
        let unix = "ffff8880: 00000002 00000000 00010000 0001 01 4711 /run/a b.sock";
        assert_eq!(parse_unix_listener(unix), Some(Listener { address: None, path: Some("/run/a b.sock".into()), inode: 4711 }));
        for text in [line, line6, unix] {
            for length in 0..text.len() {
                let _ = (parse_tcp_listener(&text[..length]), parse_unix_listener(&text[..length]));
            }
        }
        assert_eq!(parse_tcp_listener("sl local_address rem_address st tx_queue"), None);
        assert_eq!((parse_status(b"HTTP/1.1 204 No"), parse_status(b"HTTP/1.1 2"), parse_status(b"SSH-2.0")), (Some(204), None, None));
    }

    #[test]
    fn urls_are_split() {
        let split = |url: &str| split_url(url).map(|(address, _, path)| (address.to_string(), path));
        assert_eq!(split("http://10.0.0.2:81/a?b"), Ok(("10.0.0.2:81".into(), "/a?b".into())));
        assert_eq!(split("http://10.0.0.2"), Ok(("10.0.0.2:80".into(), "/".into())));
        assert_eq!(split("http://[fd00::2]/"), Ok(("[fd00::2]:80".into(), "/".into())));
        assert_eq!(split("http://[fd00::2]:8080/"), Ok(("[fd00::2]:8080".into(), "/".into())));
        for bad in [
            "",
            "http://",
            "https://10.0.0.2/",
            "http://localhost/",
            "http://10.0.0.2:0/",
            "http://10.0.0.2/ x",
            "http://10.0.0.2/\r\nX: y",
        ] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_parsed_without_a_panic(line in "\\PC*") {
            let _ = (parse_tcp_listener(&line), parse_unix_listener(&line), split_url(&line), parse_status(line.as_bytes()));
        }
    }
}
