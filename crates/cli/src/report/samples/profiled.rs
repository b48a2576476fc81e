//! A diagnosis with a profile: one core is the limit, and two tiers share it.

use chokepoint_model::report::*;

use super::healthy;

/// nginx and php-fpm on one saturated core; the allocator takes 9.1 % of it.
pub(crate) fn profiled() -> Diagnosis {
    let mut sample = healthy();
    let bound = |what: &str, title: &str, share: f64, text: &str| ProfileBound {
        tier: "nginx".into(),
        what: what.into(),
        title: title.into(),
        share,
        low: share * 0.8,
        high: share * 1.2,
        factor: 1.0 / (1.0 - share),
        text: text.into(),
    };
    let bounds = vec![
        bound(
            "kernel-network",
            "all of the kernel's network path",
            0.61,
            "all of the kernel's network path of nginx, 61 % of the time of core 1: at most 2.56 times the throughput without it.",
        ),
        bound("allocator", "allocator", 0.091, "allocator of nginx, 9.1 % of the time of core 1: at most 10 % more throughput without it."),
    ];
    let nginx = tier("nginx", 0.7, Some(70.4), &[("tcp-transmit", "TCP/IP transmit", 0.42), ("allocator", "allocator", 0.13)]);
    let php = tier("php-fpm", 0.29, Some(29.2), &[("interpreter", "interpreter", 0.8), ("page-fault", "page faults", 0.02)]);
    sample.profile = Some(ProfileReport {
        clock: "cpu-clock".into(),
        frequency_hz: 99,
        duration_s: 3.33,
        samples: 652,
        lost: 0,
        throttled: 0,
        user_samples: 410,
        broken: 0.0,
        cost_cpu_s: 0.04,
        quality: "652 samples in the last 3.33 s by cpu-clock; none was lost, 0 % of the user stacks break off.".into(),
        others: Some(tier("other programs and the kernel's own work", 0.6, None, &[("application", "application", 1.0)])),
        cores: vec![ProfileCore { cpu: 1, busy: 0.99, layers: nginx.layers.clone() }],
        tiers: vec![nginx, php],
        bounds,
        no_bound: None,
    });
    sample
}

fn tier(name: &str, cores: f64, us: Option<f64>, layers: &[(&str, &str, f64)]) -> ProfileTier {
    let layer = |(id, title, share): &(&str, &str, f64)| ProfileLayer {
        layer: (*id).into(),
        title: (*title).into(),
        share: *share,
        cpu_us_per_request: us.map(|us| us * share),
    };
    let samples = (cores * 330.0) as u64;
    ProfileTier { tier: name.into(), samples, cores, cpu_us_per_request: us, layers: layers.iter().map(layer).collect() }
}
