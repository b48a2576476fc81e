//! The speed of an interface, from its driver, in the calling thread's namespace (ethtool(8), linux/ethtool.h).

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const ETHTOOL_GSET: u32 = 1;
/// `SPEED_UNKNOWN`, and what some drivers return instead.
const UNKNOWN: [u32; 3] = [u32::MAX, 0, 0xffff];

/// `struct ethtool_cmd`, 44 bytes. Deprecated in favour of ETHTOOL_GLINKSETTINGS, but every kernel supports it for every user. Its speed has 32 bits in two
/// halves.
#[repr(C)]
#[derive(Default)]
struct Command {
    command: u32,
    supported: u32,
    advertising: u32,
    speed_low: u16,
    duplex_port_phy: [u8; 3],
    transceiver_autoneg_mdio: [u8; 3],
    max_tx: u32,
    max_rx: u32,
    speed_high: u16,
    mdix_and_reserved: [u8; 2],
    lp_advertising: u32,
    reserved: [u32; 2],
}

/// `struct ifreq` with a pointer in its union; 40 bytes on 64-bit hosts.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    data: *mut Command,
    rest: [u8; 16],
}

/// Index and speed in Mbit/s of the interfaces that have a speed.
pub(super) fn ask(interfaces: &[(u32, String)]) -> Vec<(u32, u32)> {
    let Ok(socket) = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None) else { return Vec::new() };
    interfaces.iter().filter_map(|(index, name)| Some((*index, mbit_per_s(&socket, name)?))).collect()
}

fn mbit_per_s(socket: &OwnedFd, name: &str) -> Option<u32> {
    let mut command = Command { command: ETHTOOL_GSET, ..Command::default() };
    let mut request = Request { name: [0; libc::IFNAMSIZ], data: &raw mut command, rest: [0; 16] };
    // The last byte stays NUL.
    request.name.get_mut(..name.len()).filter(|place| place.len() < libc::IFNAMSIZ)?.copy_from_slice(name.as_bytes());
    // SAFETY: SIOCETHTOOL reads an ifreq (ours is no shorter) whose data points to a struct that ETHTOOL_GSET fills with 44 bytes. Both live until the end of
    // this function, and nothing else refers to them during the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    let speed = u32::from(command.speed_high) << 16 | u32::from(command.speed_low);
    (result == 0 && !UNKNOWN.contains(&speed)).then_some(speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_layout() {
        assert_eq!(size_of::<Command>(), 44);
        assert_eq!(std::mem::offset_of!(Command, speed_high), 28);
        assert!(size_of::<Request>() >= size_of::<libc::ifreq>());
    }

    #[test]
    fn loopback_and_strange_names_have_no_speed() {
        let names = ["lo", "", "no-such-device", "a-name-longer-than-sixteen-bytes"];
        let asked: Vec<_> = names.iter().map(|name| (1, (*name).to_owned())).collect();
        assert_eq!(ask(&asked), []);
    }
}
