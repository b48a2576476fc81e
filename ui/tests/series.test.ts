import { expect, test } from "vitest";
import { across, reach } from "../src/charts/graph";
import { change, found, type Frame, grow, layers, visible, WHOLE } from "../src/report/frames";
import type { FlameGraph, PlotOf } from "../src/report/types";
import { bands, percentile, upper } from "../src/histogram";
import { bandsOf, decimated, keep, mean, ofServer, outcomes, percentiles, stacked, standing, withGaps } from "../src/series";
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
    expect(percentiles(samples, (sample) => ofServer(sample, "a")?.logged?.durations_us?.request, [0.5, 1])).toEqual([[0.1], [0.1]]);
    expect(percentiles(samples, (sample) => ofServer(sample, "a")?.logged?.durations_us?.worker, [0.5])).toEqual([[null]]);
});

test("only the newest samples are kept, each once, and gaps are gaps", () => {
    const kept = keep([sample(5, {}), sample(6, {})], [sample(6, { rate: [1, 1] }), sample(66, {})], 60);
    expect(kept.map((one) => one.at_s)).toEqual([66]);
    expect(keep([sample(6, {})], [sample(5, {}), sample(6, { rate: [1, 1] })], 60).map((one) => [one.at_s, one.targets[0]?.rate[0]])).toEqual([[5, 0], [6, 1]]);
    expect(withGaps([sample(1, {}), sample(2, {}), sample(9, {})]).map((one) => [one.at_s, one.targets.length])).toEqual([[1, 1], [2, 1], [3, 0], [9, 1]]);
});

const flame: FlameGraph = {
    layers: [
        { title: "kernel", color: "#000000" },
        { title: "program", color: "#ffffff" },
    ],
    frames: [
        ["a", "m", 1],
        ["b", "m", 1],
        ["c", "k", 0],
    ],
    stacks: [
        [1, 0, 1],
        [0, 0, 2],
    ],
    threads: [
        [1, 1, "t", "p"],
        [2, 2, "u", "q"],
    ],
    duration_ms: 1000,
    now: { time: [0, 500, 900], cpu: [0, 1, 0], thread: [0, 0, 1], stack: [0, 1, 0], weight: [6, 2, 2] },
    before: null,
};

test("a flame graph holds what is wanted", () => {
    const at = (root: Frame, ...keys: (string | number)[]) => keys.reduce<Frame | undefined>((frame, key) => frame?.below.get(key), root);
    const root = grow(flame, WHOLE);
    expect([root.now, at(root, "p")?.now, at(root, "p", 0, 1)?.own, at(root, "q", 0, 1)?.now]).toEqual([10, 8, 6, 2]);
    expect(visible(root, false).map(({ frame, left, wide }) => [frame.name, left, wide])).toEqual([
        ["all", 0, 1],
        ["p", 0, 0.8],
        ["a", 0, 0.8],
        ["b", 0, 0.6000000000000001],
        ["c", 0.6000000000000001, 0.2],
        ["q", 0.8, 0.2],
        ["a", 0.8, 0.2],
        ["b", 0.8, 0.2],
    ]);
    expect([found(root, (frame) => frame.name === "b"), found(root, (frame) => frame.name < "c"), found(root, () => false)]).toEqual([8, 10, 0]);
    expect(layers(flame, WHOLE)).toEqual([{ layer: 1, share: 0.8 }, { layer: 0, share: 0.2 }]);
    expect([{ program: "q" }, { thread: 0 }, { cpu: 1 }, { layer: 0 }, { from: 400, to: 600 }].map((view) => grow(flame, { ...WHOLE, ...view }).now)).toEqual([2, 8, 2, 2, 2]);
    const grown = grow({ ...flame, before: { ...flame.now, weight: [1, 8, 1] } }, WHOLE);
    expect(change(at(grown, "p", 0, 1)!, grown)).toBeCloseTo(0.6 - 0.1);
});

test("the axis of a plot fits what is visible", () => {
    const plot = (points: [number | null, number | null][], more: Partial<PlotOf> = {}): PlotOf => ({ title: "", x: "", y: "", series: [{ name: "", color: 0, shape: "line", points }], rows: [], notes: [], ticks: [], log: false, ...more });
    const points: [number | null, number | null][] = [[0, 1], [5, 100], [9, null], [10, 2]];
    expect(reach([null, 3, -1])).toEqual([-1, 3]);
    expect(reach([])).toBeNull();
    expect(across(plot(points), [0, 10])[0]).toBe(0);
    expect(across(plot(points), [4, 6])).toEqual([90, 110]);
    expect(across(plot([]), [0, 1]).every(Number.isFinite)).toBe(true);
    expect(across(plot(points, { rows: ["a", "b"] }), [0, 10])).toEqual([-0.6, 1.6]);
    expect(across(plot([[0, 0], [1, 10], [2, 1000]], { log: true }), [0, 2])[0]).toBeGreaterThan(0);
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
