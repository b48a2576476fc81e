//! php-fpm's log: `[20-Nov-2026 07:17:47] WARNING: [pool www] server reached pm.max_children setting (5), consider raising it`.

use super::LINE_BYTES_MAX;
use crate::log_format::{clock, epoch_us, month, seconds_us, unsigned};

/// The event that a line reports, if it matters to the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FpmEvent {
    /// The pool has as many workers as it may have. php-fpm logs this once until the pool was below the limit again, and never for `pm =
    /// static`.
    MaxChildrenReached {
        /// `pm.max_children`.
        limit: u32,
    },
    /// The pool starts workers at an increased rate.
    SeemsBusy {
        /// Idle workers.
        idle: u32,
        /// All workers.
        total: u32,
    },
    /// A request took longer than `request_slowlog_timeout`.
    Slow {
        /// The worker.
        pid: u32,
        /// How long it had taken, microseconds.
        time_us: u64,
    },
    /// A request took longer than `request_terminate_timeout`, and its worker was killed.
    TimedOut {
        /// The worker.
        pid: u32,
        /// How long it had taken, microseconds.
        time_us: u64,
    },
    /// A worker ended on a signal or with an error.
    ChildDied {
        /// The worker.
        pid: u32,
    },
    /// Output of the workers' scripts.
    Output,
    /// A listening socket could not be opened.
    BindFailed,
    /// The server is ready, after a start or a reload.
    Ready,
    /// Anything else.
    Other,
}

/// One line, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FpmLine<'l> {
    /// Wall clock of the host without its zone: microseconds since 1970 as if it were UTC.
    pub local_us: u64,
    /// "NOTICE", "WARNING", "ERROR", "ALERT", "DEBUG".
    pub level: &'l str,
    /// The pool that the line is about.
    pub pool: Option<&'l str>,
    /// The message, after the pool.
    pub message: &'l str,
    /// The event that the line reports.
    pub event: FpmEvent,
}

impl<'l> FpmLine<'l> {
    /// Parses one line, which may end with its line feed; `None` for a line of another form.
    pub fn parse(line: &'l str) -> Option<Self> {
        let line = line.trim_end_matches(['\n', '\r']);
        if line.len() > LINE_BYTES_MAX {
            return None;
        }
        let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
        let local_us = local_us(time.as_bytes())?;
        let (level, text) = rest.split_once(": ")?;
        if level.is_empty() || !level.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        // With log_level = debug every line begins with process, function and line.
        let text = text.strip_prefix("pid ").and_then(|rest| rest.split_once("line ")?.1.split_once(": ")).map_or(text, |(_, text)| text);
        let (pool, message) = match text.strip_prefix("[pool ").and_then(|rest| rest.split_once("] ")) {
            Some((pool, message)) => (Some(pool), message),
            None => (None, text),
        };
        Some(Self { local_us, level, pool, message, event: event(level, pool, message) })
    }
}

/// `20-Nov-2026 07:17:47`, with microseconds if log_level is debug.
fn local_us(text: &[u8]) -> Option<u64> {
    if text.get(2) != Some(&b'-') || text.get(6) != Some(&b'-') || text.get(11) != Some(&b' ') {
        return None;
    }
    let day = unsigned(&text[..2])?;
    let whole = epoch_us(unsigned(&text[7..11])?, month(&text[3..6])?, day, clock(text.get(12..20)?)?)?;
    match text.get(20..)? {
        b"" => Some(whole),
        [b'.', fraction @ ..] if fraction.len() == 6 => Some(whole + unsigned(fraction)?),
        _ => None,
    }
}

