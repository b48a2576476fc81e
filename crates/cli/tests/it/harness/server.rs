//! A small web server for tests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A good answer. It is written at once: after the first of several writes the others would wait for the client's delayed acknowledgement, 40 ms.
pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A web server on loopback. It keeps connections alive and has a thread for each.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Gives every request an answer with this status.
    pub(crate) fn start(status: &'static str) -> Self {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
        Self::serving(move |stream| stream.write_all(answer.as_bytes()).is_ok())
    }

    /// Answers each request with `answer`, and closes the connection if it returns false.
    pub(crate) fn serving(answer: impl Fn(&mut TcpStream) -> bool + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for connection in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(connection) = connection else { continue };
                let answer = Arc::clone(&answer);
                std::thread::spawn(move || serve(connection, &*answer));
            }
        });
        Self { address, stop, thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

fn serve(mut connection: TcpStream, answer: &dyn Fn(&mut TcpStream) -> bool) {
    let _ = connection.set_read_timeout(Some(Duration::from_secs(30)));
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match connection.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(n) => received.extend_from_slice(&buffer[..n]),
        }
        while let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            received.drain(..end + 4);
            if !answer(&mut connection) {
                return;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
