// The path of a request as a pipe. A piece for each station: its width is the station's capacity, its fill what is used. Red is refusing; the choke point is marked.
import { useState } from "preact/hooks";
import type { Diagnosis, Finding, Station, Step } from "./types";
import { number } from "./words";

const PIECE = 92;
const TALL = 96;
const THIN = 14;

export function name(station: string): string {
    return station.replaceAll("-", " ");
}

function where(station: Station): string {
    const { listener, edge, cpu, cgroup } = station.at;
    return [listener, edge, cpu ? `core ${cpu}` : null, cgroup].filter(Boolean).join(", ");
}

function isAt(finding: Finding, station: Station): boolean {
    return finding.station === station.station && finding.tier === station.tier && JSON.stringify(finding.at) === JSON.stringify(station.at);
}

/** Capacities in requests a second relative to the largest, where they are known: 0.25 to 1 of the height. */
function heights(path: Station[]): number[] {
    const ceilings = path.map((station) => station.ceiling_rps?.value ?? null);
    const known = ceilings.filter((value): value is number => value !== null && value > 0);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    return ceilings.map((value) => {
        if (value === null || value <= 0 || known.length < 2 || high <= low) return 0.8;
        return 0.3 + 0.7 * (Math.log(value / low) / Math.log(high / low));
    });
}

/** The first cause, and the place of its station on the path; -1 if it is none of them. */
function choked({ path, findings }: Diagnosis): [cause: Finding | undefined, choke: number] {
    const cause = findings.find((finding) => finding.role === "cause");
    return [cause, path.findIndex((station) => cause !== undefined && isAt(cause, station))];
}

/** A whole diagnosis: what it says, the path with the details of the choke point, and all other findings. */
export function Diagnosed({ diagnosis }: { diagnosis: Diagnosis }) {
    const [cause, choke] = choked(diagnosis);
    return (
        <section class="card">
            <h2>The path of a request</h2>
            <p>{diagnosis.summary}</p>
            <Pipe diagnosis={diagnosis} />
            {diagnosis.findings
                .filter((finding) => choke < 0 || finding !== cause)
                .map((finding, at) => (
                    <FindingDetails key={at} finding={finding} />
                ))}
        </section>
    );
}

export function Pipe({ diagnosis }: { diagnosis: Diagnosis }) {
    const { path, findings } = diagnosis;
    const [chosen, setChosen] = useState<number | null>(null);
    const [, choke] = choked(diagnosis);
    const tall = heights(path);
    const selected = chosen ?? (choke >= 0 ? choke : null);
    if (path.length === 0) return <p class="absent">No station of the path was read.</p>;
    return (
        <>
            <ol class="pipe" aria-label="Stations in the order in which a request passes them">
                {path.map((station, at) => {
                    const share = Math.min(1, Math.max(0, station.utilization ?? 0));
                    const half = ((tall[at] ?? 0.8) * (TALL - 2 * THIN)) / 2;
                    const middle = TALL / 2;
                                        const isNew = at === 0 || path[at - 1]?.tier !== station.tier;
                    return (
                        <li key={at} class={`piece ${station.state}${at === choke ? " choke" : ""}`} data-station={station.station} data-tier={station.tier}>
                            <span class="tier" aria-hidden="true">{isNew ? station.tier : " "}</span>
                            <button type="button" aria-pressed={selected === at} title={station.why} onClick={() => setChosen(at)}>
                                <svg width={PIECE} height={TALL} viewBox={`0 0 ${PIECE} ${TALL}`} aria-hidden="true">
                                    <rect class="wall" x="0" y={middle - half - 3} width={PIECE} height={2 * half + 6} rx="3" />
                                    <rect class="room" x="0" y={middle - half} width={PIECE} height={2 * half} />
                                    <rect class="fill" x="0" y={middle - half * share} width={PIECE} height={2 * half * share} />
                                    {at === choke && <path class="mark" d={`M${PIECE / 2 - 8} 2h16l-8 11z`} />}
                                </svg>
                                <span class="hidden">{station.tier}: </span>
                                <span class="station">{name(station.station)}</span>
                                <span class="use">{station.utilization === null ? "" : `${Math.round(100 * station.utilization)} %`}</span>
                                <span class="hidden">
                                    , {station.state}
                                    {at === choke ? ", the choke point" : ""}
                                </span>
                            </button>
                        </li>
                    );
                })}
            </ol>
            {selected !== null && path[selected] && <StationDetails station={path[selected]} findings={findings.filter((finding) => isAt(finding, path[selected]!))} />}
        </>
    );
}

function StationDetails({ station, findings }: { station: Station; findings: Finding[] }) {
    const figures: [string, string | null][] = [
        ["limit", station.limit === null ? null : `${number(station.limit)} ${station.unit}`],
        ["used at most", station.used === null ? null : `${number(station.used)} ${station.unit}`],
        ["waiting", station.waiting === null ? null : number(station.waiting)],
        ["refused", station.refused_per_s === null ? null : `${number(station.refused_per_s)} a second`],
        ["ceiling", station.ceiling_rps === null ? null : `${number(station.ceiling_rps.value)} requests a second`],
    ];
    return (
        <section class="card details" aria-live="polite">
            <h3>
                {station.tier}: {name(station.station)} <small>{where(station)}</small>
            </h3>
            <p>{station.why}</p>
            <dl class="figures">
                {figures.map(([label, value]) => value !== null && (
                    <div key={label}>
                        <dt>{label}</dt>
                        <dd>{value}</dd>
                    </div>
                ))}
            </dl>
            {findings.map((finding) => (
                <FindingDetails key={finding.id} finding={finding} />
            ))}
            <p class="more">
                <a href={`#/explain/${station.station}`}>More about this station</a>
            </p>
        </section>
    );
}

export function FindingDetails({ finding }: { finding: Finding }) {
    const [remedy] = finding.remedies;
    return (
        <article class={`finding ${finding.role}`}>
            <h4>
                {finding.title} <small>{finding.role}, {finding.confidence} confidence</small>
            </h4>
            <p>{finding.explanation}</p>
            <p class="more">
                <a href={`#/explain/${finding.id}`}>More about this finding</a>
            </p>
            <h5>Evidence</h5>
            <ul>
                {finding.evidence.map((evidence, at) => (
                    <li key={at}>
                        {evidence.text} <small>{evidence.source}</small>
                    </li>
                ))}
            </ul>
            {remedy && (
                <>
                    <h5>Remedy</h5>
                    <p>{remedy.text}</p>
                    <Steps steps={remedy.runtime} />
                    {remedy.persistent.length > 0 && <details><summary>To keep it across a reboot</summary><Steps steps={remedy.persistent} /></details>}
                    {remedy.undo.length > 0 && <details><summary>To take it back</summary><Steps steps={remedy.undo} /></details>}
                    <p class="risk">{remedy.risk}</p>
                </>
            )}
        </article>
    );
}

function Steps({ steps }: { steps: Step[] }) {
    return (
        <>
            {steps.map((step, at) => (
                <div key={at}>
                    {step.text && <p>{step.text}</p>}
                    {step.command && <pre>{step.command}</pre>}
                    {step.lines && <pre>{step.lines}</pre>}
                </div>
            ))}
        </>
    );
}
