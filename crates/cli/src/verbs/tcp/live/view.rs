//! `chokepoint tcp --live` on a terminal: read again each second until the user quits.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::Style;

use super::edges::{EdgeKey, LiveSockets};
use super::table;
use super::text::{not_read, totals};
use chokepoint_sources::TcpSocketsRead;

use crate::report::view::Phrases;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::keys::Key;
use crate::terminal::live::{Live, Waited};
use crate::terminal::sheet::{Sheet, faint, strong};
use crate::verbs::tcp::local_end::LocalEnd;

/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// An edge, whatever place its namespace has in a look.
type Edge = (String, LocalEnd, Option<(IpAddr, SocketAddr)>);

/// Reads and shows the sockets until the user quits. True if some could be read.
pub(super) fn follow(read: impl Fn() -> Result<(LiveSockets, TcpSocketsRead)>, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    // Before the screen is taken: what cannot be read is told on the main screen.
    let mut seen = read()?;
    let mut before: Option<BTreeMap<Edge, u64>> = None;
    let mut live = Live::open()?;
    loop {
        let until = Instant::now() + PERIOD;
        live.draw(|buffer, has_keys, unicode| draw(&seen, before.as_ref(), has_keys, unicode, Phrases(words), buffer))?;
        loop {
            match live.wait(until, interrupt)? {
                Waited::Over => break,
                Waited::Key(Key::Char('q' | 'Q')) => {
                    live.hide();
                    return Ok(seen.1.namespaces > 0);
                }
                Waited::Key(_) => {}
                Waited::Redraw => {
                    live.draw(|buffer, has_keys, unicode| draw(&seen, before.as_ref(), has_keys, unicode, Phrases(words), buffer))?;
                }
            }
        }
        if interrupt.is_set() {
            return Ok(seen.1.namespaces > 0);
        }
        before = Some(resent(&seen.0));
        seen = read()?;
    }
}

fn edge(live: &LiveSockets, key: &EdgeKey) -> Edge {
    (live.netns(key).to_owned(), key.end, key.ends)
}

/// Segments that each edge has sent again.
fn resent(live: &LiveSockets) -> BTreeMap<Edge, u64> {
    live.edges.iter().map(|(key, of)| (edge(live, key), of.retransmits.sum() as u64)).collect()
}

fn draw(
    (live, read): &(LiveSockets, TcpSocketsRead),
    before: Option<&BTreeMap<Edge, u64>>,
    has_keys: bool,
    unicode: bool,
    phrases: Phrases<'_>,
    buffer: &mut Buffer,
) {
    let mut sheet = Sheet::new(usize::from(buffer.area.width), unicode);
    sheet.line(&totals(live, read, phrases), strong());
    // Connections that ended took what they had sent again with them.
    let since = |key: &EdgeKey, all: u64| before.map(|before| all.saturating_sub(before.get(&edge(live, key)).copied().unwrap_or(0)));
    for (place, line) in table::lines(live, usize::from(buffer.area.height), since, phrases).iter().enumerate() {
        sheet.line(line, if place == 0 { faint() } else { Style::new() });
    }
    for gap in not_read(live, read, phrases) {
        sheet.sentence(&gap, faint());
    }
    sheet.draw(&phrases.word(if has_keys { "tcp-live-keys" } else { "where-keys-none" }), buffer);
}
