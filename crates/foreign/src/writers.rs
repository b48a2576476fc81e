//! Who may have written a file that is evidence, such as a log, by the owner and mode of the file and of all that leads to it.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

use crate::files::{open_kernel, read_bounded};
use crate::text::printable;
use crate::trust::{Untrusted, Writer, writer_but};

/// The accounts of a system (passwd(5), group(5)).
const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";
/// Most bytes of such a file.
const BYTES_MAX: usize = 1 << 20;
/// The first user and group ids of people; those below belong to the system's own services (login.defs(5), UID_MIN).
const PEOPLE_MIN: u32 = 1_000;

/// The users who may write a file, besides root.
#[derive(Debug, Clone)]
pub struct Writers {
    uids: Vec<u32>,
    accounts: Accounts,
}

impl Writers {
    /// Root and these users.
    pub fn new(uids: Vec<u32>) -> Self {
        Self { uids, accounts: Accounts::read() }
    }

    /// Checks that nobody else may change it. A group may, if all of its members may. A directory may also belong to a group of the system's own services, without people
    /// among its members: Ubuntu's /var/log is one, for rsyslogd.
    pub(crate) fn check(&self, at: &Path, file: &File, meta: &Metadata) -> Result<(), Untrusted> {
        let may_user = |uid: u32| uid == 0 || self.uids.contains(&uid);
        let may = |writer: Writer| match writer {
            Writer::User(uid) => may_user(uid),
            Writer::Group(0) => true,
            Writer::Group(gid) => self.accounts.members(gid).is_some_and(|members| {
                let is_of_system = meta.is_dir() && gid < PEOPLE_MIN && members.iter().all(|uid| *uid < PEOPLE_MIN);
                is_of_system || members.iter().all(|uid| may_user(*uid))
            }),
            Writer::Everybody => false,
        };
        match writer_but(file, meta, &may) {
            Ok(None) => Ok(()),
            Ok(Some(by)) => Err(Untrusted::Writable { path: at.to_owned(), by: self.accounts.name(by) }),
            Err(source) => Err(Untrusted::Io { path: at.to_owned(), source }),
        }
    }
}

/// The user ids that these names have in a text of passwd(5); a number is one itself.
pub fn users_of<'a>(names: impl Iterator<Item = &'a str>, passwd: &str) -> Vec<u32> {
    let of = |name: &str| name.parse().ok().or_else(|| entries(passwd).find(|entry| entry.0 == name).map(|entry| entry.1));
    names.filter_map(of).collect()
}

#[derive(Debug, Clone, Default)]
struct Accounts {
    users: String,
    groups: String,
}

impl Accounts {
    fn read() -> Self {
        let text = |path: &str| -> io::Result<String> {
            Ok(String::from_utf8_lossy(&read_bounded(open_kernel(Path::new(path))?, BYTES_MAX)?).into_owned())
        };
        Self { users: text(USERS).unwrap_or_default(), groups: text(GROUPS).unwrap_or_default() }
    }

    /// The members of a group; `None` if they are not known.
    fn members(&self, gid: u32) -> Option<Vec<u32>> {
        let group = |line: &str| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.get(2)?.parse() == Ok(gid)).then(|| fields.get(3).copied().unwrap_or_default().to_owned())
        };
        let named = self.groups.lines().find_map(group)?;
        let names: Vec<&str> = named.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        let mut members = users_of(names.iter().copied(), &self.users);
        if members.len() < names.len() {
            return None;
        }
        members.extend(entries(&self.users).filter(|entry| entry.2 == gid).map(|entry| entry.1));
        Some(members)
    }

    fn name(&self, writer: Writer) -> String {
        let group = |gid: u32| self.groups.lines().find(|line| line.split(':').nth(2).and_then(|id| id.parse().ok()) == Some(gid));
        let named = match writer {
            Writer::User(uid) => entries(&self.users).find(|entry| entry.1 == uid).map(|entry| format!("user {}", entry.0)),
            Writer::Group(gid) => group(gid).and_then(|line| Some(format!("group {}", line.split(':').next()?))),
            Writer::Everybody => None,
        };
        named.map_or_else(|| writer.to_string(), |named| printable(&named).into_owned())
    }
}

