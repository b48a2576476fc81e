//! The layer rules applied to recorded stacks. A person judged the shares when the recordings were made.
//!
//! Deterministic: recorded stacks.

use chokepoint_profile::Profile;
use chokepoint_profile::analysis::report::{Bound, Report, report};
use chokepoint_profile::layers::{LAYERS, Layer};
use chokepoint_profile::output::folded;

/// nginx and php-fpm, a connection for each request, both on one core (Debian 12, kernel 6.18): sampled by this program.
const NGINX_PHP: &str = include_str!("../data/nginx-php-fpm.folded");
/// A proxy that searches for ports: 30 % of the time is below inet_hash_connect. Written by hand after a published flame graph.
const PORT_SEARCH: &str = include_str!("../data/port-search.folded");

fn read(text: &str) -> (Profile, Report) {
    let profile = folded::read(text).expect("the recording is whole");
    let report = report(&profile);
    (profile, report)
}

fn share(report: &Report, layer: Layer) -> f64 {
    report.layers.iter().find(|share| share.layer == layer).map_or(0.0, |share| share.share)
}

fn bound<'a>(report: &'a Report, what: &str) -> &'a Bound {
    report.bounds.iter().find(|bound| bound.what.contains(what)).unwrap_or_else(|| panic!("no bound on {what}"))
}

#[test]
fn every_sample_has_one_layer_and_few_have_none() {
    for text in [NGINX_PHP, PORT_SEARCH] {
        let (profile, report) = read(text);
        let sum: f64 = LAYERS.iter().map(|def| share(&report, def.layer)).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        assert_eq!(share(&report, Layer::Unknown), 0.0);
        // Kernel work that no rule names: alarm clocks, signals, changes of directory.
        assert!(share(&report, Layer::KernelOther) < 0.06, "{}", share(&report, Layer::KernelOther));
        assert_eq!(profile.busy().count(), profile.samples.len());
    }
}

#[test]
fn the_time_of_nginx_goes_to_the_network_and_that_of_php_to_its_interpreter() {
    let (_, report) = read(NGINX_PHP);
    let nginx = report.programs.iter().position(|program| program.program == "nginx").expect("nginx was sampled");
    let php = report.programs.iter().position(|program| program.program == "php-fpm8.2").expect("php-fpm was sampled");
    let of = |layer: Layer, program: usize| {
        report.layers.iter().find(|share| share.layer == layer).map_or(0.0, |share| share.of_programs[program])
    };
    let network = |program| LAYERS.iter().filter(|def| def.layer.is_kernel_network()).map(|def| of(def.layer, program)).sum::<f64>();
    assert!((0.5..0.75).contains(&network(nginx)), "{}", network(nginx));
    assert!(network(php) < network(nginx));
    assert_eq!(of(Layer::Interpreter, nginx), 0.0);
    assert!((0.15..0.4).contains(&of(Layer::Interpreter, php)), "{}", of(Layer::Interpreter, php));
    // A connection for each request costs more than a quarter here.
    let connections = bound(&report, "opening and closing connections");
    assert!((0.25..0.6).contains(&connections.share) && connections.low < connections.share && connections.share < connections.high);
}

#[test]
fn error_logging_has_a_bound_that_includes_writing() {
    let (_, report) = read(
        "nginx;main;ngx_http_handler;ngx_log_error_core;ngx_vslprintf 150\n\
         nginx;main;ngx_epoll_process_events;ngx_log_error_core;write;entry_SYSCALL_64_[k];ksys_write_[k];vfs_write_[k] 250\n\
         nginx;main;ngx_http_log_handler;write;entry_SYSCALL_64_[k];ksys_write_[k];vfs_write_[k] 100\n\
         nginx;main;ngx_http_handler 500\n",
    );
    let log = bound(&report, "writing error logs");
    assert!((log.share - 0.4).abs() < 1e-9, "the access log is another: {log:?}");
    assert!((share(&report, Layer::FileSystem) - 0.35).abs() < 1e-9);
}

#[test]
fn the_port_search_differs_from_the_connect_around_it() {
    let (_, report) = read(PORT_SEARCH);
    assert!((share(&report, Layer::PortSearch) - 0.3).abs() < 1e-9);
    assert!((share(&report, Layer::TcpTransmit) - 0.1).abs() < 1e-9);
    let search = report.bounds.iter().find(|bound| bound.layer == Some(Layer::PortSearch)).expect("a bound on the search");
    assert!((search.factor - 1.0 / 0.7).abs() < 1e-9);
    assert!(search.program.as_ref().is_some_and(|(program, share)| program == "nginx" && (share - 300.0 / 700.0).abs() < 1e-9));
    let (_, other) = read(NGINX_PHP);
    assert!(share(&other, Layer::PortSearch) < 0.02, "{}", share(&other, Layer::PortSearch));
}
