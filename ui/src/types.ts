// The documents of the API, as docs/schema describes them. Only what the page reads.

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

export interface UrlUse {
    answers: number;
    failed: number;
    time_us: number;
}

export interface Logged {
    status: Record<string, number>;
    bytes: number;
    unread: number;
    urls?: Record<string, UrlUse>;
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
    logged?: Logged;
    response?: ResponseTimes;
}

export interface Host {
    seconds: number;
    cores: number;
    busy_s: number;
    programs: Record<string, number>;
    memory_total: number;
    memory_available: number;
    disks: Record<string, number>;
}

export interface Sample {
    at_s: number;
    span_s: number;
    targets: TargetSample[];
    host?: Host;
}

export interface Series {
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

export type Severity = "bad" | "good" | "unknown";

/** A diagnosis, as `diagnose --json` prints it. */
export interface Diagnosis {
    verdict: string;
    summary: string;
    path: Station[];
    findings: Finding[];
    improvements?: Finding[];
    target: { tiers: { name: string }[] };
}

export interface Look {
    at_s: number;
    diagnosis: Diagnosis;
}

export interface Place {
    netns?: string | null;
    listener?: string | null;
    edge?: string | null;
    cpu?: string | null;
    cgroup?: string | null;
}

export interface Station {
    tier: string;
    station: string;
    at: Place;
    kind: "rate" | "cliff";
    limit: number | null;
    used: number | null;
    waiting: number | null;
    refused_per_s: number | null;
    utilization: number | null;
    unit: string;
    ceiling_rps: { value: number; low: number; high: number } | null;
    state: "ok" | "near" | "saturated" | "refusing" | "unknown";
    why: string;
}

/** One step of a person who carries a remedy out. */
export interface Step {
    text?: string;
    command?: string;
    lines?: string;
}

export interface Remedy {
    id: string;
    text: string;
    risk: string;
    runtime: Step[];
    persistent: Step[];
    undo: Step[];
}

export interface Finding {
    id: string;
    station: string;
    tier: string;
    at: Place;
    role: "cause" | "symptom";
    confidence: string;
    title: string;
    explanation: string;
    evidence: { text: string; source: string }[];
    remedies: Remedy[];
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
    diagnosis: Diagnosis | null;
    undiagnosed?: string;
    series: Sample[];
    cause: { id: string; title: string; is_limit?: boolean } | null;
    report?: string;
    busier: { program: string; before: number; during: number }[];
    grown: { tier: string; place: string; before: number; during: number }[];
}
