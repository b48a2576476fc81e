//! The sources "namespaces" and "processes": how much of the host this user may see, and which privilege would show the rest.

use chokepoint_model::observation::Observation;
use chokepoint_model::series::Series;
use chokepoint_recording::{Entry, Outcome};

use crate::netns::list;
use crate::root::{lacked, reading_of};
use crate::scope::is_of_host;
use crate::table::{Cadence, ReadContext, Redact, ScopeKind, Source, only_item};

/// The number of network namespaces.
pub(crate) const NAMESPACES: Source = Source {
    name: "namespaces",
    scope: ScopeKind::Host,
    cadence: Cadence::Once,
    needs: Some("CAP_SYS_PTRACE"),
    read: |context| {
        let outcome = match list(context.root) {
            Ok(namespaces) => match namespaces.lack() {
                Some(lack) => Outcome::Absent(lack.why, lack.needs),
                None => Outcome::Ok(namespaces.found.len().to_string().into_bytes()),
            },
            Err(error) => Outcome::Failed(error.to_string(), None),
        };
        only_item(outcome)
    },
    put: |observation, entry| put(observation, entry, |observation| &mut observation.namespaces_seen),
    redact: Redact::None,
};

/// The number of processes, if the open files of all of them may be listed.
pub(crate) const PROCESSES: Source = Source {
    name: "processes",
    scope: ScopeKind::Host,
    cadence: Cadence::Once,
    needs: Some("CAP_SYS_PTRACE"),
    read: |context| only_item(processes(context)),
    put: |observation, entry| put(observation, entry, |observation| &mut observation.processes_seen),
    redact: Redact::None,
};

fn processes(context: &ReadContext<'_>) -> Outcome {
    let pids = match context.root.pids() {
        Ok(pids) => pids,
        Err(lack) => return lack,
    };
    let hidden = |pid: &&u32| {
        let listed = context.root.names(&format!("proc/{pid}/fd"), 0, PROCESSES.needs);
        matches!(listed, Err(Outcome::Absent(_, Some(_))))
    };
    match pids.iter().filter(hidden).count() {
        0 => Outcome::Ok(pids.len().to_string().into_bytes()),
        hidden => {
            let why = format!("this user may not list the open sockets of {hidden} of {} processes", pids.len());
            Outcome::Absent(why, PROCESSES.needs.and_then(lacked))
        }
    }
}

fn put(observation: &mut Observation, entry: &Entry, series: fn(&mut Observation) -> &mut Series<u32>) {
    if is_of_host(observation, entry) {
        let reading = reading_of(&entry.outcome, |bytes| String::from_utf8_lossy(bytes).trim().parse::<u32>());
        series(observation).push(entry.at_us, reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::assemble;
    use chokepoint_recording::Scope;

    #[test]
    fn a_reading_is_a_number_or_a_reason() {
        let entry = |outcome| Entry { at_us: 1, source: "processes".into(), scope: Scope::Host, item: String::new(), outcome };
        assert_eq!(assemble(&[entry(Outcome::Ok(b"120".to_vec()))]).processes_seen.last(), Some(&120));
        let hidden = Outcome::Absent("no".into(), Some("CAP_SYS_PTRACE".into()));
        assert!(assemble(&[entry(hidden)]).processes_seen.last().is_none());
        for bad in [&b""[..], b"x", b"-1", b"99999999999999999999", b"\xff"] {
            let observation = assemble(&[entry(Outcome::Ok(bad.to_vec()))]);
            assert!(matches!(observation.processes_seen.state(), chokepoint_model::series::SeriesState::Failed(..)));
        }
    }
}
