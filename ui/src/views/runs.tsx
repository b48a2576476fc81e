// The kept runs: diagnoses with their rounds, sizing curves, experiments with their intervals, captures.
import { useDocument } from "../document";
import { Report } from "../report/report";
import type { ReportPage } from "../report/types";
import type { Run, RunLine } from "../types";
import { number } from "../words";

/** The list. `kind`: only runs of one verb. */
export function Runs({ kind }: { kind?: string }) {
    const { document, failed } = useDocument<{ runs: RunLine[] }>("api/v1/runs", []);
    if (failed) return <p class="verdict unknown">{failed}</p>;
    if (!document) return <p class="absent">Reading the runs.</p>;
    const runs = document.runs.filter((run) => kind === undefined || run.kind === kind);
    if (runs.length === 0) {
        return kind === undefined ? (
            <p class="absent">No run is kept. diagnose, bench, size, experiment and streams keep theirs.</p>
        ) : (
            <p class="absent">
                No capture was read. <code>chokepoint streams FILE</code> reads one, <code>chokepoint streams -i INTERFACE -z 10s tcp port 80</code> makes one.
            </p>
        );
    }
    return (
        <section class="card">
            <h2>{kind === undefined ? "Runs" : "Captures"}</h2>
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
