//! Logs that are followed without an end.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};

use chokepoint_model::observation::{NetnsId, Request};

use super::Host;
use crate::servers::counter::LogGrowth;
use crate::servers::logs::asked;
use crate::servers::tail::{FollowedLog, LogTails};

const LOG: &str = "/var/log/nginx/a.log";
const MASTER: u32 = 42;

/// The master, of which nothing particular is asked.
fn masters() -> BTreeMap<u32, Vec<Request>> {
    BTreeMap::from([(MASTER, Vec::new())])
}

/// A followed nginx with an empty log.
fn followed() -> (Host, LogTails) {
    let host = Host::nginx();
    host.write(LOG, "200 0.001 0.001\n");
    let mut tails = LogTails::of(host.root());
    assert_eq!(tails.read(&masters()), [], "what was there before does not count");
    (host, tails)
}

fn growth(tails: &mut LogTails) -> LogGrowth {
    let logs = tails.read(&masters());
    let access: Vec<FollowedLog> = logs.into_iter().filter(|log| log.path == LOG).collect();
    let [FollowedLog { pid: MASTER, growth: Ok(growth), .. }] = access.as_slice() else { panic!("{access:?}") };
    growth.clone()
}

fn statuses(tails: &mut LogTails) -> BTreeMap<u16, u64> {
    growth(tails).status
}

#[test]
fn each_line_counts_once_and_half_a_line_later() {
    let (host, mut tails) = followed();
    host.append(LOG, "200 0.010 0.008\n502 1.000 -\n20");
    let first = growth(&mut tails);
    assert_eq!((first.status, first.misfits), (BTreeMap::from([(200, 1), (502, 1)]), 0));
    let request = &first.durations_us["request"];
    assert_eq!((request.total(), request.max(), first.durations_us["upstream-response"].total()), (2, 1_000_000, 1));
    assert_eq!(statuses(&mut tails), BTreeMap::new());
    host.append(LOG, "0 0.002 0.001\n");
    assert_eq!(statuses(&mut tails), BTreeMap::from([(200, 1)]));
    host.append(LOG, "no such line\n");
    assert_eq!(growth(&mut tails).misfits, 1);
}

#[test]
fn rotation_and_truncation_lose_no_line_that_can_be_read() {
    let (host, mut tails) = followed();
    host.append(LOG, "200 0.010 0.008\n");
    std::fs::rename(host.at(LOG), host.at("/var/log/nginx/a.log.1")).unwrap();
    host.append("/var/log/nginx/a.log.1", "500 0.010 0.008\n");
    host.write(LOG, "404 0.010 0.008\n");
    assert_eq!(statuses(&mut tails), BTreeMap::from([(200, 1), (404, 1), (500, 1)]));
    host.append(LOG, "201 0.010 0.008\n");
    assert_eq!(statuses(&mut tails), BTreeMap::from([(201, 1)]), "it goes on in the new file");
    // copytruncate
    OpenOptions::new().write(true).open(host.at(LOG)).unwrap().set_len(0).unwrap();
    host.append(LOG, "202 0.010 0.008\n");
    let grown = growth(&mut tails);
    assert_eq!((grown.status, grown.extent.rotated), (BTreeMap::from([(202, 1)]), true));
    std::fs::remove_file(host.at(LOG)).unwrap();
    let gone = tails.read(&masters());
    assert!(gone.iter().any(|log| log.path == LOG && log.growth.is_err()), "{gone:?}");
    host.write(LOG, "203 0.010 0.008\n");
    assert_eq!(statuses(&mut tails), BTreeMap::from([(203, 1)]));
}

#[test]
fn of_a_log_that_grows_by_a_gigabyte_at_once_the_end_is_read() {
    let (host, mut tails) = followed();
    let mut file = OpenOptions::new().write(true).open(host.at(LOG)).unwrap();
    file.seek(SeekFrom::Start(1 << 30)).unwrap();
    file.write_all(b"\n200 0.010 0.008\n").unwrap();
    let grown = growth(&mut tails);
    assert_eq!(grown.status, BTreeMap::from([(200, 1)]));
    assert!(grown.extent.skipped_bytes > 900 << 20 && grown.extent.read_bytes <= 64 << 20, "{:?}", grown.extent);
    host.append(LOG, "201 0.010 0.008\n");
    assert_eq!(statuses(&mut tails), BTreeMap::from([(201, 1)]));
}

#[test]
fn a_server_that_is_gone_is_forgotten() {
    let (host, mut tails) = followed();
    assert_eq!(tails.read(&BTreeMap::new()), []);
    host.append(LOG, "200 0.010 0.008\n");
    assert_eq!(tails.read(&masters()), [], "it is new again");
    host.append(LOG, "200 0.010 0.008\n");
    assert_eq!(statuses(&mut tails), BTreeMap::from([(200, 1)]));
}

