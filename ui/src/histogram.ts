// Histograms as the API gives them: values up to 255 have a bucket each, above each power of two has 128.
// The same layout as crates/statistics/src/histogram.rs, so that percentiles of sums are right.
import type { Durations } from "./types";

const STEPS = 128;

/** The largest value of a bucket. */
export function upper(bucket: number): number {
    const shift = Math.max(0, Math.floor(bucket / STEPS) - 1);
    const leading = bucket - shift * STEPS;
    return leading * 2 ** shift + (2 ** shift - 1);
}

/** Adds counts to a map from bucket to count. */
export function add(to: Map<number, number>, durations: Durations): void {
    for (const [bucket, count] of durations[0]) {
        to.set(bucket, (to.get(bucket) ?? 0) + count);
    }
}

/** The value that a share of all counted values does not exceed; null if nothing was counted. */
export function percentile(counts: Map<number, number>, share: number): number | null {
    let total = 0;
    for (const count of counts.values()) total += count;
    if (total === 0) return null;
    const wanted = Math.max(1, Math.ceil(share * total));
    let seen = 0;
    for (const bucket of [...counts.keys()].sort((a, b) => a - b)) {
        seen += counts.get(bucket) ?? 0;
        if (seen >= wanted) return upper(bucket);
    }
    return null;
}

/** Counts by bands of equal width on a logarithmic scale: the rows of a heat map. `low` and `high` bound the first and the last band. */
export function bands(durations: Durations | undefined, low: number, high: number, number: number): number[] {
    const rows = new Array<number>(number).fill(0);
    const width = Math.log(high / low) / number;
    for (const [bucket, count] of durations?.[0] ?? []) {
        const row = Math.floor(Math.log(Math.max(upper(bucket), low) / low) / width);
        const at = Math.min(number - 1, Math.max(0, row));
        rows[at] = (rows[at] ?? 0) + count;
    }
    return rows;
}
