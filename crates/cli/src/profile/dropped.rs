//! `chokepoint profile --drops`: the packets that the kernel drops, with its reasons.

use anyhow::Result;
use chokepoint_profile::drops::Dropping;
use chokepoint_profile::drops_text;

use crate::args;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::{output, settings};

/// Counts for as long as was asked, or until the first interrupt, and tells.
pub(super) fn run(args: &args::Profile, interrupt: &Interrupt) -> Result<()> {
    let duration = settings::duration(&args.duration)?;
    let dropping = Dropping::open()?;
    let mut progress = Progress::new("counting", Some(duration));
    let drops = dropping.run(|elapsed| {
        progress.tick("");
        elapsed < duration && !interrupt.is_set()
    });
    progress.finish();
    let drops = drops?;
    output::print(&if args.json { serde_json::to_string(&drops)? + "\n" } else { drops_text::render(&drops) })
}
