// A flame graph. It can be searched, zoomed, and filtered by program, thread, core, layer and time.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { style } from "../charts/plot";
import type { FlameGraph } from "./types";
import { change, found, type Frame, grow, layers, type View, visible, WHOLE } from "./frames";

const ROW = 19;
/** Time is drawn as so many bars. */
const BARS = 240;
const KINDS = ["hsl(24 65% 62%)", "hsl(100 35% 56%)", "hsl(66 45% 58%)"];

const percent = (share: number) => `${(100 * share).toFixed(share < 0.0995 ? 2 : 1)} %`;

/** The colour of a frame. */
function ink(frame: Frame, root: Frame, graph: FlameGraph, by: string): string {
    if (by === "change") {
        const grown = change(frame, root);
        const strength = Math.min(1, Math.sqrt(Math.abs(grown) * 5));
        return strength < 0.02 ? "hsl(40 20% 88%)" : `hsl(${grown > 0 ? 6 : 212} ${40 + 45 * strength}% ${86 - 22 * strength}%)`;
    }
    if (by === "kind") return frame.frame === null ? "hsl(212 12% 79%)" : (KINDS[graph.frames[frame.frame]?.[2] ?? 1] ?? "");
    return graph.layers[frame.layer]?.color ?? "hsl(212 12% 79%)";
}

/** Dark colours take light letters. */
function letters(colour: string): string {
    const parts = /^#(..)(..)(..)$/.exec(colour)?.slice(1).map((part) => Number.parseInt(part, 16));
    return parts && 0.299 * parts[0]! + 0.587 * parts[1]! + 0.114 * parts[2]! < 140 ? "#fff" : "hsl(215 25% 12%)";
}

export function Flame({ graph }: { graph: FlameGraph }) {
    const [view, setView] = useState<View>(WHOLE);
    const [by, setBy] = useState(graph.before ? "change" : "layer");
    const [path, setPath] = useState<(string | number)[]>([]);
    const [asked, setAsked] = useState("");
    const root = useMemo(() => grow(graph, view), [graph, view]);
    const focus = useMemo(() => path.reduce<Frame>((frame, key) => frame.below.get(key) ?? frame, root), [root, path]);
    const boxes = useMemo(() => visible(focus, graph.before !== null), [focus]);
    const [told, setTold] = useState<Frame | null>(null);
    const search = asked.trim().toLowerCase();
    const isFound = (frame: Frame) => search !== "" && `${frame.name} ${frame.frame === null ? "" : (graph.frames[frame.frame]?.[1] ?? "")}`.toLowerCase().includes(search);
    const deepest = boxes.reduce((most, box) => Math.max(most, box.frame.depth), focus.depth);
    const above: Frame[] = [];
    for (let frame = focus.parent; frame; frame = frame.parent) above.unshift(frame);
    const share = (part: number) => (root.now > 0 ? part / root.now : 0);
    const say = (frame: Frame) => {
        const where = frame.frame === null ? "" : ` in ${graph.frames[frame.frame]?.[1] ?? ""}`;
        const before = graph.before && root.before > 0 ? `; before ${percent(frame.before / root.before)}` : "";
        return `${frame.name}${where}: ${percent(share(frame.now))} of what is shown, itself ${percent(share(frame.own))}${before}`;
    };
    useEffect(() => {
        const back = (event: KeyboardEvent) => event.key === "Escape" && setPath([]);
        addEventListener("keydown", back);
        return () => removeEventListener("keydown", back);
    }, []);
    const choose = (frame: Frame) => {
        const keys: (string | number)[] = [];
        for (let at: Frame | null = frame; at?.parent; at = at.parent) keys.unshift(at.key);
        setPath(keys);
    };
    const shown = told ?? focus;
    const box = (frame: Frame, left: number, wide: number, isAbove: boolean) => {
        const colour = ink(frame, root, graph, by);
        return (
            <button
                key={`${frame.depth} ${left} ${frame.key}`}
                type="button"
                data-frame={frame.name}
                class={`${isFound(frame) ? "found" : ""} ${isAbove ? "above" : ""}`}
                title={say(frame)}
                aria-label={say(frame)}
                tabIndex={wide > 0.02 ? 0 : -1}
                onClick={() => choose(frame)}
                onMouseEnter={() => setTold(frame)}
                onMouseLeave={() => setTold(null)}
                style={{ left: `${100 * left}%`, width: `${100 * wide}%`, top: frame.depth * ROW, background: colour, color: letters(colour) }}
            >
                {wide > 0.015 && frame.name}
            </button>
        );
    };
    return (
        <>
            <Filters graph={graph} view={view} change={setView} by={by} setBy={setBy} asked={asked} setAsked={setAsked} isZoomed={path.length > 0} whole={() => setPath([])} />
            {graph.duration_ms > 0 && <Times graph={graph} view={view} change={setView} />}
            <div class="spans layers">
                {layers(graph, view).map(({ layer, share }) => (
                    <button key={layer} type="button" aria-pressed={view.layer === layer} onClick={() => setView({ ...view, layer: view.layer === layer ? null : layer })}>
                        <span class="ink" style={{ background: graph.layers[layer]?.color }} /> {graph.layers[layer]?.title} {percent(share)}
                    </button>
                ))}
            </div>
            <p class="flame-match" role="status">
                {say(shown)}
                {search !== "" && <strong> · found: {percent(share(found(root, isFound)))}</strong>}
            </p>
            <div class="flame" style={{ height: (deepest + 1) * ROW }}>
                {above.map((frame) => box(frame, 0, 1, true))}
                {boxes.map(({ frame, left, wide }) => box(frame, left, wide, false))}
            </div>
        </>
    );
}

