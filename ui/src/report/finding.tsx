// A finding with its evidence and its remedies.
import type { Finding } from "./types";

export function FindingDetails({ finding }: { finding: Finding }) {
    return (
        <article class={`finding ${finding.severity}`} data-finding={finding.id}>
            <h3>
                <span>
                    {finding.number !== null && <span class="number">{finding.number}</span>} <code>{finding.id}</code>
                </span>{" "}
                <small>{finding.standing}</small>
            </h3>
            {finding.title && <p class="ink-strong">{finding.title}</p>}
            <p>{finding.explanation}</p>
            {finding.evidence.length > 0 && (
                <>
                    <h4>{finding.evidence_heading}</h4>
                    <ul class="lines">
                        {finding.evidence.map(([text, source], at) => (
                            <li key={at}>
                                {text} <small>{source}</small>
                            </li>
                        ))}
                    </ul>
                </>
            )}
            {finding.fixes.map((fix) => (
                <div key={fix.id}>
                    <h4>
                        {fix.title}: <code>{fix.id}</code>
                    </h4>
                    <p>{fix.text}</p>
                    <dl class="terms">
                        {fix.commands.map(([label, lines]) => (
                            <div key={label}>
                                <dt>{label}</dt>
                                <dd>
                                    <pre class="copy" tabIndex={0}>
                                        {lines}
                                    </pre>
                                </dd>
                            </div>
                        ))}
                        {fix.terms.map(([label, text]) => (
                            <div key={label}>
                                <dt>{label}</dt>
                                <dd>{text}</dd>
                            </div>
                        ))}
                    </dl>
                </div>
            ))}
        </article>
    );
}
