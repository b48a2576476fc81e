// The charts of a server over a span of time: those that NGINX Amplify had, and what the host did.
import { useEffect, useMemo, useState } from "preact/hooks";
import { series } from "../api";
import { Lines } from "../charts/lines";
import type { Zoom } from "../charts/plot";
import { column, mean, ofServer, percentiles, withGaps } from "../series";
import { LIVE_S, type Held } from "../store";
import type { Sample } from "../types";
import { bytes, duration, number } from "../words";

const SPANS: [label: string, seconds: number][] = [
    ["10 min", LIVE_S],
    ["1 h", 3600],
    ["6 h", 21_600],
    ["1 day", 86_400],
    ["7 days", 604_800],
    ["30 days", 2_592_000],
];
/** Durations of a log, their title, and what they come from. */
const KINDS: [kind: string, title: string, from: string][] = [
    ["upstream-connect", "Upstream connect time", "$upstream_connect_time in nginx's log_format"],
    ["request", "Request time", "$request_time in nginx's log_format"],
    ["upstream-header", "Upstream header time", "$upstream_header_time in nginx's log_format"],
    ["upstream-response", "Upstream response time", "$upstream_response_time in nginx's log_format"],
    ["worker", "Time of a worker for a request", "%d in php-fpm's access.format"],
];
const SHARES: [name: string, share: number, ink: string][] = [
    ["p50", 0.5, "--first"],
    ["p95", 0.95, "--second"],
    ["max", 1, "--third"],
];
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
            <Urls samples={samples} server={server} />
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
    const timings = useMemo(
        () => KINDS.map(([kind, title, from]) => ({ title, from, rows: percentiles(samples, server, kind, SHARES.map(([, share]) => share)) })),
        [samples, server],
    );
    const classes = useMemo(() => statuses(samples, server), [samples, server]);
    const shared = { times, zoom, onZoom };
    const per_s = (value: number | undefined, sample: Sample) => (value === undefined ? null : value / sample.span_s);
    const queue = (of: "most" | "limit") =>
        column(samples, server, (target) => target.queues?.reduce<number | null>((most, queue) => Math.max(most ?? 0, queue[of]), null) ?? null);
    const host = (of: (host: NonNullable<Sample["host"]>) => number | null) => samples.map((sample) => (sample.host ? of(sample.host) : null));
    return (
        <div class="grid">
            {timings.map(({ title, from, rows }) => (
                <Lines
                    key={title}
                    title={title}
                    lines={SHARES.map(([name, , ink], at) => ({ name, ink, values: rows[at] ?? [] }))}
                    say={duration}
                    absent={`Not in the access logs of this span. It comes from ${from}.`}
                    {...shared}
                />
            ))}
            <Lines
                title="Body bytes a second"
                lines={[{ name: "sent", ink: "--first", filled: true, values: column(samples, server, (target, sample) => per_s(target.logged?.bytes, sample)) }]}
                say={bytes}
                {...shared}
            />
            <Lines
                title="Requests that asked an upstream, a second"
                lines={[{ name: "asked", ink: "--first", filled: true, values: column(samples, server, (target, sample) => per_s(count(target.logged?.durations_us?.["upstream-response"]), sample)) }]}
                say={number}
                {...shared}
            />
            <Lines title="Answers by status, a second" lines={classes} say={number} {...shared} />
            <Lines
                title="Requests under way"
                lines={[{ name: "under way", ink: "--first", values: column(samples, server, (target) => mean(target.under_way)) }]}
                say={number}
                {...shared}
            />
            <Lines
                title="Accept queue"
                lines={[
                    { name: "longest", ink: "--first", values: queue("most") },
                    { name: "limit", ink: "--faint", dashed: true, values: queue("limit") },
                ]}
                say={number}
                {...shared}
            />
            <Lines
                title="Cores in use on the host"
                lines={[
                    { name: "busy", ink: "--first", filled: true, values: host((host) => (host.seconds > 0 ? host.busy_s / host.seconds : null)) },
                    { name: "cores", ink: "--faint", dashed: true, values: host((host) => host.cores) },
                ]}
                say={number}
                {...shared}
            />
            <Lines
                title="Memory of the host"
                lines={[
                    { name: "used", ink: "--first", filled: true, values: host((host) => host.memory_total - host.memory_available) },
                    { name: "all", ink: "--faint", dashed: true, values: host((host) => host.memory_total) },
                ]}
                say={bytes}
                {...shared}
            />
        </div>
    );
}

function count(durations: [[number, number][], number, number] | undefined): number | undefined {
    return durations?.[0].reduce((sum, [, count]) => sum + count, 0);
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

/** The groups of URLs with most answers in the span. */
function Urls({ samples, server }: { samples: Sample[]; server: string }) {
    const groups = useMemo(() => {
        const all = new Map<string, { answers: number; failed: number; time_us: number }>();
        for (const sample of samples) {
            for (const [group, use] of Object.entries(ofServer(sample, server)?.logged?.urls ?? {})) {
                const sum = all.get(group) ?? { answers: 0, failed: 0, time_us: 0 };
                all.set(group, { answers: sum.answers + use.answers, failed: sum.failed + use.failed, time_us: sum.time_us + use.time_us });
            }
        }
        return [...all].sort((a, b) => b[1].answers - a[1].answers).slice(0, 16);
    }, [samples, server]);
    if (groups.length === 0) return null;
    return (
        <section class="card">
            <h3>Groups of URLs</h3>
            <div class="wide">
                <table class="plain">
                    <thead>
                        <tr>
                            <th scope="col">path, its values as *</th>
                            <th scope="col">answers</th>
                            <th scope="col">failed</th>
                            <th scope="col">mean time</th>
                        </tr>
                    </thead>
                    <tbody>
                        {groups.map(([group, use]) => (
                            <tr key={group}>
                                <td class="path">{group}</td>
                                <td class="figure">{number(use.answers)}</td>
                                <td class="figure">{number(use.failed)}</td>
                                <td class="figure">{use.time_us > 0 ? duration(use.time_us / use.answers / 1000) : "?"}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </section>
    );
}
