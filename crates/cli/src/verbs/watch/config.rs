//! The settings of `watch`: a TOML file, over which flags have precedence.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail, ensure};
use chokepoint_dashboard::Protection;
use chokepoint_sources::NamedLog;
use serde::{Deserialize, Serialize};

use super::hooks::{self, Hook};
use super::showing;
use crate::Usage;
use crate::args::Watch;
use crate::run::settings::{self, Target};
use crate::terminal::output;

/// The longest configuration file, bytes.
const FILE_BYTES_MAX: usize = 1 << 20;
/// How alike a mistyped key and a known one must be, 0 to 1.
const ALIKE_MIN: f64 = 0.7;

/// The file as it is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "snake_case")]
pub(super) struct File {
    /// Servers to watch; none: all that listen on this host.
    pub(super) targets: Vec<String>,
    /// Namespaces of clients and servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_netns: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server_netns: Option<String>,
    /// Directory of what is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data_dir: Option<PathBuf>,
    /// Where the page and the metrics are served: an address of loopback, or any address that is protected by the next three; "unix:PATH"; or "off".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) listen: Option<String>,
    /// Files in PEM with the certificate and its key, and a file with the token that each request is to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_certificate: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tls_key: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token_file: Option<PathBuf>,
    /// An OpenTelemetry collector to which metrics are posted: "http://HOST:4318/v1/metrics".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) otlp: Option<String>,
    /// Access logs that no configuration of a server names, such as a container's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) log: Vec<Log>,
    /// Who is told of incidents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) hook: Vec<Hook>,
}

impl File {
    /// What protects the page: all three files or none.
    pub(super) fn protection(&self) -> Result<Option<Protection>> {
        match (&self.tls_certificate, &self.tls_key, &self.token_file) {
            (None, None, None) => Ok(None),
            (Some(certificate), Some(key), Some(token)) => {
                Ok(Some(Protection { certificate: certificate.clone(), key: key.clone(), token: token.clone() }))
            }
            _ => bail!("tls_certificate, tls_key and token_file belong together"),
        }
    }
}

/// An access log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Log {
    /// Its file: the server's own lines, or those of Docker's json-file driver or of a Kubernetes node.
    pub(super) file: PathBuf,
    /// The server whose requests are in it, as the recorder names it: a URL of `targets`, or "nginx:80".
    pub(super) server: String,
    /// nginx's `log_format`; its built-in `combined` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) format: Option<String>,
    /// Its `escape`: "default", "json" or "none".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) escape: Option<String>,
    /// True if only root can change the file that names it.
    #[serde(skip)]
    pub(super) is_named_by_root: bool,
}

impl Log {
    /// Begins to follow it.
    pub(super) fn open(&self) -> Result<NamedLog> {
        let escape = self.escape.as_deref().unwrap_or("default");
        ensure!(["default", "json", "none"].contains(&escape), "escape = \"{escape}\" is none of default, json and none");
        NamedLog::new(&self.file, self.is_named_by_root, self.format.as_deref(), escape)
            .map_err(|why| anyhow::anyhow!("the format of {}: {why}", self.file.display()))
    }
}

/// The settings in force.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) file: File,
    pub(super) targets: Vec<Target>,
    pub(super) duration: Option<Duration>,
}

impl Settings {
    /// The file of `--config`, with the flags. An error is a usage error.
    pub(super) fn of(args: &Watch) -> Result<Self> {
        let usage = |error: Error| Error::new(Usage(output::once(&error)));
        let mut file = args.config.as_deref().map(read).transpose().map_err(usage)?.unwrap_or_default();
        if !args.urls.is_empty() {
            file.targets.clone_from(&args.urls);
        }
        file.client_netns = args.client_netns.clone().or(file.client_netns);
        file.server_netns = args.server_netns.clone().or(file.server_netns);
        file.data_dir = args.data_dir.clone().or(file.data_dir);
        file.listen = args.listen.clone().or(file.listen);
        file.listen.as_deref().map(showing::parse).transpose()?;
        file.protection().map_err(usage)?;
        file.otlp.as_deref().map(chokepoint_dashboard::check).transpose().map_err(|error| usage(error.into()))?;
        hooks::check(&file.hook, args.config.as_deref()).map_err(usage)?;
        file.log.iter().try_for_each(|log| log.open().map(drop)).map_err(usage)?;
        let targets = file.targets.iter().map(|url| Target::parse(url)).collect::<Result<Vec<_>>>().map_err(usage)?;
        if targets.is_empty() && (file.client_netns.is_some() || file.server_netns.is_some()) {
            bail!(Usage("--client-netns and --server-netns need a URL: without one, every namespace is watched".to_owned()));
        }
        let duration = args.duration.as_deref().map(settings::duration).transpose().map_err(usage)?;
        Ok(Self { file, targets, duration })
    }

    /// What `--print-config` prints: a file that gives the same settings.
    pub(super) fn to_toml(&self) -> Result<String> {
        Ok(toml::to_string(&self.file)?)
    }
}

fn read(path: &Path) -> Result<File> {
    let name = path.display();
    let (bytes, is_roots) =
        chokepoint_foreign::read_own_or_roots(path, FILE_BYTES_MAX).with_context(|| format!("{name} cannot be read"))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is no text"))?;
    let mut file = parse(&text).with_context(|| format!("{name} is not valid"))?;
    file.log.iter_mut().for_each(|log| log.is_named_by_root = is_roots);
    Ok(file)
}

fn parse(text: &str) -> Result<File> {
    toml::from_str(text).map_err(|error| {
        let message = error.to_string();
        match nearest(error.message()) {
            Some(known) => anyhow::anyhow!("{}: did you mean \"{known}\"?", message.trim_end()),
            None => anyhow::anyhow!("{}", message.trim_end()),
        }
    })
}

/// The known key that is most like the unknown one which a message of the parser names: "unknown field `x`, expected one of `a`, `b`".
fn nearest(message: &str) -> Option<String> {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (unknown, known) = quoted.split_first().filter(|_| message.starts_with("unknown field"))?;
    let alike = |known: &&str| (strsim::jaro_winkler(unknown, known), (*known).to_owned());
    let best = known.iter().map(alike).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= ALIKE_MIN).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_name() {
        let error = format!("{:#}", parse("target = []").unwrap_err());
        assert!(error.contains("did you mean \"targets\"?") && error.contains("line 1"), "{error}");
        let error = format!("{:#}", parse("colour = 1").unwrap_err());
        assert!(!error.contains("did you mean") && error.contains("colour"), "{error}");
        assert!(parse("targets = 1").is_err() && parse("targets = [").is_err());
    }

    #[test]
    fn what_is_printed_gives_the_same_settings() {
        let file = File { targets: vec!["http://127.0.0.1/".to_owned()], data_dir: Some("/srv/x".into()), ..File::default() };
        assert_eq!(parse(&toml::to_string(&file).unwrap()).unwrap(), file);
        assert_eq!(parse("").unwrap(), File::default());
    }
}
