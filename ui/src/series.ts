// From samples to the columns of charts. Pure functions.
import { add, percentile } from "./histogram";
import type { Durations, Mean, Sample, TargetSample } from "./types";

/** Samples further apart than this many of their spans have a gap between them. */
const GAP_SPANS = 3;

/** Something that stands for requests at one place of one tier. */
export interface Band {
    tier: string;
    place: string;
}

/** Mean of a sum over time; null where it was not seen, which is not zero. */
export function mean(value: Mean | undefined): number | null {
    return value && value[1] > 0 ? value[0] / value[1] : null;
}

/** The sample of a server, if it was watched then. */
export function ofServer(sample: Sample, server: string): TargetSample | undefined {
    return sample.targets.find((target) => target.target === server);
}

/** All places with requests in these samples, in the order of `order`, and of one place those of the first tiers first. `path`: the tiers, as far as they are known. */
export function bandsOf(samples: Sample[], server: string, order: string[], path: string[] = []): Band[] {
    const tiers: string[] = [...path];
    const found = new Map<string, Band>();
    for (const sample of samples) {
        for (const { tier, place } of ofServer(sample, server)?.places ?? []) {
            if (!tiers.includes(tier)) tiers.push(tier);
            found.set(`${place} ${tier}`, { tier, place });
        }
    }
    const rank = (band: Band) => order.indexOf(band.place) * 1000 + tiers.indexOf(band.tier);
    return [...found.values()].sort((a, b) => rank(a) - rank(b));
}

/** Requests at each place, a row for each band, and those that stand nowhere known as the last row. Null where the server was not seen. */
export function standing(samples: Sample[], server: string, bands: Band[]): (number | null)[][] {
    const rows: (number | null)[][] = [...bands, null].map(() => []);
    for (const sample of samples) {
        const target = ofServer(sample, server);
        const seconds = target?.under_way[1] ?? 0;
        const total = mean(target?.under_way);
        if (!target || total === null) {
            rows.forEach((row) => row.push(null));
            continue;
        }
        let placed = 0;
        bands.forEach((band, at) => {
            const there = target.places?.find((place) => place.tier === band.tier && place.place === band.place);
            const value = (there?.request_seconds ?? 0) / seconds;
            placed += value;
            rows[at]?.push(value);
        });
        rows[bands.length]?.push(Math.max(0, total - placed));
    }
    return rows;
}

/** Each row on top of those before it. */
export function stacked(rows: (number | null)[][]): (number | null)[][] {
    const sum: number[] = [];
    return rows.map((row) =>
        row.map((value, at) => {
            if (value === null) return null;
            sum[at] = (sum[at] ?? 0) + value;
            return sum[at] ?? null;
        }),
    );
}

/** Answers a second by class of status: [1xx and 2xx and 3xx, 4xx, 5xx]; null where there was no log. */
export function outcomes(samples: Sample[], server: string): (number | null)[][] {
    const good: (number | null)[] = [];
    const refused: (number | null)[] = [];
    const failed: (number | null)[] = [];
    for (const sample of samples) {
        const status = ofServer(sample, server)?.logged?.status;
        const known = status && Object.keys(status).length > 0;
        const of = (is: (status: number) => boolean) =>
            known ? Object.entries(status).reduce((sum, [code, count]) => sum + (is(Number(code)) ? count : 0), 0) / sample.span_s : null;
        good.push(of((code) => code < 400));
        refused.push(of((code) => code >= 400 && code < 500));
        failed.push(of((code) => code >= 500));
    }
    return [good, refused, failed];
}

/** Percentiles of durations of each sample, milliseconds. */
export function percentiles(samples: Sample[], of: (sample: Sample) => Durations | undefined, shares: number[]): (number | null)[][] {
    const rows: (number | null)[][] = shares.map(() => []);
    for (const sample of samples) {
        const durations = of(sample);
        const counts = new Map<number, number>();
        if (durations) add(counts, durations);
        shares.forEach((share, at) => {
            const us = share >= 1 ? (durations && durations[0].length > 0 ? durations[2] : null) : percentile(counts, share);
            rows[at]?.push(us === null ? null : us / 1000);
        });
    }
    return rows;
}

/** A value of each sample of a server. */
export function column(samples: Sample[], server: string, of: (target: TargetSample, sample: Sample) => number | null): (number | null)[] {
    return samples.map((sample) => {
        const target = ofServer(sample, server);
        return target ? of(target, sample) : null;
    });
}

/** Samples with an empty one in each gap, so that no line is drawn across what was not seen. */
export function withGaps(samples: Sample[]): Sample[] {
    const all: Sample[] = [];
    let before: Sample | undefined;
    for (const sample of samples) {
        if (before && sample.at_s - before.at_s > GAP_SPANS * before.span_s) {
            all.push({ at_s: before.at_s + before.span_s, span_s: before.span_s, targets: [] });
        }
        all.push(sample);
        before = sample;
    }
    return all;
}

/** Columns of a chart: times, and values of each line. */
export type Columns = [times: number[], ...lines: (number | null)[][]];

/** The part of columns from one time to another with at most two points for each of `buckets`: the least and the greatest value of each line in it, so that no peak is lost. */
export function decimated(columns: Columns, from_s: number, to_s: number, buckets: number): Columns {
    const [times, ...lines] = columns;
    const first = Math.max(0, times.findIndex((time) => time >= from_s) - 1);
    const behind = times.findLastIndex((time) => time <= to_s);
    // One point beyond each end, so that lines reach the edges.
    const last = Math.min(times.length, behind + 2);
    const step = Math.floor((last - first) / Math.max(1, buckets));
    if (step <= 2) return [times.slice(first, last), ...lines.map((line) => line.slice(first, last))];
    const thinTimes: number[] = [];
    const thin: (number | null)[][] = lines.map(() => []);
    for (let at = first; at < last; at += step) {
        const end = Math.min(last, at + step);
        thinTimes.push(times[at] ?? 0, times[end - 1] ?? 0);
        lines.forEach((line, number) => {
            let [low, high, lowAt, highAt]: [number | null, number | null, number, number] = [null, null, at, at];
            for (let index = at; index < end; index += 1) {
                const value = line[index] ?? null;
                if (value === null) continue;
                if (low === null || value < low) [low, lowAt] = [value, index];
                if (high === null || value > high) [high, highAt] = [value, index];
            }
            thin[number]?.push(...(lowAt <= highAt ? [low, high] : [high, low]));
        });
    }
    return [thinTimes, ...thin];
}

/** Keeps the newest samples that begin within a span, in the order of time. Returns a new list. */
export function keep(samples: Sample[], more: Sample[], span_s: number): Sample[] {
    const known = new Map<number, Sample>();
    for (const sample of [...samples, ...more]) known.set(sample.at_s, sample);
    const all = [...known.values()].sort((a, b) => a.at_s - b.at_s);
    const newest = all.at(-1)?.at_s ?? 0;
    return all.filter((sample) => sample.at_s > newest - span_s);
}
