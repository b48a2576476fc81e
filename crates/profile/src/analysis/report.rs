//! Summarises a profile: the shares of layers, programs and functions, and the most that removing each layer could gain.

use std::collections::{BTreeMap, HashSet};

use chokepoint_statistics::wilson;
use serde::Serialize;

use crate::layers::{LAYERS, Layer, matches};
use crate::profile::{Frame, Profile, Quality, Sample, SampleGroup, Stack, share};

/// A core with at least this busy share is at its limit. The rest is noise of the clock ticks in which it is counted.
const CORE_BUSY_MIN: f64 = 0.95;
/// Smaller shares get no bound: there is at most 1 % to gain.
const BOUND_SHARE_MIN: f64 = 0.01;
/// Maximum number of functions and programs in the report.
const HOTTEST_MAX: usize = 40;

/// The summary of a profile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Samples that are not idle time.
    pub samples_busy: u64,
    /// How complete the stacks and names are.
    pub quality: Quality,
    /// Layers of the busy time, heaviest first.
    pub layers: Vec<LayerShare>,
    /// Programs of the busy time, heaviest first.
    pub programs: Vec<ProgramShare>,
    /// Functions by own time, heaviest first.
    pub hottest: Vec<FunctionShare>,
    /// The cores at their limit, which the bounds refer to.
    pub limit: Limit,
    /// The most that could be gained, most promising first.
    pub bounds: Vec<Bound>,
}

/// A layer's share of the busy time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerShare {
    /// The layer.
    pub layer: Layer,
    /// Its share over all programs.
    pub share: f64,
    /// Its share of each program's time, in the order of `Report::programs`.
    pub of_programs: Vec<f64>,
}

/// A program's share of the busy time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramShare {
    /// Its name.
    pub program: String,
    /// Its share of all busy time.
    pub share: f64,
    /// Cores that it kept busy on average; none if the profile has no times.
    pub cores: Option<f64>,
    /// Number of its threads with samples.
    pub threads: usize,
}

/// A function's own share of the busy time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionShare {
    /// Its name.
    pub name: String,
    /// Its file, kernel module or "kernel".
    pub module: String,
    /// The layer of most of this time.
    pub layer: Layer,
    /// Its share.
    pub share: f64,
}

/// Which cores limit throughput.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// All sampled cores are busy all the time.
    AllCores,
    /// These are busy all the time, others are not.
    Cores(Vec<u32>),
    /// No core is. CPU time does not limit; using less of it would only mean more idle time at first.
    None,
    /// It is not known.
    Unknown,
}

/// The most that throughput could gain if something cost nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bound {
    /// What would cost nothing.
    pub what: String,
    /// Its layer, if it is one.
    pub layer: Option<Layer>,
    /// What could remove the cost at best, if there is such a thing.
    pub by: Option<&'static str>,
    /// Its share of the time of the limiting cores.
    pub share: f64,
    /// The lower end of the share's 95 % interval, by the number of samples (Wilson 1927).
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The factor by which throughput could grow at most: 1 / (1 - share), after Amdahl 1967.
    pub factor: f64,
    /// The program in which most of it occurs, and its share of that program's time.
    pub program: Option<(String, f64)>,
}

/// A cost across layers that can be removed: everything below some functions, or several layers together.
struct Aspect {
    id: &'static str,
    what: &'static str,
    by: &'static str,
    layers: fn(Layer) -> bool,
    below: &'static [&'static str],
}

const NO_LAYER: fn(Layer) -> bool = |_| false;

