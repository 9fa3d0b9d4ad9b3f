// Builds dist/ (modules and their types) from src/. With --check it builds into a temporary
// directory and compares with the committed files.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = join(here, "dist");
const check = process.argv.includes("--check");
const out = check ? mkdtempSync(join(tmpdir(), "airmile-keep-warm-")) : dist;
if (!check) rmSync(dist, { recursive: true, force: true });
const tsc = join(here, "../node_modules/.bin/tsc");
const done = spawnSync(tsc, ["-p", here, "--outDir", out], { stdio: "inherit" });
let status = done.status ?? 1;
if (check) {
  const files = (dir) => Object.fromEntries(readdirSync(dir).map((name) => [name, readFileSync(join(dir, name), "utf8")]));
  const [built, committed] = [files(out), files(dist)];
  for (const name of new Set([...Object.keys(built), ...Object.keys(committed)])) {
    if (built[name] === committed[name]) continue;
    console.error(`web/keep-warm/dist/${name} does not match the source: run \`make web\``);
    status = 1;
  }
  rmSync(out, { recursive: true });
}
process.exit(status);
