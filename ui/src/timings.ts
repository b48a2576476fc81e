// The durations of logs as lines of percentiles.
import type { Line } from "./charts/lines";
import { percentiles } from "./series";
import type { Durations, Sample } from "./types";

/** Durations of a log, their title, and what they come from. */
export const KINDS: [kind: string, title: string, from: string][] = [
    ["upstream-connect", "Upstream connect time", "$upstream_connect_time in nginx's log_format"],
    ["request", "Request time", "$request_time in nginx's log_format"],
    ["upstream-header", "Upstream header time", "$upstream_header_time in nginx's log_format"],
    ["upstream-response", "Upstream response time", "$upstream_response_time in nginx's log_format"],
    ["worker", "Time of a worker for a request", "%d in php-fpm's access.format"],
];
export const SHARES: [name: string, share: number, ink: string][] = [
    ["p50", 0.5, "--first"],
    ["p95", 0.95, "--second"],
    ["max", 1, "--third"],
];

/** The lines of one kind of durations. */
export function percentileLines(samples: Sample[], of: (sample: Sample) => Durations | undefined): Line[] {
    const rows = percentiles(samples, of, SHARES.map(([, share]) => share));
    return SHARES.map(([name, , ink], at) => ({ name, ink, values: rows[at] ?? [] }));
}

/** The number of durations. */
export function count(durations: Durations | undefined): number | undefined {
    return durations?.[0].reduce((sum, [, count]) => sum + count, 0);
}