/// The event of a line. Scripts and requests put text into this log, so a message counts only where php-fpm begins it so, at a level that php-fpm gives it (fpm_process_ctl.c,
/// fpm_children.c, fpm_request.c, fpm_stdio.c, fpm_sockets.c).
fn event(level: &str, pool: Option<&str>, message: &str) -> FpmEvent {
    let found = match level {
        "WARNING" if pool.is_some() => of_pool(message),
        "ERROR" | "ALERT" => of_start(message),
        "NOTICE" if pool.is_none() => (message == "ready to handle connections").then_some(FpmEvent::Ready),
        _ => None,
    };
    found.unwrap_or(FpmEvent::Other)
}

fn of_start(message: &str) -> Option<FpmEvent> {
    let heads = ["unable to bind listening socket", "An another FPM instance", "Another FPM instance"];
    heads.iter().any(|head| message.starts_with(head)).then_some(FpmEvent::BindFailed)
}

fn of_pool(message: &str) -> Option<FpmEvent> {
    // Older versions say "max_children" without "pm.".
    if let Some(rest) = message.strip_prefix("server reached ") {
        let rest = rest.strip_prefix("pm.").unwrap_or(rest).strip_prefix("max_children setting (")?;
        return Some(FpmEvent::MaxChildrenReached { limit: number_before(rest, ")")? });
    }
    if let Some((_, rest)) = message.strip_prefix("seems busy ").and_then(|rest| rest.split_once("there are ")) {
        let total = rest.split_once("and ")?.1;
        return Some(FpmEvent::SeemsBusy { idle: number_before(rest, " ")?, total: number_before(total, " ")? });
    }
    let child = message.strip_prefix("child ")?;
    let (pid, rest) = child.split_at(child.find([',', ' '])?);
    let pid = pid.parse().ok()?;
    if rest.starts_with(" said into std") {
        return Some(FpmEvent::Output);
    }
    if let Some(how) = rest.strip_prefix(" exited ") {
        let is_bad = how.starts_with("on signal ") || how.starts_with("with code ") && !how.starts_with("with code 0 ");
        return is_bad.then_some(FpmEvent::ChildDied { pid });
    }
    // The script and its request stand before the end that php-fpm writes.
    let rest = rest.strip_prefix(", script '")?;
    if let Some((_, time)) = rest.strip_suffix(" sec), logging").and_then(|rest| rest.rsplit_once(" executing too slow (")) {
        return Some(FpmEvent::Slow { pid, time_us: seconds_us(time.as_bytes())? });
    }
    let (_, time) = rest.strip_suffix(" sec), terminating")?.rsplit_once(" execution timed out (")?;
    Some(FpmEvent::TimedOut { pid, time_us: seconds_us(time.as_bytes())? })
}

