//! All levels of an nginx configuration that can handle a request: servers, locations and their conditional blocks.

use chokepoint_config::nginx::{Condition, Http, Location, Nginx, Pass, Settings};

/// One level with the settings that are in force there.
pub(in crate::servers) struct ConfigLevel<'a> {
    pub(in crate::servers) settings: &'a Settings,
    pub(in crate::servers) pass: Option<&'a Pass>,
    /// Its http block; nothing in the stream block.
    pub(in crate::servers) http: Option<&'a Http>,
    /// Its server block, by its place in the http block; nothing outside of one.
    pub(in crate::servers) server: Option<usize>,
}

/// All levels, outer ones before inner ones.
pub(in crate::servers) fn levels(nginx: &Nginx) -> Vec<ConfigLevel<'_>> {
    let mut found = Vec::new();
    if let Some(http) = &nginx.http {
        found.push(ConfigLevel { settings: &http.settings, pass: None, http: Some(http), server: None });
        for (number, server) in http.servers.iter().enumerate() {
            let before = found.len();
            found.push(ConfigLevel { settings: &server.settings, pass: None, http: Some(http), server: None });
            add_conditions(http, &server.conditions, &mut found);
            add_locations(http, &server.locations, &mut found);
            found[before..].iter_mut().for_each(|level| level.server = Some(number));
        }
    }
    for server in nginx.stream.iter().flat_map(|stream| &stream.servers) {
        found.push(ConfigLevel { settings: &server.settings, pass: server.pass.as_ref(), http: None, server: None });
    }
    found
}

fn add_locations<'a>(http: &'a Http, locations: &'a [Location], found: &mut Vec<ConfigLevel<'a>>) {
    for location in locations {
        found.push(ConfigLevel { settings: &location.settings, pass: location.pass.as_ref(), http: Some(http), server: None });
        add_conditions(http, &location.conditions, found);
        add_locations(http, &location.locations, found);
    }
}

fn add_conditions<'a>(http: &'a Http, conditions: &'a [Condition], found: &mut Vec<ConfigLevel<'a>>) {
    found.extend(conditions.iter().map(|own| ConfigLevel {
        settings: &own.settings,
        pass: own.pass.as_ref(),
        http: Some(http),
        server: None,
    }));
}
