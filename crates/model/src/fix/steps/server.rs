//! The steps that change the settings of one server: the edit, the test, and what puts it in force, as the server runs.

use super::owner::CgroupOwner;
use super::{Enter, enter, printed};
use crate::facts::Context;
use crate::fix::change::{Activation, Change, ServerKind, ServerSetting, quoted};
use crate::fix::remedy::Step;
use crate::observation::{FileEdit, Identity, ServerView, SettingValue};
use crate::output::message::Message;

/// Options of patch(1): it leaves neither a copy nor a rejected part beside the file, where a pattern of an `include` would find it.
const PATCH: &str = "patch --no-backup-if-mismatch -r -";
/// Waits until the process in `$pid` has ended.
const WAIT: &str = "while kill -0 \"$pid\" 2>/dev/null; do sleep 0.1; done";

/// A server whose settings are changed by hand.
pub(super) struct ServerByHand<'a> {
    kind: ServerKind,
    pid: u32,
    main: &'a str,
    changes: Vec<&'a Change>,
    /// The edits of its files; `None` if its text was not read, or the edit cannot be made in it.
    edits: Option<Vec<FileEdit>>,
    home: Home,
    view: Option<&'a ServerView>,
    identity: Option<&'a Identity>,
    /// What gets a command into its network namespace.
    enter: Enter,
    /// The user as whom its program is run and its files are edited, if that is neither root nor the user who measured.
    as_user: Option<u32>,
    /// Why its program or its files may be what others wrote: then no command names them.
    others_write: Option<&'a str>,
}

/// Where a server runs, which decides how it is restarted.
enum Home {
    /// On the host, started by this unit of systemd.
    Unit(String),
    /// On the host, started by something unknown.
    Host,
    /// In a container of this engine, with this id.
    Container(&'static str, String),
    /// In a pod.
    Pod,
    /// With another file system than the host's.
    Elsewhere,
}

impl<'a> ServerByHand<'a> {
    /// The server of these changes, which all name the same main file. `earlier` are those that were made in it before.
    pub(super) fn of(ctx: &'a Context<'_>, earlier: Vec<&'a Change>, changes: Vec<&'a Change>) -> Option<Self> {
        let Change::Server { server, pid, file, .. } = changes.first()? else { return None };
        // A worker may stand for its master.
        let read = ctx.obs.standing_for(*pid).map_or(*pid, |(worker, _)| worker);
        let view = ctx.obs.servers.get(&read);
        let identity = ctx.obs.processes.get(&read).and_then(|process| process.identity.last());
        let master = view.and_then(|view| view.files.master);
        let uid = master.map(|master| master.uid).or_else(|| identity.map(|identity| identity.uid));
        let enter = match identity.filter(|identity| identity.netns.0 != 0) {
            Some(identity) => enter(ctx, identity.netns, &ctx.netns_name(identity.netns)),
            None => Enter::Here,
        };
        let parent = master.map(|master| master.parent).or_else(|| identity.map(|identity| identity.parent));
        let home = home(ctx, read, view, parent);
        let edits = edits(view, &earlier, &changes);
        let by_uid = ctx.obs.request.by_uid;
        let as_user = uid.filter(|uid| *uid != 0 && by_uid.is_some() && by_uid != Some(*uid));
        let others_write = view.and_then(|view| view.files.others_write.as_deref());
        Some(Self { kind: *server, pid: *pid, main: file, changes, edits, home, view, identity, enter, as_user, others_write })
    }

    /// A command as the server's user, who may have chosen the program, the file and what it does: it is no command for a shell of root.
    fn as_user(&self, command: &str) -> String {
        self.as_user.map_or_else(|| command.to_owned(), |uid| format!("sudo -u '#{uid}' {command}"))
    }

    /// The command that edits a file.
    fn patch(&self, reverse: &str, edit: &FileEdit) -> String {
        format!("{} |\n  {}", printed(&edit.diff), self.as_user(&format!("{PATCH}{reverse} {}", quoted(&edit.path))))
    }

