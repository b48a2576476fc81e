//! Finding `setting-not-in-force`: the cause if the configured value would suffice and is not active. No finding if it is active, would not
//! suffice, or nobody suffers.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::change::Change;
use chokepoint_model::load::Loop;
use chokepoint_model::observation::{
    KernelInfo, ListenerAddress, NginxConfig, NginxListen, Observation, Origin, PhpFpmConfig, PhpFpmPool, ServerConfig, Setting,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Diagnosis, Finding, Role};

use crate::stage::pool::{php_pool, process, tcp};
use crate::stage::*;

const ID: &str = "setting-not-in-force";
/// Boot time of the stage's host. Its processes start a second or two later.
const BOOT_S: i64 = 1_700_000_000;
const NGINX: &str = "/etc/nginx/nginx.conf";
const POOL: &str = "/etc/php/8.2/fpm/pool.d/www.conf";

fn booted(obs: &mut Observation) {
    let kernel = KernelInfo { boot_s: Some(BOOT_S), ..obs.kernel.last().unwrap().clone() };
    obs.kernel.push(1, Reading::Ok(kernel));
}

/// nginx (master 41, worker 42) at this address with this `backlog=`. A backlog of `limit` is active and overflows under a thousand
/// connections. Its file was changed `edited_s` after the boot.
fn nginx(bound: &str, backlog: Option<u32>, somaxconn: u32, limit: u32, edited_s: i64) -> Observation {
    let mut obs = healthy();
    booted(&mut obs);
    process(&mut obs, 41, 1, "nginx", &[100]);
    process(&mut obs, 42, 41, "nginx", &[100]);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.listeners = Default::default();
    for tick in 0..=220_u64 {
        let at = tick * 50_000;
        let mut listener = listener(ListenerAddress::Tcp(ip(bound), 80), 100, 1, at / 1_000);
        listener.accept_queue_limit = limit;
        view.listeners.push(at, Reading::Ok(vec![listener]));
    }
    view.sysctls.entry("net.core.somaxconn".into()).or_default().push(0, Reading::Ok(somaxconn.to_string()));
    let origin = Origin { file: NGINX.into(), line: 9 };
    let listens = vec![NginxListen { address: ListenerAddress::Tcp(ip(bound), 80), backlog, reuseport: false, origin }];
    let files = vec![(NGINX.to_owned(), BOOT_S + edited_s)];
    let config = NginxConfig { file: NGINX.into(), files, listens, ..NginxConfig::default() };
    obs.servers.entry(41).or_default().config.push(0, Reading::Ok(ServerConfig::Nginx(config)));
    let load = obs.load.as_mut().unwrap();
    load.shape = Loop::Closed { connections: 1_000 };
    (load.requests, load.errors.connect_timeout) = (102_000, 2_000);
    (load.connect_us.p999, load.connect_us.max) = (1_020_000, 1_030_000);
    obs
}

fn of<'a>(diagnosis: &'a Diagnosis, id: &str) -> &'a Finding {
    diagnosis.findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("{id} in {diagnosis:?}"))
}

fn remedies(finding: &Finding) -> Vec<&str> {
    finding.remedies.iter().map(|remedy| remedy.id.as_str()).collect()
}

#[test]
fn somaxconn_raised_after_listen_is_the_cause_and_nginx_listens_again_with_another_value() {
    for (bound, backlog, to) in
        [("0.0.0.0", Some(4_096), "4097"), ("::", Some(4_096), "4097"), ("0.0.0.0", Some(i32::MAX as u32), "2147483646")]
    {
        let diagnosis = told(&nginx(bound, backlog, 65_535, 10, -100));
        assert_eq!(causes(&diagnosis), [ID], "{bound}");
        let full = of(&diagnosis, "accept-queue-full");
        assert_eq!((full.role, full.symptom_of.as_slice()), (Role::Symptom, &[ID.to_owned()][..]));
        let cause = of(&diagnosis, ID);
        assert_eq!(remedies(cause), ["listen-again"]);
        assert_eq!((cause.remedies[0].change.len(), cause.remedies[0].change[0].to()), (1, to));
        assert!(cause.evidence.iter().any(|proof| proof.source == "load"), "the harm is shown: {:?}", cause.evidence);
    }
}

#[test]
fn a_file_that_nginx_has_not_loaded_is_left_to_its_owner() {
    let diagnosis = told(&nginx("0.0.0.0", Some(4_096), 65_535, 511, 60));
    assert_eq!(causes(&diagnosis), [ID]);
    let cause = of(&diagnosis, ID);
    assert_eq!(remedies(cause), ["reload-configuration"]);
    assert!(cause.remedies[0].change.is_empty());
    assert!(!cause.remedies[0].runtime.is_empty() && cause.remedies[0].undo.is_empty(), "{:?}", cause.remedies[0]);
    // A worker that started since has loaded it, whatever the others did.
    let mut reloaded = nginx("0.0.0.0", Some(4_096), 65_535, 511, 60);
    process(&mut reloaded, 7_000, 41, "nginx", &[100]);
    assert_eq!(remedies(of(&told(&reloaded), ID)), ["listen-again"]);
    // Without the boot time, the time of loading is unknown.
    let mut unread = nginx("0.0.0.0", Some(4_096), 65_535, 511, 60);
    unread.kernel = healthy().kernel;
    assert_eq!(remedies(of(&told(&unread), ID)), ["listen-again"]);
}

