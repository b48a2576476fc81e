// Bars below each other, each with its figure, and a bracket where one was predicted.
import type { Bar } from "./types";

const LONGEST = 78;

export function Bars({ title, bars }: { title: string; bars: Bar[] }) {
    const most = Math.max(1e-9, ...bars.flatMap((bar) => [bar.value, bar.predicted?.[2] ?? 0]));
    const at = (value: number) => `${(LONGEST * Math.min(value, most)) / most}%`;
    return (
        <figure class="bars">
            <figcaption>{title}</figcaption>
            <ul>
                {bars.map((bar, place) => (
                    <li key={place}>
                        <span>{bar.label}</span>
                        <svg width="100%" height="24" class={`ink-${bar.ink}`} role="img" aria-label={`${bar.label}: ${bar.text}`}>
                            <rect width={at(bar.value)} y="4" height="16" rx="2" />
                            {bar.predicted && (
                                <>
                                    <line class="predicted" x1={at(bar.predicted[0])} x2={at(bar.predicted[2])} y1="12" y2="12" />
                                    {bar.predicted.map((value, mark) => (
                                        <line key={mark} class="predicted" x1={at(value)} x2={at(value)} y1={mark === 1 ? 7 : 2} y2={mark === 1 ? 17 : 22} />
                                    ))}
                                </>
                            )}
                            <text x="100%" y="17" text-anchor="end">
                                {bar.text}
                            </text>
                        </svg>
                    </li>
                ))}
            </ul>
        </figure>
    );
}
