// Numbers and times as the page writes them.

/** A number with a few significant digits. */
export function number(value: number | null | undefined): string {
    if (value === null || value === undefined || !Number.isFinite(value)) return "?";
    const size = Math.abs(value);
    if (size >= 1e9) return `${(value / 1e9).toPrecision(3)} G`;
    if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
    if (size >= 1000) return Math.round(value).toLocaleString("en");
    if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
    return size >= 1 ? value.toFixed(1) : value.toPrecision(1);
}

/** Milliseconds as a duration. */
export function duration(ms: number | null | undefined): string {
    if (ms === null || ms === undefined || !Number.isFinite(ms)) return "?";
    if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`;
    if (ms < 1000) return `${ms.toPrecision(3)} ms`;
    return `${(ms / 1000).toPrecision(3)} s`;
}

/** Bytes. */
export function bytes(value: number | null | undefined): string {
    if (value === null || value === undefined) return "?";
    const units = ["B", "kB", "MB", "GB", "TB"];
    let at = 0;
    let left = value;
    while (left >= 1000 && at < units.length - 1) {
        left /= 1000;
        at += 1;
    }
    return `${left >= 100 || at === 0 ? left.toFixed(0) : left.toPrecision(3)} ${units[at] ?? ""}`;
}

/** A time of this host's day, with the date if it is not today. */
export function time(at_s: number): string {
    const then = new Date(at_s * 1000);
    const clock = then.toLocaleTimeString("en-GB");
    return then.toDateString() === new Date().toDateString() ? clock : `${then.toISOString().slice(0, 10)} ${clock}`;
}

/** How long ago. */
export function ago(at_s: number, now_s: number): string {
    const seconds = Math.max(0, Math.round(now_s - at_s));
    if (seconds < 120) return `${seconds} s ago`;
    if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
    if (seconds < 172800) return `${Math.round(seconds / 3600)} h ago`;
    return `${Math.round(seconds / 86400)} days ago`;
}