fn number_before(text: &str, end: &str) -> Option<u32> {
    text.split(end).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event_of(text: &str) -> FpmEvent {
        FpmLine::parse(text).expect("it is one").event
    }

    #[test]
    fn a_whole_line() {
        let text = "[20-Nov-2026 07:17:47] WARNING: [pool www] server reached pm.max_children setting (5), consider raising it\n";
        let line = FpmLine::parse(text).expect("it is one");
        assert_eq!((line.local_us, line.level, line.pool), (1_795_159_067_000_000, "WARNING", Some("www")));
        assert_eq!(line.event, FpmEvent::MaxChildrenReached { limit: 5 });
        let text = "[20-Nov-2026 07:17:47.000042] WARNING: pid 9, fpm_pctl_perform_idle_server_maintenance(), line 411: [pool a] server reached max_children setting (7), consider raising it";
        let line = FpmLine::parse(text).expect("it is one");
        assert_eq!((line.local_us, line.pool, line.event), (1_795_159_067_000_042, Some("a"), FpmEvent::MaxChildrenReached { limit: 7 }));
    }

    #[test]
    fn events_are_distinguished() {
        let busy = "[20-Nov-2026 07:17:47] WARNING: [pool www] seems busy (you may need to increase pm.start_servers, or pm.min/max_spare_servers), \
            spawning 8 children, there are 0 idle, and 5 total children";
        assert_eq!(event_of(busy), FpmEvent::SeemsBusy { idle: 0, total: 5 });
        let head = "[20-Nov-2026 07:17:47] WARNING: [pool www] child 12";
        let slow = format!("{head}, script '/srv/a b.php' (request: \"GET /a\") executing too slow (2.004512 sec), logging");
        assert_eq!(event_of(&slow), FpmEvent::Slow { pid: 12, time_us: 2_004_512 });
        let timed_out = format!("{head}, script '/srv/a.php' (request: \"GET /a\") execution timed out (5.1 sec), terminating");
        assert_eq!(event_of(&timed_out), FpmEvent::TimedOut { pid: 12, time_us: 5_100_000 });
        assert_eq!(
            event_of(&format!("{head} exited on signal 11 (SIGSEGV) after 1.2 seconds from start")),
            FpmEvent::ChildDied { pid: 12 }
        );
        assert_eq!(event_of(&format!("{head} exited with code 0 after 1.2 seconds from start")), FpmEvent::Other);
        assert_eq!(event_of(&format!("{head} exited with code 255 after 1.2 seconds from start")), FpmEvent::ChildDied { pid: 12 });
        assert_eq!(event_of(&format!("{head} said into stderr: \"exited on signal 11\"")), FpmEvent::Output);
        assert_eq!(event_of("[20-Nov-2026 07:17:47] NOTICE: ready to handle connections"), FpmEvent::Ready);
        let bind =
            "[20-Nov-2026 07:17:47] ERROR: unable to bind listening socket for address '127.0.0.1:9000': Address already in use (98)";
        assert_eq!(event_of(bind), FpmEvent::BindFailed);
        assert_eq!(event_of("[20-Nov-2026 07:17:47] NOTICE: fpm is running, pid 1"), FpmEvent::Other);
    }

    #[test]
    fn text_of_a_script_is_no_event() {
        let wanted = "server reached pm.max_children setting (5), consider raising it";
        for (line, event) in [
            (format!("WARNING: [pool www] child 12 said into stderr: \"{wanted}\""), FpmEvent::Output),
            (
                format!(
                    "WARNING: [pool www] child 12, script '/srv/{wanted}' (request: \"GET /{wanted}\") executing too slow (2.0 sec), logging"
                ),
                { FpmEvent::Slow { pid: 12, time_us: 2_000_000 } },
            ),
            (format!("NOTICE: PHP message: {wanted}"), FpmEvent::Other),
            (format!("NOTICE: [pool www] {wanted}"), FpmEvent::Other),
            (format!("WARNING: {wanted}"), FpmEvent::Other),
            (format!("WARNING: [pool www] x {wanted}"), FpmEvent::Other),
            ("WARNING: [pool www] child 12, script '/srv/ exited on signal 9' (request: \"GET /\") x".to_owned(), FpmEvent::Other),
            ("WARNING: ready to handle connections".to_owned(), FpmEvent::Other),
        ] {
            assert_eq!(event_of(&format!("[20-Nov-2026 07:17:47] {line}")), event, "{line}");
        }
        assert_eq!(FpmLine::parse(&format!("x\" {wanted}")), None);
    }

    #[test]
    fn other_lines_are_none() {
        for bad in [
            "",
            "[",
            "[20-Nov-2026 07:17:47]",
            "[20-Nov-2026 07:17:47] warning: x",
            "20-Nov-2026 07:17:47 WARNING: x",
            "[20-Nov-2026] WARNING: x",
            "[20-Xxx-2026 07:17:47] A: x",
        ] {
            assert_eq!(FpmLine::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_line_gives_an_answer(tail in "((\\[pool )?[a-z\\] ,()0-9]{0,20}(max_children setting \\(|child |seems busy |there are |executing too slow \\()?){0,4}") {
            let line = format!("[20-Nov-2026 07:17:47] WARNING: {tail}");
            prop_assert!(FpmLine::parse(&line).is_some_and(|parsed| line.ends_with(parsed.message)));
        }
    }
}