#[test]
fn a_log_of_a_user_whose_readings_hang_waits_and_others_are_read() {
    const USER: u32 = 47_120;
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root has others' rights");
    }
    let (others, mut others_tails) = followed();
    let host = Host::nginx();
    host.run_by(USER);
    host.write(LOG, "200 0.001 0.001\n");
    let mut tails = LogTails::of(host.root());
    assert_eq!(tails.read(&masters()), []);
    let hang = |number: u32| {
        let (mut never, writer) = std::io::pipe().unwrap();
        let read = move || std::io::Read::read(&mut never, &mut [0]).is_ok();
        assert!(chokepoint_foreign::of_file(USER, &format!("/srv/{number}"), read).is_err());
        writer
    };
    let writers: Vec<std::io::PipeWriter> = (0..4).map(hang).collect();
    for host in [&host, &others] {
        host.append(LOG, "502 1.000 -\n");
    }
    let read = tails.read(&masters());
    let late = format!("reading what user {USER} names takes too long");
    assert!(read.iter().all(|log| log.growth.as_ref().is_err_and(|why| *why == late)) && !read.is_empty(), "{read:?}");
    assert_eq!(statuses(&mut others_tails), BTreeMap::from([(502, 1)]));
    drop(writers);
    // The readings end soon; then the line is read that was not read before.
    let read = || tails.read(&masters()).into_iter().find(|log| log.path == LOG).unwrap().growth;
    let growth = std::iter::repeat_with(read).find_map(Result::ok).unwrap();
    assert_eq!(growth.status, BTreeMap::from([(502, 1)]));
}

/// Anybody may add the mark of this program's requests to their own.
#[test]
fn what_others_ask_with_our_mark_counts() {
    let host = Host::nginx();
    let format = "log_format asked '$status \"$request\"'; server { listen 80; access_log /var/log/nginx/a.log asked; }";
    host.write("/etc/nginx/conf.d/site.conf", format);
    host.write(LOG, "");
    let mut tails = LogTails::of(host.root());
    assert_eq!(tails.read(&masters()), []);
    let line = |status: u32, target: &str| format!("{status} \"GET {target} HTTP/1.0\"\n");
    let others = ["/nope?chokepoint-status", "/status?chokepoint-status", "/status?a=chokepoint-status"];
    host.append(LOG, &others.map(|target| line(404, target)).concat());
    assert_eq!(statuses(&mut tails), BTreeMap::from([(404, 3)]), "nothing was asked");
    (0..2).for_each(|_| asked::ask(MASTER, "nginx".to_owned(), "/status?chokepoint-status"));
    host.append(LOG, &(line(200, "/status?chokepoint-status") + &line(404, others[0])));
    assert_eq!(statuses(&mut tails), BTreeMap::from([(404, 1)]));
    host.append(LOG, &line(200, "/status?chokepoint-status").repeat(3));
    assert_eq!(statuses(&mut tails), BTreeMap::from([(200, 2)]), "one of three is ours");
}

/// What another server block of the same nginx logs says nothing of a request.
#[test]
fn a_log_tells_of_the_requests_that_its_server_block_answers() {
    let host = Host::nginx();
    std::fs::create_dir_all(host.tree.path().join("proc/42/ns")).unwrap();
    std::os::unix::fs::symlink("net:[7]", host.tree.path().join("proc/42/ns/net")).unwrap();
    let block = |port: u16, log: &str| format!("server {{ listen {port}; access_log /var/log/nginx/{log} s; }}\n");
    host.write("/etc/nginx/conf.d/site.conf", &format!("log_format s '$status';\n{}{}", block(80, "a.log"), block(81, "b.log")));
    let request = |port: u16, netns: u64| Request {
        host: "127.0.0.1".to_owned(),
        addresses: vec!["127.0.0.1".parse().unwrap()],
        scheme: "http".to_owned(),
        server_netns: Some(NetnsId(netns)),
        port,
        loaded: true,
        ..Request::default()
    };
    let followed = |requests: &[Request]| {
        ["a.log", "b.log"].iter().for_each(|log| host.write(&format!("/var/log/nginx/{log}"), ""));
        let (mut tails, masters) = (LogTails::of(host.root()), BTreeMap::from([(MASTER, requests.to_vec())]));
        assert_eq!(tails.read(&masters), []);
        host.append(LOG, "200\n");
        host.append("/var/log/nginx/b.log", "500\n");
        let told = |log: FollowedLog| (log.path.rsplit('/').next().unwrap().to_owned(), log.of.into_iter().collect::<Vec<_>>());
        // The log of errors is the main context's, and everybody's.
        tails.read(&masters).into_iter().map(told).filter(|(name, _)| name != "error.log").collect::<Vec<_>>()
    };
    let log = |name: &str, of: &[usize]| (name.to_owned(), of.to_vec());
    assert_eq!(followed(&[request(80, 7)]), [log("a.log", &[0])]);
    assert_eq!(followed(&[request(81, 7), request(80, 7)]), [log("a.log", &[1]), log("b.log", &[0])]);
    for unknown in [&[][..], &[request(443, 7)], &[request(80, 8)]] {
        let names: Vec<String> = followed(unknown).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["access.log", "a.log", "b.log"], "any log may be that of what is asked for");
    }
}