#[rustfmt::skip]
const ASPECTS: &[Aspect] = &[
    Aspect { id: "kernel-network", what: "the kernel's network path", by: "a network stack in user space (kernel bypass)", layers: Layer::is_kernel_network, below: &[] },
    Aspect { id: "connection", what: "opening and closing connections, with all work that follows from it", by: "kept connections", layers: NO_LAYER,
        below: &["tcp_v4_connect", "tcp_v6_connect", "unix_stream_connect", "__sys_connect*", "__sys_accept*", "do_accept", "inet_csk_accept", "tcp_conn_request", "tcp_check_req",
            "tcp_v4_syn_recv_sock", "tcp_v6_syn_recv_sock", "tcp_child_process", "tcp_close", "__tcp_close", "tcp_fin", "tcp_send_fin", "sock_close", "__sock_release", "tcp_time_wait*",
            "tcp_timewait_state_process", "tw_timer_handler", "inet_twsk_*", "__sys_socket*", "tcp_shutdown", "__sys_shutdown*", "tcp_rcv_synsent_state_process", "unix_accept"] },
    Aspect { id: "tls-handshake", what: "TLS handshakes", by: "session resumption, kept connections or ECDSA keys", layers: NO_LAYER,
        below: &["SSL_do_handshake", "SSL_accept", "SSL_connect", "state_machine*", "ossl_statem_*", "tls_process_*", "tls_construct_*", "gnutls_handshake", "ngx_ssl_handshake*"] },
    Aspect { id: "tls-signature", what: "private-key signatures", by: "session resumption, kept connections or ECDSA keys", layers: NO_LAYER,
        below: &["EVP_DigestSign*", "EVP_PKEY_sign*", "EVP_PKEY_decrypt*", "RSA_private_*", "RSA_sign*", "ECDSA_sign*", "gnutls_privkey_*"] },
    Aspect { id: "softirq", what: "soft interrupts for received packets", by: "more receiving cores (RSS, RPS)", layers: NO_LAYER,
        below: &["net_rx_action", "__napi_poll", "process_backlog"] },
    Aspect { id: "script-compile", what: "compiling scripts", by: "an opcode cache", layers: NO_LAYER,
        below: &["compile_file", "zend_compile*", "zendparse", "lex_scan", "phar_compile_file", "open_file_for_scanning", "php_compile*", "_PyParser_*", "_PyAST_Compile", "rb_parser_compile*"] },
    Aspect { id: "process-start", what: "starting and ending processes", by: "processes that stay and serve many requests", layers: NO_LAYER,
        below: &["kernel_clone", "_do_fork", "do_fork", "do_execveat_common*", "bprm_execve", "load_elf_binary", "do_exit", "do_group_exit", "release_task", "wp_page_copy", "do_wp_page",
            "_dl_start*", "_dl_sysdep_start", "dl_main", "_dl_relocate_object*", "_dl_map_object*", "_dl_init*", "__dls*", "Py_InitializeFromConfig", "pyinit_*", "Py_FinalizeEx", "php_module_startup", "php_module_shutdown",
            "zend_startup*", "zend_shutdown*", "perl_construct", "perl_parse", "perl_destruct", "ruby_setup", "ruby_cleanup", "JNI_CreateJavaVM", "node::InitializeOncePerProcess*"] },
    Aspect { id: "error-log", what: "writing error logs, with all work that follows from it", by: "logging only errors", layers: NO_LAYER,
        below: &["ngx_log_error_core", "ngx_log_debug_core"] },
    // Go's runtime/mgc*.go and mbitmap.go, V8's src/heap, Ruby's gc.c, CPython's gcmodule.c and gc.c, PHP's zend_gc.c.
    Aspect { id: "garbage-collection", what: "collecting garbage", by: "a larger heap, or less garbage", layers: NO_LAYER,
        below: &["runtime.gc*", "runtime.(*gc*", "runtime.scan*", "runtime.greyobject*", "runtime.findObject*", "runtime.spanOf*", "runtime.markroot*", "runtime.bgsweep*", "runtime.sweepone*",
            "runtime.(*sweepLocked).sweep*", "runtime.(*mspan).sweep*", "runtime.(*mspan).moveInlineMarks", "runtime.(*spanInlineMarkBits)*", "runtime.(*stackScanState)*", "runtime.tryDeferToSpanScan*",
            "runtime.typePointers*", "runtime.heapBits*", "runtime.wbBufFlush*", "v8::internal::MarkCompactCollector::*", "v8::internal::Scavenger*", "v8::internal::Heap::CollectGarbage*",
            "v8::internal::Heap::PerformGarbageCollection*", "v8::internal::IncrementalMarking::*", "v8::internal::ConcurrentMarking::*", "v8::internal::Sweeper::*", "gc_mark*", "gc_sweep*", "gc_start*",
            "rb_gc_mark*", "gc_collect_*", "_PyGC_Collect*", "_PyObject_GC_*Collect*", "zend_gc_*"] },
];

