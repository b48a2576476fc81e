//! The settings of TLS of a load, from the command line.

use anyhow::{Result, bail};
use chokepoint_load::{Tls, Trust};
use chokepoint_model::url::without_values;

use crate::args::Connection;
use crate::run::plan;
use crate::run::settings::Target;

/// The settings of TLS; `None` for a target without TLS, which takes none of its flags.
pub(crate) fn settings(connection: &Connection, target: &Target) -> Result<Option<Tls>> {
    if target.scheme != "https" {
        if connection.insecure || connection.cacert.is_some() || connection.tls_no_resumption {
            bail!("--insecure, --cacert and --tls-no-resumption need an https URL, and {} is not one", without_values(&target.url));
        }
        return Ok(None);
    }
    let trust = match &connection.cacert {
        _ if connection.insecure => Trust::Anybody,
        Some(file) => Trust::Authorities(plan::read_file("certificate", file)?),
        None => Trust::System,
    };
    Ok(Some(Tls { server_name: target.host.clone(), trust, resume: !connection.tls_no_resumption }))
}
