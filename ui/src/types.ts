// The documents of the API, as docs/schema describes them. Only what the page reads.
import type { ReportPage, Severity } from "./report/types";

/** A sum over time and the seconds in which it was seen. */
export type Mean = [sum: number, seconds: number];

/** Buckets with their counts, the sum of the values, the largest value. */
export type Durations = [buckets: [bucket: number, count: number][], sum: number, max: number];

export interface Standing {
    tier: string;
    place: string;
    request_seconds: number;
}

export interface Loss {
    tier?: string;
    place?: string;
    kind: string;
    count: number;
}

export interface Queue {
    listener: string;
    most: number;
    limit: number;
}

/** The local ports from which a tier dials an upstream. */
export interface Ports {
    edge: string;
    live: number;
    time_wait: number;
    limit: number;
}

/** Answers of a group of URLs, or of an upstream. */
export interface GroupUse {
    answers: number;
    failed: number;
    time_us: number | null;
    bytes?: number;
    durations_us?: Record<string, Durations>;
}

export interface Logged {
    status: Record<string, number>;
    bytes: number;
    unread: number;
    urls?: Record<string, GroupUse>;
    upstreams?: Record<string, GroupUse>;
    durations_us?: Record<string, Durations>;
}

export interface ResponseTimes {
    source: string;
    mean_us?: number;
    p50_us?: number;
    p95_us?: number;
    p99_us?: number;
}

export interface TargetSample {
    target: string;
    under_way: Mean;
    rate: Mean;
    places?: Standing[];
    losses?: Loss[];
    queues?: Queue[];
    ports?: Ports[];
    connections?: { reading: Mean; writing: Mean; waiting: Mean };
    pools?: Record<string, { active: Mean; total: Mean }>;
    logged?: Logged;
    response?: ResponseTimes;
}

export interface Host {
    seconds: number;
    cores: number;
    busy_s: number;
    /** Seconds of each core: programs, the kernel, interrupts, taken by a hypervisor. */
    core_s?: Record<string, [number, number, number, number]>;
    programs: Record<string, number>;
    memory_total: number | null;
    memory_available: number | null;
    disks: Record<string, number>;
}

export interface Sample {
    at_s: number;
    span_s: number;
    targets: TargetSample[];
    host?: Host;
}

/** How old the newest second is. */
export interface Freshness {
    newest_s: number | null;
    age_s: number;
    stale: boolean;
}

export interface Series extends Freshness {
    schema: string;
    samples: Sample[];
}

/** What the server says in words, once. */
export interface About {
    version: string;
    host: string;
    /** Kinds of places in the order in which a request passes them. */
    places: PlaceName[];
}

/** A kind of place, and its name with `{tier}` for the tier's. */
export interface PlaceName {
    place: string;
    label: string;
}

/** What is to be said now, each second. */
export interface State {
    at_s: number;
    servers: Said[];
}

export interface Said {
    name: string;
    severity: Severity;
    sentence: string;
    /** The incident that lasts. */
    incident?: number;
    /** When the path was looked at last. */
    looked_s?: number;
    /** How many requests its workers can serve at a time. */
    limit?: { requests: number; label: string };
}

/** What the last look at the path of a server found. */
export interface Look {
    at_s: number;
    page: ReportPage;
}

export interface Drop {
    target: string;
    since_s: number;
    kinds: string[];
}

/** An incident in the list. */
export interface IncidentLine {
    id: number;
    state: string;
    drop: Drop;
    ended_s: number | null;
    headline: string;
    cause: string | null;
}

export interface Incident {
    id: number;
    state: string;
    drop: Drop;
    ended_s: number | null;
    recovered: boolean | null;
    headline: string;
    changes: { of: string; name: string; before: string; now: string }[];
    /** What the diagnosis found. */
    page?: ReportPage;
    undiagnosed?: string;
    series: Sample[];
    cause: { id: string; title: string; is_limit?: boolean } | null;
    report?: string;
    busier: { program: string; before: number; during: number }[];
    grown: { tier: string; place: string; before: number; during: number }[];
}

/** A figure of a run, the main one first. */
export interface Figure {
    name: string;
    value: number;
}

/** A run in the list. */
export interface RunLine {
    id: number;
    kind: string;
    began: string;
    target: string;
    label: string;
    headline: string;
    figures: Figure[];
}

/** A run with the document of its verb. */
export interface Run {
    id: number;
    kind: string;
    began: string;
    target: string;
    headline: string;
    document: unknown;
    page: ReportPage | null;
}

/** The page of a station or a finding. */
export interface ExplainPage {
    id: string;
    title: string;
    sections: { heading: string; text: string }[];
}
