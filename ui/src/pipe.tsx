// The path of a request as a pipe. A piece for each station: its width is the station's capacity, its fill what is used. Red is refusing; the choke point is marked.
import { useState } from "preact/hooks";
import { FindingDetails } from "./report/finding";
import { Spans } from "./report/report";
import type { Finding, PathStation, PathTier } from "./report/types";

const PIECE = 92;
const TALL = 96;
const THIN = 14;
/** How much of the height a station has whose capacity is not known. */
const UNKNOWN = 0.8;

/** Capacities relative to the largest, where they are known: 0.3 to 1 of the height. */
function heights(stations: PathStation[]): number[] {
    const known = stations.map((station) => station.ceiling_rps).filter((value): value is number => value !== null && value > 0);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    return stations.map(({ ceiling_rps: value }) => {
        if (value === null || value <= 0 || known.length < 2 || high <= low) return UNKNOWN;
        return 0.3 + 0.7 * (Math.log(value / low) / Math.log(high / low));
    });
}

export interface PipeProps {
    tiers: PathTier[];
    findings: Finding[];
    /** The findings stand in the same report. */
    isWhole?: boolean;
}

export function Pipe({ tiers, findings, isWhole = false }: PipeProps) {
    const stations = tiers.flatMap((tier) => tier.stations.map((station, at) => ({ station, tier, isFirst: at === 0 })));
    const [chosen, setChosen] = useState<number | null>(null);
    const choke = stations.findIndex(({ station }) => station.is_choke);
    const tall = heights(stations.map(({ station }) => station));
    const selected = stations[chosen ?? choke];
    if (stations.length === 0) return <p class="absent">No station of the path was read.</p>;
    return (
        <>
            <ol class="pipe" aria-label="Stations in the order in which a request passes them">
                {stations.map(({ station, tier, isFirst }, at) => {
                    const share = Math.min(1, Math.max(0, station.utilization ?? 0));
                    const half = ((tall[at] ?? UNKNOWN) * (TALL - 2 * THIN)) / 2;
                    const middle = TALL / 2;
                    return (
                        <li key={at} class={`piece ${station.state}${station.is_choke ? " choke" : ""}`} data-station={station.station} data-tier={tier.name}>
                            <span class="tier" aria-hidden="true" title={tier.name} style={{ width: `${PIECE * Math.min(3, tier.stations.length)}px` }}>
                                {isFirst ? tier.name : " "}
                            </span>
                            <button type="button" aria-pressed={selected?.station === station} title={station.why} onClick={() => setChosen(at)}>
                                <svg width={PIECE} height={TALL} viewBox={`0 0 ${PIECE} ${TALL}`} aria-hidden="true">
                                    <rect class="wall" x="0" y={middle - half - 3} width={PIECE} height={2 * half + 6} rx="3" />
                                    <rect class="room" x="0" y={middle - half} width={PIECE} height={2 * half} />
                                    <rect class="fill" x="0" y={middle - half * share} width={PIECE} height={2 * half * share} />
                                    {station.is_choke && <path class="mark" d={`M${PIECE / 2 - 8} 2h16l-8 11z`} />}
                                </svg>
                                <span class="hidden">{tier.name}: </span>
                                <span class="station">{station.label}</span>
                                <span class="use">{station.utilization === null ? "" : `${Math.round(100 * station.utilization)} %`}</span>
                                <span class="hidden">
                                    , {station.state}
                                    {station.badge ? `, ${station.badge.text}` : ""}
                                </span>
                            </button>
                        </li>
                    );
                })}
            </ol>
            {selected && <StationDetails {...selected} findings={findings} isWhole={isWhole} />}
        </>
    );
}

interface DetailsProps {
    station: PathStation;
    tier: PathTier;
    findings: Finding[];
    isWhole: boolean;
}

function StationDetails({ station, tier, findings, isWhole }: DetailsProps) {
    const own = findings.filter(({ number }) => number !== null && station.findings.includes(number));
    return (
        <section class="card details" aria-live="polite">
            <h3>
                <span>
                    {tier.name}: {station.label}
                </span>
                {station.badge && <Spans spans={[station.badge]} />}
                <small>{tier.facts}</small>
            </h3>
            <p>{station.why}</p>
            <p>
                <Spans spans={station.notes} between=" · " />
            </p>
            {isWhole ? own.length > 0 && <p class="facts">{own.map(({ number, id }) => `${number} ${id}`).join(", ")}</p> : own.map((finding) => <FindingDetails key={finding.id} finding={finding} />)}
            {!isWhole && (
                <p class="more">
                    <a href={`#/explain/${station.station}`}>More about this station</a>
                    {own.map(({ id }) => (
                        <span key={id}>
                            {" · "}
                            <a href={`#/explain/${id}`}>{id}</a>
                        </span>
                    ))}
                </p>
            )}
        </section>
    );
}
