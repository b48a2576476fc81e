//! The files of both versions, which levels are read, and damaged files.

use super::super::process::parse as parse_paths;
use super::*;
use crate::table::Notes;
use chokepoint_recording::Scope;
use std::path::Path;

const V1: &str = "dir /sys/fs/cgroup/cpu/a\nquota_us 50000\\n\nperiod_us 100000\\n\nstat nr_periods 120\\nnr_throttled 60\\nthrottled_time 7000000\\n\nshare 2\\n\nusage_ns 3000000000\\n\nmode rw\n";
const V2: &str = "dir /sys/fs/cgroup/a\nmax 150000 100000\\n\nstat usage_usec 5000\\nuser_usec 3000\\nnr_periods 9\\nnr_throttled 3\\nthrottled_usec 77\\nnr_bursts 0\\n\nmode ro\n";

#[test]
fn both_versions_have_the_same_units() {
    let v1 = parse(V1.as_bytes()).unwrap();
    assert_eq!((v1.limit_cores(), v1.periods, v1.throttled_periods), (Some(0.5), Some(120), Some(60)));
    assert_eq!((v1.throttled_ns, v1.used_ns, v1.writable), (Some(7_000_000), Some(3_000_000_000), Some(true)));
    let v2 = parse(V2.as_bytes()).unwrap();
    assert_eq!((v2.limit_cores(), v2.periods, v2.throttled_periods), (Some(1.5), Some(9), Some(3)));
    assert_eq!((v2.throttled_ns, v2.used_ns, v2.writable), (Some(77_000), Some(5_000_000), Some(false)));
    assert_eq!((v1.share, v2.share), (Some(2), None));
}

#[test]
fn a_missing_limit_and_a_missing_counter_are_not_zero() {
    for text in [
        "dir /a\nquota_us -1\\n\nperiod_us 100000\\n\n",
        "dir /a\nmax max 100000\\n\n",
        "dir /a\nmax absent\n",
        "dir /a\nquota_us absent\nperiod_us absent\n",
    ] {
        let cpu = parse(text.as_bytes()).unwrap();
        assert_eq!((cpu.quota_us, cpu.limit_cores(), cpu.periods, cpu.used_ns, cpu.writable), (None, None, None, None, None), "{text:?}");
    }
    // Version 2 counts the time even without the controller.
    let cpu = parse(b"dir /a\nmax absent\nstat usage_usec 12\\n\n").unwrap();
    assert_eq!((cpu.used_ns, cpu.throttled_periods), (Some(12_000), None));
}

#[test]
fn a_damaged_text_is_an_error() {
    for wrong in [
        "",
        "dir /a\n",
        "dir /a\nquota_us 5\\n\n",
        "max 1 1\\n\n",
        "dir /a\nmax 0 100000\n",
        "dir /a\nmax 100000\n",
        "dir /a\nmax 100000 0\n",
        "dir /a\nmax 1 2 3\n",
        "dir /a\nmax -1 100000\n",
        "dir /a\nquota_us 0\nperiod_us 100000\n",
        "dir /a\nquota_us -2\nperiod_us 100000\n",
        "dir /a\nquota_us 99999999999999999999\nperiod_us 1\n",
        "dir /a\nmax max 1\nstat nr_periods x\\n\n",
        "dir /a\nmax max 1\nshare -1\\n\n",
    ] {
        assert!(parse(wrong.as_bytes()).is_err(), "{wrong:?}");
    }
    let huge = parse(format!("dir /a\nmax max 1\nstat usage_usec {}\\n\n", u64::MAX).as_bytes()).unwrap();
    assert_eq!(huge.used_ns, Some(u64::MAX));
}

