import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const page = readFileSync(new URL("../../crates/airmile-live/src/server/page.html", import.meta.url), "utf8");
const source = page.slice(page.indexOf("const LIMIT"), page.indexOf("// Records of the last second"));

/** The times that answers cover, in seconds: each is the log's time and the number of gaps. */
function known(answers) {
  const of = new Function(source + "return [note, () => known];")();
  for (const [now, gaps] of answers) of[0]([], now * 1e6, gaps);
  return of[1]().map((one) => one.map((us) => us / 1e6));
}

describe("the times that the page of live has bursts of", () => {
  it("go on while the source is there", () => {
    expect(known([[10, 0], [11, 0], [12, 0]])).toEqual([[10, 12]]);
  });
  it("have a gap where the source was away, whether or not its first records are read", () => {
    const parts = (answers) => known(answers).filter(([from, to]) => from < to);
    expect(parts([[10, 0], [11, 0], [11, 1], [16, 1], [17, 1]])).toEqual([[10, 11], [16, 17]]);
    expect(parts([[10, 0], [11, 0], [11.4, 1], [16, 1], [17, 1]])).toEqual([[10, 11], [16, 17]]);
    expect(parts([[10, 0], [11, 0], [16, 1], [17, 1]])).toEqual([[10, 11]]);
  });
  it("begin with the answer if the source was away before", () => {
    const burst = { dir: "dl", start_us: 1e6, end_us: 2e6 };
    const of = new Function(source + "return [note, () => known];")();
    of[0]([burst], 16e6, 1);
    expect(of[1]()).toEqual([[16e6, 16e6]]);
  });
});
