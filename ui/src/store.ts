// What the page holds: the newest samples, the state, and which server and span are chosen.
import { useEffect, useReducer } from "preact/hooks";
import { about, follow, looks, series } from "./api";
import { keep, mean } from "./series";
import type { Heard } from "./staleness";
import type { About, Freshness, Look, Sample, State } from "./types";

/** Seconds that are held in memory. */
export const LIVE_S = 600;

export interface Held {
    about: About | null;
    state: State | null;
    samples: Sample[];
    looks: Record<string, Look>;
    connected: boolean;
    failed: string | null;
    heard: Heard;
}

type Action =
    | { kind: "about"; about: About }
    | { kind: "state"; state: State }
    | { kind: "looks"; looks: Record<string, Look> }
    | { kind: "samples"; samples: Sample[] }
    | { kind: "age"; freshness: Freshness }
    | { kind: "connected"; is: boolean }
    | { kind: "failed"; why: string };

const NOTHING: Held = { about: null, state: null, samples: [], looks: {}, connected: false, failed: null, heard: { freshness: null, at_ms: performance.now() } };

function step(held: Held, action: Action): Held {
    switch (action.kind) {
        case "about":
            return { ...held, about: action.about };
        case "state":
            return { ...held, state: action.state };
        case "looks":
            return { ...held, looks: action.looks };
        case "samples":
            return { ...held, samples: keep(held.samples, action.samples, LIVE_S) };
        case "age":
            return { ...held, heard: { freshness: action.freshness, at_ms: performance.now() } };
        case "connected":
            return { ...held, connected: action.is, failed: action.is ? null : held.failed };
        case "failed":
            return { ...held, failed: action.why };
    }
}

/** The samples of the last minutes, and then each second as it comes. */
export function useHeld(): Held {
    const [held, act] = useReducer(step, NOTHING);
    useEffect(() => {
        const failed = (error: unknown) => act({ kind: "failed", why: error instanceof Error ? error.message : String(error) });
        about().then((about) => act({ kind: "about", about }), failed);
        const before = () => series(`ago_s=${LIVE_S}&span_s=1`).then((samples) => act({ kind: "samples", samples }), () => undefined);
        before();
        return follow({
            sample: (sample) => act({ kind: "samples", samples: [sample] }),
            state: (state) => act({ kind: "state", state }),
            age: (freshness) => act({ kind: "age", freshness }),
            connected: (is) => act({ kind: "connected", is }),
        });
    }, []);
    const looked = held.state?.servers.map((server) => `${server.name} ${server.looked_s ?? ""}`).join("|") ?? "";
    useEffect(() => {
        if (looked !== "") looks().then((looks) => act({ kind: "looks", looks }), () => undefined);
    }, [looked]);
    return held;
}

/** The server to show first: one that is served worse, otherwise the one with most requests under way. */
export function busiest(held: Held): string | null {
    const bad = held.state?.servers.find((server) => server.severity === "bad");
    if (bad) return bad.name;
    const newest = held.samples.at(-1)?.targets ?? [];
    const busy = [...newest].sort((a, b) => (mean(b.under_way) ?? 0) - (mean(a.under_way) ?? 0))[0];
    return busy?.target ?? null;
}

/** Names of all servers in these samples and in the state, in the order in which they were first seen. */
export function servers(held: Held): string[] {
    const names = new Set<string>(held.state?.servers.map((server) => server.name) ?? []);
    for (const sample of held.samples.slice(-30)) sample.targets.forEach((target) => names.add(target.target));
    return [...names];
}