    /// What comes before the steps where no command is safe: whoever may change program and files would be the one who runs in the shell.
    pub(super) fn warning(&self) -> Option<Step> {
        let why = self.others_write.filter(|_| self.is_here())?;
        Some(Step::words(Message::new("step-others-write").with("server", self.kind.name()).with("why", why)))
    }

    /// The edit.
    pub(super) fn edit(&self) -> Vec<Step> {
        let patched = |edit: &FileEdit| Step::told(Message::new("step-edit").with("file", edit.path.as_str()), self.patch("", edit));
        match (&self.edits, self.is_for_a_shell()) {
            (Some(edits), true) => edits.iter().map(patched).collect(),
            _ => self.lines(|setting, _, to| (self.words("step-write"), setting.line(to))),
        }
    }

    /// The edit backwards.
    pub(super) fn take_back(&self) -> Vec<Step> {
        let restored =
            |edit: &FileEdit| Step::told(Message::new("step-edit-back").with("file", edit.path.as_str()), self.patch(" -R", edit));
        match (&self.edits, self.is_for_a_shell()) {
            (Some(edits), true) => edits.iter().rev().map(restored).collect(),
            _ => self.lines(|setting, from, to| match from {
                ServerSetting::UNSET => (self.words("step-write-away"), setting.line(to)),
                from => (self.words("step-write-back"), setting.line(from)),
            }),
        }
    }

    /// The test and what puts the files in force.
    pub(super) fn put_in_force(&self) -> Vec<Step> {
        let say = |id: &'static str| Message::new(id).with("server", self.kind.name());
        match &self.home {
            Home::Container(engine, id) => {
                return vec![Step::words(say("step-restart-container").with("engine", *engine).with("id", id.as_str()))];
            }
            Home::Pod => return vec![Step::words(say("step-restart-pod"))],
            Home::Elsewhere => return vec![Step::words(say("step-restart-elsewhere").with("pid", self.pid.to_string()))],
            Home::Unit(_) | Home::Host => {}
        }
        let restarts = self.restarts();
        let text = say(if restarts { "step-restart" } else { "step-reload" });
        let commands = self.test().zip(self.activation(restarts)).filter(|_| self.is_for_a_shell());
        let Some((test, action)) = commands else {
            let words = say(if restarts { "step-test-and-restart" } else { "step-test-and-reload" });
            let option = if self.kind == ServerKind::Haproxy { "-c" } else { "-t" };
            return vec![Step::words(words.with("file", self.main).with("option", option))];
        };
        let mut steps = vec![Step::told(Message::new("step-test"), test), Step::told(text, action)];
        steps.extend(self.wait());
        steps
    }

    /// The wait for nginx's old workers, which still use the old address.
    fn wait(&self) -> Option<Step> {
        let moves = |change: &&Change| matches!(change, Change::Server { setting: ServerSetting::NginxFastcgiAddress { .. }, .. });
        self.changes.iter().any(moves).then(|| {
            let old = format!("pgrep -P {} -f 'worker process is shutting down' >/dev/null", self.pid);
            Step::told(Message::new("step-wait-for-old-workers"), format!("sleep 1; while {old}; do sleep 0.1; done"))
        })
    }

    /// What stops meanwhile.
    pub(super) fn stops(&self) -> Option<Message> {
        if !self.is_here() {
            return Some(Message::new("stops-container"));
        }
        let seconds = || self.view.and_then(ServerView::php_fpm).map_or(0, |php_fpm| php_fpm.process_control_timeout_s.value);
        Some(match (self.kind, self.restarts(), &self.home) {
            (ServerKind::Nginx | ServerKind::Haproxy, false, _) => Message::new("stops-nginx-reload"),
            (ServerKind::PhpFpm, false, _) => Message::new("stops-php-fpm-reload").with("seconds", seconds() as f64),
            (ServerKind::PhpFpm, true, Home::Host) => Message::new("stops-php-fpm-restart").with("seconds", seconds() as f64),
            (kind, true, _) => Message::new("stops-restart").with("server", kind.name()),
        })
    }