#[test]
fn a_setting_that_is_active_or_insufficient_or_unknown_leaves_the_short_queue_as_the_cause() {
    let mut elsewhere = nginx("0.0.0.0", Some(4_096), 65_535, 10, -100);
    elsewhere.servers.clear();
    let mut unread = nginx("0.0.0.0", Some(4_096), 65_535, 10, -100);
    unread.netns.get_mut(&SERVER).unwrap().sysctls.clear();
    for (obs, why) in [
        (nginx("0.0.0.0", Some(10), 65_535, 10, -100), "the same value"),
        (nginx("0.0.0.0", Some(10), 65_535, 10, 60), "touched, and the same value"),
        (nginx("0.0.0.0", Some(4_096), 10, 10, -100), "somaxconn is what is too small"),
        (nginx("0.0.0.0", None, 65_535, 10, -100), "511 for a thousand"),
        (nginx("0.0.0.0", Some(64), 65_535, 10, -100), "64 for a thousand"),
        (elsewhere, "no configuration read"),
        (unread, "no somaxconn read"),
    ] {
        assert_eq!(causes(&told(&obs)), ["accept-queue-full"], "{why}");
    }
}

#[test]
fn without_harm_there_is_no_finding() {
    let mut obs = nginx("0.0.0.0", Some(4_096), 65_535, 10, 60);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        (listeners[0].drops, listeners[0].accept_queue) = (Some(0), 0);
        view.listeners.push(at, Reading::Ok(listeners));
    }
    obs.load = Some(load());
    assert_eq!(told(&obs).findings, []);
}

#[test]
fn without_a_generated_load_twice_the_present_backlog_must_suffice() {
    for (backlog, cause) in [(19, "accept-queue-full"), (20, ID)] {
        let mut obs = nginx("0.0.0.0", Some(backlog), 65_535, 10, -100);
        (obs.load, obs.request.loaded) = (None, false);
        assert_eq!(causes(&told(&obs)), [cause], "{backlog}");
    }
}

#[test]
fn another_listener_of_the_same_server_is_a_separate_cause() {
    let mut obs = nginx("0.0.0.0", Some(4_096), 65_535, 10, -100);
    let other = ListenerAddress::Tcp(ip("0.0.0.0"), 81);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        let mut short = listeners[0].clone();
        (short.address, short.inode) = (other.clone(), 101);
        listeners.push(short);
        view.listeners.push(at, Reading::Ok(listeners));
    }
    process(&mut obs, 41, 1, "nginx", &[100, 101]);
    process(&mut obs, 42, 41, "nginx", &[100, 101]);
    let Some(ServerConfig::Nginx(mut config)) = obs.servers[&41].config.last().cloned() else { panic!() };
    config.listens.push(NginxListen { address: other, backlog: Some(10), ..config.listens[0].clone() });
    obs.servers.get_mut(&41).unwrap().config.push(1, Reading::Ok(ServerConfig::Nginx(config)));
    // It is on the path if a server calls it there too.
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let call = tcp(600, (ip(SERVER_IP), 40_000), (ip(SERVER_IP), 81));
    (1..=10_u64).for_each(|second| view.sockets.push(second * 1_000_000, Reading::Ok(vec![call.clone()])));
    process(&mut obs, 42, 41, "nginx", &[100, 101, 600]);
    let diagnosis = told(&obs);
    let queues = diagnosis.findings.iter().filter(|finding| finding.id == "accept-queue-full");
    let roles: Vec<(String, Role)> = queues.map(|finding| (finding.at.listener.clone().unwrap(), finding.role)).collect();
    for (listener, role) in roles {
        assert_eq!(role, if listener.ends_with(":80") { Role::Symptom } else { Role::Cause }, "{listener}");
    }
}

/// A full pool of five php-fpm workers. Its file was changed `edited_s` after the boot and contains these values.
fn pool(pm: &str, max_children: u32, edited_s: i64) -> Observation {
    let mut obs = php_pool(5, pm, max_children, false);
    booted(&mut obs);
    change(&mut obs, |config| config.files = vec![("/etc/php/8.2/fpm/php-fpm.conf".into(), BOOT_S - 9), (POOL.into(), BOOT_S + edited_s)]);
    obs
}

fn change(obs: &mut Observation, change: impl Fn(&mut PhpFpmConfig)) {
    let Some(ServerConfig::PhpFpm(mut config)) = obs.servers[&50].config.last().cloned() else { panic!() };
    change(&mut config);
    obs.servers.get_mut(&50).unwrap().config.push(1, Reading::Ok(ServerConfig::PhpFpm(config)));
}

