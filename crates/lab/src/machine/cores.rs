//! The cores of this machine, and the pinning that a scenario asks for.

use rustix::thread::{CpuSet, sched_getaffinity};

/// The cores that this process may use.
pub(crate) fn allowed() -> Vec<u32> {
    // On failure (no such call, more cores than the set can name) no core is known, so nothing is pinned.
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).filter_map(|core| u32::try_from(core).ok()).collect()
}

/// The cores to pin `who` to: the wanted ones if this process may use them all and has more than one. Otherwise none, and a note with the reason.
pub(crate) fn choose(who: &str, wanted: Option<&[u32]>, allowed: &[u32]) -> (Option<Vec<u32>>, Option<String>) {
    let Some(wanted) = wanted else { return (None, None) };
    let missing = wanted.iter().find(|core| !allowed.contains(core));
    let why = match missing {
        _ if allowed.len() < 2 => "this machine has only one usable core".to_owned(),
        Some(core) => format!("core {core} is not usable on this machine"),
        None => return (Some(wanted.to_vec()), None),
    };
    (None, Some(format!("{who} is not pinned to its cores ({why}): load and servers may share cores")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_cores_leave_a_server_unpinned_with_a_note() {
        assert_eq!(choose("nginx", None, &[0, 1]), (None, None));
        assert_eq!(choose("nginx", Some(&[1]), &[0, 1]), (Some(vec![1]), None));
        let (cores, note) = choose("nginx", Some(&[0]), &[0]);
        assert!(cores.is_none() && note.unwrap().contains("one usable core"));
        let (cores, note) = choose("nginx", Some(&[1, 7]), &[0, 1]);
        assert!(cores.is_none() && note.unwrap().contains("core 7"));
        assert!(!allowed().is_empty());
    }
}
