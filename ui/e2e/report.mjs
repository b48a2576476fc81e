// Opens files with one report as a person does: node ui/e2e/report.mjs FILE...
// Each opens without a network, complains of nothing, can be read in light and dark, on a telephone, on paper, and without scripts. OUT names a folder for pictures.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join, resolve } from "node:path";
import { chromium } from "playwright-core";

const { CHROMIUM = "/usr/bin/chromium", OUT } = process.env;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });

async function accessible(page, what) {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    const serious = violations.filter((found) => ["serious", "critical"].includes(found.impact));
    assert.deepEqual(
        serious.map((found) => `${found.id}: ${found.nodes.map((node) => node.html).join(" ")}`),
        [],
        what,
    );
}

async function opens(file) {
    const address = `file://${resolve(file)}`;
    const complaints = [];
    const elsewhere = [];
    const watched = async (options) => {
        const page = await (await browser.newContext({ viewport: { width: 1100, height: 900 }, ...options })).newPage();
        page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
        page.on("pageerror", (error) => complaints.push(String(error)));
        page.on("request", (request) => request.url() !== address && !request.url().startsWith("data:") && elsewhere.push(request.url()));
        await page.goto(address);
        return page;
    };
    // Under its own policy first.
    const page = await watched({});
    await page.waitForSelector("main.report .card");
    assert.ok((await page.title()).length > 0);
    const paper = await page.pdf({ format: "A4" });
    assert.ok(paper.length > 10_000, "something is printed");
    if (OUT) await page.screenshot({ path: join(OUT, `${basename(file, ".html")}.png`), fullPage: true });
    for (const colorScheme of ["light", "dark"]) {
        // The accessibility checker is a script of somebody else.
        const other = await watched({ colorScheme, bypassCSP: true });
        await other.waitForSelector("main.report .card");
        await accessible(other, `${file}, ${colorScheme}`);
        await other.setViewportSize({ width: 390, height: 844 });
        await other.waitForTimeout(300);
        const wide = await other.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${file}: the narrow page is ${wide} pixels too wide`);
        await other.close();
    }
    const plain = await watched({ javaScriptEnabled: false });
    assert.ok((await plain.locator("#page pre").textContent()).trim().length > 0, "without scripts the report is text");
    assert.deepEqual([complaints, elsewhere], [[], []]);
    console.log(`ok: ${file}`);
}

try {
    for (const file of process.argv.slice(2)) await opens(file);
} catch (error) {
    console.error(error);
    process.exitCode = 1;
} finally {
    await browser.close();
}
