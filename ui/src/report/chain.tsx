// Chains from cause to symptom: each symptom stands below its cause, further to the right.
import type { Link } from "./types";

export function Chain({ links, words }: { links: Link[]; words: string }) {
    return (
        <>
            <p class="hidden">{words}</p>
            <ol class="chain" aria-hidden="true">
                {links.map((link, at) => (
                    <li key={at} style={{ marginLeft: `${link.level * 28}px` }} class={link.level > 0 ? "below" : ""}>
                        <span class={`ink-${link.ink}`}>
                            {link.number !== null && <span class="number">{link.number}</span>} <code>{link.id}</code>
                        </span>{" "}
                        <small>{link.note}</small>
                    </li>
                ))}
            </ol>
            {links.some((link) => link.why !== null) && (
                <ol class="lines">
                    {links.map(
                        (link, at) =>
                            link.why !== null && (
                                <li key={at}>
                                    <code>{link.id}</code> {link.why}
                                </li>
                            ),
                    )}
                </ol>
            )}
        </>
    );
}
