// Builds the page into the crate that serves it: three files with fixed names, compressed, so that the program can embed them.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const OUT = process.env.PAGE_OUT ?? resolve(import.meta.dirname, "../crates/dashboard/page");

/** The libraries in the page, whose licenses come with it. */
const LIBRARIES = ["preact", "uplot"];

function licenses(): string {
    const folder = (name: string) => resolve(import.meta.dirname, "node_modules", name);
    const version = (name: string) => (JSON.parse(readFileSync(join(folder(name), "package.json"), "utf8")) as { version: string }).version;
    return LIBRARIES.map((name) => `===== ${name} ${version(name)}\n\n${readFileSync(join(folder(name), "LICENSE"), "utf8").trim()}\n`).join("\n");
}

/** What allows script and style where they stand in a file themselves: the policy of a report's file. Such an element ends at the first end tag, whatever it means there. */
function policy(): string {
    const of = (name: string) => {
        const text = readFileSync(join(OUT, name), "utf8");
        if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${name} cannot stand in a page: it has a tag or a comment`);
        return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
    };
    return `script-src ${of("page.js")}; style-src ${of("page.css")}\n`;
}

/** Leaves only what the program embeds. The header of gzip has no time, so that the same source gives the same bytes. */
const compressed: Plugin = {
    name: "compressed",
    closeBundle() {
        writeFileSync(join(OUT, "hashes"), policy());
        for (const name of readdirSync(OUT).filter((name) => /\.(html|css|js)$/.test(name))) {
            const file = join(OUT, name);
            writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
            rmSync(file);
        }
        writeFileSync(join(OUT, "LICENSES"), licenses());
    },
};

export default defineConfig({
    base: "./",
    plugins: [compressed],
    build: {
        outDir: OUT,
        emptyOutDir: true,
        target: "es2022",
        modulePreload: false,
        assetsInlineLimit: 0,
        rollupOptions: {
            output: { entryFileNames: "page.js", assetFileNames: "page[extname]", codeSplitting: false },
        },
    },
});
