//! File systems whose files the kernel makes up when they are read. Chokepoint reads such files by itself; no path that somebody else names may lead there: a read can take
//! as long as a process wants (`/proc/PID/smaps`, under the lock of its memory), and so can the look for a name (`/proc/PID/map_files`).

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::fstatfs;

/// Where such a file system usually is, by its number in `f_type` (fstatfs(2); linux/magic.h, for configfs and mqueue fs/configfs/mount.c and ipc/mqueue.c).
const MADE_UP: [(u32, &str); 24] = [
    (0x0000_9fa0, "/proc"),
    (0x6265_6572, "/sys"),
    (0x0027_e0eb, "/sys/fs/cgroup"),
    (0x6367_7270, "/sys/fs/cgroup"),
    (0xcafe_4a11, "/sys/fs/bpf"),
    (0x6c69_6e75, "/sys/fs/resctrl"),
    (0x0765_5821, "/sys/fs/resctrl"),
    (0x6165_676c, "/sys/fs/pstore"),
    (0x6573_5543, "/sys/fs/fuse/connections"),
    (0xf97c_ff8c, "/sys/fs/selinux"),
    (0x4341_5d53, "/sys/fs/smackfs"),
    (0xde5e_81e4, "/sys/firmware/efi/efivars"),
    (0x6265_6570, "/sys/kernel/config"),
    (0x6462_6720, "/sys/kernel/debug"),
    (0x7363_6673, "/sys/kernel/security"),
    (0x7472_6163, "/sys/kernel/tracing"),
    (0x4249_4e4d, "/proc/sys/fs/binfmt_misc"),
    (0x6e66_7364, "/proc/fs/nfsd"),
    (0x0000_9fa2, "/proc/bus/usb"),
    (0xabba_1974, "/proc/xen"),
    (0x6759_6969, "/var/lib/nfs/rpc_pipefs"),
    (0x0000_1cd1, "/dev/pts"),
    (0x1980_0202, "/dev/mqueue"),
    (0x6c6f_6f70, "/dev/binderfs"),
];

/// Refuses a file or directory on such a file system. It may be opened as a mere name (open(2), O_PATH).
///
/// # Errors
/// "it is on /proc, where the files of a server are not read".
pub(crate) fn refuse(file: &File) -> io::Result<()> {
    // Without an answer it is a file like others.
    let Ok(about) = fstatfs(file) else { return Ok(()) };
    // The number has 32 bits; the type of the field differs between architectures.
    let kind = about.f_type as u32;
    match MADE_UP.iter().find(|(known, _)| *known == kind) {
        Some((_, place)) => Err(io::Error::other(format!("it is on {place}, where the files of a server are not read"))),
        None => Ok(()),
    }
}

/// [`refuse`] on a way through directories: asks once for each file system.
#[derive(Debug, Default)]
pub(crate) struct Refusal {
    device: Option<u64>,
}

impl Refusal {
    /// Passes a directory, link or file of the way, before anything below it is looked for.
    ///
    /// # Errors
    /// As of [`refuse`].
    pub(crate) fn pass(&mut self, file: &File, meta: &Metadata) -> io::Result<()> {
        if self.device != Some(meta.dev()) {
            refuse(file)?;
            self.device = Some(meta.dev());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::Files;

    const WHY: &str = "it is on /proc, where the files of a server are not read";

    #[test]
    fn what_the_kernel_makes_up_is_refused_wherever_a_path_leads_there() {
        let tree = tempfile::tempdir().unwrap();
        let link = tree.path().join("link");
        symlink("/proc/self/smaps", &link).unwrap();
        symlink("/proc/self", tree.path().join("directory")).unwrap();
        let (files, link) = (Files::of_directory(Path::new("/")).unwrap(), link.to_str().unwrap());
        let below = format!("{}/directory/smaps", tree.path().display());
        let own = rustix::process::geteuid().as_raw();
        for path in ["/proc/self/smaps", "/proc/1/map_files/0-1000", "/proc/none", "/proc/../proc/stat", link, &below] {
            let opened = [
                files.open(path).err(),
                files.open_owned(path, own).err(),
                files.read(path, 9).err(),
                files.locate(path).err(),
                files.owners(path).err(),
                files.led(path).err(),
            ];
            for why in opened {
                assert_eq!(why.map(|why| why.to_string()).as_deref(), Some(WHY), "{path}");
            }
            assert!(files.trusted(path, own).is_err() && files.open_trusted(path, own).is_err() && !files.exists(path), "{path}");
        }
        assert_eq!(files.names("/proc/self/map_files").unwrap_err().to_string(), WHY);
        assert_eq!(files.matching("/proc/self/map_files/*", 9).unwrap_err().to_string(), WHY);
        assert_eq!(files.matching("/pro[c]/self/smaps", 9).unwrap(), [""; 0]);
        assert!(Files::of_directory(Path::new("/proc/self")).unwrap().open("status").is_err(), "a root on it");
        if Path::new("/sys/kernel/mm").exists() {
            let why = files.open("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_err().to_string();
            assert!(why.starts_with("it is on /sys, "), "{why}");
        }
    }

    #[test]
    fn a_descriptor_that_leads_there_is_refused_and_own_readings_are_not() {
        use std::os::fd::AsRawFd;
        let smaps = File::open("/proc/self/smaps").unwrap();
        let link = format!("/proc/self/fd/{}", smaps.as_raw_fd());
        assert_eq!(crate::open_link(Path::new(&link)).unwrap_err().to_string(), WHY);
        assert!(crate::open_link(Path::new("/proc/self/exe")).is_ok());
        assert!(crate::read_kernel("/proc/self/stat", 1 << 12).is_ok() && crate::open_named(Path::new("/proc/self/stat")).is_ok());
    }
}
