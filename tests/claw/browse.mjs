#!/usr/bin/env node
// Loads a page in a fresh Chromium, and prints the seconds from navigation to the end of
// loading by the page's own clock (Navigation Timing).
import { setTimeout as sleep } from "node:timers/promises";
import { Chromium, findChromium } from "../../lab/player/chromium.mjs";

const [url] = process.argv.slice(2);
const browser = new Chromium();
try {
  await browser.start(findChromium());
  // The server's certificate is self-signed.
  await browser.send("Security.enable");
  await browser.send("Security.setIgnoreCertificateErrors", { ignore: true });
  await browser.send("Page.enable");
  const loaded = new Promise((resolve) => browser.on("Page.loadEventFired", resolve));
  const late = sleep(60_000, undefined, { ref: false }).then(() => {
    throw new Error("not loaded within 60 s");
  });
  const { errorText } = await browser.send("Page.navigate", { url });
  if (errorText) throw new Error(errorText);
  await Promise.race([loaded, browser.gone, late]);
  const expression = `JSON.stringify({
    seconds: performance.getEntriesByType("navigation")[0].loadEventStart / 1000,
    protocol: performance.getEntriesByType("navigation")[0].nextHopProtocol,
    bytes: performance.getEntriesByType("resource").reduce((sum, { decodedBodySize: n }) => sum + n, 0),
    objects: performance.getEntriesByType("resource").length })`;
  const { result } = await browser.send("Runtime.evaluate", { expression });
  console.log(result.value);
} catch (error) {
  console.error(`browse: ${url}: ${error.message}`);
  process.exitCode = 1;
} finally {
  await browser.close();
}
