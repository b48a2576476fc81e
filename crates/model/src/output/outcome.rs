//! Projects what a run of `--fix` achieved onto the report: the limit in a few words, the server before and after, the time.

use crate::facts::cores::NEAR_UTILIZATION;
use crate::observation::Observation;
use crate::output::catalogue::Catalogue;
use crate::output::message::Message;
use crate::output::report::{Diagnosis, LimitedBy, LoadReport, Role, RunReport, Served, Station, StationState, Verdict};

/// Seconds of a day.
const DAY_S: i64 = 86_400;

/// What limits the server, in a few words: the station of the first cause, or what a healthy server is limited by.
pub(crate) fn limit(diagnosis: &Diagnosis, words: &Catalogue) -> String {
    let word = |id: &'static str| words.text(&Message::new(id));
    match (diagnosis.verdict, diagnosis.limited_by) {
        (Verdict::Choked, _) => diagnosis.findings.iter().find(|finding| finding.role == Role::Cause).map_or_else(
            || word("limit-unknown"),
            |cause| {
                words.text(
                    &Message::new("limit-station").with("station", station_name(&cause.station, words)).with("tier", cause.tier.as_str()),
                )
            },
        ),
        (Verdict::ClientLimited, _) => word("limit-client"),
        (Verdict::Unknown, _) => word("limit-unknown"),
        (Verdict::Healthy, Some(LimitedBy::Cpu)) => cpu(&diagnosis.path, words).unwrap_or_else(|| word("limit-cpu-all")),
        (Verdict::Healthy, Some(LimitedBy::Link)) => word("limit-link"),
        (Verdict::Healthy, Some(LimitedBy::Demand)) => word("limit-demand"),
        (Verdict::Healthy, None) => word("limit-none"),
    }
}

/// "CPU (core 1, 100 %)": the busiest cores.
fn cpu(path: &[Station], words: &Catalogue) -> Option<String> {
    let cores = path.iter().filter(|station| station.station == "cpu" && station.at.cpu.is_some());
    let is_limit = |cores: &Station| cores.state == StationState::Saturated;
    let fuller = |a: &Station, b: &Station| a.utilization.unwrap_or(0.0).total_cmp(&b.utilization.unwrap_or(0.0));
    let busiest = cores.max_by(|a, b| is_limit(a).cmp(&is_limit(b)).then_with(|| fuller(a, b)))?;
    let (cpu, share) = (busiest.at.cpu.as_deref()?, busiest.utilization?);
    let id = match (cpu.bytes().all(|digit| digit.is_ascii_digit()), is_limit(busiest) && share < NEAR_UTILIZATION) {
        (true, false) => "limit-core",
        (false, false) => "limit-cores",
        (true, true) => "limit-core-shared",
        (false, true) => "limit-cores-shared",
    };
    // Never rounded up to 100.
    Some(words.text(&Message::new(id).with("cpu", cpu).with("share", (share * 100.0).min(100.0).floor())))
}

/// The short name of a station; its id if the catalogue has none.
pub fn station_name(id: &str, words: &Catalogue) -> String {
    words.plain(&format!("short-{id}")).unwrap_or_else(|| id.to_owned())
}

/// How the server served in a measurement.
pub(crate) fn served(load: &LoadReport, limit: String, verdict: Verdict) -> Served {
    let failed_share = load.failed_share();
    Served { goodput_rps: load.goodput_rps, failed_share, p99_us: load.p99_us(), limit, verdict }
}

/// Fills in `before` and `after`, if a change stays.
pub(crate) fn compare(report: &mut Diagnosis, words: &Catalogue) {
    let after = report.result().map(|last| served(&last.load, last.limit.clone(), last.verdict));
    let before = report.load.as_ref().map(|load| served(load, limit(report, words), report.verdict));
    (report.before, report.after) = before.zip(after).unzip();
}

/// When and where the observation was made; `None` if nothing of that was read.
pub(crate) fn run(obs: &Observation) -> Option<RunReport> {
    let kernel = obs.kernel.last();
    let time = obs.request.started_s.and_then(utc);
    let kernel = kernel.map(|kernel| kernel.release.clone()).filter(|release| !release.is_empty());
    let run = RunReport { time, host: obs.request.machine.clone(), kernel, version: obs.request.tool.clone() };
    (run != RunReport::default()).then_some(run)
}

/// A time in seconds since 1970 as RFC 3339; `None` before 1970 or after the year 9999.
pub fn utc(seconds: i64) -> Option<String> {
    // Howard Hinnant, "chrono-compatible low-level date algorithms": civil_from_days.
    let (days, second) = (seconds.div_euclid(DAY_S), seconds.rem_euclid(DAY_S));
    let shifted = days.checked_add(719_468)?;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let (day, month) =
        (day_of_year - (153 * shifted_month + 2) / 5 + 1, if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 });
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    (1970..=9999).contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::stations::STATIONS;

    #[test]
    fn every_station_has_a_short_name() {
        let words = Catalogue::english();
        for station in STATIONS {
            assert_ne!(words.plain(&format!("short-{}", station.id.0)), None, "{}", station.id.0);
        }
    }

    #[test]
    fn times_are_calendar_times() {
        for (seconds, text) in [
            (0, Some("1970-01-01T00:00:00Z")),
            (951_782_400, Some("2000-02-29T00:00:00Z")),
            (1_700_465_520, Some("2023-11-20T07:32:00Z")),
            (-1, None),
            (i64::MAX, None),
            (i64::MIN, None),
        ] {
            assert_eq!(utc(seconds).as_deref(), text, "{seconds}");
        }
    }
}
