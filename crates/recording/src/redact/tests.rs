//! Redaction as a whole: properties of its parts together.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;
use crate::entry::Scope;

fn text(level: Level, text: &str) -> String {
    String::from_utf8(Redactor::new(level).text(text.as_bytes())).unwrap()
}

#[test]
fn json_stays_json_and_keeps_its_layout() {
    let from = r#"{"url": "http://u:p@8.8.8.8/?a=b", "host":"8.8.8.8","addresses":["8.8.8.8","2a00::1","10.0.0.1"],
 "headers":[["Authorization","Bearer x"],["Accept","a\n8.8.8.8"]], "n": 1.50, "auth_token":{"a":"b","c":[1,"d"]},"x":"\u00e9"}"#;
    let to = r#"{"url": "http://[redacted]@198.18.0.1/?a=[redacted]", "host":"198.18.0.1","addresses":["198.18.0.1","2001:db8::1","10.0.0.1"],
 "headers":[["Authorization","[redacted]"],["Accept","a\n198.18.0.1"]], "n": 1.50, "auth_token":{"a":"[redacted]","c":[1,"[redacted]"]},"x":"\u00e9"}"#;
    assert_eq!(text(Level::Public, from), to);
    assert_eq!(text(Level::Public, to), to);
    assert_eq!(text(Level::Public, "8.8.8.8\n{\"password\":\"x y\"}\n8.8.8.8"), "198.18.0.1\n{\"password\":\"[redacted]\"}\n198.18.0.1");
    assert_eq!(text(Level::Public, r#"[{"name":"Cookie","value":"a b"}]"#), r#"[{"name":"Cookie","value":"[redacted]"}]"#);
}

#[test]
fn level_all_redacts_names_and_private_addresses() {
    let from = r#"{"url":"http://shop.example:81/","host":"shop.example","addresses":["10.0.0.1","127.0.0.1"]}"#;
    let to = r#"{"url":"http://host-1.invalid:81/","host":"host-1.invalid","addresses":["198.18.0.1","127.0.0.1"]}"#;
    assert_eq!(text(Level::All, from), to);
    assert_eq!(text(Level::All, to), to);
    assert_eq!(text(Level::Public, from), from);

    let mut redactor = Redactor::new(Level::All);
    redactor.survey_host("db.internal");
    redactor.survey(b"http://web.internal/ 198.18.0.1");
    assert_eq!(redactor.text(b"db.internal web.internal 10.0.0.1 10.0.0.9"), b"host-1.invalid host-2.invalid 198.18.0.2 198.18.0.3");
}

#[test]
fn level_none_changes_nothing() {
    let all = "http://u:p@8.8.8.8/?a=b 52:54:00:12:34:56 password=x";
    assert_eq!(text(Level::None, all), all);
    assert_eq!(Redactor::new(Level::None).address(Ipv4Addr::new(8, 8, 8, 8).into()), IpAddr::from([8, 8, 8, 8]));
}

#[test]
fn an_entry_is_redacted_as_a_whole_and_keeps_its_place() {
    let entry = |item: &str, outcome| Entry { at_us: 3, source: "cmdline".into(), scope: Scope::Process(7), item: item.into(), outcome };
    let mut redactor = Redactor::new(Level::Public);
    let rewritten = redactor.entry(&entry("8.8.8.8", Outcome::Failed("connect to 8.8.8.8: refused".into(), Some("CAP_NET_ADMIN".into()))));
    let expected = Outcome::Failed("connect to 198.18.0.1: refused".into(), Some("CAP_NET_ADMIN".into()));
    assert_eq!(rewritten, entry("198.18.0.1", expected));
    assert_eq!(
        redactor.entry(&entry("", Outcome::Ok(b"\xff8.8.8.8\xff".to_vec()))),
        entry("", Outcome::Ok(b"\xff198.18.0.1\xff".to_vec()))
    );
}

/// These kernel files contain no address and no secret, so not a byte may change.
#[test]
fn counters_of_the_kernel_stay_byte_for_byte() {
    let netstat = "TcpExt: SyncookiesSent SyncookiesRecv TCPFastOpenCookieReqd TCPChallengeACK\nTcpExt: 0 12 0 4294967295\n";
    let softnet = "0001e0f2 00000000 0000001c 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000\n";
    let stat = "cpu  10132153 290696 3084719 46828483 16683 0 25195 0 175628 0\nbtime 1700465520\nctxt 38014093\n";
    let conntrack = "entries  searched found new invalid ignore delete\n00000012  00000000 00000000 00000000 00000003 00000000\n";
    let limits = "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 4096    files\n";
    let cgroup = "0::/system.slice/nginx.service\n12:cpu,cpuacct:/docker/3f4e\n";
    let kmsg = "4,1234,567890123,-;nf_conntrack: nf_conntrack: table full, dropping packet in netns 4026532000\n SUBSYSTEM=net\n";
    for same in [netstat, softnet, stat, conntrack, limits, cgroup, kmsg] {
        assert_eq!(text(Level::All, same), same);
    }
}

/// Pieces of awkward text.
fn piece() -> impl Strategy<Value = String> {
    let fixed: &[&str] = &[
        "password",
        "=",
        ":",
        "://",
        "@",
        "?",
        "&",
        "\"",
        "'",
        "\\",
        "\0",
        "\n",
        " ",
        ",",
        ";",
        "http",
        "Authorization",
        "Cookie",
        "Bearer ",
        "--token",
        "-p",
        "mysql",
        "curl",
        "-u",
        "[redacted]",
        "[",
        "]",
        "{",
        "}",
        "%20",
        "\\n",
        "::",
        ".",
        "..",
        "v",
        "8.8.8.8",
        "2a00::1",
        "08.1.2.3",
        "52:54:00:12:34:56",
        "aa-bb-cc-dd-ee-ff",
        "fe80::1",
        "198.18.0.9",
        "2001:db8::7",
        "host:",
        "www.example.com",
        "web",
        "x",
        "_",
        "-",
        "/",
        "|",
        "\\u0041",
        "\\x41",
        "\u{e9}",
        "#",
        "1:2:3:4:5:6:7",
        "0",
        "api_key",
        "\"a\":",
        "<",
        "(",
        "$",
    ];
    prop_oneof![
        8 => proptest::sample::select(fixed).prop_map(str::to_owned),
        1 => any::<[u8; 4]>().prop_map(|octets| Ipv4Addr::from(octets).to_string()),
        1 => any::<[u8; 16]>().prop_map(|octets| Ipv6Addr::from(octets).to_string()),
        1 => "[ -~]{1,3}",
    ]
}

fn awkward() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat())
}

