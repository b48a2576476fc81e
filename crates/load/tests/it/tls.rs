//! TLS against a rustls server: handshake times, certificate checks, session resumption, large answers, and failures.
//!
//! Live: load on this test's own server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chokepoint_load::{Control, LoadError, Plan, Tls, Trust, measure};
use chokepoint_model::load::{Errors, Handshakes, LoadExchange, Loop, Measured, TlsFailure, TlsLoad};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::endings::{CLOSING, never_holds_at};
use crate::server::workers::{Workers, waits_for_end};
use crate::server::{HELLO, Server, check, plan, until_closed};

/// Certificates for localhost and 127.0.0.1, valid for a hundred years, and the authority that signed them. The key is not secret.
const AUTHORITY: &[u8] = include_bytes!("../data/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("../data/server.pem");
const KEY: &[u8] = include_bytes!("../data/server.key");

type Session = StreamOwned<ServerConnection, TcpStream>;

/// Serves each connection with TLS.
fn secured(serve: impl Fn(&mut Session) + Send + Sync + 'static) -> Server {
    secured_by((CERTIFICATE, KEY), serve)
}

/// The same with this certificate and key.
fn secured_by(identity: (&[u8], &[u8]), serve: impl Fn(&mut Session) + Send + Sync + 'static) -> Server {
    let config = config(identity);
    Server::start(move |stream, _| {
        let session = ServerConnection::new(Arc::clone(&config)).expect("a configuration");
        serve(&mut StreamOwned::new(session, stream));
    })
}

fn config((certificate, key): (&[u8], &[u8])) -> Arc<ServerConfig> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(certificate).map(|certificate| certificate.expect("PEM")).collect();
    let key = PrivateKeyDer::from_pem_slice(key).expect("PEM");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let mut config = builder.with_no_client_auth().with_single_cert(certificates, key).expect("the key fits");
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

fn request(session: &mut Session) -> bool {
    let mut tail = [0u8; 4];
    let mut byte = [0];
    while tail != *b"\r\n\r\n" {
        match session.read(&mut byte) {
            Ok(1) => {
                tail.rotate_left(1);
                tail[3] = byte[0];
            }
            _ => return false,
        }
    }
    true
}

fn answers(answer: impl AsRef<[u8]> + Send + Sync + 'static) -> Server {
    secured(move |session| {
        while request(session) && session.write_all(answer.as_ref()).and_then(|()| session.flush()).is_ok() {}
        session.conn.send_close_notify();
        let _ = session.flush();
    })
}

/// Forty requests with a long timeout.
fn tls_plan(server: &Server, trust: Trust, resume: bool) -> Plan {
    let mut plan = plan(server.address);
    plan.timeout = Duration::from_secs(600);
    plan.options.tls = Some(Tls { server_name: "localhost".to_owned(), trust, resume });
    plan
}

fn run(plan: &Plan) -> Measured {
    let measured = measure(plan, &Control::new()).expect("the load runs");
    check(&measured.result);
    measured
}

fn authority() -> Trust {
    Trust::Authorities(AUTHORITY.to_vec())
}

#[test]
fn kept_connections_have_one_handshake() {
    let server = answers(HELLO);
    let measured = run(&tls_plan(&server, authority(), true));
    let (result, detail) = (&measured.result, &measured.detail);
    assert_eq!((result.good, result.connections, result.errors), (40, 4, Errors::default()), "{:?}", result.error_samples);
    assert_eq!(result.tls.map(|tls| tls.handshakes.full + tls.handshakes.resumed), Some(4), "{result:?}");
    assert!(detail.tls_us.max > 0 && result.connect_us.max > 0, "{detail:?}");
    assert!(detail.tls_us.max <= result.latency_us.max, "a handshake is in the time of its request: {detail:?}");
    assert_eq!(run(&plan(Server::answering(HELLO).address)).result.tls, None);
}

#[test]
fn an_open_loop_works_over_tls() {
    let server = answers(HELLO);
    let mut plan = tls_plan(&server, authority(), true);
    (plan.shape, plan.requests) = (Loop::Open { rate_per_s: 200.0, connections: 8 }, Some(60));
    let result = run(&plan).result;
    assert_eq!((result.requests, result.good), (60, 60), "{:?}", result.error_samples);
}

#[test]
fn sessions_are_resumed_only_if_requested() {
    let server = answers(HELLO);
    let mut plan = tls_plan(&server, authority(), true);
    (plan.keep_alive, plan.shape) = (false, Loop::Closed { connections: 1 });
    let TlsLoad { offers_sessions, handshakes: resumed, time_us, failure } = run(&plan).result.tls.expect("TLS");
    assert_eq!(failure, None);
    assert!(time_us.is_some_and(|time| time.max > 0), "{time_us:?}");
    assert!(offers_sessions && resumed.resumed >= 30 && resumed.full >= 1 && resumed.full + resumed.resumed == 40, "{resumed:?}");
    plan.options.tls = tls_plan(&server, authority(), false).options.tls;
    let full = run(&plan).result.tls.expect("TLS");
    assert_eq!((full.offers_sessions, full.handshakes), (false, Handshakes { full: 40, resumed: 0 }));
}

#[test]
fn large_answers_and_requests_are_complete() {
    const BYTES: usize = 3_000_000;
    let answer = [format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n").as_bytes(), &vec![b'x'; BYTES]].concat();
    let server = secured(move |session| {
        let mut body = vec![0; BYTES];
        while request(session) && session.read_exact(&mut body).is_ok() {
            if !body.ends_with(b"b") || session.write_all(&answer).and_then(|()| session.flush()).is_err() {
                return;
            }
        }
    });
    let mut plan = tls_plan(&server, authority(), true);
    (plan.requests, plan.method, plan.body) = (Some(8), "POST".to_owned(), vec![b'b'; BYTES]);
    let result = run(&plan).result;
    assert_eq!((result.good, result.connections), (8, 4), "{:?} {:?}", result.errors, result.error_samples);
    assert!(result.received_bytes > 8 * BYTES as u64 && result.sent_bytes > 8 * BYTES as u64);
}

#[test]
fn an_untrusted_or_wrong_certificate_fails_the_handshake() {
    let server = answers(HELLO);
    let mut plan = tls_plan(&server, Trust::Authorities(CERTIFICATE.to_vec()), true);
    plan.options.tls = Some(Tls { server_name: "other.example".to_owned(), trust: authority(), resume: true });
    let result = run(&plan).result;
    assert_eq!(result.errors, Errors { tls_failed: 40, ..Errors::default() }, "{:?}", result.error_samples);
    assert_eq!(result.error_samples[0], "TLS handshake failed: the certificate is for another name");
    assert_eq!(result.tls.and_then(|tls| tls.failure), Some(TlsFailure::WrongName));
    let other = include_bytes!("../data/other-authority.pem");
    plan.options.tls = Some(Tls { server_name: "localhost".to_owned(), trust: Trust::Authorities(other.to_vec()), resume: true });
    assert_eq!(run(&plan).result.tls.and_then(|tls| tls.failure), Some(TlsFailure::UnknownAuthority));
    plan.options.tls = Some(Tls { server_name: "other.example".to_owned(), trust: Trust::Anybody, resume: true });
    assert_eq!(run(&plan).result.good, 40, "nothing is verified");
}

#[test]
fn a_server_without_tls_or_one_that_closes_fails_the_handshake() {
    let plain = Server::start(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        until_closed(&mut stream);
    });
    let result = run(&tls_plan(&plain, Trust::Anybody, true)).result;
    assert_eq!(result.errors, Errors { tls_failed: 40, ..Errors::default() }, "{:?}", result.error_samples);
    assert_eq!(result.tls.and_then(|tls| tls.failure), Some(TlsFailure::Handshake));
    let cut = Server::start(|mut stream, _| {
        let mut some = [0; 64];
        let _ = stream.read(&mut some);
    });
    let result = run(&tls_plan(&cut, Trust::Anybody, true)).result;
    assert_eq!(result.errors.tls_failed + result.errors.reset, 40, "{:?} {:?}", result.errors, result.error_samples);
    let silent = Server::start(|mut stream, _| until_closed(&mut stream));
    let mut plan = tls_plan(&silent, Trust::Anybody, true);
    (plan.timeout, plan.requests) = (Duration::from_millis(200), Some(8));
    assert_eq!(run(&plan).result.errors, Errors { connect_timeout: 8, ..Errors::default() });
}

#[test]
fn an_incomplete_answer_is_reported() {
    let server = secured(|session| {
        request(session);
        let _ = session.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").and_then(|()| session.flush());
    });
    let result = run(&tls_plan(&server, authority(), true)).result;
    assert_eq!(result.errors.closed_before_answer + result.errors.reset, 40, "{:?}", result.errors);
    // Until the close, closed in order.
    let server = secured(|session| {
        request(session);
        let _ = session.write_all(b"HTTP/1.1 200 OK\r\n\r\nall of it");
        session.conn.send_close_notify();
        let _ = session.flush();
    });
    assert_eq!(run(&tls_plan(&server, authority(), true)).result.good, 40);
}

#[test]
fn invalid_tls_settings_are_refused_before_anything_is_sent() {
    let server = answers(HELLO);
    for (server_name, trust) in
        [("a b", Trust::Anybody), ("localhost", Trust::Authorities(b"no PEM".to_vec())), ("localhost", Trust::Authorities(KEY.to_vec()))]
    {
        let mut plan = tls_plan(&server, Trust::Anybody, true);
        plan.options.tls = Some(Tls { server_name: server_name.to_owned(), trust, resume: true });
        let error = measure(&plan, &Control::new()).expect_err("nothing to trust");
        assert!(matches!(error, LoadError::Tls(_)), "{error}");
    }
}

/// `openssl req -x509` makes such a certificate: self-signed, and an authority's.
#[test]
fn a_self_signed_certificate_is_accepted_by_those_who_were_given_it() {
    let own: (&[u8], &[u8]) = (include_bytes!("../data/self-signed.pem"), include_bytes!("../data/self-signed.key"));
    let server =
        secured_by(own, |session| while request(session) && session.write_all(HELLO.as_bytes()).and_then(|()| session.flush()).is_ok() {});
    let with = |name: &str, trust: &[u8]| {
        let mut plan = tls_plan(&server, authority(), true);
        plan.options.tls = Some(Tls { server_name: name.to_owned(), trust: Trust::Authorities(trust.to_vec()), resume: true });
        let result = run(&plan).result;
        (result.good, result.tls.and_then(|tls| tls.failure))
    };
    assert_eq!(with("localhost", own.0), (40, None));
    assert_eq!(with("other.example", own.0), (0, Some(TlsFailure::WrongName)));
    assert_eq!(with("localhost", AUTHORITY), (0, Some(TlsFailure::UnknownAuthority)));
}

#[test]
fn each_connection_says_whose_turn_it_is() {
    let control = Arc::new(Control::observed());
    let (seen, seer) = (Arc::new(std::sync::Mutex::new(Vec::new())), Arc::clone(&control));
    let sink = Arc::clone(&seen);
    // Whose turn it is: before the request, when it was read, and when the answer has come.
    let server = secured(move |session| {
        let port = session.sock.peer_addr().expect("connected").port();
        let turn = || seer.exchange(port);
        // The client says so once connect() has returned, which may be later than accept().
        let before = std::iter::repeat_with(&turn).find(Option::is_some).flatten();
        if !request(session) {
            return;
        }
        let asked = turn();
        let _ = session.write_all(HELLO.as_bytes()).and_then(|()| session.flush());
        let mut byte = [0];
        let _ = session.sock.peek(&mut byte);
        sink.lock().expect("not poisoned").push((before, asked, turn()));
        while request(session) && session.write_all(HELLO.as_bytes()).and_then(|()| session.flush()).is_ok() {}
    });
    let mut plan = tls_plan(&server, authority(), true);
    (plan.shape, plan.requests) = (Loop::Closed { connections: 1 }, Some(2));
    check(&measure(&plan, &control).expect("the load runs").result);
    let seen = seen.lock().expect("not poisoned").clone();
    // The next request has been sent when its first byte has come.
    assert_eq!(seen, [(Some(LoadExchange::NotAsked), Some(LoadExchange::Waiting), Some(LoadExchange::Waiting))]);
    assert_eq!((0..=u16::MAX).find_map(|port| control.exchange(port)), None, "all connections are closed");
}

/// What a worker does after its answer, and then waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// Nothing: it waits for the client to end TLS.
    Neither,
    /// It ends TLS, and waits for the client to end TLS and its socket.
    Tls,
    /// It ends TLS and its side of the socket, and waits for the client to end its socket.
    Both,
}

