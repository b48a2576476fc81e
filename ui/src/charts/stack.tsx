// Where the requests stand: a stacked area, one band for each place, and the limit as a line.
import { useMemo, useState } from "preact/hooks";
import uPlot from "uplot";
import { colour, colours } from "../places";
import { type Band, bandsOf, type Columns, stacked, standing } from "../series";
import type { About, Sample } from "../types";
import { number } from "../words";
import { axis, cursorTime, Plot, style, timeAxis, useScheme, type Zoom } from "./plot";

export const UNACCOUNTED = "unaccounted";

export interface StackProps {
    samples: Sample[];
    server: string;
    about: About | null;
    /** The tiers in the order in which a request passes them. */
    tiers?: string[] | undefined;
    limit?: { requests: number; label: string } | undefined;
    height?: number;
    zoom?: Zoom | null;
    onZoom?: (zoom: Zoom | null) => void;
}

/** The name of a place, as the server told it. */
export function label(about: About | null, { tier, place }: Band): string {
    const known = about?.places.find((known) => known.place === place)?.label;
    return known?.replace("{tier}", tier) ?? `${tier}: ${place.replaceAll("-", " ")}`;
}

/** A limit further above all requests than this many times would flatten them: it is named, not drawn. */
const LIMIT_FAR = 4;

export function Stack({ samples, server, about, tiers, limit, height = 240, zoom, onZoom }: StackProps) {
    const order = about?.places.map((known) => known.place) ?? [];
    const bands = useMemo(() => bandsOf(samples, server, order, tiers), [samples, server, about, tiers?.join()]);
    const rows = useMemo(() => standing(samples, server, bands), [samples, server, bands]);
    const layers = useMemo(() => stacked(rows), [rows]);
    const most = layers.at(-1)?.reduce<number>((most, value) => Math.max(most, value ?? 0), 0) ?? 0;
    const drawn = limit && limit.requests <= LIMIT_FAR * Math.max(1, most) ? limit.requests : null;
    const data = useMemo<Columns>(
        () => [samples.map((sample) => sample.at_s), ...layers, ...(drawn === null ? [] : [samples.map(() => drawn)])],
        [layers, drawn],
    );
    const [at_s, setAt_s] = useState<number | null>(null);
    useScheme();
    // Asked for anew whenever the colour scheme changes.
    const inksNow = () => [...colours(bands), colour(UNACCOUNTED, 0)];
    const inks = inksNow();
    const options = () => optionsOf(inksNow());
    const optionsOf = (inks: string[]) => ({
        scales: { x: { time: true }, y: { range: (_: uPlot, __: number, most: number): [number, number] => [0, Math.max(1, most * 1.05)] } },
        axes: [timeAxis(), axis({ size: 52, values: (_: uPlot, marks: number[]) => marks.map((mark) => number(mark)) })],
        series: [
            {},
            ...inks.map((ink, row) => ({ stroke: style("--page"), width: row === 0 ? 0 : 0.5, fill: ink, points: { show: false }, spanGaps: false })),
            ...(drawn === null ? [] : [{ stroke: style("--bad"), width: 2, dash: [8, 5], points: { show: false } }]),
        ],
        bands: inks.slice(1).map((ink, row) => ({ series: [row + 2, row + 1] as [number, number], fill: ink })),
        hooks: { setCursor: [(self: uPlot) => setAt_s(cursorTime(self))] },
    });
    const at = at_s === null ? -1 : samples.findIndex((sample) => sample.at_s >= at_s);
    const shown = at >= 0 ? at : samples.length - 1;
    const labels = [...bands.map((band) => label(about, band)), "nowhere known"];
    const listed = labels
        .map((name, row) => ({ name, ink: inks[row] ?? "", value: rows[row]?.[shown] ?? null }))
        .filter((row, at) => at < bands.length || (row.value ?? 0) >= 0.05)
        .reverse();
    const total = rows.reduce((sum, row) => sum + (row[shown] ?? 0), 0);
    const largest = [...listed].sort((a, b) => (b.value ?? 0) - (a.value ?? 0))[0];
    const summary = largest ? `${number(total)} requests in flight, most of them at: ${largest.name} (${number(largest.value)})` : "no request was seen";
    return (
        <div class="stack">
            <Plot
                label="Where the requests stand"
                summary={summary}
                data={data}
                height={height}
                options={options}
                keys={[labels.join("|"), drawn !== null]}
                zoom={zoom}
                onZoom={onZoom}
            />
            <table class="legend" aria-label="Requests at each place">
                <tbody>
                    {listed.map((row) => (
                        <tr key={row.name} data-band={row.name}>
                            <td>
                                <span class="ink" style={{ background: row.ink }} />
                            </td>
                            <th scope="row">{row.name}</th>
                            <td class="figure">{number(row.value)}</td>
                        </tr>
                    ))}
                    <tr class="sum">
                        <td />
                        <th scope="row">in flight</th>
                        <td class="figure">{number(total)}</td>
                    </tr>
                    {limit && (
                        <tr class="limit">
                            <td>
                                <span class="dash" />
                            </td>
                            <th scope="row">limit: {limit.label}</th>
                            <td class="figure">{number(limit.requests)}</td>
                        </tr>
                    )}
                </tbody>
            </table>
        </div>
    );
}
