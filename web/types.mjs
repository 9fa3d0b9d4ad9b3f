// TypeScript types of the `diagnose` document, from its JSON schema.
// `node types.mjs --check` fails where the committed ones are behind.
import { readFile, writeFile } from "node:fs/promises";
import { compile } from "json-schema-to-typescript";

const schemaFile = new URL("../docs/schema/diagnose.json", import.meta.url);
const typesFile = new URL("src/generated/diagnose.ts", import.meta.url);

const schema = JSON.parse(await readFile(schemaFile, "utf8"));
delete schema.title;
const types = await compile(schema, "DiagnoseDocument", {
  bannerComment: "// Made by `npm run types` from docs/schema/diagnose.json. Do not edit.",
  additionalProperties: false,
  style: { printWidth: 100 },
});
if (process.argv.includes("--check")) {
  const committed = await readFile(typesFile, "utf8").catch(() => "");
  if (committed !== types) {
    console.error("web/src/generated/diagnose.ts is behind docs/schema: run `npm run types`");
    process.exit(1);
  }
} else {
  await writeFile(typesFile, types);
}
