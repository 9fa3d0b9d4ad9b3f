import { describe, expect, it } from "vitest";
import { causeWords } from "../src/figures/transfers";
import type { TransferDiagnosis } from "../src/generated/diagnose";

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
