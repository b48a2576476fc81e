// The tree of a flame graph. Pure functions.
import type { FlameGraph, Samples } from "./types";

/** Frames narrower than this share of the view are not drawn. */
const NARROWEST = 1 / 900;

/** What is to be seen; null is everything. */
export interface View {
    program: string | null;
    thread: number | null;
    cpu: number | null;
    layer: number | null;
    /** Milliseconds. */
    from: number | null;
    to: number | null;
}

export const WHOLE: View = { program: null, thread: null, cpu: null, layer: null, from: null, to: null };

export interface Frame {
    key: string | number;
    name: string;
    /** Its number in the graph; null for a program and for the root. */
    frame: number | null;
    parent: Frame | null;
    depth: number;
    /** Weights in it and in what it called, and the weight of itself. */
    now: number;
    before: number;
    own: number;
    /** The layer with most of it. */
    layer: number;
    below: Map<string | number, Frame>;
}

interface Growing extends Frame {
    byLayer: Map<number, number>;
    below: Map<string | number, Growing>;
}

function isWanted(graph: FlameGraph, view: View, samples: Samples, at: number): boolean {
    const [thread, time] = [samples.thread[at] ?? 0, samples.time[at] ?? 0];
    return (
        (view.program === null || graph.threads[thread]?.[3] === view.program) &&
        (view.thread === null || thread === view.thread) &&
        (view.cpu === null || samples.cpu[at] === view.cpu) &&
        (view.layer === null || graph.stacks[samples.stack[at] ?? 0]?.[0] === view.layer) &&
        (view.from === null || samples !== graph.now || (time >= view.from && time <= (view.to ?? Infinity)))
    );
}

/** The tree of all wanted samples: programs, and below them their frames. */
export function grow(graph: FlameGraph, view: View): Frame {
    const made = (key: string | number, name: string, frame: number | null, parent: Growing | null): Growing => ({
        key, name, frame, parent, depth: parent ? parent.depth + 1 : 0, now: 0, before: 0, own: 0, layer: -1, below: new Map(), byLayer: new Map(),
    });
    const root = made("", "all", null, null);
    const add = (samples: Samples, which: "now" | "before") => {
        samples.stack.forEach((number, at) => {
            if (!isWanted(graph, view, samples, at)) return;
            const [layer = 0, ...frames] = graph.stacks[number] ?? [];
            const weight = samples.weight[at] ?? 0;
            const program = graph.threads[samples.thread[at] ?? 0]?.[3] ?? "";
            let frame = root;
            const visit = () => {
                frame[which] += weight;
                if (which === "now" || graph.now.stack.length === 0) frame.byLayer.set(layer, (frame.byLayer.get(layer) ?? 0) + weight);
            };
            const enter = (key: string | number, name: string, number: number | null) => {
                const below = frame.below.get(key) ?? made(key, name, number, frame);
                frame.below.set(key, below);
                frame = below;
                visit();
            };
            visit();
            enter(program, program, null);
            for (const number of frames) enter(number, graph.frames[number]?.[0] ?? "", number);
            if (which === "now") frame.own += weight;
        });
    };
    add(graph.now, "now");
    if (graph.before) add(graph.before, "before");
    const settle = (frame: Growing) => {
        frame.layer = [...frame.byLayer].reduce<[number, number]>((most, entry) => (entry[1] > most[1] ? entry : most), [-1, -1])[0];
        frame.below.forEach(settle);
    };
    settle(root);
    return root;
}

/** Its share now less its share before, -1 to 1. */
export function change(frame: Frame, root: Frame): number {
    return (root.now > 0 ? frame.now / root.now : 0) - (root.before > 0 ? frame.before / root.before : 0);
}

/** The frames below a frame that are wide enough to be drawn, itself included: where each begins and how wide it is, as shares of the view. In a difference the larger of both shares
 * is its width. */
export function visible(focus: Frame, isDifference: boolean): { frame: Frame; left: number; wide: number }[] {
    let root = focus;
    while (root.parent) root = root.parent;
    const size = (frame: Frame) =>
        isDifference ? Math.max(root.now > 0 ? frame.now / root.now : 0, root.before > 0 ? frame.before / root.before : 0) : frame.now;
    const all: { frame: Frame; left: number; wide: number }[] = [];
    const place = (frame: Frame, left: number, wide: number) => {
        all.push({ frame, left, wide });
        const children = [...frame.below.values()].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
        const whole = Math.max(children.reduce((sum, child) => sum + size(child), 0), size(frame));
        let at = left;
        for (const child of children) {
            const part = whole > 0 ? (wide * size(child)) / whole : 0;
            if (part >= NARROWEST) place(child, at, part);
            at += part;
        }
    };
    place(focus, 0, 1);
    return all;
}

/** The weight of all frames that were found; a frame within another one counts once. */
export function found(frame: Frame, isFound: (frame: Frame) => boolean): number {
    if (frame.parent && isFound(frame)) return frame.now;
    let sum = 0;
    frame.below.forEach((below) => (sum += found(below, isFound)));
    return sum;
}

/** The layers of what is wanted, whichever layer is chosen, with their shares: the largest first. */
export function layers(graph: FlameGraph, view: View): { layer: number; share: number }[] {
    const sums = new Map<number, number>();
    let whole = 0;
    graph.now.stack.forEach((stack, at) => {
        if (!isWanted(graph, { ...view, layer: null }, graph.now, at)) return;
        const layer = graph.stacks[stack]?.[0] ?? 0;
        const weight = graph.now.weight[at] ?? 0;
        sums.set(layer, (sums.get(layer) ?? 0) + weight);
        whole += weight;
    });
    return [...sums].map(([layer, sum]) => ({ layer, share: whole > 0 ? sum / whole : 0 })).sort((a, b) => b.share - a.share);
}
