// The kept incidents, and one of them with everything that was kept.
import { label, Stack } from "../charts/stack";
import { useDocument } from "../document";
import { Report } from "../report/report";
import { withGaps } from "../series";
import type { Held } from "../store";
import type { Incident, IncidentLine } from "../types";
import { number, time } from "../words";
import { pathOf } from "./now";

/** Changes when an incident begins or ends. */
function incidents(held: Held): string {
    return held.state?.servers.map((server) => `${server.name}${server.incident ?? ""}${server.severity}`).join("|") ?? "";
}

/** The list. `to`: the view that shows one. */
export function Incidents({ held, to = "incidents" }: { held: Held; to?: "incidents" | "flame" }) {
    const { document, failed } = useDocument<{ incidents: IncidentLine[] }>("api/v1/incidents", [incidents(held)]);
    if (failed) return <p class="verdict unknown">{failed}</p>;
    if (!document) return <p class="absent">Reading the incidents.</p>;
    if (document.incidents.length === 0) return <p class="absent">No incident was recorded.</p>;
    return (
        <section class="card">
            <h2>{to === "flame" ? "What used the CPUs during incidents" : "Incidents"}</h2>
            <ul class="incidents">
                {document.incidents.map((incident) => (
                    <li key={incident.id} class={incident.state}>
                        <a href={`#/${to}/${incident.id}`}>
                            <strong>{incident.headline}</strong>
                            <span>
                                {incident.id} · {time(incident.drop.since_s)} · {incident.drop.target} · {lasted(incident)}
                            </span>
                        </a>
                    </li>
                ))}
            </ul>
        </section>
    );
}

function lasted(incident: { drop: { since_s: number }; ended_s: number | null }): string {
    return incident.ended_s === null ? "it lasts" : `${incident.ended_s - incident.drop.since_s} s`;
}

export function OneIncident({ held, id }: { held: Held; id: number }) {
    const { document, failed } = useDocument<Incident>(`api/v1/incidents/${id}`, [incidents(held)]);
    if (failed) return <p class="verdict unknown">{failed}</p>;
    if (!document) return <p class="absent">Reading incident {id}.</p>;
    const { page, drop } = document;
    return (
        <>
            <p class="verdict bad">{document.headline}</p>
            <p class="facts">
                Incident {document.id} of {drop.target}, since {time(drop.since_s)}, {lasted(document)}. <a href={`#/flame/${document.id}`}>Flame graph</a>
            </p>
            <section class="card">
                <h2>Where the requests stood, before and during it</h2>
                <Stack samples={withGaps(document.series)} server={drop.target} about={held.about} tiers={page && pathOf(page).map((tier) => tier.name)} />
                {document.grown.length > 0 && (
                    <ul>
                        {document.grown.map((grown) => (
                            <li key={grown.tier + grown.place}>
                                {label(held.about, grown)}: {number(grown.before)} before, {number(grown.during)} during it
                            </li>
                        ))}
                    </ul>
                )}
            </section>
            {page ? (
                <Report page={page} isWithin />
            ) : (
                <p class="absent">{document.undiagnosed ?? "The diagnosis is being made."}</p>
            )}
            <section class="card">
                <h2>What changed on the host</h2>
                {document.changes.length === 0 && document.busier.length === 0 && <p class="absent">Nothing that was looked at.</p>}
                <ul>
                    {document.changes.map((change, at) => (
                        <li key={at}>
                            {change.of} {change.name}: {change.before} before, {change.now} now
                        </li>
                    ))}
                    {document.busier.map((busier) => (
                        <li key={busier.program}>
                            {busier.program} used {number(busier.before)} cores before, {number(busier.during)} during it
                        </li>
                    ))}
                </ul>
            </section>
        </>
    );
}
