//! The state directory, its files, and the id of the boot.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Root's directory: the host's journal, its lock, and the public summary.
pub(crate) const HOST_STATE_DIR: &str = "/var/lib/chokepoint";

/// The directory of the journal: `$CHOKEPOINT_STATE_DIR`; else `/var/lib/chokepoint` for root; else `$XDG_STATE_HOME/chokepoint` or
/// `~/.local/state/chokepoint` (XDG Base Directory Specification 0.8: a relative path in the variable counts as none). Nothing without any of these
/// variables.
pub fn default_state_dir(uid: u32, env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(dir) = path("CHOKEPOINT_STATE_DIR") {
        return Some(dir);
    }
    if uid == 0 {
        return Some(PathBuf::from(HOST_STATE_DIR));
    }
    let absolute = |name: &str| path(name).filter(|dir| dir.is_absolute());
    absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state"))).map(|dir| dir.join("chokepoint"))
}

/// The directory in which other users find the summary of root's journal ([`HostPending`](crate::HostPending)): `$CHOKEPOINT_STATE_DIR`, else
/// `/var/lib/chokepoint`. Nothing for root.
pub fn host_state_dir(uid: u32, env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let explicit = env("CHOKEPOINT_STATE_DIR").filter(|value| !value.is_empty()).map(PathBuf::from);
    (uid != 0).then(|| explicit.unwrap_or_else(|| PathBuf::from(HOST_STATE_DIR)))
}

/// The id of this boot (`{root}/proc/sys/kernel/random/boot_id`, random(4)).
///
/// # Errors
/// The file cannot be read.
pub fn boot_id(root: &Path) -> io::Result<String> {
    const BOOT_ID_BYTES_MAX: u64 = 128;
    let mut text = String::new();
    File::open(root.join("proc/sys/kernel/random/boot_id"))?.take(BOOT_ID_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}

/// The bytes of a file of a state directory; nothing where others than its owner could write it.
pub(crate) fn read_of(path: &Path, owner: u32, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.uid() != owner || meta.mode() & 0o022 != 0 {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Writes a file of the state directory atomically and synced, with this mode.
pub(crate) fn replace(dir: &Path, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let fresh = dir.join(format!("{name}.new"));
    write(&fresh, bytes, mode).and_then(|()| fs::rename(&fresh, dir.join(name))).inspect_err(|_| drop(fs::remove_file(&fresh)))
}

fn write(fresh: &PathBuf, bytes: &[u8], mode: u32) -> io::Result<()> {
    match fs::remove_file(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(fresh)?;
    file.write_all(bytes)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_follows_the_variables_and_the_user() {
        let dir = |uid, vars: &[(&str, &str)]| {
            let vars: Vec<(String, OsString)> = vars.iter().map(|(name, value)| ((*name).to_owned(), OsString::from(value))).collect();
            default_state_dir(uid, move |name| vars.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()))
        };
        let home = ("HOME", "/home/u");
        assert_eq!(dir(0, &[home]), Some("/var/lib/chokepoint".into()));
        assert_eq!(dir(0, &[("CHOKEPOINT_STATE_DIR", "/x"), home]), Some("/x".into()));
        assert_eq!(dir(0, &[("CHOKEPOINT_STATE_DIR", "")]), Some("/var/lib/chokepoint".into()));
        assert_eq!(dir(1, &[home]), Some("/home/u/.local/state/chokepoint".into()));
        assert_eq!(dir(1, &[("XDG_STATE_HOME", "/s"), home]), Some("/s/chokepoint".into()));
        assert_eq!(dir(1, &[("XDG_STATE_HOME", "relative"), home]), Some("/home/u/.local/state/chokepoint".into()));
        assert_eq!(dir(1, &[]), None);
    }
}
