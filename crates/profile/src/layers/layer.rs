//! The kinds of work that samples are sorted into, with their titles and colours.

use serde::{Deserialize, Serialize};

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the table LAYERS says what each is")]
pub enum Layer {
    Application,
    Interpreter,
    Allocator,
    Tls,
    Compression,
    SyscallEntry,
    FileSystem,
    SocketSend,
    SocketReceive,
    Connection,
    TcpTransmit,
    SoftirqReceive,
    Netfilter,
    PortSearch,
    Scheduler,
    Lock,
    PageFault,
    Interrupt,
    Polling,
    KernelOther,
    Unknown,
    Idle,
}

/// The texts of a layer.
#[derive(Debug)]
pub struct LayerDef {
    /// The layer.
    pub layer: Layer,
    /// Its name in files, kebab-case.
    pub id: &'static str,
    /// Its title for readers.
    pub title: &'static str,
    /// Its colour in pictures, "#rrggbb".
    pub color: &'static str,
}

/// All layers. Layers with equal shares are listed in this order.
#[rustfmt::skip]
pub const LAYERS: &[LayerDef] = &[
    def(Layer::Application, "application", "application", "#7fb069"),
    def(Layer::Interpreter, "interpreter", "interpreter (PHP, Python, JavaScript, JVM, ...)", "#a5c882"),
    def(Layer::Allocator, "allocator", "allocator (user space)", "#e6aa68"),
    def(Layer::Tls, "tls", "TLS and cryptography", "#9d79bc"),
    def(Layer::Compression, "compression", "compression", "#c792c0"),
    def(Layer::SyscallEntry, "syscall-entry", "system call entry, exit and mitigations", "#b0a08e"),
    def(Layer::FileSystem, "file-system", "files and sendfile", "#6fb3b8"),
    def(Layer::SocketSend, "socket-send", "socket send", "#8fc0ea"),
    def(Layer::SocketReceive, "socket-receive", "socket receive", "#7fb0e4"),
    def(Layer::Connection, "connection", "connection set-up and close", "#6d9fdd"),
    def(Layer::TcpTransmit, "tcp-transmit", "TCP/IP transmit", "#9db8d3"),
    def(Layer::SoftirqReceive, "softirq-receive", "packet receive (softirq)", "#84a9c6"),
    def(Layer::Netfilter, "netfilter", "firewall and connection tracking", "#c05746"),
    def(Layer::PortSearch, "port-search", "searching for a free port", "#d7263d"),
    def(Layer::Scheduler, "scheduler", "scheduler, wake-ups and waiting for events", "#d9ae61"),
    def(Layer::Lock, "lock", "locks, spinning and futexes", "#d0606d"),
    def(Layer::PageFault, "page-fault", "page faults and memory mappings", "#cf8e80"),
    def(Layer::Interrupt, "interrupt", "interrupts, timers and other soft interrupts", "#a09ebb"),
    def(Layer::Polling, "polling", "polling without finding work (poll-mode programs)", "#cfcfa8"),
    def(Layer::KernelOther, "kernel-other", "other kernel code", "#9a9a9a"),
    def(Layer::Unknown, "unknown", "no stack recorded", "#c8c8c8"),
    def(Layer::Idle, "idle", "idle", "#dddddd"),
];

const fn def(layer: Layer, id: &'static str, title: &'static str, color: &'static str) -> LayerDef {
    LayerDef { layer, id, title, color }
}

impl Layer {
    /// Its line in the table.
    pub fn def(self) -> &'static LayerDef {
        // A test compares the table with the enum.
        LAYERS.iter().find(|def| def.layer == self).unwrap_or(&LAYERS[0])
    }

    /// Whether it is the kernel's work to move packets and keep connections, which a network stack in user space would replace.
    pub fn is_kernel_network(self) -> bool {
        matches!(
            self,
            Self::SocketSend
                | Self::SocketReceive
                | Self::Connection
                | Self::TcpTransmit
                | Self::SoftirqReceive
                | Self::Netfilter
                | Self::PortSearch
        )
    }
}
