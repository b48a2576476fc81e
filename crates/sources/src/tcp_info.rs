//! The complete `struct tcp_info` of a connected socket (include/uapi/linux/tcp.h, Linux 6.18), and its congestion control.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Buffer for the structure, bytes. It grows with kernel versions (104 in Linux 2.6, 280 in 6.18).
const BYTES_MAX: usize = 1024;
/// TCP_CA_NAME_MAX (include/net/tcp.h).
const NAME_BYTES_MAX: usize = 16;

/// One field of the structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfoField {
    /// The kernel's name without `tcpi_`.
    pub name: &'static str,
    /// Its size.
    pub bytes: usize,
    /// Unit, empty for plain numbers.
    pub unit: &'static str,
}

const fn field(name: &'static str, bytes: usize, unit: &'static str) -> TcpInfoField {
    TcpInfoField { name, bytes, unit }
}

/// All fields in order, without gaps. A bit field is represented by its byte.
pub const TCP_INFO_FIELDS: &[TcpInfoField] = &[
    field("state", 1, ""),
    field("ca_state", 1, ""),
    field("retransmits", 1, ""),
    field("probes", 1, ""),
    field("backoff", 1, ""),
    field("options", 1, "bits"),
    field("wscale", 1, ""),
    field("flags", 1, "bits"),
    field("rto", 4, "us"),
    field("ato", 4, "us"),
    field("snd_mss", 4, "bytes"),
    field("rcv_mss", 4, "bytes"),
    field("unacked", 4, "segments"),
    field("sacked", 4, "segments"),
    field("lost", 4, "segments"),
    field("retrans", 4, "segments"),
    field("fackets", 4, "segments"),
    field("last_data_sent", 4, "ms"),
    field("last_ack_sent", 4, "ms"),
    field("last_data_recv", 4, "ms"),
    field("last_ack_recv", 4, "ms"),
    field("pmtu", 4, "bytes"),
    field("rcv_ssthresh", 4, "bytes"),
    field("rtt", 4, "us"),
    field("rttvar", 4, "us"),
    field("snd_ssthresh", 4, "segments"),
    field("snd_cwnd", 4, "segments"),
    field("advmss", 4, "bytes"),
    field("reordering", 4, "segments"),
    field("rcv_rtt", 4, "us"),
    field("rcv_space", 4, "bytes"),
    field("total_retrans", 4, "segments"),
    field("pacing_rate", 8, "bytes/s"),
    field("max_pacing_rate", 8, "bytes/s"),
    field("bytes_acked", 8, "bytes"),
    field("bytes_received", 8, "bytes"),
    field("segs_out", 4, "segments"),
    field("segs_in", 4, "segments"),
    field("notsent_bytes", 4, "bytes"),
    field("min_rtt", 4, "us"),
    field("data_segs_in", 4, "segments"),
    field("data_segs_out", 4, "segments"),
    field("delivery_rate", 8, "bytes/s"),
    field("busy_time", 8, "us"),
    field("rwnd_limited", 8, "us"),
    field("sndbuf_limited", 8, "us"),
    field("delivered", 4, "segments"),
    field("delivered_ce", 4, "segments"),
    field("bytes_sent", 8, "bytes"),
    field("bytes_retrans", 8, "bytes"),
    field("dsack_dups", 4, "segments"),
    field("reord_seen", 4, ""),
    field("rcv_ooopack", 4, "segments"),
    field("snd_wnd", 4, "bytes"),
    field("rcv_wnd", 4, "bytes"),
    field("rehash", 4, ""),
    field("total_rto", 2, ""),
    field("total_rto_recoveries", 2, ""),
    field("total_rto_time", 4, "ms"),
    field("received_ce", 4, "segments"),
    field("delivered_e1_bytes", 4, "bytes"),
    field("delivered_e0_bytes", 4, "bytes"),
    field("delivered_ce_bytes", 4, "bytes"),
    field("received_e1_bytes", 4, "bytes"),
    field("received_e0_bytes", 4, "bytes"),
    field("received_ce_bytes", 4, "bytes"),
    field("accecn_fail_mode", 2, "bits"),
    field("accecn_opt_seen", 2, ""),
];

/// Offset and size of a field, computed at build time, so that reading it from thousands of sockets needs no search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpInfoPlace {
    at: usize,
    bytes: usize,
}

impl TcpInfoPlace {
    /// The place of the field of this name.
    ///
    /// # Panics
    /// There is no such field. In a constant this is a build error.
    pub const fn of(name: &str) -> Self {
        let (mut at, mut field) = (0, 0);
        while field < TCP_INFO_FIELDS.len() {
            let bytes = TCP_INFO_FIELDS[field].bytes;
            if is_same(TCP_INFO_FIELDS[field].name.as_bytes(), name.as_bytes()) {
                return Self { at, bytes };
            }
            at += bytes;
            field += 1;
        }
        panic!("no field of tcp_info has this name")
    }

    /// The field's value; nothing if the kernel that wrote these bytes does not have the field.
    pub fn read(self, info: &[u8]) -> Option<u64> {
        let bytes = info.get(self.at..self.at + self.bytes)?;
        Some(match bytes.len() {
            4 => u64::from(u32::from_ne_bytes(*bytes.first_chunk()?)),
            8 => u64::from_ne_bytes(*bytes.first_chunk()?),
            _ => number(bytes),
        })
    }
}

