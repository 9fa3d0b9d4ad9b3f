import { describe, expect, it } from "vitest";
import { whoseTime } from "../src/figures/pages";
import { causeWords } from "../src/figures/transfers";
import type { DiagnoseDocument, TransferDiagnosis } from "../src/generated/diagnose";

/** A transfer with suspects was judged by packets alone. */
const transfer = (suspects: { suspect: string; probability: number }[]): TransferDiagnosis =>
  ({ suspects }) as unknown as TransferDiagnosis;

describe("causes in words", () => {
  it("does not call time in the network unknown where packets alone were judged", () => {
    const judged = transfer([{ suspect: "radio", probability: 0.99 }]);
    expect(causeWords("unknown", judged)).toMatch(/^in the network/);
    expect(causeWords("unknown", transfer([]))).toBe("unknown");
    expect(causeWords("radio", judged)).toBe("data waited for the radio");
  });
});

describe("what a page's shares are of", () => {
  const says = (dl_blocks: number, shares: Record<string, number>): string => {
    const counts = { dl_blocks, ul_blocks: 0 };
    const document = { evidence_counts: counts, session: { shares, suspects: [] }, transfers: [transfer([])] };
    return whoseTime(document as unknown as DiagnoseDocument);
  };
  it("names a verdict on transfers and the phone's packets only where there are any", () => {
    expect(says(0, {})).not.toMatch(/verdict/);
    expect(says(9, {})).toMatch(/verdict/);
    expect(says(9, {})).not.toMatch(/packets/);
    expect(says(9, { radio: 1 })).toMatch(/packets/);
  });
});
