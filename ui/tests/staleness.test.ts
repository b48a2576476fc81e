import { expect, test } from "vitest";
import { sentence, STALE_AFTER_S, staleness } from "../src/staleness";

const fresh = { newest_s: 1_700_000_000, age_s: 0.4, stale: false };

test("what is heard each second is now", () => {
    expect(staleness({ freshness: fresh, at_ms: 1_000 }, 2_000)).toBeNull();
    expect(staleness({ freshness: null, at_ms: 0 }, 3_000)).toBeNull();
    // A clock that goes back is no age.
    expect(staleness({ freshness: fresh, at_ms: 5_000 }, 1_000)).toBeNull();
});

test("a server that hangs is told by what it says, and one that is gone by the page's own clock", () => {
    const hangs = staleness({ freshness: { ...fresh, age_s: 8.4, stale: true }, at_ms: 1_000 }, 1_900);
    expect(hangs).toEqual({ kind: "unmeasured", seconds: 9, newest_s: fresh.newest_s });
    expect(hangs && sentence(hangs)).toMatch(/^Nothing was measured for 9 s: .* What follows is of /);
    const gone = staleness({ freshness: fresh, at_ms: 1_000 }, 1_000 + STALE_AFTER_S * 1_000 + 3_500);
    expect(gone).toEqual({ kind: "silent", seconds: 8, newest_s: fresh.newest_s });
    expect(gone && sentence(gone)).toMatch(/^No word from chokepoint watch for 8 s: .* What follows is of /);
    const never = staleness({ freshness: null, at_ms: 0 }, 9_000);
    expect(never && sentence(never)).toBe("No word from chokepoint watch for 9 s: it has ended, or the connection is gone.");
    // The last that was heard and the silence after it add up.
    expect(staleness({ freshness: { ...fresh, age_s: 3 }, at_ms: 0 }, 4_000)?.seconds).toBe(7);
});
