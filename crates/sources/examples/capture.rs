//! Writes what each binary source reads in a network namespace into a directory, as fixtures for tests: `capture DIRECTORY NETNS`.

use chokepoint_model::observation::Request;
use chokepoint_recording::{Outcome, Scope};
use chokepoint_sources::{ObserveOptions, Observer, Redact, Root, netns, source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [directory, name] = args.as_slice() else { return Err("usage: capture DIRECTORY NETNS".into()) };
    let client_netns = netns::resolve(&Root::default(), name)?.id;
    let observer = Observer::start(ObserveOptions::new(Request { client_netns, ..Request::default() }))?;
    for entry in observer.finish() {
        let binary = source(&entry.source).is_some_and(|source| matches!(source.redact, Redact::InetDiag | Redact::RouteNetlink));
        if let Outcome::Ok(bytes) = &entry.outcome
            && binary
            && entry.scope == Scope::Netns(client_netns.0)
            && entry.item.is_empty()
        {
            std::fs::write(format!("{directory}/{}.bin", entry.source), bytes)?;
        }
    }
    Ok(())
}