/// Summarises a profile.
pub fn report(profile: &Profile) -> Report {
    let busy = profile.busy_groups(|_, _| true);
    let total = sum(busy.iter().map(|group| group.weight));
    let programs = programs(profile, &busy, total);
    let limit = limit(profile);
    let bounds = bounds(profile, &limit);
    Report {
        samples_busy: sum(busy.iter().map(|group| group.count)),
        quality: profile.quality(),
        layers: layers(&busy, &programs, total),
        hottest: hottest(profile, &busy, total),
        programs,
        limit,
        bounds,
    }
}

/// The ids of all aspects.
pub fn aspects() -> impl Iterator<Item = &'static str> {
    ASPECTS.iter().map(|aspect| aspect.id)
}

/// The ids of the aspects of each stack.
pub(crate) fn aspects_of(profile: &Profile) -> Vec<Vec<&'static str>> {
    let named: Vec<HashSet<u32>> = ASPECTS.iter().map(|aspect| frames_named(profile, aspect.below)).collect();
    let within = |stack: &Stack| {
        let aspects = ASPECTS.iter().zip(&named);
        let fitting =
            aspects.filter(|(aspect, named)| (aspect.layers)(stack.layer) || stack.frames.iter().any(|frame| named.contains(frame)));
        fitting.map(|(aspect, _)| aspect.id).collect()
    };
    profile.stacks.iter().map(within).collect()
}

fn sum(weights: impl Iterator<Item = u64>) -> u64 {
    weights.fold(0, u64::saturating_add)
}

fn layers(busy: &[SampleGroup<'_>], programs: &[ProgramShare], total: u64) -> Vec<LayerShare> {
    let mut weights: BTreeMap<Layer, (u64, Vec<u64>)> = BTreeMap::new();
    let mut of_programs = vec![0_u64; programs.len()];
    for SampleGroup { weight, stack, thread, .. } in busy {
        let (all, each) = weights.entry(stack.layer).or_insert_with(|| (0, vec![0; programs.len()]));
        *all = all.saturating_add(*weight);
        if let Some(index) = programs.iter().position(|program| program.program == thread.program) {
            each[index] = each[index].saturating_add(*weight);
            of_programs[index] = of_programs[index].saturating_add(*weight);
        }
    }
    let mut layers: Vec<LayerShare> = (weights.into_iter())
        .map(|(layer, (all, each))| {
            let of_programs = each.iter().zip(&of_programs).map(|(part, whole)| share(*part, *whole)).collect();
            LayerShare { layer, share: share(all, total), of_programs }
        })
        .collect();
    let place = |layer: Layer| LAYERS.iter().position(|def| def.layer == layer);
    layers.sort_by(|a, b| b.share.total_cmp(&a.share).then(place(a.layer).cmp(&place(b.layer))));
    layers
}

fn programs(profile: &Profile, busy: &[SampleGroup<'_>], total: u64) -> Vec<ProgramShare> {
    #[derive(Default)]
    struct ProgramSums {
        weight: u64,
        count: u64,
        threads: HashSet<(u32, u32)>,
    }
    let mut programs: BTreeMap<&str, ProgramSums> = BTreeMap::new();
    for SampleGroup { weight, count, thread, .. } in busy {
        let sums = programs.entry(&thread.program).or_default();
        sums.weight = sums.weight.saturating_add(*weight);
        sums.count += count;
        sums.threads.insert((thread.pid, thread.tid));
    }
    // A sample stands for 1 / frequency seconds of a core with either clock: the kernel adjusts the period of the cycle counter to the frequency.
    let samples_of_a_core = profile.duration_s * f64::from(profile.frequency_hz);
    let mut programs: Vec<ProgramShare> = (programs.into_iter())
        .map(|(program, sums)| ProgramShare {
            program: program.to_owned(),
            share: share(sums.weight, total),
            cores: (samples_of_a_core > 0.0).then(|| sums.count as f64 / samples_of_a_core),
            threads: sums.threads.len(),
        })
        .collect();
    programs.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.program.cmp(&b.program)));
    programs.truncate(HOTTEST_MAX);
    programs
}

