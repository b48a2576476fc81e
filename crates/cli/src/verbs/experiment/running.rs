//! A running server as the subject of an experiment: its kernel parameters, its configuration and its cores are changed through crate `remedy`, verified,
//! and put back.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use chokepoint_experiment::{Plan, Variant};
use chokepoint_model::asked;
use chokepoint_model::change::{Change, HOST_NETNS};
use chokepoint_model::observation::{NetnsId, Observation, Request};
use chokepoint_model::path;
use chokepoint_sources::{ObserveOptions, Observer, Root, assemble, netns};

use super::verify::{self, Subjects};
use crate::args::Load;
use crate::run::changes::Changes;
use crate::run::measure::Setup;
use crate::run::plan::{self, CONNECTIONS_DEFAULT, TIMEOUT_DIAGNOSE};
use crate::run::settings::{self, Target};
use crate::terminal::output;

/// The owner of the changes in the journal: `chokepoint undo` takes back what a killed experiment left.
const OWNER: &str = "experiment";

/// A running server.
pub(super) struct Running {
    url: String,
    target: Target,
    yes: bool,
    changes: Option<Changes>,
    /// The variant in force and the number of its changes, if it has any.
    current: Option<(usize, Option<u32>)>,
    next: u32,
    /// The network namespaces that were looked up.
    places: BTreeMap<String, Place>,
    /// The first processes of the servers as the variant in force has them: a reload can give a server another one.
    first: BTreeMap<String, u32>,
}

/// A network namespace: its id, its name in reports, and its path.
#[derive(Clone)]
struct Place {
    id: NetnsId,
    name: String,
    path: PathBuf,
}