/// Reads the field of this name, see [`TcpInfoPlace::read`]. Its place is computed at build time.
macro_rules! tcp_info_field {
    ($info:expr, $name:literal) => {{
        const PLACE: $crate::TcpInfoPlace = $crate::TcpInfoPlace::of($name);
        PLACE.read($info)
    }};
}
pub(crate) use tcp_info_field;

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    a.len() == b.len() && at == a.len()
}

/// The structure as the kernel returned it, in native byte order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpInfo {
    bytes: Vec<u8>,
}

impl TcpInfo {
    /// The structure from its bytes, of any length.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The structure's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes the kernel returned.
    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes after the last known field: additions of newer kernels.
    pub fn unknown_bytes(&self) -> usize {
        self.bytes.len().saturating_sub(TCP_INFO_FIELDS.iter().map(|field| field.bytes).sum())
    }

    /// All fields with their values; no value if this kernel does not have the field.
    pub fn values(&self) -> impl Iterator<Item = (&'static TcpInfoField, Option<u64>)> {
        let mut at = 0;
        TCP_INFO_FIELDS.iter().map(move |field| {
            let value = self.bytes.get(at..at + field.bytes).map(number);
            at += field.bytes;
            (field, value)
        })
    }

    /// One field by its name; nothing if this kernel does not have it.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.values().find(|(field, _)| field.name == name)?.1
    }
}

/// A number of one to eight bytes in native order.
fn number(bytes: &[u8]) -> u64 {
    let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    if cfg!(target_endian = "big") { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
}

/// Reads the structure of a TCP socket (tcp(7), TCP_INFO).
///
/// # Errors
/// The socket is no TCP socket, or the kernel refuses.
pub fn read_tcp_info(socket: &impl AsFd) -> io::Result<TcpInfo> {
    option(socket, libc::TCP_INFO, BYTES_MAX).map(TcpInfo::of)
}

/// Reads the name of a TCP socket's congestion control (tcp(7), TCP_CONGESTION).
///
/// # Errors
/// The socket is no TCP socket, or the kernel refuses.
pub fn read_congestion_control(socket: &impl AsFd) -> io::Result<String> {
    let name = option(socket, libc::TCP_CONGESTION, NAME_BYTES_MAX)?;
    Ok(String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned())
}

fn option(socket: &impl AsFd, name: libc::c_int, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0_u8; bytes_max];
    let mut length = libc::socklen_t::try_from(bytes_max).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the kernel writes at most `length` bytes into the buffer, which is that long, and the number of written bytes into `length`. The descriptor is
    // open while it is borrowed.
    let result =
        unsafe { libc::getsockopt(socket.as_fd().as_raw_fd(), libc::IPPROTO_TCP, name, bytes.as_mut_ptr().cast(), &raw mut length) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(usize::try_from(length).unwrap_or(0));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_socket_of_this_kernel_is_read_completely() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = read_tcp_info(&stream).unwrap();
        assert_eq!(info.value("state"), Some(1), "established");
        assert!(info.value("snd_mss").is_some_and(|mss| mss > 500) && info.value("snd_cwnd").is_some_and(|segments| segments > 0));
        assert!(info.length() >= 104, "{}", info.length());
        assert!(!read_congestion_control(&stream).unwrap().is_empty());
    }

    #[test]
    fn every_field_has_the_offset_of_the_kernel() {
        let offset = |name: &str| {
            let place = TCP_INFO_FIELDS.iter().position(|field| field.name == name).unwrap();
            TCP_INFO_FIELDS[..place].iter().map(|field| field.bytes).sum::<usize>()
        };
        // offsetof() of the C structure.
        for (name, at) in [("rto", 8), ("rtt", 68), ("snd_cwnd", 80), ("total_retrans", 100), ("pacing_rate", 104), ("segs_out", 136)] {
            assert_eq!(offset(name), at, "{name}");
        }
        for (name, at) in [("delivery_rate", 160), ("delivered", 192), ("bytes_sent", 200), ("snd_wnd", 228), ("total_rto_time", 244)] {
            assert_eq!(offset(name), at, "{name}");
        }
    }

    #[test]
    fn a_place_reads_the_same_as_the_name() {
        let info = TcpInfo::of((0..=255).collect());
        for field in TCP_INFO_FIELDS {
            assert_eq!(TcpInfoPlace::of(field.name).read(&info.bytes), info.value(field.name), "{}", field.name);
            assert_eq!(TcpInfoPlace::of(field.name).read(&[]), None);
        }
    }

    #[test]
    fn older_kernels_lack_the_last_fields_and_newer_ones_have_more() {
        for length in 0..400 {
            let info = TcpInfo::of(vec![1; length]);
            let known = info.values().filter(|(_, value)| value.is_some()).map(|(field, _)| field.bytes).sum::<usize>();
            assert!(known <= length && (info.unknown_bytes() == 0 || known + info.unknown_bytes() == length));
        }
        assert_eq!(TcpInfo::of(vec![1; 104]).value("pacing_rate"), None);
        assert_eq!(TcpInfo::of(vec![0; 290]).unknown_bytes(), 10);
    }

    #[test]
    fn another_file_is_an_error() {
        assert!(read_tcp_info(&std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
