// Where requests stood: one bar with a part for each place, and the same as a table.
import { useScheme } from "../charts/plot";
import { colour } from "../places";
import type { StandingPlace } from "./types";

export function Standing({ places }: { places: StandingPlace[] }) {
    useScheme();
    const met = new Map<string, number>();
    const inks = places.map(({ place }) => {
        const depth = place === null ? 0 : (met.get(place) ?? 0);
        if (place !== null) met.set(place, depth + 1);
        return colour(place ?? "unaccounted", depth);
    });
    const whole = Math.max(1e-9, places.reduce((sum, place) => sum + place.share, 0));
    return (
        <>
            <svg class="shares" width="100%" height="26" aria-hidden="true">
                {places.map((place, at) => {
                    const before = places.slice(0, at).reduce((sum, other) => sum + other.share, 0);
                    return <rect key={at} x={`${(100 * before) / whole}%`} width={`${(100 * place.share) / whole}%`} height="26" fill={inks[at]} />;
                })}
            </svg>
            <table class="legend">
                <tbody>
                    {places.map((place, at) => (
                        <tr key={at} class={`ink-${place.ink}`}>
                            <td>
                                <span class="ink" style={{ background: inks[at] }} />
                            </td>
                            <th scope="row">{place.label}</th>
                            <td class="figure">{place.mean}</td>
                            <td class="figure">{`${(100 * place.share).toFixed(place.share < 0.0995 ? 1 : 0)} %`}</td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </>
    );
}
