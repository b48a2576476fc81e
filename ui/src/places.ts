// Colours of the places. Each kind keeps its colour everywhere; tiers behind the first are a little lighter.
import type { Band } from "./series";

/** Hue, saturation and lightness (light and dark) of each kind. */
const COLOURS: Record<string, [number, number, number, number]> = {
    client: [210, 8, 62, 48],
    connecting: [285, 45, 62, 62],
    handshake: [262, 45, 66, 66],
    "tls-handshake": [238, 45, 66, 68],
    "accept-queue": [4, 72, 58, 60],
    unread: [24, 80, 56, 56],
    receiving: [42, 45, 55, 50],
    cpu: [212, 78, 46, 58],
    ready: [45, 92, 52, 54],
    throttled: [325, 70, 52, 60],
    waiting: [176, 55, 38, 46],
    sending: [130, 45, 45, 50],
    undecided: [220, 6, 74, 40],
    unaccounted: [220, 5, 84, 30],
};

export function isDark(): boolean {
    return matchMedia("(prefers-color-scheme: dark)").matches && !document.documentElement.classList.contains("printed");
}

/** The colour of a place of a tier; `depth` counts the tiers of the same place from zero. */
export function colour(place: string, depth: number): string {
    const [hue, saturation, light, dark] = COLOURS[place] ?? [0, 0, 50, 50];
    const lightness = isDark() ? Math.max(25, dark - 12 * depth) : Math.min(85, light + 14 * depth);
    return `hsl(${hue} ${saturation}% ${lightness}%)`;
}

/** The colours of bands. */
export function colours(bands: Band[]): string[] {
    const met = new Map<string, number>();
    return bands.map((band) => {
        const depth = met.get(band.place) ?? 0;
        met.set(band.place, depth + 1);
        return colour(band.place, depth);
    });
}
