// A heat map of durations: time across, duration up on a logarithmic scale, darker where more requests took that long.
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import { bands } from "../histogram";
import { type Columns, ofServer } from "../series";
import type { Sample } from "../types";
import { duration } from "../words";
import { axis, Plot, style, timeAxis, type Zoom } from "./plot";

const ROWS = 48;

export interface HeatProps {
    title: string;
    samples: Sample[];
    server: string;
    /** The kind of durations in the log. */
    kind: string;
    height?: number;
    zoom?: Zoom | null;
    onZoom?: (zoom: Zoom | null) => void;
}

/** The powers of ten around all durations, microseconds. */
function span(samples: Sample[], server: string, kind: string): [number, number] | null {
    let low = Infinity;
    let high = 0;
    for (const sample of samples) {
        const durations = ofServer(sample, server)?.logged?.durations_us?.[kind];
        if (!durations || durations[0].length === 0) continue;
        high = Math.max(high, durations[2]);
        low = Math.min(low, durations[1] / durations[0].reduce((sum, [, count]) => sum + count, 0));
    }
    if (high <= 0) return null;
    const floor = 10 ** Math.floor(Math.log10(Math.max(100, Math.min(low, high) / 10)));
    return [floor, Math.max(10 * floor, 10 ** Math.ceil(Math.log10(high)))];
}

/** The powers of ten from one number to another. */
function powers(low: number, high: number): number[] {
    const all: number[] = [];
    for (let power = low; power <= high * 1.001; power *= 10) all.push(power);
    return all;
}

export function Heat({ title, samples, server, kind, height = 170, zoom, onZoom }: HeatProps) {
    const range = useMemo(() => span(samples, server, kind), [samples, server, kind]);
    const cells = useMemo(
        () => (range ? samples.map((sample) => bands(ofServer(sample, server)?.logged?.durations_us?.[kind], range[0], range[1], ROWS)) : []),
        [samples, server, kind, range?.[0], range?.[1]],
    );
    const held = useMemo(() => ({ cells, samples }), []);
    held.cells = cells;
    held.samples = samples;
    const data = useMemo<Columns>(() => [samples.map((sample) => sample.at_s), samples.map(() => null)], [samples]);
    if (!range) {
        return (
            <section class="card">
                <h3>{title}</h3>
                <p class="absent">Durations come from an access log that has them, and none was read.</p>
            </section>
        );
    }
    const [low, high] = range;
    const paint = (self: uPlot) => {
        const { ctx } = self;
        const hue = style("--heat");
        const most = Math.max(1, ...held.cells.flat());
        const { left, top, width, height: tall } = self.bbox;
        ctx.save();
        ctx.beginPath();
        ctx.rect(left, top, width, tall);
        ctx.clip();
        held.samples.forEach((sample, column) => {
            const from = self.valToPos(sample.at_s - sample.span_s / 2, "x", true);
            const to = self.valToPos(sample.at_s + sample.span_s / 2, "x", true);
            if (to < left || from > left + width) return;
            held.cells[column]?.forEach((count, row) => {
                if (count === 0) return;
                ctx.fillStyle = `hsl(${hue} / ${(0.15 + 0.85 * Math.sqrt(count / most)).toFixed(2)})`;
                const bottom = top + tall * (1 - row / ROWS);
                ctx.fillRect(Math.floor(from), Math.floor(bottom - tall / ROWS), Math.ceil(to - from), Math.ceil(tall / ROWS));
            });
        });
        ctx.restore();
    };
    return (
        <section class="card">
            <h3>{title}</h3>
            <Plot
                label={title}
                summary={`durations between ${duration(low / 1000)} and ${duration(high / 1000)}`}
                data={data}
                height={height}
                options={() => ({
                    scales: { x: { time: true }, y: { distr: 3, log: 10, range: (): [number, number] => [low / 1000, high / 1000] } },
                    axes: [timeAxis(), axis({ size: 60, splits: () => powers(low / 1000, high / 1000), values: (_: uPlot, marks: number[]) => marks.map(duration) })],
                    series: [{}, { points: { show: false } }],
                    hooks: { drawAxes: [paint] },
                })}
                keys={[low, high]}
                zoom={zoom}
                onZoom={onZoom}
            />
        </section>
    );
}