fn write(tree: &Path, file: &str, text: &str) {
    let path = tree.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn context<'a>(root: &'a Root, notes: &'a Notes, phase: Phase) -> ReadContext<'a> {
    ReadContext::new(root, Scope::Host, phase, notes)
}

fn take_note(context: &ReadContext<'_>, pid: u32, cgroup: &[u8]) {
    add_process(context, pid, &parse_paths(cgroup).unwrap());
}

fn items(entries: &[(String, Outcome)]) -> Vec<&str> {
    entries.iter().map(|(item, _)| item.as_str()).collect()
}

#[test]
fn every_level_is_read_and_levels_without_a_limit_only_at_the_ends() {
    let tree = tempfile::tempdir().unwrap();
    let at = |file: &str, text: &str| write(tree.path(), file, text);
    at("proc/self/mountinfo", "1 0 0:1 / /cg/cpu rw - cgroup cgroup rw,cpu\n2 0 0:2 / /cg/acct rw - cgroup cgroup rw,cpuacct\n");
    for (level, quota) in [("", "-1\n"), ("/pod", "200000\n"), ("/pod/web", "50000\n")] {
        at(&format!("cg/cpu{level}/cpu.cfs_quota_us"), quota);
        at(&format!("cg/cpu{level}/cpu.cfs_period_us"), "100000\n");
        at(&format!("cg/cpu{level}/cpu.shares"), "512\n");
        at(&format!("cg/cpu{level}/cpu.stat"), "nr_periods 5\nnr_throttled 1\nthrottled_time 9\n");
        at(&format!("cg/acct{level}/cpuacct.usage"), "77\n");
    }
    let (root, notes) = (Root::new(tree.path()), Notes::default());
    assert_eq!(read(&context(&root, &notes, Phase::First)), [], "no process is known yet");
    for pid in [7, 8] {
        take_note(&context(&root, &notes, Phase::First), pid, b"2:cpuacct:/pod/web\n1:cpu:/pod/web\n0::/\n");
    }
    let all = ["v1:/", "v1:/pod", "v1:/pod/web"];
    let first = read(&context(&root, &notes, Phase::Running));
    assert_eq!(items(&first), all);
    let Outcome::Ok(bytes) = &first[2].1 else { panic!("{:?}", first[2]) };
    let web = parse(bytes).unwrap();
    assert_eq!((web.dir.as_str(), web.limit_cores(), web.used_ns, web.share), ("/cg/cpu/pod/web", Some(0.5), Some(77), Some(512)));
    assert_eq!(items(&read(&context(&root, &notes, Phase::Running))), all[1..]);
    assert_eq!(items(&read(&context(&root, &notes, Phase::Last))), all);
    std::fs::remove_dir_all(tree.path().join("cg/cpu/pod/web")).unwrap();
    let gone = read(&context(&root, &notes, Phase::Running));
    assert_eq!(gone[1].1, Outcome::Absent(WHY_GONE.to_owned(), None));
}

#[test]
fn an_account_of_another_cgroup_is_not_used() {
    let tree = tempfile::tempdir().unwrap();
    let at = |file: &str, text: &str| write(tree.path(), file, text);
    at("proc/self/mountinfo", "1 0 0:1 / /cpu rw - cgroup cgroup rw,cpu\n2 0 0:2 / /acct rw - cgroup cgroup rw,cpuacct\n");
    at("cpu/a/cpu.cfs_quota_us", "50000\n");
    at("cpu/a/cpu.cfs_period_us", "100000\n");
    at("acct/a/cpuacct.usage", "77\n");
    let (root, notes) = (Root::new(tree.path()), Notes::default());
    take_note(&context(&root, &notes, Phase::First), 7, b"2:cpuacct:/\n1:cpu:/a\n");
    let entries = read(&context(&root, &notes, Phase::Running));
    let Outcome::Ok(bytes) = &entries.iter().find(|(item, _)| item == "v1:/a").unwrap().1 else { panic!() };
    assert_eq!(parse(bytes).unwrap().used_ns, None);
}

#[test]
fn an_unmounted_hierarchy_is_reported_once() {
    let tree = tempfile::tempdir().unwrap();
    let (root, notes) = (Root::new(tree.path()), Notes::default());
    take_note(&context(&root, &notes, Phase::First), 7, b"0::/system.slice/a.service\n");
    assert_eq!(read(&context(&root, &notes, Phase::Running)), []);
    let last = read(&context(&root, &notes, Phase::Last));
    assert_eq!(items(&last), ["v2:/system.slice/a.service"]);
    assert!(matches!(last[0].1, Outcome::Absent(..)));
}

#[test]
fn cgroups_beyond_the_bound_are_counted() {
    let tree = tempfile::tempdir().unwrap();
    write(tree.path(), "proc/self/mountinfo", "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n");
    std::fs::create_dir_all(tree.path().join("cg")).unwrap();
    let (root, notes) = (Root::new(tree.path()), Notes::default());
    for pid in 0..300 {
        take_note(&context(&root, &notes, Phase::First), pid, format!("0::/u{pid}\n").as_bytes());
    }
    let last = read(&context(&root, &notes, Phase::Last));
    let (item, outcome) = last.last().unwrap();
    assert_eq!((item.as_str(), outcome), (LEFT_OUT, &Outcome::Ok(b"45".to_vec())));
    let mut observation = Observation::default();
    let entry = Entry { at_us: 1, source: NAME.into(), scope: Scope::Host, item: item.clone(), outcome: outcome.clone() };
    put(&mut observation, &entry);
    assert!(observation.bounded[0].contains("256 cgroups of the path were read and 45 left out"), "{:?}", observation.bounded);
}

#[test]
fn a_redacted_recording_keeps_the_cgroups_of_processes() {
    use chokepoint_recording::{Level, Redactor};
    let id = "0b1c2d3e4f5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e";
    for path in [
        format!("/docker/{id}"),
        format!("/system.slice/docker-{id}.scope"),
        format!("/kubepods/burstable/pod0b1c2d3e-4f5a-6b7c-8d9e-0f1a2b3c4d5e/{id}"),
        "/user.slice/user-1000.slice/user@1000.service".to_owned(),
        "/machine/192.0.2.7/web:80".to_owned(),
        "/password=secret/web".to_owned(),
    ] {
        for level in [Level::Public, Level::All] {
            let mut redactor = Redactor::new(level);
            let entry = |source: &str, scope, item: &str, bytes: String| Entry {
                at_us: 1,
                source: source.into(),
                scope,
                item: item.into(),
                outcome: Outcome::Ok(bytes.into_bytes()),
            };
            let entries = [
                entry("process_cgroups", Scope::Process(7), "", format!("2:cpuacct:{path}\n1:cpu:{path}\n0::/\n")),
                entry(NAME, Scope::Host, &format!("v1:{path}"), V1.replace("/a\n", &format!("{path}\n"))),
            ];
            let entries: Vec<Entry> = entries.iter().map(|entry| redactor.entry(entry)).collect();
            let observation = crate::assemble::assemble(&entries);
            let own = CgroupId::of_cpu(observation.processes[&7].cgroups.last().unwrap()).unwrap();
            assert!(observation.cgroups.contains_key(&own), "{path} at {level}: {own} of {:?}", observation.cgroups.keys());
        }
    }
}