fn hottest(profile: &Profile, busy: &[SampleGroup<'_>], total: u64) -> Vec<FunctionShare> {
    let mut weights: BTreeMap<u32, BTreeMap<Layer, u64>> = BTreeMap::new();
    for SampleGroup { weight, stack, .. } in busy {
        if let Some(leaf) = stack.frames.last() {
            let sum = weights.entry(*leaf).or_default().entry(stack.layer).or_default();
            *sum = sum.saturating_add(*weight);
        }
    }
    let mut functions: Vec<FunctionShare> = (weights.into_iter())
        .filter_map(|(frame, layers)| {
            let Frame { name, module, .. } = profile.frames.get(usize::try_from(frame).ok()?)?;
            let (layer, _) = layers.iter().max_by_key(|(_, weight)| **weight)?;
            let weight = sum(layers.values().copied());
            Some(FunctionShare { name: name.clone(), module: module.clone(), layer: *layer, share: share(weight, total) })
        })
        .collect();
    functions.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
    functions.truncate(HOTTEST_MAX);
    functions
}

fn limit(profile: &Profile) -> Limit {
    let known: Vec<(u32, f64)> = profile.cores.iter().filter_map(|core| Some((core.cpu, core.busy?))).collect();
    if known.is_empty() {
        return Limit::Unknown;
    }
    let full: Vec<u32> = known.iter().filter(|(_, busy)| *busy >= CORE_BUSY_MIN).map(|(cpu, _)| *cpu).collect();
    match full.len() {
        0 => Limit::None,
        count if count == profile.cores.len() => Limit::AllCores,
        _ => Limit::Cores(full),
    }
}

/// The bounds on the limiting cores; on all cores if none limits or it is not known.
fn bounds(profile: &Profile, limit: &Limit) -> Vec<Bound> {
    let counts = |sample: &Sample| match limit {
        Limit::Cores(cores) => cores.contains(&sample.cpu),
        _ => true,
    };
    let busy = profile.busy_groups(|sample, _| counts(sample));
    let layers = LAYERS.iter().filter(|def| !matches!(def.layer, Layer::Idle | Layer::Unknown | Layer::Application | Layer::KernelOther));
    let layers = layers.filter_map(|def| bound(&busy, def.title, Some(def.layer), remover_of(def.layer), |stack| stack.layer == def.layer));
    let aspects = ASPECTS.iter().filter_map(|aspect| {
        let named: HashSet<u32> = frames_named(profile, aspect.below);
        let within = |stack: &Stack| (aspect.layers)(stack.layer) || stack.frames.iter().any(|frame| named.contains(frame));
        bound(&busy, aspect.what, None, Some(aspect.by), within)
    });
    let mut bounds: Vec<Bound> = aspects.chain(layers).collect();
    bounds.sort_by(|a, b| b.share.total_cmp(&a.share));
    bounds
}

/// What could remove the cost of a layer at best.
fn remover_of(layer: Layer) -> Option<&'static str> {
    match layer {
        Layer::Allocator => Some("an allocator that costs nothing"),
        Layer::PortSearch => Some("kept connections, or reuse of ports in TIME_WAIT"),
        Layer::Netfilter => Some("no firewall rules and no connection tracking for this traffic"),
        Layer::Compression => Some("no compression, or files compressed in advance"),
        _ => None,
    }
}

fn frames_named(profile: &Profile, patterns: &[&str]) -> HashSet<u32> {
    let is_named = |frame: &Frame| patterns.iter().any(|pattern| matches(pattern, &frame.name));
    (0..).zip(&profile.frames).filter(|(_, frame)| is_named(frame)).map(|(index, _)| index).collect()
}

