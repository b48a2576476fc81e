//! The settings of a change, for tables: a short name, and values as one reads them. `10000 65535` is a number of ports, `2` may be a word.

use crate::facts::port_range::KEY_RANGE;
use crate::fix::change::{Change, ServerSetting};
use crate::output::catalogue::Catalogue;
use crate::output::message::Message;
use crate::output::report::SettingChange;

/// The settings that changes set, the one that they are for first. A change that leaves the value as it was is not listed.
pub(crate) fn settings(changes: &[Change], words: &Catalogue) -> Vec<SettingChange> {
    let setting = |change: &Change| SettingChange {
        setting: change.key(),
        name: name(change, words),
        place: change.place().to_owned(),
        from: change.from().to_owned(),
        to: change.to().to_owned(),
    };
    // A second pool ends with the change that it is for.
    let is_passing = |change: &Change| matches!(change, Change::Server { setting: ServerSetting::PhpFpmSecondPool { .. }, .. });
    let mut settings: Vec<&Change> = changes.iter().filter(|change| change.from() != change.to() && !is_passing(change)).collect();
    // Kept connections need workers and ports, which are set before. They are what the change is for.
    let is_aim = |setting: &ServerSetting| matches!(setting, ServerSetting::NginxFastcgiReuse { .. } | ServerSetting::PhpFpmListen { .. });
    settings.sort_by_key(|change| !matches!(change, Change::Server { setting, .. } if is_aim(setting)));
    settings.into_iter().map(setting).collect()
}

/// The setting in a few words; its own name if the catalogue has no words for it.
fn name(change: &Change, words: &Catalogue) -> String {
    let id = match change {
        Change::Sysctl { key, .. } => format!("setting-{}", key.replace(['.', '_'], "-")),
        Change::Cgroup { file, .. } => format!("setting-{}", file.replace(['.', '_'], "-")),
        Change::Affinity { .. } => "setting-affinity".to_owned(),
        Change::Server { setting, .. } => {
            let name = match setting {
                ServerSetting::NginxListenBacklog { .. } => "nginx-listen-backlog",
                ServerSetting::NginxWorkerConnections => "nginx-worker-connections",
                ServerSetting::NginxWorkerRlimitNofile => "nginx-worker-rlimit-nofile",
                ServerSetting::NginxFastcgiReuse { .. } => "nginx-fastcgi-reuse",
                ServerSetting::NginxErrorLogLevels { .. } => "nginx-error-log-levels",
                ServerSetting::NginxTlsSessionCache => "nginx-tls-session-cache",
                ServerSetting::PhpFpmMaxChildren { .. } => "php-fpm-max-children",
                ServerSetting::PhpFpmBacklog { .. } => "php-fpm-backlog",
                ServerSetting::PhpFpmSecondPool { .. } => "php-fpm-second-pool",
                ServerSetting::PhpFpmListen { .. } => "php-fpm-listen",
                ServerSetting::NginxFastcgiAddress { .. } => "nginx-fastcgi-address",
                ServerSetting::Limit { limit, .. } => return limit.clone(),
                ServerSetting::Text { .. } => "text",
            };
            format!("setting-{name}")
        }
    };
    words.plain(&id).unwrap_or_else(|| change.key())
}

/// The values before and after as one reads them, the unit at the second: "51" and "55,536 ports". What has no such form is as it is set, with its digits
/// grouped if it is a number.
pub fn setting_values(change: &SettingChange, words: &Catalogue) -> (String, String) {
    let both = |read: fn(&str) -> Option<f64>| read(&change.from).zip(read(&change.to));
    let number = |value: f64| words.text(&Message::new("value-number").with("n", value));
    let measured = |unit: &'static str, values: Option<(f64, f64)>| {
        let (from, to) = values?;
        Some((number(from), words.text(&Message::new(unit).with("n", to))))
    };
    let known = match change.setting.as_str() {
        KEY_RANGE => measured("value-ports", both(ports)),
        "net.ipv4.tcp_tw_reuse" | "net.ipv4.tcp_syncookies" => {
            let word = |value: &str| words.plain(&format!("value-{}-{value}", change.setting.replace(['.', '_'], "-")));
            word(&change.from).zip(word(&change.to))
        }
        "net.ipv4.tcp_wmem" => measured("value-kib", both(kib_most)),
        "net.netfilter.nf_conntrack_tcp_timeout_time_wait" => measured("value-seconds", both(whole)),
        "cpu.max" => measured("value-cores", both(cores)),
        "cpu.cfs_quota_us" => measured("value-us", both(whole)),
        _ => measured("value-connections", both(kept_connections).filter(|(from, to)| from != to))
            .or_else(|| measured("value-requests-each", both(requests_each)))
            .or_else(|| first_kept(change, words)),
    };
    // Of a unix socket only where it is.
    let place = |text: &str| match text.split_once(" owner=") {
        Some((path, _)) => path.to_owned(),
        None => text.to_owned(),
    };
    let as_set = |text: &str| whole(text).map_or_else(|| place(text), number);
    known.unwrap_or_else(|| (as_set(&change.from), as_set(&change.to)))
}

