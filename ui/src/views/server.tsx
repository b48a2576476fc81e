// The charts of a server over a span of time: those that NGINX Amplify had, and what the host did.
import { useEffect, useMemo, useState } from "preact/hooks";
import { series } from "../api";
import { type Line, Lines } from "../charts/lines";
import type { Zoom } from "../charts/plot";
import { column, mean, ofServer, withGaps } from "../series";
import { LIVE_S, type Held } from "../store";
import { count, KINDS, percentileLines, SHARES } from "../timings";
import type { Host, Sample, TargetSample } from "../types";
import { bytes, duration, number } from "../words";
import { Groups } from "./groups";

const SPANS: [label: string, seconds: number][] = [
    ["10 min", LIVE_S],
    ["1 h", 3600],
    ["6 h", 21_600],
    ["1 day", 86_400],
    ["7 days", 604_800],
    ["30 days", 2_592_000],
];
/** Kinds of CPU time in the order of `core_s`. */
const CPU_KINDS: [name: string, ink: string][] = [
    ["programs", "--first"],
    ["kernel", "--second"],
    ["interrupts", "--third"],
    ["hypervisor", "--bad"],
];
/** Samples from one look at the host to the next, at most. */
const HOST_SAMPLES = 7;
/** Charts with more points than pixels tell nothing more. */
const REFRESH_MS = 30_000;

/** The samples of a span: those in memory for the last minutes, otherwise from the history. */
function useSpan(held: Held, span_s: number): { samples: Sample[]; failed: string | null } {
    const [kept, setKept] = useState<Sample[]>([]);
    const [failed, setFailed] = useState<string | null>(null);
    useEffect(() => {
        if (span_s <= LIVE_S) return;
        let isOver = false;
        const load = () =>
            series(`ago_s=${span_s}`).then(
                (samples) => {
                    if (isOver) return;
                    setKept(samples);
                    setFailed(null);
                },
                (error: unknown) => !isOver && setFailed(error instanceof Error ? error.message : String(error)),
            );
        setKept([]);
        load();
        const timer = setInterval(load, REFRESH_MS);
        return () => {
            isOver = true;
            clearInterval(timer);
        };
    }, [span_s]);
    const samples = span_s <= LIVE_S ? held.samples : kept;
    const gapped = useMemo(() => withGaps(samples), [samples]);
    return { samples: gapped, failed: span_s <= LIVE_S ? null : failed };
}

export function Server({ held, server }: { held: Held; server: string }) {
    const [span_s, setSpan] = useState(LIVE_S);
    const [zoom, setZoom] = useState<Zoom | null>(null);
    const { samples, failed } = useSpan(held, span_s);
    return (
        <>
            <div class="spans" role="group" aria-label="Span of time">
                {SPANS.map(([label, seconds]) => (
                    <button key={label} type="button" aria-pressed={span_s === seconds} onClick={() => (setSpan(seconds), setZoom(null))}>
                        {label}
                    </button>
                ))}
                {zoom && (
                    <button type="button" onClick={() => setZoom(null)}>
                        whole span
                    </button>
                )}
                <span class="hint">Drag across a chart to zoom all of them; double click to see the whole span.</span>
            </div>
            {failed && <p class="verdict unknown">{failed}</p>}
            <Charts samples={samples} server={server} zoom={zoom} onZoom={setZoom} />
            <Groups title="Groups of URLs" name="path, its values as *" time="request" of="urls" {...{ samples, server, zoom }} onZoom={setZoom} />
            <Groups title="Upstreams" name="address" time="upstream-response" of="upstreams" {...{ samples, server, zoom }} onZoom={setZoom} />
        </>
    );
}

interface ChartsProps {
    samples: Sample[];
    server: string;
    zoom: Zoom | null;
    onZoom: (zoom: Zoom | null) => void;
}

function Charts({ samples, server, zoom, onZoom }: ChartsProps) {
    const times = useMemo(() => samples.map((sample) => sample.at_s), [samples]);
    const charts = useMemo(() => chartsOf(samples, server), [samples, server]);
    const cores = useMemo(() => names(samples, (sample) => Object.keys(sample.host?.core_s ?? {})), [samples]);
    const [core, setCore] = useState("");
    const kinds = useMemo(() => CPU_KINDS.map(([name, ink], kind) => ({ name, ink, values: host(samples, (host) => cpu(host, core, kind)) })), [samples, core]);
    const shared = { times, zoom, onZoom };
    return (
        <div class="grid">
            {charts.map((chart) => (
                <Lines key={chart.title} {...chart} {...shared} />
            ))}
            <div>
                <Lines title={core === "" ? "Cores in use, by kind" : `Core ${core}, by kind`} lines={kinds} say={number} {...shared} />
                <label class="core">
                    Cores{" "}
                    <select value={core} onChange={(event) => setCore(event.currentTarget.value)}>
                        <option value="">all of the host</option>
                        {cores.map((core) => (
                            <option key={core} value={core}>{`core ${core}`}</option>
                        ))}
                    </select>
                </label>
            </div>
        </div>
    );
}

interface Chart {
    title: string;
    lines: Line[];
    say: (value: number | null) => string;
    absent?: string;
}

