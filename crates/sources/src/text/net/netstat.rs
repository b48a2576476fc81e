//! Protocol counters of one namespace: `/proc/net/netstat`, `/proc/net/snmp` and the IPv6 lines of `/proc/net/snmp6`.

use chokepoint_model::observation::{Counters, Observation};
use chokepoint_model::reading::Reading;
use chokepoint_model::series::Series;
use chokepoint_recording::{Entry, Outcome};

use crate::root::{Root, WHY_MISSING, reading_of};
use crate::scope::netns_view;
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, lines, whole};

const NAME: &str = "netstat";
/// Each of the three files has a few hundred numbers at most.
const BYTES_MAX: usize = 256 << 10;

/// The lines of `/proc/net/snmp6` that are kept begin so.
const SIX: [&str; 2] = ["Ip6", "Udp6"];

/// Once a second in each namespace: the three files one after the other, the third reduced to the lines "Ip6..." and "Udp6...".
pub(crate) const NETSTAT: Source =
    Source { name: NAME, scope: ScopeKind::Netns, cadence: Cadence::Slow, needs: None, read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    only_item(read_files(context.root).unwrap_or_else(|lack| lack))
}

fn read_files(root: &Root) -> Result<Outcome, Outcome> {
    let mut text = Vec::new();
    for file in ["proc/thread-self/net/netstat", "proc/thread-self/net/snmp"] {
        match root.read(file, BYTES_MAX, None) {
            Outcome::Ok(bytes) => text.extend(bytes),
            lack => return Err(lack),
        }
    }
    match root.read("proc/thread-self/net/snmp6", BYTES_MAX, None) {
        Outcome::Ok(bytes) => text.extend(
            bytes
                .split_inclusive(|&byte| byte == b'\n')
                .filter(|line| SIX.iter().any(|protocol| line.starts_with(protocol.as_bytes())))
                .flatten(),
        ),
        // The kernel has no IPv6, or it is disabled at boot.
        Outcome::Absent(why, _) if why == WHY_MISSING => {}
        lack => return Err(lack),
    }
    Ok(Outcome::Ok(text))
}

/// Parses pairs of lines, "Protocol: names" and "Protocol: values", into "Protocol.Name"; and lines "Ip6Name value" into "Ip6.Name". Larger unsigned values
/// become the largest number. Values may be negative (Tcp.MaxConn is -1; RFC 4022).
pub(crate) fn parse(bytes: &[u8]) -> Result<Counters, ParseError> {
    let text = whole(NAME, bytes)?;
    let mut counters: Vec<(String, i64)> = Vec::new();
    let mut header: Option<(&str, Vec<&str>)> = None;
    for (place, line) in lines(NAME, &text) {
        let Some((protocol, rest)) = line.split_once(": ") else {
            if header.is_some() {
                return Err(place.expected("the values of the header above", line));
            }
            let (name, value) = ip6_line(place, line)?;
            counters.push((name, value));
            continue;
        };
        let tokens = rest.split_ascii_whitespace().collect::<Vec<_>>();
        match header.take() {
            None => header = Some((protocol, tokens)),
            Some((named, names)) if named == protocol && names.len() == tokens.len() => {
                for (name, value) in names.iter().zip(tokens) {
                    counters.push((format!("{protocol}.{name}"), number(place, Some(value))?));
                }
            }
            Some(_) => return Err(place.expected("as many values as the header above has names", line)),
        }
    }
    if header.is_some() || counters.is_empty() {
        return Err(TextLine::new(NAME, text.lines().count() + 1).expected("values after the last header", ""));
    }
    Ok(counters.into_iter().collect())
}

/// "Ip6InReceives 12" as ("Ip6.InReceives", 12); the same for the kernel's other IPv6 protocols.
fn ip6_line(place: TextLine, line: &str) -> Result<(String, i64), ParseError> {
    const PROTOCOLS: [&str; 4] = ["Ip6", "Icmp6", "Udp6", "UdpLite6"];
    let mut tokens = line.split_ascii_whitespace();
    let name = tokens.next().unwrap_or("");
    let Some((protocol, field)) = PROTOCOLS.iter().find_map(|protocol| Some((*protocol, name.strip_prefix(protocol)?))) else {
        return Err(place.expected("\"Protocol: ...\" or \"Ip6Name value\"", line));
    };
    let value = number(place, tokens.next())?;
    match tokens.next() {
        None if !field.is_empty() => Ok((format!("{protocol}.{field}"), value)),
        _ => Err(place.expected("one name and one value", line)),
    }
}