    fn is_here(&self) -> bool {
        matches!(self.home, Home::Unit(_) | Home::Host)
    }

    /// True if a command with its program and files does what it says wherever it is pasted: no name in it has a line feed or another character that steers a terminal.
    fn is_for_a_shell(&self) -> bool {
        let edited = self.edits.iter().flatten().map(|edit| edit.path.as_str());
        let named = [self.identity.and_then(|identity| identity.exe.as_deref()), self.view.map(|view| view.files.prefix.as_str())];
        let mut names = edited.chain(named.into_iter().flatten()).chain([self.main]);
        self.is_here() && self.others_write.is_none() && !names.any(|name| name.chars().any(char::is_control))
    }

    /// True if only a restart puts the changes in force by hand: a reload of php-fpm keeps its sockets with their limits.
    fn restarts(&self) -> bool {
        let is_second = |change: &&Change| matches!(change, Change::Server { setting: ServerSetting::PhpFpmSecondPool { .. }, .. });
        // A new socket gets its limit by a reload.
        let is_new = self.changes.iter().any(is_second);
        self.changes.iter().any(|change| match change {
            Change::Server { setting: ServerSetting::PhpFpmBacklog { .. }, .. } => !is_new,
            change => change.activation() == Activation::Restart,
        })
    }

    fn words(&self, id: &'static str) -> Message {
        Message::new(id).with("file", self.main)
    }

    /// A step for each change, with the lines to edit by hand. The function gets setting, old and new value.
    fn lines(&self, told: impl Fn(&ServerSetting, &str, &str) -> (Message, String)) -> Vec<Step> {
        let step = |change: &&Change| {
            let Change::Server { setting, from, to, .. } = change else { return None };
            let (text, lines) = told(setting, from, to);
            Some(Step::lines(text, lines))
        };
        self.changes.iter().filter_map(step).collect()
    }

    /// The test of the configuration by the server's own program; `None` if that is unknown.
    fn test(&self) -> Option<String> {
        let program = self.program()?;
        Some(match self.kind {
            // nginx tries to bind its addresses.
            ServerKind::Nginx => self.in_netns(&self.as_user(&format!("{program} -t{}", self.nginx_options()))),
            ServerKind::PhpFpm => self.as_user(&format!("{program} -t -y {}", quoted(self.main))),
            ServerKind::Haproxy => self.as_user(&format!("{program} -c{}", self.given_files())),
        })
    }

    /// The files that a server was given, each as an option. Of a directory its files are read.
    fn given_files(&self) -> String {
        let also = self.view.into_iter().flat_map(|view| &view.files.also).map(String::as_str);
        let option = |file: &str| format!(" -f {}", quoted(file.split_once("/*.").map_or(file, |(directory, _)| directory)));
        [self.main].into_iter().chain(also).map(option).collect()
    }

    /// The options with which nginx finds its files, if it was started with them.
    fn nginx_options(&self) -> String {
        let cmdline = self.identity.map_or("", |identity| identity.cmdline.as_str());
        let given = |option: &str| cmdline.split(' ').any(|word| word.starts_with(option));
        let mut options = String::new();
        if given("-c") {
            options.push_str(&format!(" -c {}", quoted(self.main)));
        }
        let prefix = self.view.map_or("", |view| view.files.prefix.as_str());
        if given("-p") && !prefix.is_empty() {
            options.push_str(&format!(" -p {}", quoted(prefix)));
        }
        options
    }

    /// The program as a word of a command.
    fn program(&self) -> Option<String> {
        self.identity?.exe.as_deref().map(quoted)
    }

    fn in_netns(&self, command: &str) -> String {
        match &self.enter {
            Enter::Through(prefix) => format!("{prefix} {command}"),
            Enter::Here | Enter::Unknown => command.to_owned(),
        }
    }

