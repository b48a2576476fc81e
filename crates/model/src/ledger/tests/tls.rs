//! A load over TLS says whose turn it is on each of its connections: the server's own messages, such as session tickets, are no answers.

use super::*;
use crate::observation::load::LoadExchange;

/// Six connections whose server sent something in the same tick as the request came, or later, which the times alone take for an answer.
fn with_tickets(told: Option<LoadExchange>, change: impl Fn(RequestSocket) -> RequestSocket) -> LedgerReport {
    let server = many(6, |n| change(idle(WEB, n)));
    let stage = Stage {
        server,
        in_flight: Some(6),
        at_samples: [Some(6.0); 2],
        begun: Some(0.0),
        scheme: "https",
        asks_once: true,
        ..Stage::default()
    };
    let mut obs = stage.observe();
    for view in obs.netns.values_mut() {
        let points = view.request_samples.points().to_vec();
        view.request_samples = crate::observation::series::Series::default();
        for (at_us, mut sample) in points {
            let port = |socket: &RequestSocket| match &socket.address {
                SocketAddress::Tcp { remote, .. } => Some(remote.1),
                SocketAddress::Unix { .. } => None,
            };
            sample.exchanges = sample.sockets.iter().filter_map(port).filter_map(|port| Some((port, told?))).collect();
            view.request_samples.push(at_us, Reading::Ok(sample));
        }
    }
    let (path, words) = (stage.path(), Catalogue::english());
    of(&Context::new(&obs, &path, &words)).expect("there are samples").0
}

fn mean(ledger: &LedgerReport, place: Place) -> f64 {
    ledger.places.iter().filter(|one| one.place == place).map(|one| one.mean).sum()
}

#[test]
fn a_request_before_the_session_tickets_is_in_service() {
    assert_eq!(mean(&with_tickets(None, |socket| socket), Place::Waiting), 0.0, "the times show an answer");
    let found = with_tickets(Some(LoadExchange::Waiting), |socket| socket);
    assert_eq!((mean(&found, Place::Waiting), mean(&found, Place::Client)), (6.0, 0.0), "{found:?}");
}

#[test]
fn a_handshake_is_the_servers_until_it_answers_and_then_the_clients() {
    let hello = |mut socket: RequestSocket| {
        socket.times = socket.times.map(|times| RequestTimes { last_data_sent_ms: times.last_data_recv_ms + 40, ..times });
        socket
    };
    let found = with_tickets(Some(LoadExchange::NotAsked), hello);
    assert_eq!(mean(&found, Place::TlsHandshake), 6.0, "{found:?}");
    let found = with_tickets(Some(LoadExchange::NotAsked), |socket| socket);
    assert_eq!((mean(&found, Place::TlsHandshake), mean(&found, Place::Client)), (0.0, 6.0), "{found:?}");
    let found = with_tickets(Some(LoadExchange::NotAsked), |socket| RequestSocket { send_queue: 900, ..socket });
    assert_eq!(mean(&found, Place::Sending), 0.0, "a certificate is no answer: {found:?}");
}

#[test]
fn an_answer_that_was_taken_leaves_nothing_at_the_server() {
    let found = with_tickets(Some(LoadExchange::Answered), |socket| socket);
    assert_eq!((mean(&found, Place::Waiting), mean(&found, Place::TlsHandshake)), (0.0, 0.0), "{found:?}");
    let found = with_tickets(Some(LoadExchange::Waiting), |socket| RequestSocket { receive_queue: 100, ..socket });
    assert_eq!(mean(&found, Place::Unread), 6.0, "{found:?}");
}
