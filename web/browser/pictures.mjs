// Takes the pictures of README and site: the report of a run of the lab, light and dark.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, open, run, skipWithoutBrowser, workDir } from "./browser.mjs";

skipWithoutBrowser("pictures");
const pictures = fileURLToPath(new URL("../../docs/pictures", import.meta.url));
mkdirSync(pictures, { recursive: true });
const dir = workDir();
run("lab", "run", "busy-video", "-o", join(dir, "run"), "-q");
const file = join(dir, "report.html");
run("diagnose", join(dir, "run"), "--html", file, "-q");

const browser = await launch();
for (const colorScheme of ["light", "dark"]) {
  const viewport = { width: 1200, height: 900 };
  const { page, context } = await open(browser, file, { colorScheme, viewport });
  await page.screenshot({ path: join(pictures, `report-${colorScheme}.png`) });
  await context.close();
}
await browser.close();
