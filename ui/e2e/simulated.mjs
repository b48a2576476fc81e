// The page with a simulated server: hostile texts, seconds that do not come, a day of data, an hour of seconds. node ui/e2e/simulated.mjs
// CHROMIUM names the browser, OUT a folder for a picture. It prints what it measures, and ends with status 1 if a text becomes anything else than text, or if memory grows without bound.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { gunzipSync } from "node:zlib";
import { chromium } from "playwright-core";

const { CHROMIUM = "/usr/bin/chromium", HOUR_S = "3600", OUT } = process.env;
const SERVER = "http://127.0.0.1/";
/** The most by which an hour may make the page grow, bytes. */
const GROWTH_MAX = 20e6;
const DAY_POINTS = 86_400;
const EVIL = `<img src=x onerror="window.evil=1"><script>window.evil=2</script>"'&lt;\u202e`;
const LONG = "x".repeat(1_000_000);

const durations = (n) => [[[900 + (n % 40), 5], [1000 + (n % 50), 3], [1100, 1]], 9e4, 60_000];
function sample(at_s, n, more = {}) {
    return {
        at_s,
        span_s: 1,
        targets: [
            {
                target: SERVER,
                under_way: [8 + (n % 5), 1],
                rate: [1000 + (n % 100), 1],
                places: ["cpu", "waiting", "sending"].flatMap((place, at) => ["nginx", "php-fpm"].map((tier) => ({ tier, place, request_seconds: 1 + ((n + at) % 3) / 3 }))),
                connections: { reading: [1, 1], writing: [2, 1], waiting: [3, 1] },
                pools: { www: { active: [1, 1], total: [9, 1] } },
                ports: [{ edge: "nginx to 127.0.0.1:9000", live: n % 40, time_wait: n % 90, limit: 28_232 }],
                queues: [{ listener: "127.0.0.1:80", most: n % 4, limit: 511 }],
                logged: { status: { 200: 990, 404: n % 7, 502: n % 3 }, bytes: 5000 + n, unread: 0, urls: { "/a": { answers: 3, failed: 0, time_us: 9000, bytes: 900, durations_us: { request: durations(n) } } }, upstreams: { "127.0.0.1:9000": { answers: 3, failed: 1, time_us: 9000, durations_us: { "upstream-response": durations(n) } } }, durations_us: { request: durations(n), "upstream-response": durations(n + 7) } },
                ...more,
            },
        ],
        host: { seconds: 1, cores: 2, busy_s: 1, core_s: { 0: [0.5, 0.1, 0, 0], 1: [0.3, 0.1, 0, 0] }, programs: { nginx: 1 }, memory_total: 8e9, memory_available: 4e9, disks: {} },
    };
}

/** Words that decide how something is drawn; all other texts may come from anywhere. */
const WORDS = new Set(["kind", "ink", "state", "shape", "severity", "place", "color"]);
/** A page of a report whose texts are all hostile. */
function hostile(value, key = "", text = EVIL) {
    if (typeof value === "string") return WORDS.has(key) ? value : value + text;
    if (Array.isArray(value)) return value.map((one) => hostile(one, key, text));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, hostile(one, key, text)]));
}
const stored = (name) => JSON.parse(readFileSync(new URL(`../../crates/cli/tests/data/page/${name}.json`, import.meta.url), "utf8"));
const samples = { time: [0, 900], cpu: [0, 1], thread: [0, 0], stack: [0, 1], weight: [5, 3] };
const flame = {
    title: EVIL, brand: EVIL, subject: EVIL, verdicts: [], footer: [LONG],
    sections: [
        {
            id: "flame", heading: "",
            blocks: [{ kind: "flame", graph: { layers: [{ title: EVIL, color: "#445566" }], frames: [[EVIL, EVIL, 0], [LONG, EVIL, 2]], stacks: [[0, 0], [0, 0, 1]], threads: [[1, 1, EVIL, EVIL]], duration_ms: 1000, now: samples, before: samples } }],
        },
    ],
};
const ofChoked = hostile(stored("choked"));
const incident = {
    id: 1, state: "open", drop: { target: EVIL, since_s: 1_800_000_000, kinds: ["slower"] }, ended_s: null, recovered: null, headline: EVIL, cause: null,
    changes: [{ of: EVIL, name: EVIL, before: LONG, now: EVIL }], page: ofChoked, series: [sample(1_800_000_000, 1, { target: EVIL })],
    busier: [{ program: EVIL, before: 0, during: 1 }], grown: [{ tier: EVIL, place: "cpu", before: 0, during: 1 }],
};

const run = (page) => ({ id: 1, kind: EVIL, began: EVIL, target: LONG, headline: EVIL, document: { text: EVIL }, page });

