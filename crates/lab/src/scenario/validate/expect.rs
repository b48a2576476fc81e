//! Checks of the load and of what is expected.

use chokepoint_model::report::Verdict;

use super::check::Check;
use crate::scenario::document::{Effect, Expect, Load, Reference};
use crate::scenario::locate::Path;
use crate::scenario::names;

impl Check<'_> {
    pub(super) fn load(&mut self, load: &Load, path: &Path) {
        if let Some(url) = self.expanded(&load.url, None, path.key("url")) {
            let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
            let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
            if authority.is_none_or(str::is_empty) || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
                self.problem(path.key("url"), format!("\"{url}\" is not a URL such as \"http://{{address:server}}/\""));
            }
        }
        if load.tls.is_some() && !load.url.starts_with("https://") {
            self.problem(path.key("tls"), "only an https URL can have this");
        }
        if load.connections.is_some_and(|n| !(1..=1_000_000).contains(&n)) {
            self.problem(path.key("connections"), "1 to 1000000 are allowed");
        }
        if load.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e7)) {
            self.problem(path.key("rate"), "allowed are more than 0 and at most 10000000 requests per second");
        }
        for (name, span, seconds_max) in
            [("duration", Some(load.duration), 3600), ("timeout", Some(load.timeout), 600), ("slo_p99", load.slo_p99, 600)]
        {
            if span.is_some_and(|span| span.0.is_zero() || span.0.as_secs() > seconds_max) {
                self.problem(path.key(name), format!("allowed are more than 0 and at most {seconds_max} s"));
            }
        }
        let token = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
        if !token(&load.method) {
            self.problem(path.key("method"), format!("\"{}\" is not an HTTP method", load.method));
        }
        for (name, value) in &load.headers {
            if !token(name) || value.contains(['\r', '\n', '\0']) {
                self.problem(path.key("headers").key(name), "a header's name is one word and its value one line");
            }
        }
        if load.threads.is_some_and(|n| !(1..=1024).contains(&n)) {
            self.problem(path.key("threads"), "1 to 1024 are allowed");
        }
    }

    /// What `--fix` must do.
    fn fix(&mut self, expect: &Expect, path: &Path) {
        for (name, given) in [
            ("remedy", expect.remedy.is_some()),
            ("kept", !expect.kept.is_empty()),
            ("tried", !expect.tried.is_empty()),
            ("causes", !expect.causes.is_empty()),
            ("result", expect.result.is_some()),
        ] {
            if given && expect.finding_none() {
                self.problem(path.key(name), "nothing is fixed if no finding is expected");
            }
        }
    }

    pub(super) fn expect(&mut self, expect: &Expect, path: &Path) {
        let place = |index: usize| if expect.finding.len() == 1 { path.key("finding") } else { path.key("finding").index(index) };
        let ids = expect.finding.iter().enumerate().map(|(index, id)| (place(index), id));
        let ids = ids.chain(expect.remedy.iter().map(|id| (path.key("remedy"), id)));
        let ids = ids.chain(expect.causes.iter().enumerate().map(|(index, id)| (path.key("causes").index(index), id)));
        let ids = ids.chain(expect.forbidden.iter().enumerate().map(|(index, id)| (path.key("forbidden").index(index), id)));
        let lists = [
            ("improvements", &expect.improvements),
            ("improvements_forbidden", &expect.improvements_forbidden),
            ("kept", &expect.kept),
            ("tried", &expect.tried),
        ];
        let listed = lists.iter().flat_map(|(name, list)| list.iter().enumerate().map(|(index, id)| (path.key(name).index(index), id)));
        let ids = ids.chain(listed);
        let wrong: Vec<_> = ids.filter(|(_, id)| names::check_name(id).is_err()).map(|(at, id)| (at, id.clone())).collect();
        for (at, id) in wrong {
            self.problem(at, format!("\"{id}\" is not an id: an id is lower-case words joined by `-`, such as \"conntrack-table-full\""));
        }
        if expect.improvements.iter().any(|id| expect.improvements_forbidden.contains(id)) {
            self.problem(path.key("improvements_forbidden"), "the improvement is both expected and forbidden");
        }
        if expect.finding.iter().any(|id| expect.forbidden.contains(id)) {
            self.problem(path.key("forbidden"), "the finding is both expected and forbidden");
        }
        let choked_possible =
            expect.verdict.is_empty() || expect.verdict.iter().any(|v| matches!(v, Verdict::Choked | Verdict::ClientLimited));
        if !expect.finding.is_empty() && !expect.finding.iter().any(|id| id == "none") && !choked_possible {
            self.problem(path.key("verdict"), "if a finding is expected, the verdict can only be \"choked\" or \"client-limited\"");
        }
        if !expect.limited_by.is_empty() && !expect.verdict.is_empty() && !expect.verdict.contains(&Verdict::Healthy) {
            self.problem(path.key("limited_by"), "only the verdict \"healthy\" can have this");
        }
        self.fix(expect, path);
        if let Some(calls) = &expect.calls {
            let [low, high] = calls.per_request;
            if !(low >= 0.0 && low <= high && high.is_finite()) {
                self.problem(path.key("calls").key("per_request"), "give the minimum and the maximum, both at least 0");
            }
        }
        if let Some(reference) = &expect.reference {
            self.reference(reference, &path.key("reference"));
        }
        if let Some(capture) = &expect.capture {
            self.host_known(&capture.host, path.key("capture").key("host"));
        }
        let kept = [
            ("capture", expect.capture.as_ref().map(|wanted| &wanted.kept)),
            ("sockets", expect.sockets.as_ref().map(|wanted| &wanted.kept)),
        ];
        for (name, kept) in kept {
            if kept.is_some_and(|kept| !["in-force", "partly", "not", "unknown"].contains(&kept.as_str())) {
                self.problem(path.key(name).key("kept"), "\"in-force\", \"partly\", \"not\" and \"unknown\" are known");
            }
        }
        if let Some(effect) = &expect.effect {
            let path = path.key("effect");
            if expect.remedy.is_none() {
                self.problem(path.clone(), "an effect is measured after a remedy: `remedy` must be given");
            }
            self.effect(effect, &path);
        }
        if let Some(result) = &expect.result {
            self.effect(result, &path.key("result"));
        }
    }

    fn reference(&mut self, reference: &Reference, path: &Path) {
        if !(1..=20).contains(&reference.pairs) {
            self.problem(path.key("pairs"), "1 to 20 are allowed");
        }
        self.times(reference.goodput_times_at_least, &path.key("goodput_times_at_least"));
        self.times(reference.latency_p99_times_at_most, &path.key("latency_p99_times_at_most"));
    }

    fn effect(&mut self, effect: &Effect, path: &Path) {
        let given = [effect.goodput_times_at_least.is_some(), effect.failed_share_at_most.is_some(), effect.latency_p99_at_most.is_some()];
        if given.iter().all(|given| !given) && effect.changes_at_most.is_none() {
            self.problem(
                path.clone(),
                "give at least one of goodput_times_at_least, failed_share_at_most, latency_p99_at_most, changes_at_most",
            );
        }
        self.times(effect.goodput_times_at_least, &path.key("goodput_times_at_least"));
        if effect.failed_share_at_most.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            self.problem(path.key("failed_share_at_most"), "give a share from 0 to 1");
        }
    }

    fn times(&mut self, times: Option<f64>, path: &Path) {
        if times.is_some_and(|times| !(times > 0.0 && times.is_finite())) {
            self.problem(path.clone(), "give a number above 0");
        }
    }
}
