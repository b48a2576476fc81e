//! Events for pages that are open: each second the newest sample, what is to be said of it, and how old it is (server-sent events, HTML Standard, section 9.2).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::channel::{Channel, Sender};
use hyper::body::Bytes;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::board::Board;

/// Pages that root and the own user have open at a time.
pub(crate) const PAGES_OWN_MAX: usize = 8;
/// The same of all others together, and of one of them.
pub(crate) const PAGES_MAX: usize = 24;
pub(crate) const PAGES_OF_ONE: usize = 4;
/// Without news an event says how old the newest second is by now. It comes from a clock of its own: whoever measures may hang.
const QUIET_MAX: Duration = Duration::from_millis(1_500);
/// A page that takes nothing for so long is gone.
const STALLED_MAX: Duration = Duration::from_secs(30);
/// Events that wait for a slow page. It misses some then, and goes on with the newest.
const WAITING_MAX: usize = 2;
/// When a browser connects again, milliseconds.
const AGAIN_MS: u32 = 2_000;

/// The body of a response that goes on until the page is closed. `open` is held as long.
pub(crate) fn events(board: &Arc<Board>, open: impl Send + 'static) -> Channel<Bytes, Infallible> {
    let (sender, body) = Channel::new(WAITING_MAX);
    let (board, news) = (Arc::clone(board), board.news());
    tokio::spawn(async move {
        follow(&board, news, sender).await;
        drop(open);
    });
    body
}

async fn follow(board: &Board, mut news: watch::Receiver<u64>, mut sender: Sender<Bytes, Infallible>) {
    let mut text = format!("retry: {AGAIN_MS}\n\n{}", news_of(board));
    loop {
        match timeout(STALLED_MAX, sender.send_data(Bytes::from(text))).await {
            Ok(Ok(())) => {}
            _ => return,
        }
        text = match timeout(QUIET_MAX, news.changed()).await {
            Ok(Ok(())) => news_of(board),
            Ok(Err(_)) => return,
            Err(_) => age_of(board),
        };
    }
}

/// The events of the newest second. JSON has no line feeds, so that each is one line.
fn news_of(board: &Board) -> String {
    let state = board.state();
    let sample = state.newest.as_ref().and_then(|sample| serde_json::to_string(sample).ok());
    let said = (!state.said.is_empty()).then(|| state.said.clone());
    drop(state);
    let told = |name: &str, data: Option<String>| data.map(|data| event(name, &data)).unwrap_or_default();
    told("sample", sample) + &told("state", said) + &age_of(board)
}

fn age_of(board: &Board) -> String {
    serde_json::to_string(&board.freshness()).map(|json| event("age", &json)).unwrap_or_default()
}

fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