/// Name, user id and group id of each user.
fn entries(passwd: &str) -> impl Iterator<Item = (&str, u32, u32)> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        Some((fields.next()?, fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;
    use crate::Files;

    fn accounts() -> Accounts {
        let users = "root:x:0:0::/:\nwww-data:x:33:33::/:\nsyslog:x:104:110::/:\nmallory:x:4001:4001::/:\n";
        let groups =
            "root:x:0:\nadm:x:4:mallory\nwww-data:x:33:\nsyslog:x:110:\nweb:x:500:www-data,mallory\nother:x:501:who\nmallory:x:4001:\n";
        Accounts { users: users.to_owned(), groups: groups.to_owned() }
    }

    #[test]
    fn members_of_groups_are_known_or_not() {
        let of = |gid: u32| accounts().members(gid);
        assert_eq!([of(33), of(110), of(500), of(501), of(7)], [Some(vec![33]), Some(vec![104]), Some(vec![33, 4001]), None, None]);
        assert_eq!(users_of(["www-data", "12", "none"].into_iter(), &accounts().users), [33, 12]);
        let names = [Writer::User(4001), Writer::User(4002), Writer::Group(110), Writer::Everybody].map(|by| accounts().name(by));
        assert_eq!(names, ["user mallory", "user 4002", "group syslog", "everybody"]);
    }

    #[test]
    fn a_log_is_evidence_if_only_the_server_and_root_could_write_it() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root gives files away");
            return;
        }
        let tree = tempfile::tempdir().unwrap();
        let (dir, file) = (tree.path().join("nginx"), tree.path().join("nginx/access.log"));
        fs::create_dir(&dir).unwrap();
        fs::write(&file, "").unwrap();
        let files = Files::of_directory(Path::new("/")).unwrap();
        let writers = Writers { uids: vec![33], accounts: accounts() };
        let set = |path: &Path, uid: u32, gid: u32, mode: u32| {
            chown(path, Some(uid), Some(gid)).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let who = |of_dir: (u32, u32, u32), of_file: (u32, u32, u32)| {
            set(&dir, of_dir.0, of_dir.1, of_dir.2);
            set(&file, of_file.0, of_file.1, of_file.2);
            files.written_by(&file, &writers).map_or_else(|why| why.to_string(), |_| "trusted".to_owned())
        };
        // Debian's, as installed and after a rotation; Ubuntu's /var/log.
        for (of_dir, of_file) in [((0, 4, 0o755), (33, 4, 0o640)), ((33, 4, 0o755), (0, 0, 0o644)), ((0, 110, 0o775), (33, 33, 0o664))] {
            assert_eq!(who(of_dir, of_file), "trusted");
        }
        let (dir, file) = (tree.path().join("nginx"), tree.path().join("nginx/access.log"));
        for (of_dir, of_file, whose) in [
            ((0, 0, 0o755), (4001, 4, 0o640), format!("{} can be changed by user mallory", file.display())),
            ((0, 0, 0o755), (33, 110, 0o660), format!("{} can be changed by group syslog", file.display())),
            ((0, 0, 0o755), (33, 33, 0o666), format!("{} can be changed by everybody", file.display())),
            ((4001, 0, 0o755), (33, 4, 0o640), format!("{} can be changed by user mallory", dir.display())),
            ((0, 4, 0o775), (33, 4, 0o640), format!("{} can be changed by group adm", dir.display())),
            ((0, 500, 0o775), (33, 4, 0o640), format!("{} can be changed by group web", dir.display())),
            ((0, 501, 0o775), (33, 4, 0o640), format!("{} can be changed by group other", dir.display())),
        ] {
            assert_eq!(who(of_dir, of_file), whose);
        }
    }
}
