//! `chokepoint profile`: samples or reads a profile, prints it, and writes it in other formats.

mod counting;
mod dropped;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chokepoint_confined::{Reader, Readers};
use chokepoint_foreign::open_named;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_profile::analysis::difference;
use chokepoint_profile::analysis::report::{Report, report};
use chokepoint_profile::output::text::{Layout, changes};
use chokepoint_profile::output::{firefox, folded, pprof, svg};
use chokepoint_profile::{Options, Profile, Sampler, Scope, Waiting};
use chokepoint_runs::NewRun;
use serde::Serialize;

use crate::args;
use crate::report::page;
use crate::report::page::flame::{self, told};
use crate::run::files::{Output, first_error};
use crate::run::keeping::{self, Begun};
use crate::run::settings;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use crate::terminal::progress::Progress;

/// The largest stored profile, bytes.
const STORED_BYTES_MAX: u64 = 512 << 20;

/// A profile and its summary as one object. Reading it back needs only the profile.
#[derive(Serialize)]
struct Stored<'a> {
    #[serde(flatten)]
    profile: &'a Profile,
    summary: &'a Report,
}

/// Runs the verb.
pub(crate) fn run(args: &args::Profile, words: &Catalogue, interrupt: &Interrupt) -> Result<()> {
    if !args.count.is_empty() || args.counters {
        return counting::run(args, &scope(args), interrupt);
    }
    if args.drops {
        return dropped::run(args, interrupt);
    }
    let files = Files::open(args)?;
    let begun = Begun::now();
    let profile = match &args.replay {
        None if args.off_cpu => off_cpu(args, interrupt)?,
        Some(file) => stored(file)?,
        None => sample(args, interrupt)?,
    };
    let summary = report(&profile);
    if args.replay.is_none() {
        keep(args, &begun, &profile, &summary, words, interrupt);
    }
    let before = args.diff.as_deref().map(stored).transpose()?;
    let written = |files: Files| files.write(&profile, &summary, before.as_ref());
    if args.json {
        return first_error(std::iter::once(output::print_json(&json(&profile, &summary)?)).chain(written(files)));
    }
    let style = output::style();
    let layout = Layout { width: style.width, unicode: style.unicode, tree_share_min: args.tree / 100.0 };
    let mut text = told(&profile, &summary, &layout);
    if let Some((before, file)) = before.as_ref().zip(args.diff.as_ref()) {
        let (layers, functions) = (difference::layers(&profile, before), difference::functions(&profile, before));
        text.push_str(&changes(&layers, &functions, &file.display().to_string()));
    }
    first_error(std::iter::once(output::print(&text)).chain(written(files)))
}

/// Keeps the run. The page of `watch` shows it as a flame graph.
fn keep(args: &args::Profile, begun: &Begun, profile: &Profile, summary: &Report, words: &Catalogue, interrupt: &Interrupt) {
    keeping::keep(&args.keep, words, || {
        let headline = told(profile, summary, &Layout { width: 200, unicode: true, tree_share_min: 1.0 });
        let headline = headline.lines().next().unwrap_or_default().to_owned();
        Ok(NewRun { headline, document: json(profile, summary)?, ..begun.run("profile", &profile.scope, interrupt) })
    });
}

fn json(profile: &Profile, summary: &Report) -> Result<String> {
    Ok(serde_json::to_string(&Stored { profile, summary })? + "\n")
}

/// The output files, created before anything is sampled.
struct Files {
    record: Option<Output>,
    html: Option<Output>,
    svg: Option<Output>,
    folded: Option<Output>,
    pprof: Option<Output>,
    firefox: Option<Output>,
}

impl Files {
    fn open(args: &args::Profile) -> Result<Self> {
        let open = |file: &Option<PathBuf>| Output::open_where(file.as_deref(), "profile");
        Ok(Self {
            record: open(&args.record)?,
            html: open(&args.html)?,
            svg: open(&args.svg)?,
            folded: open(&args.folded)?,
            pprof: open(&args.pprof)?,
            firefox: open(&args.firefox)?,
        })
    }

