//! Everything that requests of a kind may be passed to: those for one path, by each way that leads there, or all that a server takes.

use super::route::Candidate;
use super::select::{LocalAddress, Selection, location_for, normalized_path};
use crate::nginx::effective::Http;
use crate::nginx::effective::location::{Condition, Location};
use crate::nginx::effective::pass::Pass;
use crate::nginx::effective::server::Server;
use crate::nginx::effective::settings::Settings;

/// A pass with what is in force where it stands.
pub type ReachedPass<'a> = (&'a Pass, &'a Settings);

impl Http {
    /// The passes that requests arriving at an address may take: for this host, or for any; for this path, or for any. `None` if that does not follow from the
    /// configuration, or if no `listen` takes the address.
    pub fn reach(&self, local: &LocalAddress, host: Option<&str>, path: Option<&str>) -> Option<Vec<ReachedPass<'_>>> {
        let selection = self.select(local, host.unwrap_or_default(), path.unwrap_or("/"))?;
        let mut servers: Vec<&Server> = vec![selection.server];
        servers.extend(&selection.servers_possible);
        if host.is_none() {
            servers = selection.socket.servers.iter().filter_map(|&index| self.servers.get(index)).collect();
        }
        let mut reached = Vec::new();
        for server in servers {
            match path {
                Some(path) => reached.extend(of_path(&selection, server, path)?),
                None => of_server(server, &mut reached),
            }
        }
        Some(reached)
    }
}

/// The passes of a server's requests for one path.
fn of_path<'a>(selection: &Selection<'a>, server: &'a Server, path: &str) -> Option<Vec<ReachedPass<'a>>> {
    let path = normalized_path(path);
    let (location, locations_possible) = location_for(server, &path);
    let selection = Selection { server, servers_possible: Vec::new(), location, locations_possible, path, ..selection.clone() };
    let found = selection.all_candidates()?;
    // An answer from behind may send its request to a location that no other request reaches (X-Accel-Redirect).
    let is_sent_on = !found.is_empty() && has_internal_pass(&server.locations);
    (!is_sent_on).then(|| found.into_iter().map(|Candidate { pass, settings, .. }| (pass, settings)).collect())
}

fn has_internal_pass(locations: &[Location]) -> bool {
    locations.iter().any(|location| (location.is_internal() && location.pass.is_some()) || has_internal_pass(&location.locations))
}

/// Every pass of a server.
fn of_server<'a>(server: &'a Server, reached: &mut Vec<ReachedPass<'a>>) {
    of_conditions(&server.conditions, reached);
    let mut waiting: Vec<&Location> = server.locations.iter().collect();
    while let Some(location) = waiting.pop() {
        reached.extend(location.pass.as_ref().map(|pass| (pass, &location.settings)));
        of_conditions(&location.conditions, reached);
        waiting.extend(&location.locations);
    }
}

fn of_conditions<'a>(conditions: &'a [Condition], reached: &mut Vec<ReachedPass<'a>>) {
    reached.extend(conditions.iter().filter_map(|condition| Some((condition.pass.as_ref()?, &condition.settings))));
}
