// What a new user sees: node ui/e2e/first.mjs, with PAGE (the address that `chokepoint watch` told) and PORT (of a local server under load).
import { chromium } from "playwright-core";

const { PAGE, PORT, CHROMIUM = "/usr/bin/chromium" } = process.env;
/** Far more than it takes: what is slow is told, and no test of it may depend on the machine. */
const WAIT_MAX_MS = 60_000;

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
try {
    const page = await browser.newPage();
    const begun = performance.now();
    const since = () => ((performance.now() - begun) / 1000).toFixed(1);
    await page.goto(PAGE);
    const option = await page.waitForFunction(
        (port) => [...document.querySelectorAll("header option")].find((option) => option.value.includes(`:${port}`))?.value,
        PORT,
        { timeout: WAIT_MAX_MS },
    );
    const server = await option.jsonValue();
    const paint = await page.evaluate(() => performance.getEntriesByType("paint").find((entry) => entry.name === "first-contentful-paint")?.startTime);
    console.log(`first contentful paint after ${paint?.toFixed(0)} ms`);
    console.log(`${server} was named ${since()} s after the page was opened`);
    await page.getByLabel("Server").selectOption(server);
    // A place appears once a request stood there when the sockets were sampled, which with quick answers takes a while: what is told of each second is the rate.
    await page.waitForFunction(() => /[1-9][\d.,]*\/s/.test(document.querySelector(".verdict")?.textContent ?? ""), null, { timeout: WAIT_MAX_MS });
    console.log(`after ${since()} s the page said: ${await page.locator(".verdict").textContent()}`);
} catch (error) {
    console.error(error);
    process.exitCode = 1;
} finally {
    await browser.close();
}
