// Lines over a number that is no time: the load of a step.
import { useMemo } from "preact/hooks";
import type uPlot from "uplot";
import type { Columns } from "../series";
import { number } from "../words";
import type { Line } from "./lines";
import { axis, Plot, style } from "./plot";

export interface CurveProps {
    title: string;
    x: number[];
    /** What x is. */
    across: string;
    lines: Line[];
    say: (value: number | null) => string;
}

export function Curve({ title, x, across, lines, say }: CurveProps) {
    const data = useMemo<Columns>(() => [x, ...lines.map((line) => line.values)], [title]);
    const options = () => ({
        scales: { x: { time: false }, y: { range: (_: uPlot, __: number, most: number): [number, number] => [0, most > 0 ? most * 1.08 : 1] } },
        axes: [axis({ label: across, labelSize: 18, size: 30, values: (_: uPlot, marks: number[]) => marks.map((mark) => number(mark)) }), axis({ size: 60, values: (_: uPlot, marks: number[]) => marks.map((mark) => say(mark)) })],
        series: [{}, ...lines.map((line) => ({ stroke: style(line.ink), width: 2, points: { show: true, size: 6, fill: style(line.ink) }, spanGaps: true }))],
        cursor: { sync: { key: title }, drag: { x: false, y: false } },
    });
    const summary = lines.map((line) => `${line.name} ${line.values.map((value, at) => `${say(value)} at ${number(x[at])}`).join(", ")}`).join("; ");
    return (
        <section class="card">
            <h3>
                {title}
                <span class="values">
                    {lines.map((line) => (
                        <span key={line.name}>
                            <span class="ink" style={{ background: `var(${line.ink})` }} /> {line.name}
                        </span>
                    ))}
                </span>
            </h3>
            <Plot label={title} summary={`by ${across}: ${summary}`} data={data} height={240} options={options} keys={[title]} />
        </section>
    );
}
