// The pages of stations and findings.
import { useDocument } from "../document";
import { marked } from "../report/report";
import type { ExplainPage } from "../types";

export function Explain({ id }: { id: string | null }) {
    return (
        <div class="explain">
            <Contents chosen={id} />
            {id !== null && <Page id={id} />}
        </div>
    );
}

function Contents({ chosen }: { chosen: string | null }) {
    const { document, failed } = useDocument<{ pages: { id: string; title: string }[] }>("api/v1/explain", []);
    if (failed) return <p class="verdict unknown">{failed}</p>;
    return (
        <nav class="card contents" aria-label="Stations and findings">
            <ul>
                {document?.pages.map((page) => (
                    <li key={page.id}>
                        <a href={`#/explain/${page.id}`} aria-current={page.id === chosen ? "page" : undefined} title={page.title}>
                            {page.id}
                        </a>
                    </li>
                ))}
            </ul>
        </nav>
    );
}

function Page({ id }: { id: string }) {
    const { document, failed } = useDocument<ExplainPage>(`api/v1/explain/${encodeURIComponent(id)}`, []);
    if (failed) return <p class="verdict unknown">{failed}</p>;
    if (!document) return <p class="absent">Reading the page.</p>;
    return (
        <article class="card">
            <h2>
                {document.title} <small>{document.id}</small>
            </h2>
            {document.sections.map(({ heading, text }) => (
                <section key={heading}>
                    <h3>{heading}</h3>
                    {text.split(/\n{2,}/).map((paragraph, at) => (
                        <Paragraph key={at} text={paragraph} />
                    ))}
                </section>
            ))}
        </article>
    );
}

/** A paragraph or a list of the pages' Markdown: lines that begin with "- ", and code between backticks. Everything else is text. */
function Paragraph({ text }: { text: string }) {
    const lines = text.split("\n");
    if (lines.every((line) => /^( {4}|\t)/.test(line))) return <pre>{lines.map((line) => line.trim()).join("\n")}</pre>;
    if (lines[0]?.startsWith("- ")) {
        const items = text.split(/\n?^- /m).filter(Boolean);
        return (
            <ul>
                {items.map((item, at) => (
                    <li key={at}>{marked(item)}</li>
                ))}
            </ul>
        );
    }
    return <p>{marked(text)}</p>;
}
