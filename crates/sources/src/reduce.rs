//! Reduces readings for a recording to what their parsers read: configurations, command lines, logs and status pages.

use chokepoint_recording::{Entry, Outcome};

use crate::reduction::{Reduction, unreadable};
use crate::servers::{config, follow, status};
use crate::source;
use crate::table::Redact;
use crate::text::host::kernel_log;
use crate::text::process::identity as process_identity;

/// Reduces an entry to what its parser reads. Entries of other sources are unchanged.
pub fn reduce(entry: &Entry, reduction: &mut Reduction) -> Entry {
    let Outcome::Ok(bytes) = &entry.outcome else { return entry.clone() };
    if source(&entry.source).is_none_or(|source| source.redact != Redact::Reduced) {
        return entry.clone();
    }
    let text = || String::from_utf8_lossy(bytes);
    let outcome = match entry.source.as_str() {
        "process_identity" => process_identity::reduced(bytes, reduction),
        "kernel_log" => kernel_log::reduced(bytes, reduction),
        "server_config" => config::reduced(&text(), reduction),
        "server_log" => follow::reduced(&text(), reduction),
        "server_status" => status::reduced(&entry.item, bytes, reduction),
        // No reducer is known for the source: nothing of the text is kept.
        _ => unreadable(),
    };
    Entry { outcome, ..entry.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SOURCES;

    #[test]
    fn every_reduced_source_has_a_reducer() {
        for source in SOURCES.iter().filter(|source| source.redact == Redact::Reduced) {
            let known = ["process_identity", "kernel_log", "server_config", "server_log", "server_status"];
            assert!(known.contains(&source.name), "{}", source.name);
        }
    }

    /// The texts between triple quotes: files of scenarios.
    fn quoted_texts(scenario: &str) -> Vec<String> {
        let pieces = |quote: &str| scenario.split(quote).skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        pieces("\"\"\"").into_iter().chain(pieces("'''")).collect()
    }

    /// What the model gets from a configuration, and from its reduced form.
    fn both(server: &str, text: &str) -> Option<[chokepoint_model::observation::ServerConfig; 2]> {
        use chokepoint_model::observation::{Observation, Request, ServerConfig};
        let mut dump = format!("server {server}\nprefix /etc/x\nversion 8.2\naccess_log \nerror_log \nchanged 1 /etc/x/x.conf\n");
        chokepoint_config::dump::add(&mut dump, "/etc/x/x.conf", text);
        let entry = Entry {
            at_us: 1,
            source: "server_config".to_owned(),
            scope: chokepoint_recording::Scope::Process(7),
            item: String::new(),
            outcome: Outcome::Ok(dump.into_bytes()),
        };
        let reduced = reduce(&entry, &mut Reduction::default());
        let read = |entry: &Entry| -> Option<ServerConfig> {
            let request =
                Request { url: "http://10.0.0.2/index.php?a=b".to_owned(), host: "10.0.0.2".to_owned(), port: 80, ..Request::default() };
            let mut observation = Observation { request, ..Observation::default() };
            (source("server_config")?.put)(&mut observation, entry);
            let mut config = observation.servers.get(&7)?.config.last().cloned()?;
            // Requests to upstreams may contain secrets. They are made only on the host.
            if let ServerConfig::Nginx(nginx) = &mut config {
                for asks in &mut nginx.asks {
                    (asks.host, asks.fields) = (String::new(), Vec::new());
                }
            }
            Some(config)
        };
        Some([read(&entry)?, read(&reduced).expect("what is kept parses")])
    }

    #[test]
    fn the_model_reads_the_same_from_a_reduced_configuration() {
        let mut compared = (0, 0, 0);
        let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/scenarios");
        let folders = std::fs::read_dir(scenarios).unwrap().map(|folder| folder.unwrap().path());
        for file in folders.flat_map(|folder| std::fs::read_dir(folder).unwrap()) {
            let Ok(text) = std::fs::read_to_string(file.unwrap().path()) else { continue };
            for text in quoted_texts(&text) {
                // The lab replaces these before it starts a server.
                let text = text.replace("{nginx_temp_paths}", "").replace("{user}", "www-data").replace("{run}", "/run/x");
                let is_nginx = text.contains("events {") || text.contains("events{");
                let is_fpm = text.contains("[www]") || text.contains("pm.max_children");
                let is_haproxy = text.contains("\nfrontend ") && text.contains("\nbackend ");
                let server = match is_nginx {
                    true => "nginx",
                    false if is_haproxy => "haproxy",
                    false => "php-fpm",
                };
                if let Some([live, kept]) = (is_nginx || is_fpm || is_haproxy).then(|| both(server, &text)).flatten() {
                    assert_eq!(kept, live, "{text}");
                    let is = |kind: &str| usize::from(server == kind);
                    compared = (compared.0 + is("nginx"), compared.1 + is("php-fpm"), compared.2 + is("haproxy"));
                }
            }
        }
        assert!(compared.0 > 20 && compared.1 > 10 && compared.2 > 2, "{compared:?} configurations were found");
    }

    #[test]
    fn a_malformed_configuration_fails_for_the_same_reason() {
        let mut dump = "server nginx\nprefix /\nversion \naccess_log \nerror_log \n".to_owned();
        chokepoint_config::dump::add(&mut dump, "/n.conf", "http { set $a 'Secret");
        let outcome = config::reduced(&dump, &mut Reduction::default());
        let Outcome::Failed(why, None) = outcome else { panic!("{outcome:?}") };
        assert!(why.contains("/n.conf:1") && !why.contains("Secret"), "{why}");
    }

    #[test]
    fn logs_and_pages_are_reduced_to_what_is_parsed() {
        let mut reduction = Reduction::default();
        let kernel = b"4,1,5,-;nf_conntrack: nf_conntrack: table full, dropping packet\n6,2,6,-;usb 1-1: SerialNumber: Secret\n";
        let Outcome::Ok(kept) = kernel_log::reduced(kernel, &mut reduction) else { panic!("it is text") };
        assert_eq!(kept, b"4,1,5,-;nf_conntrack: nf_conntrack: table full, dropping packet\n");
        let log =
            "rotated 0\nkind 2 connect 111\nsample connect() failed\nkind 1 output www\nsample PHP: Secret\nkind 1 other\nsample Secret\n";
        let Outcome::Ok(kept) = follow::reduced(log, &mut reduction) else { panic!("it is text") };
        assert_eq!(
            String::from_utf8_lossy(&kept),
            "rotated 0\nkind 2 connect 111\nsample connect() failed\nkind 1 output www\nkind 1 other\n"
        );
        let page = br#"{"pool":"www","accepted conn":3,"processes":[{"request uri":"/?a=Secret"}]}"#;
        let Outcome::Ok(kept) = status::reduced("pool www", page, &mut reduction) else { panic!("it is JSON") };
        assert_eq!(String::from_utf8_lossy(&kept), r#"{"accepted conn":3,"pool":"www"}"#);
        let stub = b"Active connections: 2 \nserver accepts handled requests\n 5 6 7 \nReading: 1 Writing: 3 Waiting: 4 \n";
        assert_eq!(status::reduced("nginx", stub, &mut reduction), Outcome::Ok(stub.to_vec()));
        assert!(matches!(status::reduced("nginx", b"<html>Secret", &mut reduction), Outcome::Failed(why, _) if !why.contains("Secret")));
        assert_eq!((reduction.log_lines, reduction.page_values), (3, 1));
    }

    /// Readings with a secret at each "@", by source, item and text.
    const SECRETS: &[(&str, &str, &str)] = &[
        (
            "server_config",
            "",
            "server nginx\nprefix /\nversion \naccess_log \nerror_log \n# configuration file /n.conf:\nhttp { # @\nserver { set $@ '@'; fastcgi_param @ @; proxy_set_header @ \"@\"; add_header X \"a\n@\"; proxy_pass http://@:@10.0.0.1/?k=Q; } map $@ $@ { @ @; } }\n",
        ),
        (
            "server_config",
            "",
            "server php-fpm\nprefix /\nversion \naccess_log \nerror_log \n# configuration file /f.conf:\n[www]\n; @\nenv[@] = @\nphp_admin_value[x] = \"@\"\nlisten = 9000 ; @\n",
        ),
        (
            "server_config",
            "",
            "server nginx\nprefix /\nversion \naccess_log \nerror_log \n# configuration file /n.conf:\nhttp { set $a '@\n",
        ),
        ("process_identity", "", "stat 7 (app) S 1 7 7 0\nUid 0\t0\t0\t0\nCpus_allowed_list 0\ncmdline /usr/bin/app\0-p\0@\0--key=@\0\n"),
        ("kernel_log", "", "6,2,6,-;usb 1-1: SerialNumber: @\n"),
        ("server_log", "error /var/log/e", "kind 1 other\nsample @\nkind 1 output www\nsample @\n"),
        ("server_status", "pool www", "{\"pool\":\"www\",\"processes\":[{\"user\":\"@\",\"script\":\"@\"}]}"),
        ("server_status", "nginx", "<html>@</html>"),
    ];

    proptest::proptest! {
        #[test]
        fn a_written_recording_contains_no_secret(
            // Each has a digit: a comment of a few words without any stays (docs/recording.md), and letters alone are a word.
            picks in proptest::collection::vec((0..SECRETS.len(), "[A-Z][a-z0-9]{10,19}[0-9]"), 1..12),
        ) {
            let entry = |(pick, secret): &(usize, String)| {
                let (source, item, text) = SECRETS[*pick];
                let text = text.replace("@10.0", "\u{1}10.0").replace('@', secret).replace('\u{1}', "@").replace('Q', secret);
                let scope = chokepoint_recording::Scope::Process(7);
                Entry { at_us: 1, source: source.to_owned(), scope, item: item.to_owned(), outcome: Outcome::Ok(text.into_bytes()) }
            };
            let mut redactor = chokepoint_recording::Redactor::new(chokepoint_recording::Level::Public);
            let kept = picks.iter().map(|pick| redactor.entry(&reduce(&entry(pick), &mut Reduction::default()))).collect::<Vec<_>>();
            let meta = chokepoint_recording::Meta { tool: "0".to_owned(), redaction: redactor.level() };
            let recording = chokepoint_recording::read(&chokepoint_recording::write(&kept, &meta)).unwrap();
            let text = format!("{:?}", recording.entries.iter().map(|entry| match &entry.outcome {
                Outcome::Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                other => format!("{other:?}"),
            }).collect::<Vec<_>>());
            for (_, secret) in &picks {
                proptest::prop_assert!(!text.contains(secret.as_str()), "{} is in {}", secret, text);
            }
        }
    }
}