    /// Writes each; a failed file does not prevent the others.
    fn write(self, profile: &Profile, summary: &Report, before: Option<&Profile>) -> Vec<Result<()>> {
        let page = || {
            let page = flame::of_profile(profile, summary, before);
            page::file::render(&page, None, &told(profile, summary, &Layout { width: 100, unicode: true, tree_share_min: 1.0 }))
        };
        let title = flame::title(profile);
        let product = concat!("chokepoint ", env!("CARGO_PKG_VERSION"));
        let results = [
            self.record.map(|file| json(profile, summary).and_then(|text| file.write(text.as_bytes()))),
            self.html.map(|file| file.write(page().as_bytes())),
            self.svg.map(|file| file.write(svg::picture(profile, &title).as_bytes())),
            self.folded.map(|file| file.write(folded::write(profile).as_bytes())),
            self.pprof.map(|file| file.write(&pprof::file(profile))),
            self.firefox.map(|file| file.write(firefox::file(profile, product).as_bytes())),
        ];
        results.into_iter().flatten().collect()
    }
}

/// Samples what threads wait for, for the given time or until Ctrl-C.
fn off_cpu(args: &args::Profile, interrupt: &Interrupt) -> Result<Profile> {
    let duration = settings::duration(&args.duration)?;
    let waiting = Waiting::open(scope(args))?;
    let mut progress = Progress::new("sampling", Some(duration));
    let profile = waiting.run(|elapsed| {
        progress.tick("");
        elapsed < duration && !interrupt.is_set()
    });
    progress.finish();
    note_left_out();
    Ok(profile?)
}

/// Says whose processes could not be read.
fn note_left_out() {
    let all = chokepoint_foreign::left_out().into_iter().chain(chokepoint_sources::descriptors_left_out());
    all.for_each(|left_out| output::note(&format!("note: {left_out}")));
}

/// Samples the CPUs, for the given time or until Ctrl-C.
fn sample(args: &args::Profile, interrupt: &Interrupt) -> Result<Profile> {
    let duration = settings::duration(&args.duration)?;
    let scope = scope(args);
    let cores = args.cpus.as_deref().map(settings::cores).transpose()?;
    let sampler = Sampler::open(Options { scope, cores, frequency_hz: args.frequency })?;
    let mut progress = Progress::new("sampling", Some(duration));
    let profile = sampler.run(|elapsed| {
        progress.tick("");
        elapsed < duration && !interrupt.is_set()
    });
    progress.finish();
    note_left_out();
    let profile = profile?;
    if profile.samples.is_empty() && interrupt.is_set() {
        bail!("interrupted before the first sample: run it again");
    }
    Ok(profile)
}

/// The processes to sample.
fn scope(args: &args::Profile) -> Scope {
    match &args.cgroup {
        Some(path) => Scope::Cgroup(path.clone()),
        None if args.pid.is_empty() => Scope::System,
        None => Scope::Processes(args.pid.clone()),
    }
}

/// Reads a stored profile that the user named.
fn stored(file: &Path) -> Result<Profile> {
    let cannot = || format!("{} cannot be read", file.display());
    let opened = open_named(file).with_context(cannot)?;
    let profile = Readers::default().read::<ProfileReader>((), vec![opened]).with_context(cannot)?;
    profile.check().with_context(cannot)?;
    Ok(profile)
}

/// Reads a stored profile as JSON or as folded stacks, piece by piece.
pub(crate) struct ProfileReader;

impl Reader for ProfileReader {
    const NAME: &'static str = "profile";
    type Question = ();
    type Answer = Profile;

    fn read((): (), files: Vec<File>) -> std::result::Result<Profile, String> {
        let file = files.into_iter().next().ok_or("there is no file")?;
        let mut text = BufReader::new(file.take(STORED_BYTES_MAX));
        let is_json = text.fill_buf().map_err(|error| error.to_string())?.trim_ascii_start().starts_with(b"{");
        let profile = match is_json {
            true => Profile::read_json(&mut text).map_err(|error| error.to_string()),
            false => folded::read_from(&mut text).map_err(|error| error.to_string()),
        };
        if text.into_inner().limit() == 0 {
            return Err(format!("it is longer than a stored profile may be ({} MiB)", STORED_BYTES_MAX >> 20));
        }
        profile
    }
}
