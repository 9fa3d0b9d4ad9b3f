// Builds dist/: for each page its script, its style, and the policy that admits only these.
// `node build.mjs --check` builds in memory and compares with the committed files.
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const PAGES = ["report", "study"];
const here = fileURLToPath(new URL(".", import.meta.url));
const result = await build({
  absWorkingDir: here,
  entryPoints: PAGES.map((page) => `src/${page}.ts`),
  outdir: "dist",
  bundle: true,
  minify: true,
  charset: "ascii",
  format: "iife",
  target: ["es2022"],
  legalComments: "none",
  write: false,
});
const built = new Map();
for (const file of result.outputFiles) {
  // The content must not contain the end tag of its element.
  const text = file.text.trim().replaceAll("</script", "<\\/script").replaceAll("</style", "<\\/style");
  built.set(basename(file.path), text);
}
const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
for (const page of PAGES) {
  const [script, style] = [hash(built.get(`${page}.js`)), hash(built.get(`${page}.css`))];
  built.set(`${page}.policy.txt`, `script-src ${script}; style-src ${style}\n`);
}

let behind = false;
await mkdir(new URL("dist", import.meta.url), { recursive: true });
for (const [name, text] of built) {
  const file = new URL(`dist/${name}`, import.meta.url);
  if (!process.argv.includes("--check")) {
    await writeFile(file, text);
    console.log(`dist/${name}: ${text.length} bytes`);
  } else if ((await readFile(file, "utf8").catch(() => "")) !== text) {
    console.error(`web/dist/${name} is not what the source gives: run \`make web\``);
    behind = true;
  }
}
process.exit(behind ? 1 : 0);