/// A counter, possibly negative, at most `i64::MAX`.
pub(crate) fn number(place: TextLine, token: Option<&str>) -> Result<i64, ParseError> {
    match place.number::<i128>("a decimal number", token)? {
        value if value < i128::from(i64::MIN) => Err(place.expected("a decimal number of 64 bits", token.unwrap_or(""))),
        value => Ok(i64::try_from(value).unwrap_or(i64::MAX)),
    }
}

fn put(observation: &mut Observation, entry: &Entry) {
    if let Some(netns) = netns_view(observation, entry) {
        push_sharing(&mut netns.netstat, entry.at_us, reading_of(&entry.outcome, parse));
    }
}

/// Adds a reading. It shares the list of names with the previous one if they are the same.
pub(crate) fn push_sharing(series: &mut Series<Counters>, at_us: u64, mut reading: Reading<Counters>) {
    if let (Reading::Ok(counters), Some(last)) = (&mut reading, series.last()) {
        counters.share_names(last);
    }
    series.push(at_us, reading);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_lines_and_ipv6_lines_are_parsed() {
        let counters = parse(
            b"TcpExt: ListenOverflows ListenDrops\nTcpExt: 7 9\nTcp: MaxConn\nTcp: -1\nIp6InReceives                   \t12\nIcmp6OutErrors 1\n",
        )
        .unwrap();
        let counters: Vec<(&str, i64)> = counters.iter().map(|(name, value)| (name, *value)).collect();
        assert_eq!(
            counters,
            [("Icmp6.OutErrors", 1), ("Ip6.InReceives", 12), ("Tcp.MaxConn", -1), ("TcpExt.ListenDrops", 9), ("TcpExt.ListenOverflows", 7)]
        );
    }

    #[test]
    fn counters_of_an_old_kernel_are_found_by_name() {
        let counters = parse(include_bytes!("../../../tests/data/text/variants/netstat-3.10")).unwrap();
        assert_eq!(counters["TcpExt.ListenOverflows"], 4321);
        assert_eq!(counters["TcpExt.ListenDrops"], 4400);
        assert_eq!(counters["IpExt.InOctets"], 987_654_321_012);
        assert!(counters.get("TcpExt.TCPReqQFullDrop").is_none());
    }

    #[test]
    fn large_values_become_the_largest_number() {
        let counters = parse(format!("IpExt: InOctets\nIpExt: {}\n", u64::MAX).as_bytes()).unwrap();
        assert_eq!(counters["IpExt.InOctets"], i64::MAX);
    }

    #[test]
    fn unpaired_lines_are_an_error() {
        for wrong in [
            "",
            "\n",
            "Tcp: A B\n",
            "Tcp: A B\nTcp: 1\n",
            "Tcp: A\nTcp: 1 2\n",
            "Tcp: A\nUdp: 1\n",
            "Tcp: A\nTcp: x\n",
            "Tcp: A\nIp6In 1\nTcp: 1\n",
            "Ip6 1\n",
            "Ip6In\n",
            "Ip6In 1 2\n",
            "Else 1\n",
        ] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn without_ipv6_the_other_two_files_suffice() {
        let tree = tempfile::tempdir().unwrap();
        let net = tree.path().join("proc/thread-self/net");
        std::fs::create_dir_all(&net).unwrap();
        std::fs::write(net.join("netstat"), "TcpExt: A\nTcpExt: 1\n").unwrap();
        let root = Root::new(tree.path());
        assert!(matches!(read_files(&root), Err(Outcome::Absent(..))), "half of the counters would be a partial value");
        std::fs::write(net.join("snmp"), "Tcp: A\nTcp: 2\n").unwrap();
        let Ok(Outcome::Ok(bytes)) = read_files(&root) else { panic!("not read") };
        assert_eq!(parse(&bytes).unwrap().len(), 2);
        std::fs::write(net.join("snmp6"), "Ip6InReceives 3\nIcmp6InMsgs 1\n").unwrap();
        let Ok(Outcome::Ok(bytes)) = read_files(&root) else { panic!("not read") };
        assert_eq!(parse(&bytes).unwrap().len(), 3);
    }
}
