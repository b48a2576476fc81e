// What is wrong now, where the requests stand, and the path as a pipe.
import { useMemo, useState } from "preact/hooks";
import { Heat } from "../charts/heat";
import { Lines } from "../charts/lines";
import type { Zoom } from "../charts/plot";
import { Stack } from "../charts/stack";
import { Pipe } from "../pipe";
import { findings } from "../report/report";
import type { PathTier, ReportPage } from "../report/types";
import { column, mean, outcomes, withGaps } from "../series";
import type { Staleness } from "../staleness";
import type { Held } from "../store";
import { ago, number, time } from "../words";

/** The path that a page of a diagnosis shows. */
export function pathOf(page: ReportPage): PathTier[] {
    const block = page.sections.flatMap((section) => section.blocks).find((block) => block.kind === "path");
    return block?.kind === "path" ? block.tiers : [];
}

export interface NowProps {
    held: Held;
    /** What is shown is old. */
    stale: Staleness | null;
    server: string;
    choose: (server: string) => void;
}

export function Now({ held, stale, server, choose }: NowProps) {
    const [zoom, setZoom] = useState<Zoom | null>(null);
    const { about, state } = held;
    const samples = useMemo(() => withGaps(held.samples), [held.samples]);
    const said = state?.servers.find((known) => known.name === server);
    const others = state?.servers.filter((other) => other.name !== server && other.severity === "bad") ?? [];
    const look = held.looks[server];
    const path = look ? pathOf(look.page) : [];
    const times = useMemo(() => samples.map((sample) => sample.at_s), [samples]);
    const throughput = useMemo(() => {
        const [good, refused, failed] = outcomes(samples, server);
        return [
            { name: "good", values: good ?? [], ink: "--good", filled: true },
            { name: "4xx", values: refused ?? [], ink: "--near" },
            { name: "5xx", values: failed ?? [], ink: "--bad" },
            { name: "from sockets", values: column(samples, server, (target) => mean(target.rate)), ink: "--faint", dashed: true },
        ];
    }, [samples, server]);
    return (
        <>
            <p class={`verdict ${stale ? "unknown" : (said?.severity ?? "unknown")}`} role="status">
                {stale && said && state ? `At ${time(state.at_s)}: ` : ""}
                {said ? said.sentence : held.failed ?? "Waiting for the first second."}
                {said?.incident !== undefined && (
                    <>
                        {" "}
                        <a href={`#/incidents/${said.incident}`}>Incident {said.incident}</a>
                    </>
                )}
            </p>
            {others.length > 0 && (
                <ul class="others" aria-label="Other servers">
                    {others.map((other) => (
                        <li key={other.name}>
                            <button type="button" onClick={() => choose(other.name)}>
                                {other.name}
                            </button>{" "}
                            {other.sentence}
                        </li>
                    ))}
                </ul>
            )}
            <section class="card">
                <h2>Where the requests stand</h2>
                <Stack samples={samples} server={server} about={about} limit={said?.limit} tiers={path.map((tier) => tier.name)} zoom={zoom} onZoom={setZoom} />
            </section>
            <section class="card">
                <h2>
                    The path of a request <small>{look ? `looked at ${ago(look.at_s, state?.at_s ?? look.at_s)}` : ""}</small>
                </h2>
                {look ? (
                    <>
                        <p>{look.page.verdicts.map((verdict) => verdict.text).join(" ")}</p>
                        <Pipe tiers={path} findings={findings(look.page)} />
                    </>
                ) : (
                    <p class="absent">The path is looked at in the first minute, every ten minutes after that, and during each drop.</p>
                )}
            </section>
            <div class="grid">
                <Heat title="Response times in the log" samples={samples} server={server} kind="request" zoom={zoom} onZoom={setZoom} />
                <Lines
                    title="Throughput by outcome, a second"
                    times={times}
                    lines={throughput}
                    say={number}
                    zoom={zoom}
                    onZoom={setZoom}
                />
            </div>
        </>
    );
}
