// The page of a watch, or a file with one report: it shows what the program wrote and judges nothing.
import "./sharp";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import { sentence, useStaleness } from "./staleness";
import { busiest, servers, useHeld } from "./store";
import { Report } from "./report/report";
import type { ReportPage } from "./report/types";
import "./style.css";
import { Explain } from "./views/explain";
import { Flamed } from "./views/flame";
import { Incidents, OneIncident } from "./views/incidents";
import { Now } from "./views/now";
import { Compared, OneRun, Runs } from "./views/runs";
import { Server } from "./views/server";

const VIEWS: [path: string, name: string][] = [
    ["now", "Now"],
    ["server", "Server"],
    ["incidents", "Incidents"],
    ["flame", "Flame"],
    ["runs", "Runs"],
    ["streams", "Streams"],
    ["explain", "Explain"],
];

/** The part after the # of the address, as words. */
function useRoute(): string[] {
    const read = () => location.hash.replace(/^#\/?/, "").split("/").filter(Boolean);
    const [route, setRoute] = useState(read);
    useEffect(() => {
        const changed = () => setRoute(read());
        addEventListener("hashchange", changed);
        return () => removeEventListener("hashchange", changed);
    }, []);
    return route.length > 0 ? route : ["now"];
}

function Page() {
    const held = useHeld();
    const stale = useStaleness(held.heard);
    const [view, id, part] = useRoute();
    const all = servers(held);
    const [asked, setAsked] = useState<string | null>(null);
    const first = busiest(held);
    useEffect(() => {
        // Once: a page that somebody reads does not change its subject by itself.
        if (asked === null && first !== null) setAsked(first);
    }, [asked, first]);
    const server = asked !== null && all.includes(asked) ? asked : (first ?? all[0] ?? "");
    return (
        <>
            <header>
                <strong class="name">chokepoint</strong>
                <nav aria-label="Views">
                    {VIEWS.map(([path, name]) => (
                        <a key={path} href={`#/${path}`} aria-current={view === path ? "page" : undefined}>
                            {name}
                        </a>
                    ))}
                </nav>
                <label class="servers">
                    <span>Server</span>
                    <select value={server} onChange={(event) => setAsked(event.currentTarget.value)}>
                        {all.length === 0 && <option value="">none yet</option>}
                        {all.map((name) => (
                            <option key={name} value={name}>
                                {name}
                            </option>
                        ))}
                    </select>
                </label>
                <span class={`link ${held.connected && !stale ? "on" : "off"}`} role="status">
                    {!held.connected ? "no connection" : stale ? "nothing measured" : held.about?.host ? `Host ${held.about.host}` : "connected"}
                </span>
            </header>
            {stale && (
                <p class="stale" role="alert">
                    {sentence(stale)}
                </p>
            )}
            <main class={stale && (view === "now" || view === "server") ? "old" : undefined}>
                {view === "now" && <Now held={held} stale={stale} server={server} choose={setAsked} />}
                {view === "server" && <Server held={held} server={server} />}
                {view === "incidents" && id === undefined && <Incidents held={held} />}
                {view === "incidents" && id !== undefined && <OneIncident held={held} id={Number(id)} />}
                {view === "runs" && id === undefined && <Runs />}
                {view === "streams" && <Runs kind="streams" />}
                {view === "runs" && id !== undefined && part === undefined && <OneRun id={Number(id)} />}
                {view === "runs" && id !== undefined && part === "comparison" && <Compared id={Number(id)} />}
                {view === "explain" && <Explain id={id ?? null} />}
                {view === "flame" && id === undefined && (
                    <>
                        <Runs kind="profile" />
                        <Incidents held={held} to="flame" />
                    </>
                )}
                {view === "flame" && id !== undefined && <Flamed id={Number(id)} />}
            </main>
        </>
    );
}

const root = document.getElementById("page");
const report = document.getElementById("report");
if (root) {
    // A file shows its report as text until then.
    root.replaceChildren();
    // Paper has nothing to click.
    addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((details) => (details.open = true)));
    const page = report && (JSON.parse(report.textContent ?? "") as ReportPage);
    render(page ? <main class="report">{<Report page={page} />}</main> : <Page />, root);
}