#[test]
fn a_pool_whose_file_was_not_loaded_is_the_cause_with_every_process_manager() {
    for pm in ["static", "dynamic", "ondemand"] {
        let diagnosis = told(&pool(pm, 40, 60));
        assert_eq!(causes(&diagnosis), [ID], "{pm}");
        let exhausted = of(&diagnosis, "worker-pool-exhausted");
        assert_eq!((exhausted.role, exhausted.symptom_of.as_slice()), (Role::Symptom, &[ID.to_owned()][..]));
        let [reload] = &of(&diagnosis, ID).remedies[..] else { panic!("{diagnosis:?}") };
        assert_eq!((reload.id.as_str(), reload.change.len()), ("reload-configuration", 0));
        assert!(!reload.runtime.is_empty() && reload.text.contains("40 workers instead of 5"), "{reload:?}");
    }
}

#[test]
fn a_pool_that_runs_as_configured_or_would_not_gain_is_too_small() {
    let mut respawned = pool("static", 40, 60);
    (51..56).for_each(|pid| process(&mut respawned, pid, 50, "php-fpm8.2", &[200, 949 + u64::from(pid)]));
    for pid in 51..56 {
        let identity = respawned.processes[&pid].identity.last().cloned().unwrap();
        let late = chokepoint_model::observation::Identity { start_ticks: 7_000, ..identity };
        let view = respawned.processes.get_mut(&pid).unwrap();
        view.identity = Default::default();
        view.identity.push(0, Reading::Ok(late));
    }
    for (obs, why) in [
        (pool("static", 5, 60), "touched"),
        (pool("static", 40, -1), "read, and its workers are to come"),
        (pool("static", 7, 60), "neither twice nor as many as wait"),
        (respawned, "all its workers were started since"),
    ] {
        assert_eq!(causes(&told(&obs)), ["worker-pool-exhausted"], "{why}");
    }
}

#[test]
fn one_replaced_worker_does_not_hide_that_the_others_were_not_replaced() {
    let mut obs = pool("static", 40, 60);
    let view = obs.processes.get_mut(&55).unwrap();
    let identity = view.identity.last().cloned().unwrap();
    view.identity = Default::default();
    view.identity.push(0, Reading::Ok(chokepoint_model::observation::Identity { start_ticks: 9_000, ..identity }));
    assert_eq!(causes(&told(&obs)), [ID]);
}

#[test]
fn a_pool_that_is_not_full_is_no_finding_whatever_its_file_contains() {
    let mut obs = pool("static", 40, 60);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners[1].accept_queue = 0;
        view.listeners.push(at, Reading::Ok(listeners));
    }
    assert_eq!(causes(&told(&obs)), [""; 0]);
}

/// php-fpm's accept queue with an active backlog of ten and `backlog` in its file. Its workers are free, or all are busy.
fn php_queue(backlog: i64, free: bool) -> Observation {
    let mut obs = pool("static", 5, 60);
    change(&mut obs, |config| {
        config.pools = vec![PhpFpmPool { backlog: Setting { value: backlog, ..Setting::default() }, ..config.pools[0].clone() }];
    });
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.sysctls.entry("net.core.somaxconn".into()).or_default().push(0, Reading::Ok("4096".into()));
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        (listeners[1].accept_queue_limit, listeners[1].drops) = (10, Some(at / 1_000));
        listeners[1].accept_queue = if free { 1 } else { 11 };
        view.listeners.push(at, Reading::Ok(listeners));
    }
    if free {
        let points = view.sockets.points().to_vec();
        view.sockets = Default::default();
        points.into_iter().for_each(|(at, sockets)| view.sockets.push(at, Reading::Ok(sockets[sockets.len() - 1..].to_vec())));
    }
    let load = obs.load.as_mut().unwrap();
    (load.requests, load.errors.response_timeout, load.latency_us.max) = (102_000, 2_000, 1_030_000);
    obs
}

#[test]
fn php_fpm_listens_again_in_place_whenever_its_file_was_edited() {
    for (backlog, to) in [(1_024, "1025"), (-1, "4096")] {
        let diagnosis = told(&php_queue(backlog, true));
        assert_eq!(causes(&diagnosis), [ID], "{backlog}");
        let [again] = &of(&diagnosis, ID).remedies[..] else { panic!("{diagnosis:?}") };
        let Change::Server { from, activation, .. } = &again.change[0] else { panic!("{again:?}") };
        assert_eq!((from.as_str(), again.change[0].to()), (backlog.to_string().as_str(), to));
        assert_eq!(*activation, chokepoint_model::change::Activation::Live);
    }
}

#[test]
fn with_all_workers_busy_a_longer_queue_is_no_cause() {
    assert_eq!(causes(&told(&php_queue(1_024, false))), ["worker-pool-exhausted"]);
}
