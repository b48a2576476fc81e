//! Status 429: who answers so limits its clients, and a rule of its configuration that does is named.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{Origin, ServerConfig, StatedConfig, StatedRefusal};
use chokepoint_model::reading::Reading;

use super::LIMITED;
use crate::stage::limits::*;
use crate::stage::*;

#[test]
fn a_server_whose_configuration_is_not_known_says_by_its_status_that_it_limits() {
    let with = |status: u16, refused: u64| {
        let mut obs = nginx(10, 1_024, false, Vec::new());
        obs.servers.clear();
        let load = obs.load.as_mut().unwrap();
        (load.requests, load.good, load.status) = (10_000, 10_000 - refused, [(200, 10_000 - refused), (status, refused)].into());
        told(&obs)
    };
    let limited = with(429, 7_000);
    assert_eq!(causes(&limited), [LIMITED]);
    assert!(limited.findings[0].title.contains("7,000 of 10,000"), "{}", limited.findings[0].title);
    assert!(limited.findings[0].remedies.iter().any(|remedy| remedy.id == "ask-limit-owner"));
    assert_eq!(causes(&with(429, 9)), [""; 0], "too few to be harm");
    // A rule of its configuration that answers so is named, unless these requests do not come under it or it answers with another status.
    for (status, is_asked, is_named) in [(429, Some(true), true), (429, None, true), (429, Some(false), false), (403, Some(true), false)] {
        let mut obs = nginx(10, 1_024, false, Vec::new());
        let origin = Origin { file: "/etc/haproxy.cfg".into(), line: 12 };
        let rule = StatedRefusal { rule: "http-request deny".into(), status, is_asked, origin };
        let config = StatedConfig { refusals: vec![rule], ..StatedConfig::default() };
        obs.servers.get_mut(&42).unwrap().config = Default::default();
        obs.servers.get_mut(&42).unwrap().config.push(0, Reading::Ok(ServerConfig::Stated(config)));
        let load = obs.load.as_mut().unwrap();
        (load.requests, load.good, load.status) = (10_000, 3_000, [(200, 3_000), (429, 7_000)].into());
        let found = &told(&obs).findings[0];
        assert_eq!(found.explanation.contains("http-request deny, /etc/haproxy.cfg:12"), is_named, "{}", found.explanation);
        assert_eq!(found.remedies[0].text.contains("/etc/haproxy.cfg:12"), is_named, "{}", found.remedies[0].text);
    }
    let other = with(503, 7_000);
    assert_eq!((causes(&other), other.summary.contains("most with status 503")), (vec![], true), "{}", other.summary);
}