    fn activation(&self, restarts: bool) -> Option<String> {
        if let Home::Unit(unit) = &self.home {
            let verb = if restarts { "restart" } else { "reload" };
            return Some(format!("systemctl {verb} {}", quoted(unit)));
        }
        match (self.kind, restarts) {
            (ServerKind::Nginx, false) => Some(self.as_user(&format!("kill -HUP {}", self.pid))),
            // How it was started is not known from its title.
            (ServerKind::Nginx | ServerKind::Haproxy, true) => None,
            (ServerKind::Haproxy, false) => Some(self.as_user(&format!("kill -USR2 {}", self.pid))),
            (ServerKind::PhpFpm, false) => Some(self.as_user(&format!("kill -USR2 \"$({})\"", self.find_master()))),
            // A line that ends and starts it would have to be another user's as a whole.
            (ServerKind::PhpFpm, true) if self.as_user.is_some() => None,
            (ServerKind::PhpFpm, true) => {
                let start = format!("{} -D -y {}", self.program()?, quoted(self.main));
                let find = format!("pid=$({}) && ", self.find_master());
                Some(match &self.enter {
                    Enter::Through(prefix) if prefix.starts_with("nsenter") => {
                        // The namespace may have no other process: enter it before the master ends.
                        let inside = format!("pid=$0; kill -QUIT \"$pid\" && {WAIT} && {start}");
                        format!("{find}nsenter -t \"$pid\" -n sh -c {} \"$pid\"", quoted(&inside))
                    }
                    _ => format!("{find}kill -QUIT \"$pid\" && {WAIT} && {}", self.in_netns(&start)),
                })
            }
        }
    }

    /// The command that finds php-fpm's master, which gets another pid with each reload in the background.
    fn find_master(&self) -> String {
        let mut pattern = String::new();
        for c in format!("php-fpm: master process ({})", self.main).chars() {
            if "\\.^$*+?()[]{}|".contains(c) {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        // A worker that was just forked has its master's title; a container can have a server with the same title.
        format!("pgrep -o --ns $$ --nslist pid -fx {}", quoted(&pattern))
    }
}

/// Where a server runs.
fn home(ctx: &Context<'_>, pid: u32, view: Option<&ServerView>, parent: Option<u32>) -> Home {
    let cgroups = ctx.obs.processes.get(&pid).and_then(|process| process.cgroups.last());
    let paths = || cgroups.into_iter().flat_map(|cgroups| cgroups.values());
    for path in paths() {
        match CgroupOwner::of(path) {
            CgroupOwner::Kubernetes => return Home::Pod,
            CgroupOwner::Container { engine, id } => return Home::Container(engine, id.to_owned()),
            CgroupOwner::Unit(_) | CgroupOwner::Unknown => {}
        }
    }
    if view.is_some_and(|view| view.files.are_elsewhere == Some(true)) {
        return Home::Elsewhere;
    }
    // What another program of a unit started, such as a supervisor, is not the unit's to reload.
    let is_started_by_init = parent == Some(1);
    match paths().find_map(|path| CgroupOwner::service(path)).filter(|_| is_started_by_init) {
        Some(unit) => Home::Unit(unit.to_owned()),
        None => Home::Host,
    }
}

fn edits(view: Option<&ServerView>, earlier: &[&Change], changes: &[&Change]) -> Option<Vec<FileEdit>> {
    view?.files.text.as_ref()?.edited(&wanted(earlier), &wanted(changes)).ok().filter(|edits| !edits.is_empty())
}

fn wanted<'c>(changes: &[&'c Change]) -> Vec<SettingValue<'c>> {
    let wanted = |change: &&'c Change| match change {
        Change::Server { setting, to, .. } => Some((setting, to.as_str())),
        _ => None,
    };
    changes.iter().filter_map(wanted).collect()
}
