// A plot of a report: steps, lines, bars, ranges, crosses and dots over a numeric axis. Dragging zooms, a double click shows the whole.
import { useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import type { PlotOf, Shape } from "../report/types";
import type { Columns } from "../series";
import { number } from "../words";
import { axis, Plot, style, type Zoom } from "./plot";

type Series = PlotOf["series"][number];
type Range = [low: number, high: number];

const HEIGHT = 260;
const ROW_HEIGHT = 26;
/** Pixels of a letter in the labels of rows, and of the widest label. */
const LETTER = 6.5;
const LABEL_MAX = 230;
const WIDTHS: Record<Shape, number> = { steps: 1.8, line: 1.8, bars: 2, ranges: 7, wide: 14, crosses: 1.8, dots: 6 };

/** The least and the largest of some numbers; nothing if there is none. */
export function reach(values: Iterable<number | null>): Range | null {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
        if (value === null) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
    }
    return low <= high ? [low, high] : null;
}

/** The values of the points between two of x, and those of the lines that cross it. */
function* between(plot: PlotOf, [from, to]: Range): Iterable<number | null> {
    for (const { points } of plot.series) {
        for (const [x, y] of points) if (x !== null && x >= from && x <= to) yield y;
    }
}

/** The axis of y for what is visible: from zero, unless all of it is far from zero. */
export function across(plot: PlotOf, visible: Range): Range {
    if (plot.rows.length > 0) return [-0.6, plot.rows.length - 0.4];
    const found = reach(between(plot, visible)) ?? reach(plot.series.flatMap(({ points }) => points.map(([, y]) => y))) ?? [0, 1];
    if (plot.log) {
        const least = reach(plot.series.flatMap(({ points }) => points.map(([, y]) => (y !== null && y > 0 ? y : null))));
        return [Math.max(found[0], least?.[0] ?? 1) / 1.2, Math.max(found[1], (least?.[0] ?? 1) * 2) * 1.2];
    }
    const [low, high] = found;
    const isFar = low > 0 && high - low < low;
    const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    return [isFar && low > 0 ? low - room : Math.min(0, low < 0 ? low - room : 0), high + room];
}

/** The whole axis of x. */
function along(plot: PlotOf): Range {
    const ticks = reach(plot.ticks.map(([x]) => x));
    const [low, high] = ticks ?? reach(plot.series.flatMap(({ points }) => points.map(([x]) => x))) ?? [0, 1];
    return high > low ? [low, high] : [low - 0.5, high + 0.5];
}

/** Where differences are zero. */
function drawZero(self: uPlot): void {
    const { min = 0, max = 0 } = self.scales.x ?? {};
    if (min === null || max === null || min >= 0 || max <= 0) return;
    const { ctx } = self;
    const { top, height } = self.bbox;
    const at = self.valToPos(0, "x", true);
    ctx.strokeStyle = style("--faint");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(at, top);
    ctx.lineTo(at, top + height);
    ctx.stroke();
}

function drawSeries(self: uPlot, { points, shape, color }: Series): void {
    const { ctx } = self;
    const scale = devicePixelRatio;
    ctx.strokeStyle = style(`--c${color % 8}`);
    ctx.lineWidth = WIDTHS[shape] * scale;
    ctx.lineCap = shape === "dots" ? "round" : "butt";
    ctx.beginPath();
    let before: [number, number] | null = null;
    const isPaired = shape === "bars" || shape === "ranges" || shape === "wide";
    points.forEach(([x, y], at) => {
        if (x === null || y === null) {
            before = null;
            return;
        }
        const [left, top] = [self.valToPos(x, "x", true), self.valToPos(y, "y", true)];
        if (!Number.isFinite(left) || !Number.isFinite(top)) return;
        if (shape === "crosses") {
            const half = 4 * scale;
            ctx.moveTo(left - half, top - half);
            ctx.lineTo(left + half, top + half);
            ctx.moveTo(left - half, top + half);
            ctx.lineTo(left + half, top - half);
        } else if (shape === "dots") {
            ctx.moveTo(left, top);
            ctx.lineTo(left + 0.01, top);
        } else if (isPaired ? at % 2 === 0 : before === null) {
            ctx.moveTo(left, top);
        } else {
            if (shape === "steps" && before) ctx.lineTo(left, before[1]);
            // A pair at one point is drawn as a short mark.
            const isPoint = isPaired && before && Math.abs(left - before[0]) < 1 && Math.abs(top - before[1]) < 1;
            ctx.lineTo(isPoint ? left + 2 * scale : left, top);
        }
        before = [left, top];
    });
    ctx.stroke();
}