fn bound(
    busy: &[SampleGroup<'_>],
    what: &str,
    layer: Option<Layer>,
    by: Option<&'static str>,
    within: impl Fn(&Stack) -> bool,
) -> Option<Bound> {
    let (mut part, mut whole) = (0_u64, 0_u64);
    let mut programs: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for SampleGroup { weight, stack, thread, .. } in busy {
        let (inside, all) = programs.entry(&thread.program).or_default();
        whole = whole.saturating_add(*weight);
        *all = all.saturating_add(*weight);
        if within(stack) {
            part = part.saturating_add(*weight);
            *inside = inside.saturating_add(*weight);
        }
    }
    let value = share(part, whole);
    if value < BOUND_SHARE_MIN {
        return None;
    }
    let (low, high) = wilson(value, sum(busy.iter().map(|group| group.count)));
    let program = programs.into_iter().max_by_key(|(_, (inside, _))| *inside);
    let program = program.map(|(name, (inside, all))| (name.to_owned(), share(inside, all)));
    Some(Bound { what: what.to_owned(), layer, by, share: value, low, high, factor: factor(value), program })
}

/// The growth of throughput if a share of the limiting time is removed (Amdahl 1967). Limited, since nothing would remain at 100 %.
fn factor(share: f64) -> f64 {
    1.0 / (1.0 - share.min(0.999))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::folded;
    use crate::profile::Core;

    const CASE_B: &str = "\
nginx;main;ngx_process_events;malloc 91
nginx;main;read;entry_SYSCALL_64_[k];tcp_recvmsg_[k] 300
nginx;main;close;sock_close_[k];tcp_close_[k];tcp_send_fin_[k];ip_output_[k] 300
nginx;main;parse 309
[idle];do_idle_[k] 500
";

    #[test]
    fn an_allocator_share_of_nine_percent_gains_ten_percent_at_most() {
        let report = report(&folded::read(CASE_B).unwrap());
        let allocator = report.bounds.iter().find(|bound| bound.layer == Some(Layer::Allocator)).unwrap();
        assert!((allocator.share - 0.091).abs() < 1e-9 && (allocator.factor - 1.1001).abs() < 1e-3);
        assert_eq!(allocator.program, Some(("nginx".to_owned(), 0.091)));
        let find = |what: &str| report.bounds.iter().find(|bound| bound.what.contains(what)).unwrap();
        assert!((find("network path").factor - 2.5).abs() < 1e-9);
        // Work that closing a connection causes is in another layer and is removed with it.
        assert!((find("opening and closing").share - 0.3).abs() < 1e-9);
        assert!(report.bounds.iter().all(|bound| !bound.what.contains("TLS")));
        assert_eq!(report.limit, Limit::Unknown);
    }

    #[test]
    fn bounds_refer_to_the_busy_core() {
        let mut profile = folded::read("a;malloc 50\na;main 50\nb;deflate 100\n").unwrap();
        for sample in &mut profile.samples[100..] {
            sample.cpu = 1;
        }
        let core = |cpu, busy| Core { cpu, busy: Some(busy), stolen: Some(0.0) };
        profile.cores = vec![core(0, 0.3), core(1, 0.99)];
        profile.samples.extend_from_within(..);
        let report = report(&profile);
        assert_eq!(report.limit, Limit::Cores(vec![1]));
        assert_eq!(report.bounds.iter().map(|bound| bound.layer).collect::<Vec<_>>(), [Some(Layer::Compression)]);
        profile.cores[1].busy = Some(0.4);
        assert_eq!(super::report(&profile).limit, Limit::None);
        profile.cores = vec![core(0, 0.99), core(1, 0.99)];
        assert_eq!(super::report(&profile).limit, Limit::AllCores);
    }

    #[test]
    fn shares_add_up_without_idle_time() {
        let report = report(&folded::read(CASE_B).unwrap());
        assert!((report.layers.iter().map(|layer| layer.share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(report.layers.iter().all(|layer| layer.layer != Layer::Idle));
        assert_eq!(report.programs.len(), 1);
        assert_eq!((report.hottest[0].name.as_str(), report.hottest[0].layer), ("parse", Layer::Application));
    }

    #[test]
    fn an_empty_profile_has_no_shares() {
        let report = report(&folded::read("").unwrap());
        assert!(report.layers.is_empty() && report.bounds.is_empty() && report.hottest.is_empty());
    }

    #[test]
    fn the_factor_is_finite_at_a_full_share() {
        assert!(factor(1.0).is_finite());
    }
}
