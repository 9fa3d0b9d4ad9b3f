// Builds dist/: script, style, and the policy that admits these two alone.
// `node build.mjs --check` builds in memory and compares with what is committed.
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const result = await build({
  absWorkingDir: here,
  entryPoints: ["src/report.ts"],
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
  // Nothing inside may end the element that it is put into.
  const text = file.text.trim().replaceAll("</script", "<\\/script").replaceAll("</style", "<\\/style");
  built.set(file.path.endsWith(".css") ? "report.css" : "report.js", text);
}
const hash = (text) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
built.set(
  "policy.txt",
  `script-src ${hash(built.get("report.js"))}; style-src ${hash(built.get("report.css"))}\n`,
);

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
