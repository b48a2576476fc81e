//! Watches the path to an address for some seconds and prints the main numbers: `observe 127.0.0.1:80 5 [CLIENT-NETNS] [SERVER-NETNS]`.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use chokepoint_model::observation::{NetnsView, Observation, Request, SocketAddress, TcpState};
use chokepoint_sources::{ObserveOptions, Observer, Root, assemble, netns};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let target: SocketAddr = args.first().ok_or("usage: observe ADDRESS:PORT SECONDS [CLIENT-NETNS] [SERVER-NETNS]")?.parse()?;
    let seconds: u64 = args.get(1).map_or(Ok(3), |text| text.parse())?;
    let root = Root::default();
    let mut request = Request { addresses: vec![target.ip()], port: target.port(), ..Request::default() };
    if let Some(name) = args.get(2) {
        request.client_netns = netns::resolve(&root, name)?.id;
    }
    if let Some(name) = args.get(3) {
        request.server_netns = Some(netns::resolve(&root, name)?.id);
    }
    let begun = Instant::now();
    let observer = Observer::start(ObserveOptions::new(request.clone()))?;
    observer.note("request", serde_json::to_vec(&request)?);
    let (started, cpu) = (begun.elapsed(), cpu_us());
    std::thread::sleep(Duration::from_secs(seconds));
    println!("begun in {started:?}; {:.2} % of a core while sampling", (cpu_us() - cpu) as f64 / 1e4 / seconds as f64);
    println!("a listener answers: {}", observer.path_found());
    let entries = observer.finish();
    let now = Instant::now();
    let observation = assemble(&entries);
    println!("{} entries, assembled in {:?}", entries.len(), now.elapsed());
    print_sizes(&entries);
    print_all(&observation);
    Ok(())
}

fn print_sizes(entries: &[chokepoint_recording::Entry]) {
    let mut sizes = std::collections::BTreeMap::new();
    for entry in entries {
        let (count, bytes, lacks) = sizes.entry(&entry.source).or_insert((0, 0, 0));
        match &entry.outcome {
            chokepoint_recording::Outcome::Ok(read) => *bytes += read.len(),
            _ => *lacks += 1,
        }
        *count += 1;
    }
    for (source, (count, bytes, lacks)) in sizes {
        println!("  {source:<20} {count:>6} entries {bytes:>10} bytes {lacks:>4} without a value");
    }
}

fn print_all(observation: &Observation) {
    for (id, view) in &observation.netns {
        println!("{id} {}", view.name.as_deref().unwrap_or("-"));
        print_netns(view);
    }
    for (pid, process) in &observation.processes {
        let identity = process.identity.first();
        let files = process.files.last();
        println!(
            "process {pid} {} parent {} files {}",
            identity.map_or("?", |identity| &identity.comm),
            identity.map_or(0, |identity| identity.parent),
            files.map_or_else(|| format!("{:?}", process.files.state()), |files| files.count.to_string())
        );
    }
    let path = chokepoint_model::path::discover(observation);
    for tier in &path.tiers {
        let listeners: Vec<String> = tier.listeners.iter().map(|placed| placed.listener.address.to_string()).collect();
        println!("tier {} {:?} pids {:?} upstreams {:?}", tier.name, listeners, tier.pids, tier.upstreams);
    }
    for sentence in observation.bounded.iter().chain(&observation.unplaced) {
        println!("note: {sentence}");
    }
}

fn print_netns(view: &NetnsView) {
    for listener in view.listeners.last().into_iter().flatten() {
        let same = |other: &&chokepoint_model::observation::Listener| other.inode == listener.inode;
        let most = view.listeners.values().flatten().filter(same).map(|other| other.accept_queue).max().unwrap_or(0);
        println!(
            "  listener {} queue {most}/{} drops {:?} inode {}",
            listener.address, listener.accept_queue_limit, listener.drops, listener.inode
        );
    }
    for sockets in view.sockets.values() {
        let tcp = sockets.iter().filter(|socket| matches!(socket.address, SocketAddress::Tcp { .. })).count();
        let waiting = sockets.iter().filter(|socket| socket.state == TcpState::TimeWait).count();
        println!("  sockets tcp {tcp} (TIME_WAIT {waiting}) unix {}", sockets.len() - tcp);
    }
    for link in view.links.last().into_iter().flatten() {
        println!(
            "  link {} {:?} mtu {} rx {} tx {} speed {:?}",
            link.name, link.kind, link.mtu, link.rx_bytes, link.tx_bytes, link.speed_bits_per_s
        );
    }
    for qdisc in view.qdiscs.last().into_iter().flatten() {
        println!("  qdisc {} on {} drops {} rate {:?}", qdisc.kind, qdisc.link, qdisc.drops, qdisc.rate_bits_per_s);
    }
    for address in view.addresses.last().into_iter().flatten() {
        println!("  address {}/{} on {}", address.ip, address.prefix_bits, address.link);
    }
    println!("  conntrack {:?} most {:?}", view.conntrack_count.state(), view.conntrack_count.values().max());
}

/// CPU time of this process, microseconds.
fn cpu_us() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1000
}
