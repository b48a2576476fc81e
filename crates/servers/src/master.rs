//! The master of a server: what its process and those of its workers are called, and where its configuration begins.

use chokepoint_model::change::ServerKind;
use serde::{Deserialize, Serialize};

/// Most bytes of one text of an executable.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// The language of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum Dialect {
    Nginx,
    PhpFpm,
    Haproxy,
    Postgresql,
}

impl Dialect {
    /// The name of the server that has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::PhpFpm => "php-fpm",
            Self::Haproxy => "haproxy",
            Self::Postgresql => "postgresql",
        }
    }
}

/// What is known of the master of a kind of server, and of its workers.
#[derive(Debug)]
pub struct MasterDef {
    /// The language of its configuration.
    pub dialect: Dialect,
    /// The kind, as changes and their journal name it; `None` if its configuration is read and not edited.
    pub kind: Option<ServerKind>,
    /// True if workers look like their master, and only they listen: what is read of a worker's configuration is its master's, whose parent is another program.
    pub is_apart: bool,
    /// Which files of a directory are read that is given in place of a file: "*.cfg".
    pub(crate) of_directory: Option<&'static str>,
    /// With what the names of its programs' files begin.
    pub(crate) programs: &'static [&'static str],
    /// The word with which its processes' titles begin: "php-fpm".
    pub(crate) titles: &'static [&'static str],
    /// The title of a worker that takes requests, behind that word and ": ".
    pub(crate) is_worker: fn(&str) -> bool,
    /// The title of a worker that finishes its last requests and takes no others. Servers that do not say so have none.
    pub(crate) is_leaving: fn(&str) -> bool,
    /// Where its configuration begins.
    pub(crate) locate: fn(&Started<'_>) -> ConfigurationPlace,
    /// Beginnings of the texts of its executable that say how it was built.
    pub(crate) built_in_texts: &'static [&'static str],
    /// The base of relative paths of the master with this title, whose program was built so.
    pub(crate) prefix: fn(title: &str, built_in: &[String]) -> Option<String>,
    /// The main file in the title of a master, behind "master process": as it was given to the program.
    pub(crate) main_in_title: fn(&str) -> Option<String>,
    /// True if it opens a relative main file from the directory in which it was started, false if from its prefix.
    pub main_is_of_start: bool,
    /// Arguments with which its program tests the configuration that begins in a file and goes on in others, instead of the master with this title.
    pub(crate) test_arguments: fn(main: &str, also: &[String], title: &str) -> Vec<String>,
    /// The signal that makes it read its configuration again.
    pub reload_signal: ReloadSignal,
    /// True if it executes its own program again in order to read its configuration, so that the process gets another stack.
    pub executes_itself: bool,
    /// Options whose values are paths that say where its configuration is: what a recording keeps of a command line.
    pub path_options: &'static [&'static str],
    /// Words of its processes' titles, which a recording keeps.
    pub title_words: &'static [&'static str],
}

/// A signal that makes a master read its configuration again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ReloadSignal {
    Hup,
    Usr2,
}

impl ReloadSignal {
    /// Its name as kill(1) takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hup => "HUP",
            Self::Usr2 => "USR2",
        }
    }
}

/// What was read of a process that may be a master.
pub struct Started<'a> {
    /// The words of its command line or title ([`MasterDef::words`]).
    pub words: &'a [String],
    /// Its executable file; empty if unknown.
    pub exe: &'a str,
    /// Texts of its executable that say how it was built, as the option that prints them does.
    pub built_in: &'a [String],
    /// Whether a file exists for it; with "/." behind, whether a directory does.
    pub exists: &'a dyn Fn(&str) -> bool,
}

/// Where a configuration begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigurationPlace {
    /// The main file, as the server was given it.
    pub main: String,
    /// More files that it was given, in their order: each is read as the main one is.
    pub also: Vec<String>,
    /// The base of relative paths, as the server was given it: of logs for nginx, of includes for php-fpm.
    pub prefix: String,
    /// The program's version in its own words; empty if unknown.
    pub version: String,
    /// Settings that its command line gives, by name, in their order.
    pub given: Vec<(String, String)>,
    /// Its built-in access log; empty if unknown.
    pub access_log: String,
    /// Its built-in error log; empty if unknown.
    pub error_log: String,
}

impl MasterDef {
    /// True for the name of a file that is its program.
    pub fn is_program(&self, name: &str) -> bool {
        self.programs.iter().any(|known| name.starts_with(known))
    }