fn is_public(address: IpAddr) -> bool {
    address::Pseudonyms::default().of(address, false) != address
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn rewriting_twice_changes_nothing_more(from in awkward(), all in any::<bool>()) {
        let level = if all { Level::All } else { Level::Public };
        let once = Redactor::new(level).text(from.as_bytes());
        let twice = Redactor::new(level).text(&once);
        prop_assert_eq!(String::from_utf8_lossy(&twice), String::from_utf8_lossy(&once));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let once = Redactor::new(Level::All).text(&bytes);
        prop_assert_eq!(Redactor::new(Level::All).text(&once), once);
    }

    #[test]
    fn no_public_address_survives(
        v4 in any::<[u8; 4]>().prop_map(Ipv4Addr::from).prop_filter("public", |address| is_public((*address).into())),
        v6 in any::<[u16; 8]>().prop_map(Ipv6Addr::from).prop_filter("public", |address| is_public((*address).into())),
        mapped in any::<bool>(),
        left in "(|[ \\[(,;=<>\"'/|-]|src=|addr:|client: |\\\\n|%20|[g-u])",
        right in "(|[ \\]),;<>\"'/|-]|:80|\\.|: x|/24|%eth0|\\\\n)",
    ) {
        for (address, shown) in [(IpAddr::from(v4), v4.to_string()), (v6.into(), v6.to_string()), (v6.into(), format!("[{v6}]:443"))] {
            // A letter before an IPv6 address makes it part of a word.
            let left = if address.is_ipv6() && left.ends_with(|c: char| c.is_ascii_alphabetic()) && !left.starts_with('\\') { " " } else { &left };
            let shown = if mapped && address.is_ipv4() { format!("::ffff:{shown}") } else { shown };
            let left = if mapped && left.ends_with(|c: char| c.is_ascii_alphabetic()) && !left.starts_with('\\') { " " } else { left };
            let out = text(Level::Public, &format!("{left}{shown}{right}"));
            prop_assert!(!out.contains(&address.to_string()), "{out}");
            prop_assert!(!out.contains(&shown), "{out}");
        }
    }

    #[test]
    fn json_documents_stay_json(strings in proptest::collection::vec(awkward(), 0..6), key in awkward()) {
        let document = serde_json::json!({ "request": strings, key: { "password": strings, "n": 1 } }).to_string();
        let out = Redactor::new(Level::All).text(document.as_bytes());
        prop_assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok(), "{}", String::from_utf8_lossy(&out));
        prop_assert_eq!(Redactor::new(Level::All).text(&out), out);
    }

    #[test]
    fn other_text_stays(words in proptest::collection::vec("[a-z]{1,8}|[0-9]{1,10}|[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}|[0-9]{2}:[0-9]{2}:[0-9]{2}|0x[0-9a-f]{8}|[0-9a-f]{8}", 0..20)) {
        let from = words.join(" ");
        prop_assert_eq!(text(Level::All, &from), from);
    }
}
