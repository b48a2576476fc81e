//! `chokepoint tcp --watch`: a transfer followed from its first byte to its last, at the sending end if that is on this host.

mod text;
mod transfer;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_sources::{Root, TcpPeer, read_congestion_control, read_tcp_info};

use crate::args::Tcp;
use crate::report::page::{self, Block, ReportPage, Section};
use crate::run::files;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use transfer::{Transfer, TransferTrace};

/// Time between two samples.
const SAMPLE_PERIOD: Duration = Duration::from_millis(5);

/// Follows a connection: sends the request, if there is one, and reads until the peer closes, sends nothing for `silence`, or the user stops it.
pub(super) fn run(
    args: &Tcp,
    stream: TcpStream,
    request: Option<String>,
    silence: Duration,
    words: &Catalogue,
    interrupt: &Interrupt,
) -> Result<bool> {
    let page = files::Output::open_where(args.html.as_deref(), "page")?;
    let transfer = follow(stream, request, silence, interrupt)?;
    let written = page.map_or(Ok(()), |file| {
        let plots = text::plots(&transfer, words);
        let (title, lines) = text::sentences(&transfer, words);
        let plain = lines.join("\n");
        let blocks = lines.into_iter().map(page::text).chain(plots.into_iter().map(Block::Plot)).collect();
        let section = Section { id: "transfer".to_owned(), heading: String::new(), blocks };
        let page = ReportPage { title: title.clone(), subject: title, sections: vec![section], ..ReportPage::default() };
        file.write(page::file::render(&page, None, &plain).as_bytes())
    });
    if args.json {
        output::print_json(&format!("{:#}\n", transfer.json()))?;
    } else {
        output::print_painted(&text::render(&transfer, &output::style(), words))?;
    }
    written?;
    Ok(true)
}

fn follow(mut stream: TcpStream, request: Option<String>, silence: Duration, interrupt: &Interrupt) -> Result<Transfer> {
    let (local, peer) = (stream.local_addr()?, stream.peer_addr()?);
    let control = read_congestion_control(&stream).unwrap_or_else(|_| "?".to_owned());
    // Without the permission to list and enter namespaces, only the near end can be followed.
    let far = TcpPeer::find(&Root::default(), peer, local, SAMPLE_PERIOD).ok().flatten();
    let (mut near_trace, mut far_trace) = (TransferTrace::default(), TransferTrace::default());
    let begin = Instant::now();
    let began_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let since = |at: Instant| at.saturating_duration_since(begin).as_secs_f64();
    stream.set_read_timeout(Some(SAMPLE_PERIOD))?;
    if let Some(request) = request {
        stream.write_all(request.as_bytes()).context("the request cannot be sent")?;
    }
    let (mut bytes, mut ended, mut last, mut due) = (0, false, begin, begin);
    let mut buffer = vec![0_u8; 256 << 10];
    loop {
        let now = Instant::now();
        if now >= due {
            near_trace.add(since(now), &read_tcp_info(&stream).context("TCP_INFO cannot be read")?, None);
            due = now + SAMPLE_PERIOD;
            for reading in far.iter().flat_map(TcpPeer::readings) {
                far_trace.add(since(reading.at), &reading.info, reading.send_buffer);
            }
        }
        if ended || interrupt.is_set() || now.duration_since(last) >= silence {
            break;
        }
        match stream.read(&mut buffer) {
            // Sample once more at the end.
            Ok(0) => (ended, due) = (true, now),
            Ok(read) => (bytes, last) = (bytes + read as u64, Instant::now()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error).context("the response cannot be read"),
        }
    }
    let seconds = if ended { since(Instant::now()) } else { since(last) };
    // The sending end shows what limits the transfer. A socket that was closed at once has too few samples.
    let peer_netns = far
        .filter(|_| far_trace.samples.len() > 1)
        .map(|far| far.netns.name.clone().unwrap_or_else(|| format!("net:[{}]", far.netns.id.0)));
    let trace = if peer_netns.is_some() { far_trace } else { near_trace };
    Ok(Transfer { local, peer, control, began_s, bytes, seconds, ended, peer_netns, trace })
}

#[cfg(test)]
mod tests {
    use super::*;

    mod live {
        use std::net::TcpListener;

        use super::*;

        #[test]
        fn a_transfer_is_followed_at_the_end_that_sends() {
            const BYTES: usize = 3 << 20;
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = [0; 3];
                stream.read_exact(&mut head).unwrap();
                for _ in 0..BYTES >> 16 {
                    stream.write_all(&[7; 1 << 16]).unwrap();
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            let transfer = follow(stream, Some("GET".to_owned()), Duration::from_secs(20), &Interrupt::install().unwrap()).unwrap();
            server.join().unwrap();
            assert_eq!((transfer.bytes, transfer.ended), (BYTES as u64, true));
            assert!(transfer.peer_netns.is_some() && transfer.trace.samples.len() > 2, "{:?}", transfer.peer_netns);
            let last = transfer.trace.samples.last().unwrap();
            assert!(last.sender.bytes.is_none_or(|(sent, _, _)| sent > 0), "the server sends, not the client");
            assert!(transfer.limit_times().is_some_and(|times| times.all().iter().sum::<f64>() > 0.0));
        }
    }
}
