//! The search for the paths in what was read, and what is read because of it.

use std::collections::BTreeSet;

use chokepoint_model::observation::{NetnsId, Request};
use chokepoint_model::path::Reach;
use chokepoint_recording::Scope;

use super::super::costs;
use super::super::options::ObserveError;
use super::super::scout::{Calls, PIDS_MAX, PathScope, ScoutInput, scout};
use super::{SCOUTED, Sampler};
use crate::clock::thread_cpu_us;

/// Most turns of a search at the beginning. Each finds one more tier, of which a path has at most eight; processes that come and go would give news for ever.
const TURNS_MAX: u32 = 12;
/// Longest time for them. What is not found by then is found while sampling, as the budget allows.
const SEARCH_MAX_US: u64 = 5_000_000;

impl Sampler {
    /// Looks for the paths until nothing new is found: the files of processes are read only once they are known to be on a path.
    pub(super) fn find_paths(&mut self) -> Result<(), ObserveError> {
        let until_us = self.shared.clock.now_us() + SEARCH_MAX_US;
        for _ in 0..TURNS_MAX {
            if !self.look()? && !self.add_children() {
                return Ok(());
            }
            let left_us = until_us.saturating_sub(self.shared.clock.now_us());
            if left_us == 0 || self.shared.stop.is_set() {
                break;
            }
            self.drain(left_us);
        }
        self.bounds
            .insert("the search for the path ended before it was complete: processes come and go faster than they are read".to_owned());
        Ok(())
    }

    /// Runs the scout and begins to read what it found. True if it found something new. What was read before is not parsed again.
    pub(super) fn look(&mut self) -> Result<bool, ObserveError> {
        self.news = false;
        let before_us = thread_cpu_us();
        let wanted = self.wanted();
        let cost_us = thread_cpu_us().saturating_sub(before_us);
        self.costs.add(costs::PATH, cost_us);
        if self.costs.is_sampling() {
            self.bucket.settle(&mut self.looking, cost_us);
        } else {
            self.looking.raise_cost(cost_us);
        }
        if let Some((under_way, first)) = self.shared.under_way.as_ref().zip(wanted.first) {
            under_way.is_answered_in(first);
        }
        self.path.answered |= wanted.answered;
        self.path.upstream |= wanted.upstream;
        self.path.calls |= wanted.calls;
        if let Some(host) = self.lanes.get_mut(&Scope::Host) {
            host.always.clone_from(&wanted.lenders);
        }
        self.parents.lend(wanted.lenders);
        let mut fresh = false;
        for id in wanted.netns {
            if self.path.netns.insert(id) {
                fresh |= !self.lanes.contains_key(&Scope::Netns(id.0));
                self.add_netns(id)?;
            }
        }
        for pid in wanted.pids {
            if self.path.pids.len() == PIDS_MAX && !self.path.pids.contains(&pid) {
                self.bounds.insert(format!("only {PIDS_MAX} processes of the path were read"));
                break;
            }
            if self.path.pids.insert(pid) {
                fresh = true;
                self.add_scope(Scope::Host, Scope::Process(pid));
            }
        }
        self.found.tell(self.path.answered, &self.path.pids);
        Ok(fresh)
    }

    /// What belongs to the paths of all requests. The listeners and the calls are arranged once for all of them.
    fn wanted(&mut self) -> PathScope {
        if self.newest.parse(&SCOUTED).contains("sockets") {
            self.calls = Calls::of(self.newest.view());
        }
        let view = self.newest.view();
        let reach = Reach::of_newest(view);
        let leading = (!self.path.calls).then(|| self.calls.leading(&reach));
        let mut wanted = PathScope::default();
        for request in self.requests().take_while(|_| !self.shared.stop.is_set()) {
            let (own_pid, pids_by_socket) = (std::process::id(), &self.pids_by_socket);
            let parents = self.parents.of();
            let input = ScoutInput {
                request,
                own_pid,
                view,
                pids_by_socket,
                reach: &reach,
                parents,
                calls: &self.calls,
                leading: leading.as_ref(),
            };
            wanted.join(scout(&input));
        }
        wanted
    }

