// Lines over time, with the value under the cursor in the heading.
import { useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import { type Columns } from "../series";
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
    /** Must stay the same array as long as the values do. */
    lines: Line[];
    say: (value: number | null) => string;
    /** What to say where nothing was seen. */
    absent?: string;
    height?: number;
    zoom?: Zoom | null;
    onZoom?: (zoom: Zoom | null) => void;
}

export function Lines({ title, times, lines, say, absent = "Not seen in this span.", height = 150, zoom, onZoom }: LinesProps) {
    /** The values under the cursor, of each line. */
    const [under, setUnder] = useState<(number | null)[] | null>(null);
    const data = useMemo<Columns>(() => [times, ...lines.map((line) => line.values)], [times, lines]);
    const isEmpty = useMemo(() => lines.every((line) => line.values.every((value) => value === null)), [lines]);
    const shown = (line: number) => (under ? under[line] : lines[line]?.values.at(-1)) ?? null;
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
        hooks: {
            setCursor: [
                (self: uPlot) => {
                    const { idx } = self.cursor;
                    setUnder(idx === null || idx === undefined ? null : self.data.slice(1).map((line) => line[idx] ?? null));
                },
            ],
        },
    });
    const values = lines.map((line, at) => `${line.name} ${say(shown(at))}`).join(", ");
    return (
        <section class="card">
            <h3>
                {title}
                <span class="values">
                    {lines.map((line, at) => (
                        <span key={line.name}>
                            <span class="ink" style={{ background: `var(${line.ink})` }} /> {line.name} {say(shown(at))}
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
                    data={data}
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