interface FiltersProps {
    graph: FlameGraph;
    view: View;
    change: (view: View) => void;
    by: string;
    setBy: (by: string) => void;
    asked: string;
    setAsked: (asked: string) => void;
    isZoomed: boolean;
    whole: () => void;
}

function Filters({ graph, view, change, by, setBy, asked, setAsked, isZoomed, whole }: FiltersProps) {
    const programs = [...new Set(graph.threads.map((thread) => thread[3]))];
    const cores = [...new Set(graph.now.cpu)].sort((a, b) => a - b);
    const chosen = (text: string) => (text === "" ? null : Number(text));
    return (
        <div class="spans">
            <label>
                Search functions <input type="search" value={asked} onInput={(event) => setAsked(event.currentTarget.value)} />
            </label>
            <select aria-label="Program" value={view.program ?? ""} onChange={(event) => change({ ...view, program: event.currentTarget.value || null, thread: null })}>
                <option value="">all programs</option>
                {programs.map((name) => (
                    <option key={name} value={name}>
                        {name}
                    </option>
                ))}
            </select>
            <select aria-label="Thread" value={view.thread ?? ""} onChange={(event) => change({ ...view, thread: chosen(event.currentTarget.value) })}>
                <option value="">all threads</option>
                {graph.threads.map(
                    ([pid, tid, name, program], at) =>
                        (view.program === null || view.program === program) && (
                            <option key={at} value={at}>
                                {name} ({pid}/{tid})
                            </option>
                        ),
                )}
            </select>
            <select aria-label="Core" value={view.cpu ?? ""} onChange={(event) => change({ ...view, cpu: chosen(event.currentTarget.value) })}>
                <option value="">all cores</option>
                {cores.map((core) => (
                    <option key={core} value={core}>
                        core {core}
                    </option>
                ))}
            </select>
            <label>
                Colour by{" "}
                <select value={by} onChange={(event) => setBy(event.currentTarget.value)}>
                    {graph.before && <option value="change">change</option>}
                    <option value="layer">layer</option>
                    <option value="kind">kernel or program</option>
                </select>
            </label>
            {(isZoomed || view !== WHOLE) && (
                <button
                    type="button"
                    onClick={() => {
                        change(WHOLE);
                        whole();
                    }}
                >
                    show all
                </button>
            )}
        </div>
    );
}

/** Busy samples over time: dragging looks at a part, a click at all. */
function Times({ graph, view, change }: { graph: FlameGraph; view: View; change: (view: View) => void }) {
    const canvas = useRef<HTMLCanvasElement>(null);
    const [begun, setBegun] = useState<number | null>(null);
    useEffect(() => {
        const element = canvas.current;
        const pen = element?.getContext("2d");
        if (!element || !pen) return;
        const counts = new Array<number>(BARS).fill(0);
        for (const time of graph.now.time) counts[Math.min(BARS - 1, Math.floor((time / graph.duration_ms) * BARS))]! += 1;
        const most = Math.max(1, ...counts);
        pen.clearRect(0, 0, element.width, element.height);
        counts.forEach((count, at) => {
            const time = (at / BARS) * graph.duration_ms;
            pen.fillStyle = view.from === null || (time >= view.from && time <= (view.to ?? 0)) ? style("--first") : style("--wall");
            pen.fillRect(at * 4, element.height * (1 - count / most), 3, (element.height * count) / most);
        });
    }, [graph, view]);
    const at = (event: PointerEvent) => {
        const area = canvas.current?.getBoundingClientRect();
        return area ? Math.min(1, Math.max(0, (event.clientX - area.left) / area.width)) * graph.duration_ms : 0;
    };
    const drag = (event: PointerEvent) => {
        if (begun !== null) change({ ...view, from: Math.min(begun, at(event)), to: Math.max(begun, at(event)) });
    };
    const end = () => {
        setBegun(null);
        // A click without a drag takes the choice back.
        if (view.from !== null && (view.to ?? 0) - view.from < graph.duration_ms / 200) change({ ...view, from: null, to: null });
    };
    return (
        <canvas
            ref={canvas}
            class="times"
            width={BARS * 4}
            height={46}
            role="img"
            aria-label="Busy samples over time"
            onPointerDown={(event) => {
                event.currentTarget.setPointerCapture(event.pointerId);
                setBegun(at(event));
                change({ ...view, from: at(event), to: at(event) });
            }}
            onPointerMove={drag}
            onPointerUp={end}
        />
    );
}