/// A server may end TLS but not its socket, or nothing, and wait for the client to end TLS. An ordinary client does both.
#[test]
fn a_server_that_waits_for_the_end_of_tls_gets_it() {
    for end in [End::Neither, End::Tls, End::Both] {
        let (config, cut) = (config((CERTIFICATE, KEY)), Arc::new(AtomicU64::new(0)));
        let unannounced = Arc::clone(&cut);
        let server = Workers::start(2, move |stream| {
            let session = ServerConnection::new(Arc::clone(&config)).expect("a configuration");
            let mut session = StreamOwned::new(session, stream.try_clone().expect("a descriptor"));
            if !request(&mut session) || session.write_all(CLOSING.as_bytes()).and_then(|()| session.flush()).is_err() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
            if end != End::Neither {
                session.conn.send_close_notify();
                let _ = session.flush();
            }
            if end == End::Both {
                let _ = stream.shutdown(Shutdown::Write);
            }
            let is_ended = waits_for_end(&mut session);
            // Only a close_notify makes this 0; without one it is an error.
            unannounced.fetch_add(u64::from(!matches!(session.read(&mut [0]), Ok(0))), Ordering::Relaxed);
            is_ended && (end == End::Neither || waits_for_end(stream))
        });
        let secured = |plan: &mut Plan| {
            plan.keep_alive = false;
            plan.options.tls = Some(Tls { server_name: "localhost".to_owned(), trust: authority(), resume: true });
        };
        never_holds_at(&server, secured);
        // Whoever has seen the other side end needs to say nothing more.
        assert!(end == End::Both || cut.load(Ordering::Relaxed) == 0, "{end:?}: {cut:?} ended without a close_notify");
    }
}
