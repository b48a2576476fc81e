// Lines over time, with the value under the cursor in the heading.
import { useState } from "preact/hooks";
import type uPlot from "uplot";
import { axis, faded, Plot, style, timeAxis, type Zoom } from "./plot";

export interface Line {
    name: string;
    values: (number | null)[];
    /** A custom property of the style sheet. */
    ink: string;
    filled?: boolean;
    dashed?: boolean;
}

export interface LinesProps {
    title: string;
    times: number[];
    lines: Line[];
    say: (value: number | null) => string;
    /** What to say where nothing was seen. */
    absent?: string;
    height?: number;
    zoom?: Zoom | null;
    onZoom?: (zoom: Zoom | null) => void;
}

export function Lines({ title, times, lines, say, absent = "Not seen in this span.", height = 150, zoom, onZoom }: LinesProps) {
    const [at, setAt] = useState<number | null>(null);
    const shown = at !== null && at < times.length ? at : times.length - 1;
    const options = () => ({
        scales: { x: { time: true }, y: { range: (_: uPlot, __: number, most: number): [number, number] => [0, most > 0 ? most * 1.08 : 1] } },
        axes: [timeAxis(), axis({ size: 60, values: (_: uPlot, marks: number[]) => marks.map((mark) => say(mark)) })],
        series: [
            {},
            ...lines.map((line) => {
                const stroke = style(line.ink);
                const fill = line.filled ? { fill: faded(stroke) } : {};
                return { stroke, width: 1.5, points: { show: false }, spanGaps: false, ...fill, ...(line.dashed ? { dash: [6, 4] } : {}) };
            }),
        ],
        hooks: { setCursor: [(self: uPlot) => setAt(self.cursor.idx ?? null)] },
    });
    const values = lines.map((line) => `${line.name} ${say(line.values[shown] ?? null)}`).join(", ");
    const isEmpty = lines.every((line) => line.values.every((value) => value === null));
    return (
        <section class="card">
            <h3>
                {title}
                <span class="values">
                    {lines.map((line) => (
                        <span key={line.name}>
                            <span class="ink" style={{ background: `var(${line.ink})` }} /> {line.name} {say(line.values[shown] ?? null)}
                        </span>
                    ))}
                </span>
            </h3>
            {isEmpty ? (
                <p class="absent">{absent}</p>
            ) : (
                <Plot
                    label={title}
                    summary={values}
                    data={[times, ...lines.map((line) => line.values)]}
                    height={height}
                    options={options}
                    keys={[lines.map((line) => line.name).join("|")]}
                    zoom={zoom}
                    onZoom={onZoom}
                />
            )}
        </section>
    );
}
