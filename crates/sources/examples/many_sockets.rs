//! Holds many connections open over loopback and meanwhile times commands alternately: `many_sockets CONNECTIONS ROUNDS -- COMMAND... -- COMMAND...`. A
//! connection is two sockets. Several processes hold them, since each may open only a few.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Connections of one process: two descriptors each, below the usual hard limit.
const CONNECTIONS_EACH: usize = 7_500;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [hold, address, count] = &args[..]
        && hold == "hold"
    {
        return hold_open(address, count.parse()?);
    }
    let usage = "usage: many_sockets CONNECTIONS ROUNDS -- COMMAND... -- COMMAND...";
    let (head, commands) = args.split_first_chunk::<2>().ok_or(usage)?;
    let (connections, rounds): (usize, usize) = (head[0].parse()?, head[1].parse()?);
    let commands: Vec<&[String]> = commands.split(|arg| arg == "--").filter(|command| !command.is_empty()).collect();
    let mut holders = Vec::new();
    for begin in (0..connections).step_by(CONNECTIONS_EACH) {
        holders.push(holder(holders.len(), CONNECTIONS_EACH.min(connections - begin))?);
    }
    println!("{connections} connections, {} sockets, {} processes", connections * 2, holders.len());
    let mut times = vec![Vec::new(); commands.len()];
    for _ in 0..rounds {
        for (command, times) in commands.iter().zip(&mut times) {
            times.push(timed(command)?);
        }
    }
    for (command, mut times) in commands.iter().zip(times) {
        times.sort();
        if let (Some(least), Some(median), Some(most)) = (times.first(), times.get(times.len() / 2), times.last()) {
            let ms = |time: &Duration| time.as_secs_f64() * 1e3;
            println!("{:8.1} ms median ({:.1} to {:.1}): {}", ms(median), ms(least), ms(most), command.join(" "));
        }
    }
    for mut holder in holders {
        drop(holder.stdin.take());
        holder.wait()?;
    }
    Ok(())
}

/// Starts a process that holds this many connections and waits until it is ready.
fn holder(place: usize, count: usize) -> Result<Child, Box<dyn std::error::Error>> {
    let address = format!("127.0.1.{}", place + 1);
    let mut child = Command::new(std::env::current_exe()?)
        .args(["hold", &address, &count.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut ready = [0];
    child.stdout.take().ok_or("no output")?.read_exact(&mut ready)?;
    Ok(child)
}

/// Opens connections, says so, and holds them until the other side of stdin closes.
fn hold_open(address: &str, count: usize) -> Result<(), Box<dyn std::error::Error>> {
    rustix::process::setrlimit(rustix::process::Resource::Nofile, {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        rustix::process::Rlimit { current: limit.maximum, ..limit }
    })?;
    let listener = TcpListener::bind((address, 0))?;
    let server = listener.local_addr()?;
    let mut held = Vec::with_capacity(count * 2);
    for _ in 0..count {
        let mut client = TcpStream::connect(server)?;
        let (mut accepted, _) = listener.accept()?;
        // One exchange, so that the kernel has measurements.
        client.write_all(b"ping")?;
        accepted.read_exact(&mut [0; 4])?;
        accepted.write_all(b"pong")?;
        client.read_exact(&mut [0; 4])?;
        held.push((client, accepted));
    }
    std::io::stdout().write_all(b"r")?;
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn timed(command: &[String]) -> Result<Duration, Box<dyn std::error::Error>> {
    let (program, args) = command.split_first().ok_or("no command")?;
    let begin = Instant::now();
    let status = Command::new(program).args(args).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let time = begin.elapsed();
    if !status.success() {
        return Err(format!("{program} ended with {status}").into());
    }
    Ok(time)
}
