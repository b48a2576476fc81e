//! How servers whose configuration is not read call the number of what serves one request at a time: by the program or class of their command line, from their
//! documentation.

use super::{Pool, PoolKind, worker_pids};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::Identity;

/// The names of a program's settings.
struct Naming {
    /// The program, or the class that a runtime executes.
    program: &'static str,
    /// Threads of each process.
    threads: Option<&'static str>,
    /// Processes.
    processes: Option<&'static str>,
}

const fn naming(program: &'static str, threads: Option<&'static str>, processes: Option<&'static str>) -> Naming {
    Naming { program, threads, processes }
}

/// docs.gunicorn.org/en/stable/settings.html, docs.pylonsproject.org/projects/waitress, uwsgi-docs.readthedocs.io, uvicorn.dev/settings,
/// hypercorn.readthedocs.io, puma.io/puma/file.DSL.html, yhbt.net/unicorn/Unicorn/Configurator.html, tomcat.apache.org/tomcat-10.1-doc/config/http.html,
/// httpd.apache.org/docs/2.4/mod/mpm_common.html.
const NAMINGS: &[Naming] = &[
    naming("gunicorn", Some("--threads"), Some("--workers")),
    naming("waitress-serve", Some("--threads"), None),
    naming("uwsgi", Some("--threads"), Some("--processes")),
    naming("uvicorn", None, Some("--workers")),
    naming("hypercorn", None, Some("--workers")),
    naming("puma", Some("--threads"), Some("--workers")),
    naming("unicorn", None, Some("worker_processes")),
    naming("apache2", Some("MaxRequestWorkers"), Some("MaxRequestWorkers")),
    naming("httpd", Some("MaxRequestWorkers"), Some("MaxRequestWorkers")),
    naming("org.apache.catalina.startup.Bootstrap", Some("maxThreads"), None),
];

/// How programs that keep a worker, or a place, for each idle connection call the time for which they keep it: httpd.apache.org/docs/2.4/mod/core.html#keepalivetimeout,
/// docs.haproxy.org (timeout http-keep-alive), redmine.lighttpd.net/projects/lighttpd/wiki (server.max-keep-alive-idle),
/// tomcat.apache.org/tomcat-10.1-doc/config/http.html (keepAliveTimeout), metacpan.org/dist/Starman (--keepalive-timeout).
const KEEPING: &[(&str, &str)] = &[
    ("apache2", "KeepAliveTimeout"),
    ("httpd", "KeepAliveTimeout"),
    ("haproxy", "timeout http-keep-alive"),
    ("lighttpd", "server.max-keep-alive-idle"),
    ("org.apache.catalina.startup.Bootstrap", "keepAliveTimeout"),
    ("starman", "--keepalive-timeout"),
];

/// The name of the time for which a tier's program keeps an idle connection, if it is known.
pub(crate) fn keeping(ctx: &Context<'_>, tier: &Tier) -> Option<&'static str> {
    let identities = tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)?.identity.first());
    let mut known = identities.flat_map(|identity| KEEPING.iter().filter(|(program, _)| runs(identity, program)));
    known.next().map(|(_, setting)| *setting)
}

/// The setting of a pool's size.
pub(crate) struct PoolSetting {
    /// Its name.
    pub(crate) name: &'static str,
    /// Processes that each have it for themselves; one where it is the number of all.
    pub(crate) processes: usize,
}

impl PoolSetting {
    /// `None` if the server's program is not known, or has no such setting.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<Self> {
        let identities = tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)?.identity.first());
        let known = identities.flat_map(|identity| NAMINGS.iter().filter(|naming| runs(identity, naming.program))).next()?;
        let name = match pool.kind {
            PoolKind::Processes => known.processes?,
            PoolKind::Threads => known.threads?,
            PoolKind::Loops => return None,
        };
        let of_all = pool.kind == PoolKind::Processes || known.threads == known.processes;
        Some(Self { name, processes: if of_all { 1 } else { worker_pids(ctx, tier).len().max(1) } })
    }
}

/// True if a process runs this program, or if a word of its command line is it, perhaps with a directory or as the title of a process ("gunicorn: worker").
fn runs(identity: &Identity, program: &str) -> bool {
    let words = identity.cmdline.split_ascii_whitespace().map(|word| word.trim_end_matches(':'));
    let names = words.chain(identity.exe.as_deref()).filter_map(|word| word.rsplit('/').next());
    identity.comm == program || names.into_iter().any(|name| name == program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_known_by_its_command_line() {
        let of = |comm: &str, cmdline: &str| Identity { comm: comm.to_owned(), cmdline: cmdline.to_owned(), ..Identity::default() };
        assert!(runs(&of("gunicorn", ""), "gunicorn") && runs(&of("python3", "/usr/bin/python3 -m gunicorn app"), "gunicorn"));
        assert!(runs(&of("python3", "gunicorn: worker [app]"), "gunicorn"));
        assert!(!runs(&of("python3", "python3 gunicorn_like.py --bind x"), "gunicorn"));
    }
}
