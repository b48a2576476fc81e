// What used the CPUs during an incident, against before, as a flame graph.
import { useMemo, useState } from "preact/hooks";
import { useDocument } from "../document";
import { change, type Frame, matching, tree, wide } from "../folded";
import { number } from "../words";

const ROW = 19;
/** Frames narrower than this share of the view are not drawn. */
const NARROWEST = 1 / 600;

interface Profiles {
    before: string | null;
    during: string;
}

export function Flame({ id }: { id: number }) {
    const { document, failed } = useDocument<Profiles>(`api/v1/incidents/${id}/profiles`, []);
    if (failed) return <p class="verdict unknown">{failed}</p>;
    if (!document) return <p class="absent">Reading the profile.</p>;
    return (
        <>
            <p class="facts">
                CPU time during <a href={`#/incidents/${id}`}>incident {id}</a>
                {document.before ? ". Red: a larger share than before it; blue: a smaller one." : "."}
            </p>
            <Graph profiles={document} />
        </>
    );
}

function ink(frame: Frame, root: Frame): string {
    const grown = change(frame, root);
    if (grown === null) return "hsl(28 80% 72%)";
    const strength = Math.min(1, Math.abs(grown) * 5);
    if (strength < 0.02) return "hsl(40 20% 88%)";
    return `hsl(${grown > 0 ? 6 : 212} ${40 + 45 * strength}% ${86 - 22 * strength}%)`;
}

function Graph({ profiles }: { profiles: Profiles }) {
    const root = useMemo(() => tree(profiles.during, profiles.before), [profiles]);
    const [focus, setFocus] = useState<Frame>(root);
    const [asked, setAsked] = useState("");
    const letters = asked.trim().toLowerCase();
    const frames = useMemo(() => wide(focus, focus.during * NARROWEST), [focus]);
    const found = useMemo(() => matching(root, letters), [root, letters]);
    const deepest = frames.reduce((most, frame) => Math.max(most, frame.depth - focus.depth), 0);
    const share = (part: number) => `${((100 * part) / Math.max(1, root.during)).toFixed(1)} %`;
    return (
        <section class="card">
            <div class="spans">
                <label>
                    Search functions{" "}
                    <input type="search" value={asked} onInput={(event) => setAsked(event.currentTarget.value)} />
                </label>
                <span class="flame-match" role="status">
                    {letters === "" ? `${number(root.during)} samples` : `${share(found)} of the samples`}
                </span>
                {focus !== root && (
                    <button type="button" onClick={() => setFocus(root)}>
                        whole graph
                    </button>
                )}
            </div>
            <div class="flame" style={{ height: (deepest + 1) * ROW }}>
                {frames.map((frame) => {
                    const grown = change(frame, root);
                    const told = `${frame.name}: ${share(frame.during)}${grown === null ? "" : `, ${grown >= 0 ? "+" : ""}${(100 * grown).toFixed(1)} points`}`;
                    const isFound = letters !== "" && frame.name.toLowerCase().includes(letters);
                    return (
                        <button
                            key={`${frame.depth} ${frame.start} ${frame.name}`}
                            type="button"
                            data-frame={frame.name}
                            class={isFound ? "found" : ""}
                            title={told}
                            aria-label={told}
                            onClick={() => setFocus(frame)}
                            style={{
                                left: `${(100 * (frame.start - focus.start)) / focus.during}%`,
                                width: `${(100 * frame.during) / focus.during}%`,
                                top: (frame.depth - focus.depth) * ROW,
                                background: ink(frame, root),
                            }}
                        >
                            {frame.name}
                        </button>
                    );
                })}
            </div>
        </section>
    );
}
