// uPlot as a component: it follows its box, its data and the colour scheme, and shares cursor and zoom with the other charts of a page.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { type Columns, decimated } from "../series";

/** The charts of a page move their cursors together. */
const CURSOR = "page";
/** A page of paper has this width, less its margins. */
const PRINT_WIDTH = 660;

export interface Zoom {
    from_s: number;
    to_s: number;
}

export interface PlotProps {
    label: string;
    /** Read by those who cannot see the chart. */
    summary: string;
    /** Must stay the same array as long as the values do. Of a long span what is visible is drawn with two points for each pixel. */
    data: Columns;
    height: number;
    /** Made anew when one of `keys` changes. Size, cursor and the axis of time are added here. */
    options: () => Omit<uPlot.Options, "width" | "height">;
    keys: unknown[];
    zoom?: Zoom | null;
    onZoom?: (zoom: Zoom | null) => void;
}

/** Counts changes of the colour scheme: what takes its colours from here is drawn anew. */
export function useScheme(): number {
    const [changes, setChanges] = useState(0);
    useEffect(() => {
        const scheme = matchMedia("(prefers-color-scheme: dark)");
        const changed = () => setChanges((before) => before + 1);
        scheme.addEventListener("change", changed);
        return () => scheme.removeEventListener("change", changed);
    }, []);
    return changes;
}

export function style(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A colour of the page, mostly transparent. The build may have written it in hexadecimal. */
export function faded(colour: string): string {
    if (/^#[0-9a-f]{3}$/i.test(colour)) return `${colour.replace(/[0-9a-f]/gi, "$&$&")}40`;
    return colour.startsWith("#") ? `${colour}40` : colour.replace(/\)$/, " / 0.25)");
}

/** The time under the cursor; null if it is elsewhere. */
export function cursorTime(plot: uPlot): number | null {
    const { idx } = plot.cursor;
    return idx === null || idx === undefined ? null : (plot.data[0][idx] ?? null);
}

/** An axis in the colours of the page. */
export function axis(more: uPlot.Axis = {}): uPlot.Axis {
    // Read when it is drawn: paper is always light.
    return { stroke: () => style("--faint"), grid: { stroke: () => style("--line"), width: 1 }, ticks: { stroke: () => style("--line"), width: 1, size: 4 }, font: "11px system-ui", ...more };
}

/** An axis of time, on a clock of 24 hours. */
export function timeAxis(): uPlot.Axis {
    const two = (value: number) => String(value).padStart(2, "0");
    const told = (at_s: number, step: number) => {
        const then = new Date(at_s * 1000);
        const clock = `${two(then.getHours())}:${two(then.getMinutes())}`;
        if (step >= 86_400) return `${then.getFullYear()}-${two(then.getMonth() + 1)}-${two(then.getDate())}`;
        if (step < 60) return `${clock}:${two(then.getSeconds())}`;
        return clock === "00:00" ? `${two(then.getMonth() + 1)}-${two(then.getDate())}` : clock;
    };
    return axis({ space: 90, size: 30, values: (_, marks, __, ___, step) => marks.map((mark) => told(mark, step)) });
}

export function Plot({ label, summary, data, height, options, keys, zoom, onZoom }: PlotProps) {
    const box = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot | null>(null);
    const scheme = useScheme();
    useEffect(() => {
        const element = box.current;
        if (!element) return;
        const asked = options();
        const made = new uPlot(
            {
                ...asked,
                width: Math.max(200, element.clientWidth),
                height,
                legend: { show: false, ...asked.legend },
                cursor: { sync: { key: CURSOR }, drag: { x: true, y: false, setScale: false }, points: { size: 6 }, ...asked.cursor },
                hooks: {
                    ...asked.hooks,
                    setSelect: [
                        ...(asked.hooks?.setSelect ?? []),
                        (self) => {
                            if (self.select.width < 4) return;
                            onZoom?.({
                                from_s: self.posToVal(self.select.left, "x"),
                                to_s: self.posToVal(self.select.left + self.select.width, "x"),
                            });
                            self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
                        },
                    ],
                },
            },
            [[], ...data.slice(1).map(() => [])],
            element,
        );
        plot.current = made;
        const resized = new ResizeObserver(() => made.setSize({ width: Math.max(200, element.clientWidth), height }));
        resized.observe(element);
        const print = () => {
            document.documentElement.classList.add("printed");
            made.setSize({ width: Math.min(PRINT_WIDTH, element.clientWidth), height });
        };
        const printed = () => {
            document.documentElement.classList.remove("printed");
            made.setSize({ width: Math.max(200, element.clientWidth), height });
        };
        addEventListener("beforeprint", print);
        addEventListener("afterprint", printed);
        const whole = () => onZoom?.(null);
        element.addEventListener("dblclick", whole);
        return () => {
            resized.disconnect();
            removeEventListener("beforeprint", print);
            removeEventListener("afterprint", printed);
            element.removeEventListener("dblclick", whole);
            made.destroy();
            plot.current = null;
        };
    }, [...keys, height, scheme]);
    useEffect(() => {
        const made = plot.current;
        if (!made) return;
        const [times] = data;
        const [from_s, to_s] = zoom ? [zoom.from_s, zoom.to_s] : [times[0] ?? 0, times.at(-1) ?? 1];
        made.batch(() => {
            made.setData(decimated(data, from_s, to_s, made.width), false);
            made.setScale("x", { min: from_s, max: to_s > from_s ? to_s : from_s + 1 });
        });
    }, [data, zoom, scheme, height, ...keys]);
    return (
        <figure class="chart" aria-label={`${label}. ${summary}`} role="img">
            <div ref={box} style={{ height }} />
        </figure>
    );
}
