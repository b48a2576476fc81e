// When what is shown is no longer "now". The page decides by its own clock: whoever measures may hang, and whoever serves may be gone.
import { useEffect, useState } from "preact/hooks";
import type { Freshness } from "./types";
import { time } from "./words";

/** STALE_AFTER of crates/recorder/src/staleness.rs, seconds; a test compares them. */
export const STALE_AFTER_S = 5;
/** Time between two looks at the clock, milliseconds. */
const LOOK_MS = 500;

/** What was heard last of how old the newest second is, and when, by the page's clock (milliseconds). */
export interface Heard {
    freshness: Freshness | null;
    at_ms: number;
}

export interface Staleness {
    /** Nothing is measured any more, or nothing is heard any more. */
    kind: "unmeasured" | "silent";
    /** For how long. */
    seconds: number;
    /** The second that is shown. */
    newest_s: number | null;
}

/** Nothing while what is shown is now. */
export function staleness({ freshness, at_ms }: Heard, now_ms: number): Staleness | null {
    const silent_s = Math.max(0, now_ms - at_ms) / 1000;
    const newest_s = freshness?.newest_s ?? null;
    if (silent_s > STALE_AFTER_S) return { kind: "silent", seconds: Math.floor(silent_s), newest_s };
    const age_s = (freshness?.age_s ?? 0) + silent_s;
    return age_s > STALE_AFTER_S ? { kind: "unmeasured", seconds: Math.floor(age_s), newest_s } : null;
}

/** The sentence of the banner. */
export function sentence({ kind, seconds, newest_s }: Staleness): string {
    const shown = newest_s === null ? "" : ` What follows is of ${time(newest_s)}.`;
    return kind === "silent"
        ? `No word from chokepoint watch for ${seconds} s: it has ended, or the connection is gone.${shown}`
        : `Nothing was measured for ${seconds} s: chokepoint watch hangs, or the host gives it no time.${shown}`;
}

/** [`staleness`] as the clock goes on. It changes once a second while something is old, and otherwise not. */
export function useStaleness(heard: Heard): Staleness | null {
    const [stale, setStale] = useState<Staleness | null>(null);
    useEffect(() => {
        const look = () => {
            const now = staleness(heard, performance.now());
            setStale((before) => (before?.kind === now?.kind && before?.seconds === now?.seconds && before?.newest_s === now?.newest_s ? before : now));
        };
        look();
        const timer = setInterval(look, LOOK_MS);
        return () => clearInterval(timer);
    }, [heard]);
    return stale;
}