/** The charts of a server: each title, its lines and how their values are told. */
function chartsOf(samples: Sample[], server: string): Chart[] {
    const per_s = (value: number | undefined, sample: Sample) => (value === undefined ? null : value / sample.span_s);
    const seen = (of: (target: TargetSample, sample: Sample) => number | null) => column(samples, server, of);
    const queue = (of: "most" | "limit") => seen((target) => target.queues?.reduce<number | null>((most, queue) => Math.max(most ?? 0, queue[of]), null) ?? null);
    const area = (name: string, values: (number | null)[]): Line => ({ name, ink: "--first", filled: true, values });
    const bound = (name: string, values: (number | null)[]): Line => ({ name, ink: "--faint", dashed: true, values });
    const timings = KINDS.map(([kind, title, from]) => {
        const lines = percentileLines(samples, (sample) => ofServer(sample, server)?.logged?.durations_us?.[kind]);
        return { title, lines, say: duration, absent: `Not in the access logs of this span. It comes from ${from}.` };
    });
    const pools = names(samples, (sample) => Object.keys(ofServer(sample, server)?.pools ?? {})).map((pool) => ({
        title: `Workers of the pool ${pool}`,
        lines: [area("busy", seen((target) => mean(target.pools?.[pool]?.active))), bound("all", seen((target) => mean(target.pools?.[pool]?.total)))],
        say: number,
    }));
    const edges = names(samples, (sample) => ofServer(sample, server)?.ports?.map(({ edge }) => edge) ?? []).map((edge) => {
        const of = (value: "live" | "time_wait" | "limit") => seen((target) => target.ports?.find((ports) => ports.edge === edge)?.[value] ?? null);
        return { title: `Ports: ${edge}`, lines: [area("live", of("live")), { name: "TIME_WAIT", ink: "--second", values: of("time_wait") }, bound("all", of("limit"))], say: number };
    });
    const states = (["reading", "writing", "waiting"] as const).map((state, at) => ({
        name: state,
        ink: SHARES[at]?.[2] ?? "--first",
        values: seen((target) => mean(target.connections?.[state])),
    }));
    return [
        ...timings,
        { title: "Body bytes a second", lines: [area("sent", seen((target, sample) => per_s(target.logged?.bytes, sample)))], say: bytes },
        {
            title: "Requests that asked an upstream, a second",
            lines: [area("asked", seen((target, sample) => per_s(count(target.logged?.durations_us?.["upstream-response"]), sample)))],
            say: number,
        },
        { title: "Answers by status, a second", lines: statuses(samples, server), say: number },
        { title: "Requests in flight", lines: [area("in flight", seen((target) => mean(target.under_way)))], say: number },
        { title: "Accept queue", lines: [area("longest", queue("most")), bound("limit", queue("limit"))], say: number },
        { title: "Connections by state", lines: states, say: number, absent: "nginx tells them on its status page (stub_status), and none was found." },
        ...pools,
        ...edges,
        {
            title: "Memory of the host",
            lines: [area("used", host(samples, (host) => (host.memory_total === null || host.memory_available === null ? null : host.memory_total - host.memory_available))), bound("all", host(samples, (host) => host.memory_total))],
            say: bytes,
        },
    ];
}

function host(samples: Sample[], of: (host: Host) => number | null): (number | null)[] {
    return filled(samples.map((sample) => (sample.host ? of(sample.host) : null)), HOST_SAMPLES);
}

/** The host is not looked at in each sample: a value stands for the few that follow. */
function filled(values: (number | null)[], most: number): (number | null)[] {
    let [last, age]: [number | null, number] = [null, 0];
    return values.map((value) => {
        age = value === null ? age + 1 : 0;
        if (value !== null) last = value;
        return age < most ? last : null;
    });
}

/** All names that occur. */
function names(samples: Sample[], of: (sample: Sample) => string[]): string[] {
    return [...new Set(samples.flatMap(of))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
}

/** Cores that a kind of work used, of one core or of all. */
function cpu(host: Host, core: string, kind: number): number | null {
    if (!host.core_s || host.seconds <= 0) return null;
    const chosen = core === "" ? Object.values(host.core_s) : [host.core_s[core]];
    return chosen.reduce((sum, seconds) => sum + (seconds?.[kind] ?? 0), 0) / host.seconds;
}

/** A line for each class of status that was met. */
function statuses(samples: Sample[], server: string) {
    const inks: Record<string, string> = { "1": "--faint", "2": "--good", "3": "--first", "4": "--near", "5": "--bad" };
    const met = new Set<string>();
    for (const sample of samples) Object.keys(ofServer(sample, server)?.logged?.status ?? {}).forEach((status) => met.add(status.charAt(0)));
    return [...met].sort().map((first) => ({
        name: `${first}xx`,
        ink: inks[first] ?? "--third",
        values: column(samples, server, (target, sample) => {
            if (!target.logged) return null;
            const of = Object.entries(target.logged.status).filter(([status]) => status.startsWith(first));
            return of.reduce((sum, [, count]) => sum + count, 0) / sample.span_s;
        }),
    }));
}
