//! Constants of the running kernel: release, boot id, clock ticks, page size, online cores and boot time.

use chokepoint_model::observation::{KernelInfo, Observation};
use chokepoint_recording::{Entry, Outcome};

use crate::root::{Root, reading_of};
use crate::table::{Cadence, Items, ReadContext, Redact, ScopeKind, Source, only_item};
use crate::text::error::{ParseError, TextLine, core_list};
use crate::text::facts;

const NAME: &str = "kernel";
/// Releases, boot ids and core lists are short (a core list of 8192 single cores has 40 KiB).
const BYTES_MAX: usize = 64 << 10;

/// Once for the host: `osrelease`, `boot_id`, `ticks_per_s`, `page_bytes` and `online`, a line each, and `btime` if /proc/stat has it.
pub(crate) const KERNEL: Source =
    Source { name: NAME, scope: ScopeKind::Host, cadence: Cadence::Once, needs: None, read, put, redact: Redact::None };

fn read(context: &ReadContext<'_>) -> Items {
    only_item(read_facts(context.root).unwrap_or_else(|lack| lack))
}

fn read_facts(root: &Root) -> Result<Outcome, Outcome> {
    let mut text = Vec::new();
    for (name, file) in [("osrelease", "proc/sys/kernel/osrelease"), ("boot_id", "proc/sys/kernel/random/boot_id")] {
        match root.read(file, BYTES_MAX, None) {
            Outcome::Ok(bytes) => facts::add(&mut text, name, &bytes),
            lack => return Err(lack),
        }
    }
    // Both are constants of the reading machine, not of a tree of files. They come from the auxiliary vector (getauxval(3)).
    facts::add(&mut text, "ticks_per_s", rustix::param::clock_ticks_per_second().to_string().as_bytes());
    facts::add(&mut text, "page_bytes", rustix::param::page_size().to_string().as_bytes());
    let stat = root.read("proc/stat", super::cpu::BYTES_MAX, None);
    match (root.read("sys/devices/system/cpu/online", BYTES_MAX, None), &stat) {
        (Outcome::Ok(bytes), _) => facts::add(&mut text, "online", &bytes),
        // A container without /sys: /proc/stat lists the online cores too.
        (_, Outcome::Ok(bytes)) => facts::add(&mut text, "online", super::cpu::online(bytes).as_bytes()),
        (lack, _) => return Err(lack),
    }
    if let Outcome::Ok(bytes) = &stat
        && let Some(boot) = boot_time(bytes)
    {
        facts::add(&mut text, "btime", boot);
    }
    Ok(Outcome::Ok(text))
}

/// The value of the line "btime" of /proc/stat.
fn boot_time(stat: &[u8]) -> Option<&[u8]> {
    stat.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"btime ")).map(<[u8]>::trim_ascii)
}

/// Parses the facts. All are required except the boot time, which old recordings lack.
pub(crate) fn parse(bytes: &[u8]) -> Result<KernelInfo, ParseError> {
    let facts = facts::read(NAME, bytes)?;
    let number = |name: &str, expected| facts::number::<u64>(NAME, &facts, name, expected);
    let text = |name: &str, expected| {
        let fact = facts::need(NAME, &facts, name, expected)?;
        let text = fact.text().into_owned();
        if text.is_empty() { Err(TextLine::new(NAME, fact.line).expected(expected, "")) } else { Ok(text) }
    };
    let online = facts::need(NAME, &facts, "online", "the list of online cores")?;
    let cores = core_list(TextLine::new(NAME, online.line), &online.text())?;
    if cores.is_empty() {
        return Err(TextLine::new(NAME, online.line).expected("at least one online core", ""));
    }
    let boot_s = match facts.iter().find(|fact| fact.name == "btime") {
        Some(fact) => Some(TextLine::new(NAME, fact.line).number::<i64>("the time of the boot", Some(&fact.text()))?),
        None => None,
    };
    Ok(KernelInfo {
        release: text("osrelease", "the kernel's release")?,
        boot_id: text("boot_id", "the boot id")?,
        ticks_per_s: number("ticks_per_s", "clock ticks a second")?,
        page_bytes: number("page_bytes", "bytes a page")?,
        // core_list has a much lower bound.
        cores: u32::try_from(cores.len()).unwrap_or(u32::MAX),
        boot_s,
    })
}

fn put(observation: &mut Observation, entry: &Entry) {
    observation.kernel.push(entry.at_us, reading_of(&entry.outcome, parse));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_five_facts_are_required() {
        let text = b"osrelease 6.1.0-28-amd64\\n\nboot_id 5f2c3a52-8e1f-4c59-b5bb-0a6f0f6cbe09\\n\nticks_per_s 100\npage_bytes 4096\nonline 0-1,3\\n\n";
        let kernel = parse(text).unwrap();
        assert_eq!(kernel.release, "6.1.0-28-amd64");
        assert_eq!(kernel.boot_id, "5f2c3a52-8e1f-4c59-b5bb-0a6f0f6cbe09");
        assert_eq!((kernel.ticks_per_s, kernel.page_bytes, kernel.cores), (100, 4096, 3));
        let text = String::from_utf8(text.to_vec()).unwrap();
        for missing in 0..5 {
            let less: String = text.lines().enumerate().filter(|(at, _)| *at != missing).map(|(_, line)| format!("{line}\n")).collect();
            assert!(parse(less.as_bytes()).is_err(), "without line {missing}");
        }
        assert!(parse(text.replace("0-1,3", "").as_bytes()).is_err());
        assert_eq!(kernel.boot_s, None, "an old recording");
        assert_eq!(parse(format!("{text}btime 1700465520\n").as_bytes()).unwrap().boot_s, Some(1_700_465_520));
        assert!(parse(format!("{text}btime soon\n").as_bytes()).is_err());
        assert!(parse(text.replace("100", "x").as_bytes()).is_err());
    }

    #[test]
    fn without_sys_the_cores_come_from_proc_stat() {
        let tree = tempfile::tempdir().unwrap();
        let random = tree.path().join("proc/sys/kernel/random");
        std::fs::create_dir_all(&random).unwrap();
        std::fs::write(random.join("boot_id"), "b\n").unwrap();
        std::fs::write(tree.path().join("proc/sys/kernel/osrelease"), "5.4\n").unwrap();
        let root = Root::new(tree.path());
        assert!(matches!(read_facts(&root), Err(Outcome::Absent(..))));
        std::fs::write(tree.path().join("proc/stat"), "cpu  1 1 1 1\ncpu0 1 1 1 1\ncpu2 1 1 1 1\nintr 5\nbtime 1700465520\n").unwrap();
        let Ok(Outcome::Ok(bytes)) = read_facts(&root) else { panic!("not read") };
        let kernel = parse(&bytes).unwrap();
        assert_eq!((kernel.cores, kernel.boot_s), (2, Some(1_700_465_520)));
    }
}
