// Solves an environment of conda as mambajs does: node environment.mjs MODULE FILE PLATFORM URL RELEASES
//
// The channel is the one at URL, and the package index has the RELEASES that are named, as JSON; nobody else is asked.
import { readFileSync } from "node:fs";

const [module, file, platform, url, releases] = process.argv.slice(2);
const known = JSON.parse(releases);
const fetched = globalThis.fetch;

const project = (name) => ({
    releases: {
        [known[name]]: [
            {
                filename: `${name}-${known[name]}-py3-none-any.whl`,
                packagetype: "bdist_wheel",
                url: `${url}/${name}.whl`,
                digests: { sha256: "0".repeat(64) },
                yanked: false,
            },
        ],
    },
    info: { version: known[name], requires_dist: null },
});

globalThis.fetch = (asked, ...more) => {
    const address = String(asked.url ?? asked);
    if (address.startsWith(url)) {
        return fetched(asked, ...more);
    }
    const found = address.match(/^https:\/\/pypi\.org\/pypi\/([^/]+)\//);
    return Promise.resolve(Response.json(found ? project(found[1]) : {}));
};

const { solve } = await import(module);
const text = readFileSync(file, "utf8").replace(/^  - conda-forge$/m, `  - ${url}`);
const lock = await solve({ ymlOrSpecs: text, platform });
console.log(JSON.stringify(lock));
