//! A server with a fixed number of workers, each with one connection at a time: a client that does not end keeps a worker.

use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a worker waits for a client: much longer than a client needs that ends by itself.
const PATIENCE: Duration = Duration::from_secs(3);

/// A listening server that ends when dropped.
pub(crate) struct Workers {
    pub(crate) address: SocketAddr,
    /// Connections whose client did not end while a worker waited for it.
    held: Arc<AtomicU64>,
    /// Connections that a worker has now.
    taken: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Each worker accepts a connection, serves it with this function, and accepts the next. The function tells whether the client ended in time.
    pub(crate) fn start(number: usize, serve: impl Fn(&mut TcpStream) -> bool + Send + Sync + 'static) -> Workers {
        Self::start_with(number, None, serve)
    }

    /// The same with this backlog.
    pub(crate) fn start_with(
        number: usize,
        backlog: Option<i32>,
        serve: impl Fn(&mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Workers {
        let listener = Arc::new(TcpListener::bind("127.0.0.1:0").expect("a free port"));
        if let Some(backlog) = backlog {
            rustix::net::listen(&*listener, backlog).expect("it listens already");
        }
        let address = listener.local_addr().expect("bound");
        let stop = Arc::new(AtomicBool::new(false));
        let (held, taken, serve) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(serve));
        let work = |_| {
            let (listener, stop, held, taken, serve) = (listener.clone(), stop.clone(), held.clone(), taken.clone(), serve.clone());
            std::thread::spawn(move || {
                while let Ok((mut stream, _)) = listener.accept() {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    taken.fetch_add(1, Ordering::Relaxed);
                    stream.set_nodelay(true).ok();
                    stream.set_read_timeout(Some(PATIENCE)).ok();
                    stream.set_write_timeout(Some(PATIENCE)).ok();
                    held.fetch_add(u64::from(!serve(&mut stream)), Ordering::Relaxed);
                    drop(stream);
                    taken.fetch_sub(1, Ordering::Relaxed);
                }
            })
        };
        let threads = (0..number).map(work).collect();
        Workers { address, held, taken, stop, threads }
    }

    /// Waits until no worker has a connection. Returns how many clients were waited for in vain.
    pub(crate) fn held(&self) -> u64 {
        while self.taken.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.held.load(Ordering::Relaxed)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.iter().for_each(|_| drop(TcpStream::connect(self.address)));
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// Reads until the client ends; false if it does not in time. A reset is an end too.
pub(crate) fn waits_for_end(stream: &mut impl Read) -> bool {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(1..) => {}
            Ok(0) => return true,
            Err(error) => return !matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
        }
    }
}

/// Ends this side a moment after the answer, in a packet of its own, and waits for the client's end.
pub(crate) fn lingers(stream: &mut TcpStream) -> bool {
    std::thread::sleep(Duration::from_millis(1));
    let _ = stream.shutdown(Shutdown::Write);
    waits_for_end(stream)
}
