// A report as a page: what `crates/cli/src/report/page.rs` writes, in words.

export type Ink = "plain" | "strong" | "faint" | "bad" | "bad-strong" | "warn" | "warn-strong" | "good-strong";

export interface Span {
    ink: Ink;
    text: string;
}

export type Severity = "bad" | "good" | "unknown";

export interface ReportPage {
    title: string;
    brand: string;
    subject: string;
    verdicts: { severity: Severity; word: string; text: string; done?: string }[];
    sections: Section[];
    footer: string[];
}

export interface Section {
    id: string;
    heading: string;
    blocks: Block[];
}

export type Block =
    | { kind: "text"; text: string; ink: Ink }
    | { kind: "list"; lines: Span[][] }
    | { kind: "terms"; rows: [name: string, text: Span[]][] }
    | { kind: "tiles"; tiles: [name: string, value: string][] }
    | { kind: "table"; head: { name: string; is_figure: boolean }[]; rows: Span[][] }
    | { kind: "standing"; places: StandingPlace[] }
    | { kind: "path"; tiers: PathTier[] }
    | { kind: "chain"; links: Link[]; words: string }
    | ({ kind: "finding" } & Finding)
    | { kind: "bars"; title: string; bars: Bar[] }
    | ({ kind: "plot" } & PlotOf)
    | { kind: "matrix"; map: Matrix; shades: (number | null)[][] }
    | { kind: "flame"; graph: FlameGraph }
    | { kind: "folded"; heading: string; text: string };

export interface StandingPlace {
    label: string;
    place: string | null;
    mean: string;
    share: number;
    ink: Ink;
}

export interface PathTier {
    name: string;
    facts: string;
    stations: PathStation[];
}

export interface PathStation {
    station: string;
    label: string;
    state: "ok" | "near" | "saturated" | "refusing" | "unknown";
    is_choke: boolean;
    badge: Span | null;
    notes: Span[];
    why: string;
    utilization: number | null;
    ceiling_rps: number | null;
    /** Numbers of its findings. */
    findings: number[];
}

export interface Link {
    level: number;
    number: number | null;
    id: string;
    note: string;
    ink: Ink;
    why: string | null;
}

export interface Finding {
    number: number | null;
    id: string;
    severity: Severity;
    standing: string;
    title: string | null;
    explanation: string;
    evidence_heading: string;
    evidence: [text: string, source: string][];
    fixes: { title: string; id: string; text: string; commands: [label: string, lines: string][]; terms: [label: string, text: string][] }[];
}

export interface Bar {
    label: string;
    value: number;
    text: string;
    ink: Ink;
    predicted: [low: number, value: number, high: number] | null;
}

/** The points of "bars", "ranges" and "wide" are pairs: each is a line from the first to the second. */
export type Shape = "steps" | "line" | "bars" | "ranges" | "wide" | "crosses" | "dots";

export interface PlotOf {
    title: string;
    x: string;
    y: string;
    series: { name: string; color: number; shape: Shape; points: [x: number | null, y: number | null][] }[];
    /** Names of the rows at y 0, 1, 2, ..., the first at the top; empty for a numeric axis. */
    rows: string[];
    /** What stands to the right of each row. */
    notes: string[];
    /** Labels of the x axis; empty for round numbers. */
    ticks: [x: number, label: string][];
    log: boolean;
}

export interface Matrix {
    title: string;
    rows_title: string;
    columns_title: string;
    rows: string[];
    columns: string[];
    cells: ({ value: number | null; text: string; note: string } | null)[][];
    ends: [string, string];
}

/** Samples as columns: time in ms, core, thread, stack, weight. */
export interface Samples {
    time: number[];
    cpu: number[];
    thread: number[];
    stack: number[];
    weight: number[];
}

export interface FlameGraph {
    layers: { title: string; color: string }[];
    /** Function, module, and 0 for the kernel, 1 for a program, 2 for compiled at run time. */
    frames: [name: string, module: string, kind: number][];
    /** The layer, then the frames from the outermost. */
    stacks: number[][];
    threads: [pid: number, tid: number, name: string, program: string][];
    duration_ms: number;
    now: Samples;
    before: Samples | null;
}
