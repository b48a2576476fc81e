// A report: of a diagnosis, an experiment, a sizing, a capture, a profile. In a file of its own, and in the views of runs and incidents.
import type { ComponentChildren } from "preact";
import { Graph } from "../charts/graph";
import { Pipe } from "../pipe";
import { Bars } from "./bars";
import { Chain } from "./chain";
import { FindingDetails } from "./finding";
import { Flame } from "./flame";
import { MatrixTable } from "./matrix";
import { Standing } from "./standing";
import type { Block, Finding, ReportPage, Span } from "./types";

/** The whole report. `isWithin`: in a page that has a heading for it. */
export function Report({ page, isWithin = false }: { page: ReportPage; isWithin?: boolean }) {
    return (
        <>
            {!isWithin && (
                <div class="subject">
                    <p class="facts">{page.brand}</p>
                    <h1>{page.subject}</h1>
                </div>
            )}
            {page.verdicts.map((verdict, at) => (
                <div key={at} class={`verdict ${verdict.severity}`}>
                    {verdict.word && <strong>{verdict.word}</strong>} {verdict.done && <span class="facts">{verdict.done}</span>} {verdict.text}
                </div>
            ))}
            {page.sections.map((section) => (
                <section key={section.id} class="card" data-section={section.id}>
                    {section.heading && <h2>{section.heading}</h2>}
                    {section.blocks.map((block, at) => (
                        <Shown key={at} block={block} page={page} />
                    ))}
                </section>
            ))}
            {page.footer.length > 0 && <p class="facts">{page.footer.join(" · ")}</p>}
        </>
    );
}

/** The findings of a page by their numbers. */
export function findings(page: ReportPage): Finding[] {
    return page.sections.flatMap((section) => section.blocks).filter((block): block is { kind: "finding" } & Finding => block.kind === "finding");
}

/** Text in its inks. */
export function Spans({ spans, between = "" }: { spans: Span[]; between?: string }) {
    return (
        <>
            {spans.map((span, at) => (
                <span key={at} class={`ink-${span.ink}`}>
                    {at > 0 && between}
                    {span.text}
                </span>
            ))}
        </>
    );
}

/** Text with commands between backticks. */
export function marked(text: string): ComponentChildren[] {
    return text.split("`").map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part));
}

function Shown({ block, page }: { block: Block; page: ReportPage }) {
    switch (block.kind) {
        case "text":
            return <p class={`ink-${block.ink}`}>{marked(block.text)}</p>;
        case "list":
            return (
                <ul class="lines">
                    {block.lines.map((line, at) => (
                        <li key={at}>
                            <Spans spans={line} />
                        </li>
                    ))}
                </ul>
            );
        case "terms":
            return <Terms rows={block.rows} />;
        case "tiles":
            return (
                <dl class="tiles">
                    {block.tiles.map(([name, value]) => (
                        <div key={name}>
                            <dt>{name}</dt>
                            <dd>{value}</dd>
                        </div>
                    ))}
                </dl>
            );
        case "table":
            return <Table block={block} />;
        case "standing":
            return <Standing places={block.places} />;
        case "path":
            return <Pipe tiers={block.tiers} findings={findings(page)} isWhole />;
        case "chain":
            return <Chain links={block.links} words={block.words} />;
        case "finding":
            return <FindingDetails finding={block} />;
        case "bars":
            return <Bars title={block.title} bars={block.bars} />;
        case "plot":
            return <Graph plot={block} />;
        case "matrix":
            return <MatrixTable map={block.map} shades={block.shades} />;
        case "flame":
            return <Flame graph={block.graph} />;
        case "folded":
            return (
                <details>
                    <summary>{block.heading}</summary>
                    <pre>{block.text}</pre>
                </details>
            );
    }
}

export function Terms({ rows }: { rows: [name: string, text: Span[]][] }) {
    return (
        <dl class="terms">
            {rows.map(([name, text], at) => (
                <div key={at}>
                    <dt>{name}</dt>
                    <dd>
                        <Spans spans={text} between=" · " />
                    </dd>
                </div>
            ))}
        </dl>
    );
}

function Table({ block: { head, rows } }: { block: Extract<Block, { kind: "table" }> }) {
    const side = (at: number) => (head[at]?.is_figure ? "figure" : undefined);
    return (
        <div class="wide" tabIndex={0}>
            <table class="plain">
                <thead>
                    <tr>
                        {head.map((column, at) => (
                            <th key={at} scope="col" class={side(at)}>
                                {column.name}
                            </th>
                        ))}
                    </tr>
                </thead>
                <tbody>
                    {rows.map((row, at) => (
                        <tr key={at}>
                            {row.map((cell, column) => (
                                <td key={column} class={`ink-${cell.ink} ${side(column) ?? ""}`}>
                                    {cell.text}
                                </td>
                            ))}
                        </tr>
                    ))}
                </tbody>
            </table>
        </div>
    );
}
