// Uses the page as a person does, in a real browser, while a fault is injected into a real site: node ui/e2e/page.mjs
// The environment names what it needs: PAGE (address), SERVER (as the page names it), FAULT and REPAIR (commands), BAND and STATION (where the fault shows), OUT (for pictures),
// CHROMIUM (the browser). It prints what it checks, and ends with status 1 at the first thing that does not hold.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

const { PAGE, SERVER, FAULT, REPAIR, BAND, STATION, OUT, CHROMIUM = "/usr/bin/chromium" } = process.env;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** A fault must be told within this time (the detector's own bound is 15 s), and the page shows it with the next second. */
const TOLD_MAX_MS = 20_000;
/** A site without a fault is well again within this time. */
const CALM_MAX_MS = 60_000;

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
// The page forbids scripts that are not its own; the accessibility checker is one.
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, bypassCSP: true });
const page = await context.newPage();
const complaints = [];
const elsewhere = [];
page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
page.on("pageerror", (error) => complaints.push(String(error)));
page.on("request", (request) => !request.url().startsWith(PAGE) && !request.url().startsWith("data:") && elsewhere.push(request.url()));

const check = (what) => console.log(`ok: ${what}`);
const shot = (name) => page.screenshot({ path: join(OUT, `page-${name}.png`) });
const get = async (path) => (await fetch(new URL(path, PAGE))).json();
/** The number of requests in a row of the legend. */
const band = async (text) => {
    const figure = page.locator(".legend tr", { hasText: text }).locator(".figure").first();
    return (await figure.count()) === 0 ? 0 : Number((await figure.textContent()).replaceAll(",", ""));
};

async function accessible(view) {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    const serious = violations.filter((found) => ["serious", "critical"].includes(found.impact));
    assert.deepEqual(
        serious.map((found) => `${found.id}: ${found.nodes.map((node) => node.html).join(" ")}`),
        [],
        view,
    );
    check(`${view}: axe finds nothing serious`);
}

async function opened() {
    const begun = performance.now();
    await page.goto(PAGE);
    await page.waitForSelector(".verdict");
    const paint = await page.evaluate(() => performance.getEntriesByType("paint").find((entry) => entry.name === "first-contentful-paint")?.startTime);
    console.log(`first contentful paint after ${paint?.toFixed(0)} ms, the verdict after ${(performance.now() - begun).toFixed(0)} ms`);
    await page.getByLabel("Server").selectOption(SERVER);
    await page.waitForSelector(".legend tr[data-band]");
    check("the page shows the server without any configuration");
}

async function agrees() {
    // The page and the API are read at two moments of a steady load.
    const { samples } = await get("api/v1/now");
    const target = samples[0].targets.find((target) => target.target === SERVER);
    const under_way = target.under_way[0] / target.under_way[1];
    const shown = await band("in flight");
    assert.ok(Math.abs(shown - under_way) <= Math.max(3, under_way), `the page shows ${shown} in flight, the API ${under_way}`);
    check(`the chart agrees with the API: ${shown} and ${under_way.toFixed(1)} requests in flight`);
}

async function faultIsTold() {
    // On a busy host the site may be slow for a while by itself, and its fault is the one to be told.
    await page.waitForSelector(".verdict:not(.bad)", { timeout: CALM_MAX_MS });
    const before = await band(BAND);
    execFileSync("bash", ["-c", FAULT], { stdio: "inherit" });
    const begun = performance.now();
    await page.waitForSelector(".verdict.bad a", { timeout: TOLD_MAX_MS });
    const told = (performance.now() - begun) / 1000;
    console.log(`the verdict was there ${told.toFixed(1)} s after the fault: ${await page.locator(".verdict").textContent()}`);
    const during = await band(BAND);
    assert.ok(during > before + 1, `${BAND}: ${before} before, ${during} during the fault`);
    check(`the band "${BAND}" grew from ${before} to ${during}`);
    await page.waitForSelector(`.piece.choke[data-station="${STATION}"]`, { timeout: TOLD_MAX_MS });
    check(`the pipe marks ${STATION}`);
    const cut = await page.evaluate(() => {
        const [right, tiers] = [document.querySelector(".pipe").getBoundingClientRect().right, [...document.querySelectorAll(".piece .tier")]];
        const names = tiers.filter((tier) => tier.textContent.trim() !== "").map((tier) => tier.getBoundingClientRect());
        const meet = names.filter((one, at) => names[at + 1] && names[at + 1].top === one.top && names[at + 1].left < one.right - 1);
        return { outside: [...document.querySelectorAll(".piece")].filter((piece) => piece.getBoundingClientRect().right > right + 1).length, meet: meet.length };
    });
    assert.deepEqual(cut, { outside: 0, meet: 0 }, "the whole path is visible, and no label runs into another");
    assert.match(await page.locator("header .link").textContent(), /^Host /);
    await page.locator(".piece.choke button").click();
    assert.match(await page.locator(".details").first().textContent(), /Evidence/);
    check("a click shows the evidence");
    await shot("fault");
}