impl Running {
    /// The server at a URL. Refuses changes that only a lab can make.
    pub(super) fn new(plan: &Plan, url: &str, yes: bool) -> Result<Self> {
        for variant in &plan.variants {
            let change = &variant.change;
            let of_lab = [("set", !change.set.is_empty()), ("env", !change.env.is_empty()), ("command", !change.command.is_empty())];
            if let Some((field, _)) = of_lab.iter().find(|(_, is_there)| *is_there) {
                bail!(
                    "variant \"{}\": `{field}` is for labs, which start the server anew: for a running server use `sysctls`, `config`, `cpus`, or `setup` and `teardown`",
                    variant.name
                );
            }
        }
        let (places, first) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { url: url.to_owned(), target: Target::parse(url)?, yes, changes: None, current: None, next: 0, places, first })
    }

    /// Its URL.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Puts a variant in force and verifies it.
    pub(super) fn switch(&mut self, number: usize, variant: &Variant) -> Result<(Setup, Vec<String>)> {
        if self.current.as_ref().is_none_or(|(current, _)| *current != number) {
            self.take_back()?;
            self.current = Some((number, None));
            self.apply(variant)?;
        }
        Ok((self.setup(variant)?, self.verified(variant)?))
    }

    /// Takes back the variant in force.
    fn take_back(&mut self) -> Result<()> {
        self.first.clear();
        let Some((_, Some(number))) = self.current.take() else { return Ok(()) };
        self.changes.as_mut().context("no change was made")?.take_back(number).map(drop)
    }

    /// Applies all changes of a variant, or none.
    fn apply(&mut self, variant: &Variant) -> Result<()> {
        let wanted = self.wanted(variant)?;
        if wanted.is_empty() {
            return Ok(());
        }
        if self.changes.is_none() {
            self.changes = Some(Changes::open()?);
        }
        self.next += 1;
        self.changes.as_mut().context("the journal is closed")?.apply_alone(self.next, &wanted, &variant.name, OWNER)?;
        self.current = self.current.take().map(|(number, _)| (number, Some(self.next)));
        Ok(())
    }

    /// The changes of a variant.
    fn wanted(&mut self, variant: &Variant) -> Result<Vec<Change>> {
        let asked = &variant.change;
        let mut wanted = Vec::new();
        for (place, sysctls) in &asked.sysctls {
            let Place { id, name, path } = self.place(place)?;
            for (key, to) in sysctls {
                let from = verify::sysctl(&path, key)?;
                wanted.push(Change::Sysctl { key: key.clone(), netns: id, netns_name: name.clone(), from, to: to.to_string() });
            }
        }
        if asked.config.is_empty() && asked.cpus.is_empty() {
            return Ok(wanted);
        }
        let obs = self.observed()?;
        for piece in &asked.config {
            wanted.push(asked::text(&obs, &piece.server, &piece.find, &piece.with).map_err(anyhow::Error::msg)?);
        }
        for (server, cores) in &asked.cpus {
            wanted.push(asked::affinity(&obs, server, cores).map_err(anyhow::Error::msg)?);
        }
        Ok(wanted)
    }

    /// The host as it is now, without a load.
    fn observed(&self) -> Result<Observation> {
        let request = Request { client_netns: netns::own()?, loaded: false, ..self.target.request() };
        let observer = Observer::start(ObserveOptions::new(request.clone())).context("the host cannot be observed")?;
        observer.note(chokepoint_sources::assemble::REQUEST, serde_json::to_vec(&request)?);
        Ok(assemble(&observer.finish()))
    }

    /// The network namespace that a plan means: "server", that of the server; or a name, PID or path.
    fn place(&mut self, place: &str) -> Result<Place> {
        if let Some(known) = self.places.get(place) {
            return Ok(known.clone());
        }
        let found = if place == "server" { self.place_of_server()? } else { named(place)? };
        self.places.insert(place.to_owned(), found.clone());
        Ok(found)
    }

    fn place_of_server(&self) -> Result<Place> {
        let obs = self.observed()?;
        let tier = path::discover(&obs).tiers.into_iter().next();
        let tier = tier.with_context(|| format!("no server on this host answers for {}", self.url))?;
        let pid = tier.pids.first().context("the server's processes cannot be seen")?;
        let found = named(&pid.to_string())?;
        let name = obs.netns.get(&found.id).and_then(|view| view.name.clone()).unwrap_or_else(|| HOST_NETNS.to_owned());
        Ok(Place { name, ..found })
    }

    fn verified(&mut self, variant: &Variant) -> Result<Vec<String>> {
        if let Some(changed) = self.changes.as_ref().map(Changes::overridden).transpose()?.and_then(|changed| changed.into_iter().next()) {
            bail!("somebody else changed what this variant had set: {changed}");
        }
        let mut seen = verify::before(self, variant)?;
        let pieces = variant.change.config.iter();
        seen.extend(pieces.map(|piece| format!("{} has read its configuration with \"{}\"", piece.server, piece.with)));
        Ok(seen)
    }

    fn setup(&self, variant: &Variant) -> Result<Setup> {
        let (wanted, target) = (&variant.load, &self.target);
        let expect = settings::statuses("2xx,3xx")?;
        let load = Load {
            connections: Some(wanted.connections.unwrap_or(CONNECTIONS_DEFAULT)),
            rate: wanted.rate,
            timeout: wanted.timeout.clone(),
            method: "GET".to_owned(),
            headers: wanted.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect(),
            disable_keepalive: wanted.keep_alive == Some(false),
            threads: Some(1),
            ..Load::default()
        };
        let mut plan = plan::plan(&load, target, TIMEOUT_DIAGNOSE, expect.clone())?;
        if let Some(path) = &wanted.path {
            plan.path_and_query = path.clone();
        }
        let request = Request { client_netns: netns::own()?, expect, loaded: true, ..target.request() };
        Ok(Setup { plan: Some(plan), foreign: self.yes, ..Setup::new(request, std::time::Duration::ZERO) })
    }

    /// Takes back everything.
    pub(super) fn end(mut self) -> Result<()> {
        self.take_back()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After an error the changes are taken back as well; what fails here is still in the journal, and `chokepoint undo` takes it back.
        if let Err(error) = self.take_back() {
            output::note(&format!("chokepoint: a change was not taken back: {}; run chokepoint undo", output::once(&error)));
        }
    }
}

impl Subjects for Running {
    fn pid_of(&mut self, server: &str) -> Result<u32> {
        if let Some(pid) = self.first.get(server) {
            return Ok(*pid);
        }
        let pid = asked::first_process(&self.observed()?, server).map_err(anyhow::Error::msg)?;
        self.first.insert(server.to_owned(), pid);
        Ok(pid)
    }

    fn netns_of(&mut self, host: &str) -> Result<(String, PathBuf)> {
        let Place { name, path, .. } = self.place(host)?;
        Ok((name, path))
    }
}

/// A network namespace by its name, a PID or a path.
fn named(place: &str) -> Result<Place> {
    let found = netns::resolve(&Root::default(), place)?;
    Ok(Place { id: found.id, name: place.to_owned(), path: found.path })
}