fn whole(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.fract() == 0.0)
}

/// The ports of "32768 60999".
fn ports(range: &str) -> Option<f64> {
    let (low, high) = range.split_once(char::is_whitespace)?;
    let (low, high) = (low.parse::<u16>().ok()?, high.trim().parse::<u16>().ok()?);
    (low <= high).then(|| f64::from(high - low) + 1.0)
}

/// The largest size of "4096 16384 4194304" (least, first and most bytes), KiB.
fn kib_most(sizes: &str) -> Option<f64> {
    Some((whole(sizes.split_whitespace().nth(2)?)? / 1024.0).round())
}

/// The cores of "50000 100000": microseconds of CPU time in each period. None for "max".
fn cores(quota: &str) -> Option<f64> {
    let (quota, period) = quota.split_once(' ')?;
    let (quota, period) = (whole(quota)?, whole(period)?);
    (period > 0.0).then(|| quota / period)
}

/// "none" and "8, 20 requests each", where no connection was kept before.
fn first_kept(change: &SettingChange, words: &Catalogue) -> Option<(String, String)> {
    let kept = kept_connections(&change.to).filter(|_| change.from == ServerSetting::UNSET)?;
    let to = Message::new("value-kept").with("n", kept).with("requests", requests_each(&change.to)?);
    Some((words.text(&Message::new("value-none")), words.text(&to)))
}

/// The connections of [`ServerSetting::reuse`].
fn kept_connections(reuse: &str) -> Option<f64> {
    whole(reuse.strip_prefix("keepalive=")?.split_once(" requests=")?.0)
}

/// The requests of [`ServerSetting::reuse`].
fn requests_each(reuse: &str) -> Option<f64> {
    whole(reuse.strip_prefix("keepalive=")?.split_once(" requests=")?.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(setting: &str, from: &str, to: &str) -> String {
        let change = SettingChange {
            setting: setting.to_owned(),
            name: String::new(),
            place: String::new(),
            from: from.to_owned(),
            to: to.to_owned(),
        };
        let (from, to) = setting_values(&change, &Catalogue::english());
        format!("{from} → {to}").replace('\u{a0}', " ")
    }

    #[test]
    fn values_are_shown_as_one_reads_them() {
        for (setting, from, to, text) in [
            ("net.ipv4.ip_local_port_range", "20000 20050", "10000 65535", "51 → 55,536 ports"),
            ("net.ipv4.ip_local_port_range", "32768\t60999", "10000 65535", "28,232 → 55,536 ports"),
            ("net.ipv4.ip_local_port_range", "20000", "10000 65535", "20,000 → 10000 65535"),
            ("net.netfilter.nf_conntrack_max", "200", "262144", "200 → 262,144"),
            ("net.netfilter.nf_conntrack_tcp_timeout_time_wait", "120", "10", "120 → 10 s"),
            ("net.ipv4.tcp_tw_reuse", "2", "1", "loopback only → on"),
            ("net.ipv4.tcp_tw_reuse", "0", "1", "off → on"),
            ("net.ipv4.tcp_tw_reuse", "7", "1", "7 → 1"),
            ("net.ipv4.tcp_syncookies", "0", "1", "off → on"),
            ("net.ipv4.tcp_wmem", "4096 16384 65536", "4096 16384 4194304", "64 → 4,096 KiB"),
            ("cpu.max", "50000 100000", "200000 100000", "0.5 → 2 cores"),
            ("cpu.cfs_quota_us", "50000", "200000", "50,000 → 200,000 µs"),
            ("nginx reuse of connections to php", "keepalive=8 requests=5", "keepalive=16 requests=20", "8 → 16 connections"),
            ("nginx reuse of connections to php", "keepalive=8 requests=5", "keepalive=8 requests=1000", "5 → 1,000 requests each"),
            ("nginx reuse of connections to php", "unset", "keepalive=8 requests=20", "none → 8, 20 requests each"),
            ("nginx ssl_session_cache in http", "none", "shared:TLS:10m", "none → shared:TLS:10m"),
        ] {
            assert_eq!(shown(setting, from, to), text, "{setting}");
        }
    }
}