async function incidentOpens() {
    await page.locator(".verdict a").click();
    await page.waitForSelector("h2:has-text('What changed on the host')");
    await page.waitForSelector(".finding.bad");
    check("the incident opens with its cause");
    await accessible("incident");
    await shot("incident");
    await page.getByRole("link", { name: "Incidents" }).click();
    await page.waitForSelector(".incidents li");
    await accessible("incidents");
}

async function flameSearches() {
    await page.goto(`${PAGE}#/incidents`);
    await page.locator(".incidents a").first().click();
    await page.getByRole("link", { name: "Flame graph" }).click();
    await page.waitForSelector(".flame [data-frame]");
    await page.getByLabel("Search functions").fill("php");
    await page.waitForSelector(".flame .found");
    assert.match(await page.locator(".flame-match").textContent(), /%/);
    check("the flame graph searches");
    await accessible("flame");
    await shot("flame");
}

async function charts() {
    await page.goto(`${PAGE}#/server`);
    await page.waitForSelector(".chart canvas");
    const box = await page.locator(".chart .u-over").first().boundingBox();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.9, box.y + 20, { steps: 5 });
    await page.mouse.up();
    await page.getByRole("button", { name: "whole span" }).click();
    check("dragging zooms all charts, and a button shows the whole span");
    await page.getByRole("heading", { name: "Ports: nginx to 127.0.0.1:9000" }).waitFor();
    for (const group of ["/", "127.0.0.1:9000"]) {
        await page.getByRole("button", { name: group, exact: true }).click();
        const chart = page.locator(".card", { has: page.getByRole("heading", { name: `Upstream response time: ${group}` }) }).last();
        assert.match(await chart.locator("h3").textContent(), /p50 [\d.]+ (µs|ms|s).*p95 [\d.]+ (µs|ms|s).*max [\d.]+ (µs|ms|s)/);
    }
    check("ports, and percentiles of a group of URLs and of an upstream");
    await accessible("server");
    await shot("server");
}

async function capturesAreShown() {
    await page.goto(`${PAGE}#/streams`);
    await page.locator(".incidents a").first().click();
    await page.waitForSelector(".graph canvas");
    assert.ok((await page.locator(".graph").count()) >= 4, "I/O graphs and a timeline");
    await accessible("streams");
    await shot("streams");
    await page.getByRole("link", { name: "Compare it with the run before" }).click();
    await page.waitForSelector("[data-section='runs-figures'] td");
    await accessible("comparison");
    check("a capture has I/O graphs and timelines, and is compared with the one before");
}

async function repairIsTold() {
    await page.goto(`${PAGE}#/now`);
    await page.waitForSelector(".verdict.bad");
    execFileSync("bash", ["-c", REPAIR], { stdio: "inherit" });
    await page.waitForSelector(".verdict:not(.bad)", { timeout: CALM_MAX_MS });
    check(`after the repair: ${await page.locator(".verdict").textContent()}`);
}

async function pagesAreRead() {
    await page.goto(`${PAGE}#/explain/worker-pool`);
    await page.waitForSelector("article h3");
    await accessible("explain");
    await page.goto(`${PAGE}#/runs`);
    await page.waitForSelector(".incidents li, .absent");
    await accessible("runs");
    check("the pages of stations and the kept runs are read");
}

async function appearances() {
    await page.goto(`${PAGE}#/now`);
    await page.waitForSelector(".legend tr[data-band]");
    await shot("light");
    await accessible("now");
    await page.emulateMedia({ colorScheme: "dark" });
    await page.waitForTimeout(500);
    await shot("dark");
    await accessible("now, dark");
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForTimeout(500);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `the narrow page is ${wide} pixels too wide`);
    await shot("narrow");
    await page.setViewportSize({ width: 1280, height: 900 });
    check("light, dark and narrow");
}

async function keyboard() {
    await page.goto(`${PAGE}#/now`);
    await page.waitForSelector(".legend tr[data-band]");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".spans");
    check("the keyboard reaches the views");
}

try {
    await opened();
    await agrees();
    await appearances();
    await keyboard();
    await page.goto(`${PAGE}#/now`);
    await page.waitForSelector(".legend tr[data-band]");
    await faultIsTold();
    await incidentOpens();
    await flameSearches();
    await charts();
    await pagesAreRead();
    await capturesAreShown();
    await repairIsTold();
    assert.deepEqual(complaints, []);
    assert.deepEqual(elsewhere, []);
    check("no complaint in the console, no request to elsewhere");
} catch (error) {
    console.error(error, complaints);
    await shot("failed").catch((unseen) => console.error("no picture:", unseen));
    process.exitCode = 1;
} finally {
    await browser.close();
}