    /// Forgets a process that ended. As long as it passed for the holder of a listener, each look would find it anew.
    pub(super) fn forget_process(&mut self, pid: u32) {
        self.newest.forget(Scope::Process(pid));
        for holders in self.pids_by_socket.values_mut() {
            holders.remove(&pid);
        }
        if self.endless {
            self.path.pids.remove(&pid);
            self.reloads.forget(pid);
            self.status_pollers.forget(pid);
            self.shared.notes.forget_process(pid);
        }
    }

    /// Follows the paths of these requests from now on. Those that are known go on to be read; what belongs to none of them any more is let go at the next search.
    pub(super) fn follow(&mut self, requests: Vec<Request>) {
        let own = crate::netns::own().unwrap_or(self.request.client_netns);
        let mut requests = requests.into_iter().map(|request| Request {
            client_netns: if request.client_netns == NetnsId(0) { own } else { request.client_netns },
            ..request
        });
        let Some(first) = requests.next() else { return };
        (self.request, self.also) = (first, requests.collect());
        self.survey_wanted = true;
        self.news = true;
    }

    /// Searches the host's namespaces again, for requests that are followed newly, and lets go of everything that belongs to no path.
    pub(super) fn survey_again(&mut self) -> Result<(), ObserveError> {
        self.survey_wanted = false;
        let before_us = thread_cpu_us();
        if let Ok(namespaces) = crate::netns::list(&self.shared.root) {
            self.namespaces = namespaces;
        }
        let named: BTreeSet<NetnsId> =
            self.requests().flat_map(|request| [Some(request.client_netns), request.server_netns]).flatten().collect();
        for id in &named {
            self.add_netns(*id)?;
        }
        let readers_us = self.survey()?;
        let wanted = self.wanted();
        self.path.netns.retain(|id| wanted.netns.contains(id));
        self.path.pids.retain(|pid| wanted.pids.contains(pid));
        self.parents.retain(&self.path.pids);
        self.path.answered = wanted.answered;
        let is_there = |id: NetnsId| self.namespaces.get(id).is_some();
        let is_used = |scope: &Scope| match scope {
            Scope::Netns(id) => is_there(NetnsId(*id)) && (named.contains(&NetnsId(*id)) || wanted.netns.contains(&NetnsId(*id))),
            Scope::Host | Scope::Process(_) => true,
        };
        let unused: Vec<Scope> =
            self.lanes.iter().filter(|(scope, lane)| !is_used(scope) && lane.is_free()).map(|(scope, _)| *scope).collect();
        for scope in unused {
            self.lanes.remove(&scope).into_iter().for_each(super::lane::ReaderLane::let_go);
            self.newest.forget(scope);
        }
        let pids = &self.path.pids;
        if let Some(host) = self.lanes.get_mut(&Scope::Host) {
            host.scopes.retain(|scope| !matches!(scope, Scope::Process(pid) if !pids.contains(pid)));
        }
        let cost_us = readers_us + thread_cpu_us().saturating_sub(before_us);
        self.costs.add(costs::SURVEY, cost_us);
        self.bucket.settle(&mut self.surveying, cost_us);
        self.news = true;
        Ok(())
    }
}

#[cfg(test)]
mod live {
    use std::net::TcpListener;
    use std::time::Instant;

    use super::super::super::options::ObserveOptions;
    use super::*;
    use crate::PathSoFar;
    use crate::clock::Clock;

    /// Never a process: pids end at 4,194,304 (proc_sys_kernel(5)).
    const ENDED: u32 = (1 << 22) + 5;

    #[test]
    fn a_process_that_ended_is_found_once_although_its_listener_is_still_known() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let request =
            Request { addresses: vec!["127.0.0.1".parse().unwrap()], port: listener.local_addr().unwrap().port(), ..Request::default() };
        let options = ObserveOptions::endless(request.clone(), Vec::new());
        let (mut sampler, _events) = Sampler::new(options, Clock(Instant::now()), PathSoFar::default()).unwrap();
        sampler.prepare().unwrap();
        sampler.begin().unwrap();
        assert!(sampler.path.answered);
        for holders in sampler.pids_by_socket.values_mut() {
            holders.insert(ENDED);
        }
        let mut turns = 0;
        while sampler.look().unwrap() {
            turns += 1;
            assert!(turns < TURNS_MAX, "it is found again and again");
            sampler.drain(SEARCH_MAX_US);
        }
        assert_eq!(turns, 1);
        assert!(!sampler.path.pids.contains(&ENDED));
    }
}
