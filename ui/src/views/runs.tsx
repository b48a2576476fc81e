// The kept runs: diagnoses with their rounds, sizing curves, experiments with their intervals, captures.
import { useDocument } from "../document";
import { marked, Report } from "../report/report";
import type { ReportPage } from "../report/types";
import type { Run, RunLine } from "../types";
import { number } from "../words";

/** Verbs whose runs have a view of their own, and what is said where there is none. */
const KINDS: Record<string, { heading: string; absent: string }> = {
    streams: { heading: "Captures", absent: "No capture was read. `chokepoint streams FILE` reads one, `chokepoint streams -i INTERFACE -z 10s tcp port 80` makes one." },
    profile: { heading: "Profiles", absent: "No profile is kept. `chokepoint profile` takes one." },
};

/** The list. `kind`: only runs of one verb. */
export function Runs({ kind }: { kind?: string }) {
    const { document, failed } = useDocument<{ runs: RunLine[] }>("api/v1/runs", []);
    if (failed) return <p class="verdict unknown">{failed}</p>;
    if (!document) return <p class="absent">Reading the runs.</p>;
    const runs = document.runs.filter((run) => kind === undefined || run.kind === kind);
    const { heading, absent } = KINDS[kind ?? ""] ?? { heading: "Runs", absent: "No run is kept. diagnose, bench, size, experiment, streams and profile keep theirs." };
    if (runs.length === 0) return <p class="absent">{marked(absent)}</p>;
    return (
        <section class="card">
            <h2>{heading}</h2>
            <ul class="incidents">
                {runs.map((run) => (
                    <li key={run.id}>
                        <a href={`#/runs/${run.id}`}>
                            <strong>{run.headline}</strong>
                            <span>
                                {run.id} · {run.kind} · {run.began.replace("T", " ").replace("Z", " UTC")} · {run.target}
                                {run.label && ` · ${run.label}`}
                                {run.figures[0] && ` · ${run.figures[0].name} ${number(run.figures[0].value)}`}
                            </span>
                        </a>
                    </li>
                ))}
            </ul>
        </section>
    );
}

/** A run compared with an earlier one. */
export function Compared({ id }: { id: number }) {
    const { document, failed } = useDocument<ReportPage>(`api/v1/runs/${id}/comparison`, []);
    if (failed) return <p class="verdict unknown">{failed}</p>;
    if (!document) return <p class="absent">Reading the runs.</p>;
    return (
        <>
            <h1>{document.subject}</h1>
            <Report page={document} isWithin />
        </>
    );
}

export function OneRun({ id }: { id: number }) {
    const { document, failed } = useDocument<Run>(`api/v1/runs/${id}`, []);
    if (failed) return <p class="verdict unknown">{failed}</p>;
    if (!document) return <p class="absent">Reading run {id}.</p>;
    return (
        <>
            {!document.page && <p class="verdict unknown">{document.headline}</p>}
            <p class="facts">
                Run {document.id}: {document.kind} of {document.target}, {document.began.replace("T", " ").replace("Z", " UTC")}.{" "}
                <a href={`#/runs/${document.id}/comparison`}>Compare it with the run before</a>
            </p>
            {document.page && <Report page={document.page} isWithin />}
            <details class="card">
                <summary>The document of the run</summary>
                <pre>{JSON.stringify(document.document, null, 2)}</pre>
            </details>
        </>
    );
}
