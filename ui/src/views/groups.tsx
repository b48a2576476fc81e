// Groups of URLs and upstreams: a table, and the charts of the one that is chosen.
import { useMemo, useState } from "preact/hooks";
import { Lines, type Line } from "../charts/lines";
import type { Zoom } from "../charts/plot";
import { add, percentile } from "../histogram";
import { column, ofServer } from "../series";
import { count, KINDS, percentileLines, SHARES } from "../timings";
import type { GroupUse, Sample } from "../types";
import { bytes, duration, number } from "../words";

/** The most groups in the table. */
const GROUPS_MAX = 16;

export interface GroupsProps {
    title: string;
    name: string;
    samples: Sample[];
    server: string;
    of: "urls" | "upstreams";
    /** Which of its durations is its response time. */
    time: string;
    zoom: Zoom | null;
    onZoom: (zoom: Zoom | null) => void;
}

interface Sum {
    group: string;
    answers: number;
    failed: number;
    time_us: number | null;
    counts: Map<number, number>;
    max_us: number;
}

/** What each group had in the span, those with most answers first. */
function sums(samples: Sample[], server: string, of: "urls" | "upstreams", time: string): Sum[] {
    const all = new Map<string, Sum>();
    for (const sample of samples) {
        for (const [group, use] of Object.entries(ofServer(sample, server)?.logged?.[of] ?? {})) {
            const sum = all.get(group) ?? { group, answers: 0, failed: 0, time_us: null, counts: new Map<number, number>(), max_us: 0 };
            all.set(group, sum);
            sum.answers += use.answers;
            sum.failed += use.failed;
            if (use.time_us !== null) sum.time_us = (sum.time_us ?? 0) + use.time_us;
            const durations = use.durations_us?.[time];
            if (!durations) continue;
            add(sum.counts, durations);
            sum.max_us = Math.max(sum.max_us, durations[2]);
        }
    }
    return [...all.values()].sort((a, b) => b.answers - a.answers).slice(0, GROUPS_MAX);
}

/** The groups with most answers in the span. */
export function Groups({ title, name, samples, server, of, time, zoom, onZoom }: GroupsProps) {
    const groups = useMemo(() => sums(samples, server, of, time), [samples, server]);
    const [chosen, setChosen] = useState<string | null>(null);
    if (groups.length === 0) return null;
    const told = (us: number | null) => (us === null || us === 0 ? "?" : duration(us / 1000));
    return (
        <section class="card">
            <h3>{title}</h3>
            <div class="wide" tabIndex={0}>
                <table class="plain">
                    <thead>
                        <tr>
                            <th scope="col">{name}</th>
                            {["answers", "failed", "mean time", "p50", "p95", "max"].map((head) => (
                                <th key={head} scope="col" class="figure">
                                    {head}
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {groups.map((sum) => (
                            <tr key={sum.group}>
                                <td class="path">
                                    <button type="button" aria-pressed={chosen === sum.group} onClick={() => setChosen(chosen === sum.group ? null : sum.group)}>
                                        {sum.group}
                                    </button>
                                </td>
                                <td class="figure">{number(sum.answers)}</td>
                                <td class="figure">{number(sum.failed)}</td>
                                <td class="figure">{told(sum.answers > 0 && sum.time_us !== null ? sum.time_us / sum.answers : null)}</td>
                                {[0.5, 0.95].map((share) => (
                                    <td key={share} class="figure">
                                        {told(percentile(sum.counts, share))}
                                    </td>
                                ))}
                                <td class="figure">{told(sum.max_us)}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            {chosen !== null && <Chosen group={chosen} {...{ samples, server, of, zoom, onZoom }} />}
        </section>
    );
}

/** The charts of one group: those of a server, as far as the log tells them of a group. */
function Chosen({ group, samples, server, of, zoom, onZoom }: Pick<GroupsProps, "samples" | "server" | "of" | "zoom" | "onZoom"> & { group: string }) {
    const times = useMemo(() => samples.map((sample) => sample.at_s), [samples]);
    const charts = useMemo(() => {
        const use = (sample: Sample) => ofServer(sample, server)?.logged?.[of]?.[group];
        const per_s = (value: (use: GroupUse) => number | undefined) =>
            column(samples, server, (_, sample) => {
                const own = use(sample);
                const found = own && value(own);
                return found === undefined ? null : found / sample.span_s;
            });
        const timings = KINDS.map(([kind, title, from]) => ({
            title: `${title}: ${group}`,
            lines: percentileLines(samples, (sample) => use(sample)?.durations_us?.[kind]),
            say: duration,
            absent: `Not told of this group in this span. It comes from ${from}.`,
        })).filter(({ lines }) => lines.some((line) => line.values.some((value) => value !== null)));
        const area = (name: string, values: (number | null)[]): Line => ({ name, ink: SHARES[0]?.[2] ?? "", filled: true, values });
        return [
            {
                title: `Answers a second: ${group}`,
                lines: [area("all", per_s((use) => use.answers)), { name: "failed", ink: "--bad", values: per_s((use) => use.failed) }],
                say: number,
            },
            ...timings,
            { title: `Body bytes a second: ${group}`, lines: [area("sent", per_s((use) => use.bytes))], say: bytes },
            { title: `Requests that asked an upstream, a second: ${group}`, lines: [area("asked", per_s((use) => count(use.durations_us?.["upstream-response"])))], say: number },
        ];
    }, [samples, server, of, group]);
    return (
        <div class="grid">
            {charts.map((chart) => (
                <Lines key={chart.title} times={times} zoom={zoom} onZoom={onZoom} {...chart} />
            ))}
        </div>
    );
}