/** What the server sends; the tests change it. */
const served = { series: [], hostile: false, isGone: false, pages: new Set() };
const at0 = Math.floor(Date.now() / 1000) - DAY_POINTS;
const said = (at_s) => ({
    at_s,
    servers: [
        { name: SERVER, severity: "good", sentence: served.hostile ? EVIL : "Fine.", looked_s: 1 },
        ...(served.hostile ? [{ name: EVIL, severity: "bad", sentence: LONG, incident: 1, looked_s: 1 }] : []),
    ],
});
const documents = {
    "/api/v1/about": () => ({ version: "0", host: served.hostile ? EVIL : "here", places: [{ place: "cpu", label: "in {tier}, on a CPU" }] }),
    "/api/v1/looks": () => ({ [SERVER]: { at_s: 1, page: ofChoked }, [EVIL]: { at_s: 1, page: ofChoked } }),
    "/api/v1/series": () => ({ schema: "chokepoint/series/1", samples: served.series }),
    "/api/v1/incidents": () => ({ incidents: [{ ...incident, cause: null }] }),
    "/api/v1/incidents/1": () => incident,
    "/api/v1/runs": () => ({ runs: [{ id: 1, kind: EVIL, began: EVIL, target: LONG, label: EVIL, headline: EVIL, figures: [{ name: EVIL, value: 1 }] }] }),
    "/api/v1/runs/1": () => run(hostile(stored("collapse"))),
    "/api/v1/runs/2": () => run(hostile(stored("size"))),
    "/api/v1/runs/3": () => run(hostile(stored("experiment-matrix"))),
    "/api/v1/runs/4": () => run(hostile(stored("chain"), "", "x".repeat(3_000))),
    "/api/v1/runs/5": () => run(null),
    "/api/v1/runs/1/comparison": () => hostile(stored("unknown")),
    "/api/v1/explain": () => ({ pages: [{ id: EVIL, title: EVIL }] }),
    "/api/v1/explain/x": () => ({ id: EVIL, title: EVIL, sections: [{ heading: EVIL, text: `${EVIL}\n\n- ${EVIL}\n- \`${LONG}\`\n\n    ${EVIL}` }] }),
    "/api/v1/incidents/1/flame": () => flame,
};
const files = { "/": ["index.html", "text/html"], "/page.js": ["page.js", "text/javascript"], "/page.css": ["page.css", "text/css"] };
const policy = readFileSync(new URL("../../crates/dashboard/src/page.rs", import.meta.url), "utf8").match(/POLICY: &str = "([^"]*)"/)[1].replaceAll(/\\\s+/g, "");
const http = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://x");
    if (served.isGone) return request.socket.destroy();
    if (pathname === "/api/v1/live") {
        response.writeHead(200, { "content-type": "text/event-stream" });
        served.pages.add(response);
        response.on("close", () => served.pages.delete(response));
        return;
    }
    const file = files[pathname];
    const body = file ? gunzipSync(readFileSync(new URL(`../../crates/dashboard/page/${file[0]}.gz`, import.meta.url))) : JSON.stringify(documents[pathname]?.() ?? { error: "nothing" });
    response.writeHead(200, { "content-type": file?.[1] ?? "application/json", "content-security-policy": policy });
    response.end(body);
});
await new Promise((ready) => http.listen(0, "127.0.0.1", ready));
const PAGE = `http://127.0.0.1:${http.address().port}/`;
const send = (event, data) => served.pages.forEach((page) => page.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
const second = (at_s, n) => {
    send("sample", sample(at_s, n, served.hostile ? { target: EVIL } : {}));
    send("state", said(at_s));
    send("age", { newest_s: at_s, age_s: 0.3, stale: false });
};

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--js-flags=--expose-gc"] });
const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
const complaints = [];
page.on("pageerror", (error) => complaints.push(String(error)));

async function hostileTextsStayText() {
    served.hostile = true;
    await page.goto(PAGE);
    await page.waitForSelector(".verdict");
    for (let n = 0; n < 3; n += 1) {
        second(at0 + DAY_POINTS + n, n);
        await page.waitForTimeout(200);
    }
    await page.getByLabel("Server").selectOption({ index: 1 });
    for (const view of ["now", "server", "incidents", "incidents/1", "flame", "flame/1", "runs", "streams", "runs/1", "runs/2", "runs/3", "runs/4", "runs/5", "runs/1/comparison", "explain", "explain/x", "now"]) {
        await page.goto(`${PAGE}#/${view}`);
        await page.waitForTimeout(300);
        const found = await page.evaluate(() => ({
            evil: window.evil,
            markup: document.querySelectorAll("main img, main script, main iframe, header img").length,
            wide: document.documentElement.scrollWidth - innerWidth,
        }));
        assert.deepEqual([found.evil, found.markup], [undefined, 0], view);
        assert.ok(found.wide <= 0, `${view}: a long text makes the page ${found.wide} pixels too wide`);
    }
    served.hostile = false;
    console.log("ok: texts with markup and of a million letters stay text, and fit");
}

/** The banner, once it says this. */
const banner = (words) => page.locator(".stale", { hasText: words }).waitFor({ timeout: 120_000 });
const bannerIsGone = () => page.locator(".stale").waitFor({ state: "detached", timeout: 120_000 });

async function whatIsOldIsShownAsOld() {
    await page.goto("about:blank");
    await page.goto(`${PAGE}#/now`);
    await page.waitForSelector(".verdict");
    const at_s = at0 + DAY_POINTS + 500;
    const heard = (age_s) => send("age", { newest_s: at_s, age_s, stale: age_s > 5 });
    second(at_s, 0);
    heard(0.3);
    await page.locator(".verdict.good").waitFor();
    assert.equal(await page.locator(".stale").count(), 0);
    // Whoever measures hangs, and whoever serves says so.
    const serves = setInterval(() => heard(8.2), 500);
    await banner(/^Nothing was measured for \d+ s: /);
    await page.locator("main.old .verdict.unknown", { hasText: /^At .*: Fine\.$/ }).waitFor();
    if (OUT) await page.screenshot({ path: `${OUT}/page-stale.png` });
    clearInterval(serves);
    // Nobody says anything any more: the page has a clock of its own. The connection is still there.
    await banner(/^No word from chokepoint watch for \d+ s: /);
    // And back.
    second(at_s + 60, 1);
    heard(0.3);
    await bannerIsGone();
    await page.locator(".verdict.good").waitFor();
    // It has ended.
    served.pages.forEach((open) => open.destroy());
    served.isGone = true;
    await banner(/^No word from chokepoint watch for \d+ s: /);
    assert.equal(await page.locator(".link").innerText(), "no connection");
    await page.goto(`${PAGE}#/explain`);
    assert.equal(await page.locator("main.old").count(), 0, "what never changes is not old");
    served.isGone = false;
    console.log("ok: what is old is shown as old, whoever is gone");
}

async function dayZooms() {
    served.series = Array.from({ length: DAY_POINTS }, (_, n) => sample(at0 + n, n));
    // From elsewhere, so that the page begins anew.
    await page.goto("about:blank");
    await page.goto(`${PAGE}#/server`);
    second(at0 + DAY_POINTS, 0);
    await page.waitForSelector(".spans");
    await page.getByRole("button", { name: "1 day" }).click();
    // Each chart that Amplify had, and the host's.
    await page.waitForFunction(() => document.querySelectorAll(".chart canvas").length >= 6, null, { timeout: 120_000 });
    await page.waitForTimeout(2_000);
    await page.evaluate(() => {
        window.pauses = [];
        new PerformanceObserver((list) => list.getEntries().forEach((entry) => window.pauses.push(entry.duration))).observe({ entryTypes: ["longtask"] });
    });
    const longest = [];
    for (let turn = 0; turn < 10; turn += 1) {
        await page.evaluate(() => (window.pauses.length = 0));
        const box = await page.locator(".chart .u-over").first().boundingBox();
        await page.mouse.move(box.x + box.width * 0.2, box.y + 20);
        await page.mouse.down();
        await page.mouse.move(box.x + box.width * (0.9 - turn * 0.05), box.y + 20, { steps: 8 });
        await page.mouse.up();
        await page.waitForTimeout(400);
        if (turn === 0 && OUT) await page.screenshot({ path: `${OUT}/page-zoom.png` });
        longest.push(await page.evaluate(() => Math.max(0, ...window.pauses)));
        await page.getByRole("button", { name: "whole span" }).click();
        await page.waitForTimeout(400);
    }
    const charts = await page.locator(".chart canvas").count();
    console.log(`a day of ${DAY_POINTS} points in ${charts} charts: the longest pauses of ten zooms, ms: ${longest.map((ms) => ms.toFixed(0)).join(", ")}`);
    served.series = [];
}

async function anHourDoesNotGrow() {
    await page.goto("about:blank");
    await page.goto(`${PAGE}#/now`);
    await page.waitForSelector(".verdict");
    const cdp = await page.context().newCDPSession(page);
    const heap = async () => {
        await cdp.send("HeapProfiler.collectGarbage");
        return (await cdp.send("Runtime.getHeapUsage")).usedSize;
    };
    const from_s = at0 + DAY_POINTS + 1_000;
    // Ten minutes are held: what is compared is a full page.
    for (let n = 0; n < 600; n += 1) second(from_s + n, n);
    await page.waitForTimeout(3_000);
    const before = await heap();
    for (let n = 600; n < Number(HOUR_S) + 600; n += 1) {
        second(from_s + n, n);
        if (n % 20 === 0) await page.waitForTimeout(100);
    }
    await page.waitForTimeout(3_000);
    const grown = (await heap()) - before;
    console.log(`${HOUR_S} seconds: the page has ${(before / 1e6).toFixed(1)} MB, and grew by ${(grown / 1e6).toFixed(1)} MB`);
    assert.ok(grown <= GROWTH_MAX);
}

try {
    await hostileTextsStayText();
    await whatIsOldIsShownAsOld();
    await dayZooms();
    await anHourDoesNotGrow();
    assert.deepEqual(complaints, []);
} catch (error) {
    console.error(error, complaints);
    process.exitCode = 1;
} finally {
    await browser.close();
    http.close();
    http.closeAllConnections();
}
