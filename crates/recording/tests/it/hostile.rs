//! Hostile recordings: damaged files, and damaged contents in intact files, within the limits of `docs/fuzzing.md`.
//!
//! Deterministic: recorded bytes.

use std::io::{Read, Write};

use chokepoint_hostile::{Chance, Corpus, run, run_made};
use chokepoint_recording::{Entry, Level, Meta, Outcome, Redactor, Scope, read, write};

/// Text as sources read it, with private data.
const TEXTS: &[&str] = &[
    "tcp 6 431999 ESTABLISHED src=10.1.0.1 dst=10.1.0.2 sport=40000 dport=80 [ASSURED] mark=0\n",
    "server_name shop.example.com; proxy_set_header Authorization \"Bearer x\"; listen [2001:db8::1]:443 ssl;\n",
    "192.0.2.7 - alice [21/Nov/2026:10:00:00 +0000] \"GET /a?token=secret HTTP/1.1\" 200 5 \"http://a.b/\" \"curl\"\n",
    "{\"url\":\"https://user:pass@host.example/?key=1\",\"headers\":{\"Cookie\":\"a=b\"},\"address\":\"10.0.0.1\"}",
    "php-fpm: pool www env[DB_PASSWORD] = hunter2 fe80::1%eth0 00:11:22:33:44:55",
];

fn entries() -> Vec<Entry> {
    let entry =
        |at_us: u64, source: &str, scope, item: &str, outcome| Entry { at_us, source: source.into(), scope, item: item.into(), outcome };
    let mut entries: Vec<Entry> = TEXTS
        .iter()
        .enumerate()
        .map(|(number, text)| entry(number as u64, "netstat", Scope::Netns(4_026_531_840), "a", Outcome::Ok(text.as_bytes().to_vec())))
        .collect();
    entries.push(entry(9, "request", Scope::Host, "", Outcome::Ok(TEXTS[3].into())));
    entries.push(entry(9, "limits", Scope::Process(7), "x", Outcome::Absent("permission denied".into(), Some("CAP_SYS_PTRACE".into()))));
    entries.push(entry(u64::MAX, "", Scope::Host, "", Outcome::Failed("it broke".into(), None)));
    entries
}

fn file() -> Vec<u8> {
    write(&entries(), &Meta { tool: "0.1.0".into(), redaction: Level::None })
}

/// The decompressed frames of a recording, and the bytes before them.
fn unpacked(file: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let end = file.iter().position(|byte| *byte == b'\n').expect("a head") + 1;
    let mut frames = Vec::new();
    flate2::read::GzDecoder::new(&file[end..]).read_to_end(&mut frames).expect("it is packed");
    (file[..end].to_vec(), frames)
}

/// Compresses frames, and first corrects the checksum of every complete frame.
fn packed(head: &[u8], frames: &[u8]) -> Vec<u8> {
    let mut mended = frames.to_vec();
    let mut at = 0;
    while let Some(length) = mended.get(at..at + 4).map(|length| u32::from_le_bytes([length[0], length[1], length[2], length[3]])) {
        let end = (at + 8).saturating_add(length as usize);
        let Some(payload) = mended.get(at + 8..end) else { break };
        let checksum = crc32fast::hash(payload).to_le_bytes();
        mended[at + 4..at + 8].copy_from_slice(&checksum);
        at = end;
    }
    let mut gzip = flate2::write::GzEncoder::new(head.to_vec(), flate2::Compression::fast());
    gzip.write_all(&mended).expect("memory can be written");
    gzip.finish().expect("memory can be written")
}

#[test]
fn damaged_files() {
    let (head, frames) = unpacked(&file());
    assert!(read(&packed(&head, &frames)).is_ok_and(|recording| recording.entries == entries()), "packing loses nothing");
    run("recording", &Corpus::bytes(vec![file(), packed(&head, &frames)]), |input| drop(read(input)));
    // Damage within the compressed part, with correct checksums: the reader interprets the contents.
    let corpus = Corpus::bytes(vec![frames]);
    run_made(
        "recording, repacked",
        |chance: &mut Chance| packed(&head, &corpus.damaged(chance)),
        |input| {
            if let Ok(recording) = read(input) {
                let again = write(&recording.entries, &recording.meta);
                assert_eq!(read(&again).map(|again| again.entries), Ok(recording.entries), "what was read can be written");
            }
        },
    );
}

#[test]
fn redaction_of_any_bytes() {
    for level in [Level::None, Level::Public, Level::All] {
        run(&format!("redaction, {level}"), &Corpus::text(TEXTS), |input| {
            let mut redactor = Redactor::new(level);
            let text = String::from_utf8_lossy(input);
            let mut entry = |item: &str, bytes: &[u8]| {
                let source = ["netstat", "request", "process_identity"][input.len() % 3];
                let outcome = Outcome::Ok(bytes.to_vec());
                redactor.entry(&Entry { at_us: 0, source: source.into(), scope: Scope::Host, item: item.to_owned(), outcome });
            };
            // One way per case, because the limits apply to each alone.
            match input.len() / 3 % 6 {
                0 => redactor.survey(input),
                1 => drop(redactor.text(input)),
                2 => drop(redactor.words(&text)),
                3 => redactor.survey_host(&text),
                4 => entry(&text, b"x"),
                _ => entry("x", input),
            }
        });
    }
}