export function Graph({ plot }: { plot: PlotOf }) {
    const [zoom, setZoom] = useState<Zoom | null>(null);
    const [at, setAt] = useState<string>("");
    const whole = useMemo(() => along(plot), [plot]);
    // What the options read when the chart draws, which may be later than when they were made.
    const held = useMemo<{ visible: Range }>(() => ({ visible: whole }), [whole]);
    held.visible = zoom ? [zoom.from_s, zoom.to_s] : whole;
    const data = useMemo<Columns>(() => [whole, [null, null]], [whole]);
    const hasRows = plot.rows.length > 0;
    const rowAxis = (names: string[], more: uPlot.Axis): uPlot.Axis =>
        axis({
            size: Math.min(LABEL_MAX, 16 + LETTER * Math.max(0, ...names.map((name) => name.length))),
            splits: () => names.map((_, row) => row),
            values: () => names.map((name) => (name.length * LETTER > LABEL_MAX ? `${name.slice(0, LABEL_MAX / LETTER - 2)}…` : name)),
            grid: { show: false },
            ...more,
        });
    const paint = (self: uPlot) => {
        const { ctx } = self;
        const { left, top, width, height } = self.bbox;
        ctx.save();
        ctx.beginPath();
        ctx.rect(left, top, width, height);
        ctx.clip();
        drawZero(self);
        plot.series.forEach((series) => drawSeries(self, series));
        ctx.restore();
    };
    const options = (): Omit<uPlot.Options, "width" | "height"> => ({
        scales: {
            x: { time: false },
            y: { range: () => across(plot, held.visible), ...(hasRows ? { dir: -1 as const } : {}), ...(plot.log ? { distr: 3 as const, log: 10 as const } : {}) },
        },
        axes: [
            axis({
                size: 28,
                label: plot.x,
                labelSize: 18,
                labelFont: "11px system-ui",
                ...(plot.ticks.length > 0
                    ? { splits: () => plot.ticks.map(([x]) => x), values: () => plot.ticks.map(([, label]) => label) }
                    : { values: (_: uPlot, marks: number[]) => marks.map((mark) => plain(mark)) }),
            }),
            hasRows ? rowAxis(plot.rows, {}) : axis({ size: 66, values: (_: uPlot, marks: (number | null)[]) => marks.map((mark) => (mark === null ? "" : plain(mark, plot.log ? 2 : 6))) }),
            ...(plot.notes.length > 0 ? [rowAxis(plot.notes, { side: 1, scale: "y" })] : []),
        ],
        series: [{}, { points: { show: false } }],
        cursor: { sync: { key: plot.title }, points: { show: false } },
        hooks: {
            drawAxes: [paint],
            setCursor: [
                (self) => {
                    const { left = -1, top = -1 } = self.cursor;
                    if (left < 0) return setAt("");
                    const row = plot.rows[Math.round(self.posToVal(top, "y"))];
                    setAt(`${number(self.posToVal(left, "x"))}: ${hasRows ? (row ?? "") : number(self.posToVal(top, "y"))}`);
                },
            ],
        },
    });
    const named = plot.series.filter(({ name }) => name !== "");
    return (
        <div class="graph">
            <h3>
                {plot.title}
                <small>{plot.y}</small>
                <span class="values">
                    {named.map(({ name, color }) => (
                        <span key={name}>
                            <span class="ink" style={{ background: `var(--c${color % 8})` }} /> {name}
                        </span>
                    ))}
                    {zoom && (
                        <button type="button" onClick={() => setZoom(null)}>
                            whole
                        </button>
                    )}
                    <span class="hint">{at}</span>
                </span>
            </h3>
            <Plot
                label={plot.title}
                summary={`${plot.y} by ${plot.x}: ${named.map(({ name }) => name).join(", ")}`}
                data={data}
                height={hasRows ? 60 + ROW_HEIGHT * plot.rows.length : HEIGHT}
                options={options}
                keys={[plot]}
                zoom={zoom}
                onZoom={setZoom}
            />
        </div>
    );
}

/** A mark of an axis. */
function plain(value: number, digits = 6): string {
    return Math.abs(value) >= 1000 ? number(value) : String(Number(value.toPrecision(digits)));
}