    /// What a title says of a process, behind the server's name: "master process (/etc/php/8.2/fpm/php-fpm.conf)". `None` for what is no title.
    pub fn said<'t>(&self, title: &'t str) -> Option<&'t str> {
        self.titles.iter().find_map(|name| title.strip_prefix(name)?.strip_prefix(": "))
    }

    /// What a master's title says behind "master process"; `None` for other processes.
    pub fn of_master<'t>(&self, title: &'t str) -> Option<&'t str> {
        let rest = self.said(title)?.strip_prefix("master process")?;
        (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim())
    }

    /// True for the title of a worker that takes requests.
    pub fn is_worker(&self, title: &str) -> bool {
        self.said(title).is_some_and(self.is_worker)
    }

    /// True for the title of a worker that takes no more requests and finishes its last.
    pub fn is_leaving(&self, title: &str) -> bool {
        self.said(title).is_some_and(self.is_leaving)
    }

    /// The words of a command line, whose arguments zeros separate. In a title, which a server writes over its arguments, blanks separate them.
    pub fn words(&self, command_line: &str) -> Vec<String> {
        let command_line = command_line.trim_end_matches('\0');
        if self.said(command_line).is_some() || !command_line.contains('\0') {
            return command_line.split(['\0', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        }
        command_line.split('\0').map(str::to_owned).collect()
    }

    /// Where the configuration of a process begins. Its prefix is absolute, its main file as the server opens it.
    pub fn locate(&self, started: &Started<'_>, started_in: &str) -> ConfigurationPlace {
        let place = (self.locate)(started);
        // A relative prefix is relative to the directory in which the server was started. No server here changes its directory.
        let prefix = absolute(started_in, &place.prefix);
        let [of_prefix, of_start] = [prefix.as_str(), started_in].map(|directory| absolute(directory, &place.main));
        let is_of_start = self.main_is_of_start && ((started.exists)(&of_start) || !(started.exists)(&of_prefix));
        let main = if is_of_start { of_start } else { of_prefix };
        let also = place.also.iter().map(|file| self.files_at(absolute(started_in, file), started.exists)).collect();
        ConfigurationPlace { main: self.files_at(main, started.exists), also, prefix, ..place }
    }

    /// A file as given, or the pattern of the files that are read of a directory.
    fn files_at(&self, path: String, exists: &dyn Fn(&str) -> bool) -> String {
        let directory = path.trim_end_matches('/');
        match self.of_directory {
            Some(pattern) if exists(&format!("{directory}/.")) => format!("{directory}/{pattern}"),
            _ => path,
        }
    }

    /// True if its executable has texts that say how it was built.
    pub fn says_how_it_was_built(&self) -> bool {
        !self.built_in_texts.is_empty()
    }

    /// What an executable with these bytes says of how it was built.
    pub fn built_in(&self, executable: &[u8]) -> Vec<String> {
        self.built_in_texts.iter().filter_map(|begin| text_of(executable, begin.as_bytes())).collect()
    }

    /// The base of relative paths of the master with this title, whose program says this of how it was built; `None` where neither says it.
    pub fn prefix(&self, title: &str, built_in: &[String]) -> Option<String> {
        (self.prefix)(title, built_in)
    }

    /// The main file that a master's title names ([`MasterDef::of_master`]), as it was given to the program; `None` where it names none that can be found.
    pub fn main_in_title(&self, title: &str) -> Option<String> {
        (self.main_in_title)(title)
    }

    /// Arguments with which the program tests the configuration that begins in `main` and goes on in `also`, as the master with this title has it.
    pub fn test_arguments(&self, main: &str, also: &[String], title: &str) -> Vec<String> {
        (self.test_arguments)(main, also, title)
    }
}

/// A path, from this directory if it is relative.
pub fn absolute(directory: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", directory.trim_end_matches('/')) }
}

/// The value of an option: `-c FILE`, `-cFILE`, `--fpm-config FILE` or `--fpm-config=FILE`. The last one counts.
pub(crate) fn option(words: &[String], short: &str, long: Option<&str>) -> Option<String> {
    let mut found = None;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let long_value = long.and_then(|long| word.strip_prefix(long));
        if word == short || long_value == Some("") {
            found = rest.next().cloned().or(found);
        } else if let Some(value) = long_value.and_then(|value| value.strip_prefix('=')) {
            found = Some(value.to_owned());
        } else if let Some(value) = word.strip_prefix(short).filter(|value| value.starts_with(['/', '.'])) {
            found = Some(value.to_owned());
        }
    }
    found
}

/// The directory under which a program was installed: "/usr/local" of "/usr/local/sbin/php-fpm".
pub(crate) fn home(exe: &str) -> &str {
    let directory = exe.rsplit_once('/').map_or("", |(directory, _)| directory);
    let home = directory.strip_suffix("/sbin").or_else(|| directory.strip_suffix("/bin")).unwrap_or("/usr");
    if home.is_empty() { "/usr" } else { home }
}

/// The text of an executable with this beginning, up to its end or the end of its first line.
fn text_of(bytes: &[u8], name: &[u8]) -> Option<String> {
    let (&first, rest) = name.split_first()?;
    let mut at = 0;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == first)?;
        if bytes[at + 1..].starts_with(rest) {
            let found = &bytes[at..(at + TEXT_BYTES_MAX).min(bytes.len())];
            let end = found.iter().position(|byte| matches!(byte, 0 | b'\n')).unwrap_or(found.len());
            return Some(String::from_utf8_lossy(&found[..end]).into_owned());
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_texts_of_an_executable_are_found() {
        let exe = b"\x7fELF\0nginx version: nginx/1.22.1\n\0configure arguments: --prefix=/usr/share/nginx\0x";
        assert_eq!(text_of(exe, b"nginx version: ").as_deref(), Some("nginx version: nginx/1.22.1"));
        assert_eq!(text_of(exe, b"configure arguments:").as_deref(), Some("configure arguments: --prefix=/usr/share/nginx"));
        assert_eq!(text_of(exe, b"built by"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (text_of(&bytes, b"nginx version: "), text_of(&bytes, b"a"));
        }
    }
}
