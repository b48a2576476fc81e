//! The parts of a PostgreSQL configuration that bear on throughput, in the model's form.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use chokepoint_config::postgresql::Postgresql;
use chokepoint_model::observation::{LimitOf, LimitScope, ListenerAddress, Origin, StatedConfig, StatedLimit, StatedListen};

use super::super::super::room::{ConfigRoom, stated_limit_bytes, stated_listen_bytes};
use super::limit;

/// The configuration.
pub(in crate::servers::config) fn config(
    read: &Postgresql,
    files: Vec<(String, i64)>,
    room: &mut ConfigRoom,
) -> Result<StatedConfig, String> {
    let mut stated = StatedConfig {
        file: files.first().map(|(path, _)| path.clone()).unwrap_or_default(),
        files,
        // It answers what it is asked itself.
        leads_to: Some(Vec::new()),
        ..StatedConfig::default()
    };
    for address in listens(read) {
        let listen = StatedListen { address, of: "PostgreSQL".to_owned(), backlog: None, origin: Origin::default() };
        room.take(stated_listen_bytes(&listen))?;
        stated.listens.push(listen);
    }
    let limit = connections(read);
    room.take(stated_limit_bytes(&limit))?;
    stated.limits.push(limit);
    Ok(stated)
}

/// `max_connections`, of which some are kept for superusers. More are refused at once (src/backend/storage/lmgr/proc.c, `InitProcess`; src/backend/utils/init/postinit.c).
fn connections(read: &Postgresql) -> StatedLimit {
    StatedLimit {
        kept: read.max_connections.value - read.for_all(),
        is_refused: true,
        needs_restart: true,
        setting: "max_connections".to_owned(),
        line: "max_connections =".to_owned(),
        ..limit(LimitScope::Server, LimitOf::Connections, &read.max_connections)
    }
}

/// Its sockets. Names are not resolved.
fn listens(read: &Postgresql) -> Vec<ListenerAddress> {
    let of_words = |word: &String| -> Vec<IpAddr> {
        match word.as_str() {
            "*" => vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
            other => other.parse().into_iter().collect(),
        }
    };
    let over_tcp = read.listen_addresses.iter().flat_map(of_words).map(|ip| ListenerAddress::Tcp(ip, read.port));
    let unix = read.unix_directories.iter().flatten().map(|directory| {
        // An abstract name begins with "@".
        ListenerAddress::Unix(format!("{}/.s.PGSQL.{}", directory.trim_end_matches('/'), read.port))
    });
    over_tcp.chain(unix).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::{ParsedConfig, parsed, reduced};
    use super::*;
    use crate::reduction::Reduction;
    use chokepoint_model::observation::Observation;
    use chokepoint_recording::Outcome;

    const DUMP: &str = "server postgresql\nprefix /\nversion \naccess_log \nerror_log \nalso /d/postgresql.auto.conf\n\
        given superuser_reserved_connections=5\n# configuration file /etc/pg.conf:\nmax_connections = 40 # secret\n\
        ssl_key_file = '/secret'\nlisten_addresses = '10.0.0.9, db.internal'\nunix_socket_directories = '/run/pg'\n\n\
        # configuration file /d/postgresql.auto.conf:\nmax_connections = '50'\n\n";

    fn stated(dump: &str) -> StatedConfig {
        let (head, parsed) = parsed(dump).unwrap();
        let ParsedConfig::Postgresql(read) = parsed else { panic!("another server's") };
        config(&read, head.files, &mut ConfigRoom::of(&Observation::default()).unwrap()).unwrap()
    }

    #[test]
    fn the_last_file_and_the_command_line_count_also_where_the_rest_is_hidden() {
        let read = stated(DUMP);
        let limit = &read.limits[0];
        assert_eq!((limit.value, limit.kept, limit.is_refused), (50, 5, true));
        assert_eq!((limit.origin.file.as_str(), limit.origin.line), ("/d/postgresql.auto.conf", 1));
        let listens: Vec<String> = read.listens.iter().map(|listen| listen.address.to_string()).collect();
        assert_eq!(
            (listens, read.leads_to.clone()),
            (vec!["10.0.0.9:5432".to_owned(), "unix:/run/pg/.s.PGSQL.5432".to_owned()], Some(Vec::new()))
        );
        let Outcome::Ok(kept) = reduced(DUMP, &mut Reduction::default()) else { panic!("it parses") };
        let kept = String::from_utf8(kept).unwrap();
        assert!(!kept.contains("secret"), "{kept}");
        assert_eq!(stated(&kept).limits, read.limits);
        let given = stated(&DUMP.replace("given superuser_reserved_connections=5", "given max_connections=6"));
        assert_eq!((given.limits[0].value, given.limits[0].origin.file.as_str()), (6, "its command line"));
    }
}
