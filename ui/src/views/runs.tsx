// The kept runs: diagnoses with their rounds, sizing curves, experiments with their intervals.
import { Curve } from "../charts/curve";
import { useDocument } from "../document";
import { Diagnosed } from "../pipe";
import type { Comparison, Diagnosis as DiagnosisDocument, Round, Run, RunLine, SizeStep } from "../types";
import { duration, number } from "../words";

export function Runs() {
    const { document, failed } = useDocument<{ runs: RunLine[] }>("api/v1/runs", []);
    if (failed) return <p class="verdict unknown">{failed}</p>;
    if (!document) return <p class="absent">Reading the runs.</p>;
    if (document.runs.length === 0) return <p class="absent">No run is kept. diagnose, bench, size and experiment keep theirs.</p>;
    return (
        <section class="card">
            <h2>Runs</h2>
            <ul class="incidents">
                {document.runs.map((run) => (
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

export function OneRun({ id }: { id: number }) {
    const { document, failed } = useDocument<Run>(`api/v1/runs/${id}`, []);
    if (failed) return <p class="verdict unknown">{failed}</p>;
    if (!document) return <p class="absent">Reading run {id}.</p>;
    return (
        <>
            <p class="verdict unknown">{document.headline}</p>
            <p class="facts">
                Run {document.id}: {document.kind} of {document.target}, {document.began.replace("T", " ").replace("Z", " UTC")}
            </p>
            <Document run={document} />
            <details class="card">
                <summary>The document of the run</summary>
                <pre>{JSON.stringify(document.document, null, 2)}</pre>
            </details>
        </>
    );
}

/** What a document has, by the name that it gives itself. */
function Document({ run }: { run: Run }) {
    const document = run.document as { schema?: string } | null;
    const kind = document?.schema?.split("/")[1];
    if (kind === "diagnosis") return <Diagnosis document={run.document as DiagnosisDocument & { rounds: Round[] }} />;
    if (kind === "size") return <Sized steps={(run.document as { steps: SizeStep[] }).steps} />;
    if (kind === "experiment") return <Compared document={run.document as { variants: { name: string }[]; comparisons: Comparison[] }} />;
    return null;
}

function Diagnosis({ document }: { document: DiagnosisDocument & { rounds: Round[] } }) {
    return (
        <>
            <Diagnosed diagnosis={document} />
            {document.rounds.length > 0 && (
                <section class="card wide">
                    <h2>Rounds</h2>
                    <table class="plain">
                        <thead>
                            <tr>
                                <th scope="col">round</th>
                                <th scope="col">what</th>
                                <th scope="col">good answers a second, before</th>
                                <th scope="col">measured</th>
                                <th scope="col">kept</th>
                                <th scope="col">why</th>
                            </tr>
                        </thead>
                        <tbody>
                            {document.rounds.map((round) => (
                                <tr key={round.n}>
                                    <td>{round.n}</td>
                                    <td>
                                        {round.kind} {round.remedy}
                                    </td>
                                    <td class="figure">{number(round.before_rps)}</td>
                                    <td class="figure">{number(round.measured_rps)}</td>
                                    <td>{round.kept}</td>
                                    <td>{round.why}</td>
                                </tr>
                            ))}
                        </tbody>
                    </table>
                </section>
            )}
        </>
    );
}

function Sized({ steps }: { steps: SizeStep[] }) {
    const isOpen = steps.every((step) => typeof step.rate_per_s === "number");
    const load = (step: SizeStep) => (isOpen ? step.rate_per_s : step.connections) ?? 0;
    const sorted = [...steps].sort((a, b) => load(a) - load(b));
    const along = { x: sorted.map(load), across: isOpen ? "requests a second offered" : "connections" };
    return (
        <div class="grid">
            <Curve title="Good answers a second" {...along} lines={[{ name: "goodput", ink: "--first", values: sorted.map((step) => step.goodput_rps) }]} say={number} />
            <Curve
                title="Response time"
                {...along}
                lines={[
                    { name: "p50", ink: "--first", values: sorted.map((step) => ms(step.latency_us_p50)) },
                    { name: "p99", ink: "--third", values: sorted.map((step) => ms(step.latency_us_p99)) },
                ]}
                say={duration}
            />
        </div>
    );
}

function ms(us: number | null): number | null {
    return us === null ? null : us / 1000;
}

/** The difference of each variant with its interval, on one axis. */
function Compared({ document }: { document: { variants: { name: string }[]; comparisons: Comparison[] } }) {
    const name = (at: number) => document.variants[at]?.name ?? String(at);
    const rows = document.comparisons.flatMap((comparison) =>
        Object.entries(comparison.differences).map(([figure, difference]) => ({ comparison, figure, difference })),
    );
    const reach = Math.max(1, ...rows.flatMap(({ difference }) => [difference.low, difference.value, difference.high].map((value) => Math.abs(value ?? 0))));
    const place = (value: number) => `${50 + (45 * value) / reach}%`;
    return (
        <section class="card">
            <h2>Differences</h2>
            {document.comparisons.map((comparison, at) => (
                <p key={at}>{comparison.sentence}</p>
            ))}
            <ul class="intervals">
                {rows.map(({ comparison, figure, difference }, at) => {
                    const { value, low, high } = difference;
                    const unit = difference.is_percent ? " %" : " points";
                    return (
                        <li key={at}>
                            <span class="what">
                                {name(comparison.variant)} against {name(comparison.baseline)}: {figure.replaceAll("_", " ")}
                            </span>
                            <svg class="interval" width="100%" height="20" aria-hidden="true">
                                <line class="zero" x1="50%" x2="50%" y1="0" y2="20" />
                                {low !== null && high !== null && <line class="range" x1={place(low)} x2={place(high)} y1="10" y2="10" />}
                                <circle cx={place(value)} cy="10" r="4" />
                            </svg>
                            <span class="figure">
                                {number(value)}
                                {unit}
                                {low !== null && high !== null && ` (${number(low)} to ${number(high)})`}
                            </span>
                        </li>
                    );
                })}
            </ul>
        </section>
    );
}
