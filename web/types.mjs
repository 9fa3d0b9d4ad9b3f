// TypeScript types of the documents that pages show, from their JSON schemas.
// `node types.mjs --check` fails if the committed ones are not current.
import { readFile, writeFile } from "node:fs/promises";
import { compile } from "json-schema-to-typescript";

const DOCUMENTS = { diagnose: "DiagnoseDocument", study: "StudyDocument" };

let behind = false;
for (const [name, type] of Object.entries(DOCUMENTS)) {
  const typesFile = new URL(`src/generated/${name}.ts`, import.meta.url);
  const schemaFile = new URL(`../docs/schema/${name}.json`, import.meta.url);
  const schema = JSON.parse(await readFile(schemaFile, "utf8"));
  delete schema.title;
  const types = await compile(schema, type, {
    bannerComment: `// Made by \`npm run types\` from docs/schema/${name}.json. Do not edit.`,
    additionalProperties: false,
    style: { printWidth: 100 },
  });
  if (!process.argv.includes("--check")) {
    await writeFile(typesFile, types);
  } else if ((await readFile(typesFile, "utf8").catch(() => "")) !== types) {
    console.error(`web/src/generated/${name}.ts is not current with docs/schema: run \`npm run types\``);
    behind = true;
  }
}
process.exit(behind ? 1 : 0);
