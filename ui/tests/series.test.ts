import { expect, test } from "vitest";
import { change, matching, tree, wide } from "../src/folded";
import { bands, percentile, upper } from "../src/histogram";
import { bandsOf, decimated, keep, mean, outcomes, percentiles, stacked, standing, withGaps } from "../src/series";
import type { Sample, TargetSample } from "../src/types";
import { ago, bytes, duration, number } from "../src/words";

const target = (more: Partial<TargetSample>): TargetSample => ({ target: "a", under_way: [0, 0], rate: [0, 0], ...more });
const sample = (at_s: number, more: Partial<TargetSample>, span_s = 1): Sample => ({ at_s, span_s, targets: [target(more)] });

test("buckets end where the program's do", () => {
    // crates/statistics/src/histogram.rs: values up to 255 have a bucket each, then each power of two has 128.
    expect([0, 255, 256, 383, 384].map(upper)).toEqual([0, 255, 257, 511, 515]);
    const counts = new Map([
        [100, 50],
        [200, 50],
    ]);
    expect([percentile(counts, 0.5), percentile(counts, 0.51), percentile(counts, 1), percentile(new Map(), 0.5)]).toEqual([100, 200, 200, null]);
    expect(bands([[[10, 1], [200, 2]], 0, 0], 100, 10_000, 2)).toEqual([3, 0]);
});

test("what was not seen is no zero", () => {
    expect([mean([6, 3]), mean([0, 5]), mean([0, 0]), mean(undefined)]).toEqual([2, 0, null, null]);
    const samples = [
        sample(1, { under_way: [4, 1], places: [{ tier: "php", place: "cpu", request_seconds: 1 }] }),
        sample(2, {}),
        { ...sample(3, {}), targets: [] },
    ];
    const found = bandsOf(samples, "a", ["cpu"]);
    expect(standing(samples, "a", found)).toEqual([
        [1, null, null],
        [3, null, null],
    ]);
    expect(outcomes(samples, "a")[0]).toEqual([null, null, null]);
});

test("places are in the order of a request, and bands add up", () => {
    const places = [
        { tier: "php", place: "waiting", request_seconds: 2 },
        { tier: "nginx", place: "waiting", request_seconds: 1 },
        { tier: "php", place: "connecting", request_seconds: 3 },
    ];
    const samples = [sample(1, { under_way: [12, 2], places })];
    const found = bandsOf(samples, "a", ["connecting", "waiting"], ["nginx", "php"]);
    expect(found.map((band) => `${band.place} ${band.tier}`)).toEqual(["connecting php", "waiting nginx", "waiting php"]);
    expect(stacked(standing(samples, "a", found)).map((row) => row[0])).toEqual([1.5, 2, 3, 6]);
});

test("answers are counted by outcome and time", () => {
    const logged = { status: { 200: 20, 304: 10, 404: 4, 502: 2 }, bytes: 0, unread: 0, durations_us: { request: [[[100, 1]], 100, 100] as [[number, number][], number, number] } };
    const samples = [sample(10, { logged }, 10)];
    expect(outcomes(samples, "a").map((row) => row[0])).toEqual([3, 0.4, 0.2]);
    expect(percentiles(samples, "a", "request", [0.5, 1])).toEqual([[0.1], [0.1]]);
    expect(percentiles(samples, "a", "worker", [0.5])).toEqual([[null]]);
});

test("only the newest samples are kept, each once, and gaps are gaps", () => {
    const kept = keep([sample(5, {}), sample(6, {})], [sample(6, { rate: [1, 1] }), sample(66, {})], 60);
    expect(kept.map((one) => one.at_s)).toEqual([66]);
    expect(keep([sample(6, {})], [sample(5, {}), sample(6, { rate: [1, 1] })], 60).map((one) => [one.at_s, one.targets[0]?.rate[0]])).toEqual([[5, 0], [6, 1]]);
    expect(withGaps([sample(1, {}), sample(2, {}), sample(9, {})]).map((one) => [one.at_s, one.targets.length])).toEqual([[1, 1], [2, 1], [3, 0], [9, 1]]);
});

test("a flame graph has widths, shares and matches", () => {
    const root = tree("a;b 6\na;c 2\nno number x\nd 2\n", "a;c 1\ne 1\n");
    expect([root.during, root.before, root.children.map((frame) => frame.name)]).toEqual([10, 2, ["a", "d"]]);
    expect(wide(root, 3).map((frame) => frame.name)).toEqual(["all", "a", "b"]);
    expect([matching(root, "b"), matching(root, "a"), matching(root, "")]).toEqual([6, 8, 0]);
    const [a] = root.children;
    expect(a && change(a, root)).toBeCloseTo(0.8 - 0.5);
    expect(root.children[1]?.start).toBe(8);
});

test("numbers are short and plain", () => {
    expect([0, 0.031, 1.26, 20, 150.4, 12_345, 2.5e6, null].map(number)).toEqual(["0", "0.03", "1.3", "20", "150", "12,345", "2.50 M", "?"]);
    expect([0.5, 12.34, 2500].map(duration)).toEqual(["500 µs", "12.3 ms", "2.50 s"]);
    expect([bytes(999), bytes(1500), ago(100, 160), ago(0, 7300)]).toEqual(["999 B", "1.50 kB", "60 s ago", "2 h ago"]);
});

test("a long span is drawn with few points, and no peak is lost", () => {
    const times = Array.from({ length: 10_000 }, (_, at) => at);
    const values = times.map((at) => (at === 7_777 ? 99 : at >= 2_000 && at < 3_000 ? null : 1));
    const [thinTimes, thin] = decimated([times, values], 0, 9_999, 100);
    expect(thinTimes.length).toBeLessThanOrEqual(202);
    expect(Math.max(...(thin ?? []).map((value) => value ?? 0))).toBe(99);
    expect(thin?.filter((value) => value === null).length).toBeGreaterThanOrEqual(18);
    const [near] = decimated([times, values], 7_770, 7_780, 100);
    expect(near).toEqual(times.slice(7_769, 7_782));
});
