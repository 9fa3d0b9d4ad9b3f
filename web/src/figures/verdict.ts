/** The verdict at the top of the report. */

import type { DiagnoseDocument, Page, TransferDiagnosis } from "../generated/diagnose";
import { h } from "../dom";
import { bytes, confidence, duration, orDash, percent, plural, unbroken, words } from "../format";
import { dateTime, zoneName } from "../zone";

export type Verdict = TransferDiagnosis["verdict"];

/** The style of a verdict: the radio, something else, both, or unknown. */
export function family(verdict: Verdict | Page["verdict"]): "radio" | "not_radio" | "mixed" | "unknown" {
  if (verdict === "mixed" || verdict === "unknown") return verdict;
  if (verdict === "unlogged") return "unknown";
  return verdict.startsWith("radio") ? "radio" : "not_radio";
}

/** A verdict in words, with a mark whose shape identifies it without colour. */
export function badge(verdict: Verdict): HTMLElement {
  const mark = h("span", { class: "mark", "aria-hidden": "true" });
  return h("span", { class: `badge ${family(verdict)}` }, mark, words(verdict));
}

export function verdictHeader(document: DiagnoseDocument): HTMLElement {
  const { session } = document;
  const facts: [string, string][] = [
    ["Verdict", session.verdict],
    ["Confidence", session.verdict === "unknown" ? "–" : confidence(session.confidence)],
    ["Link demand", orDash(session.link_demand, (demand) => percent(demand))],
    ["Transfers", transfersFact(document)],
  ];
  const bytesOf = document.transfers.reduce((sum, t) => sum + (t.bytes ?? 0), 0);
  if (bytesOf > 0) facts.push(["Carried", bytes(bytesOf)]);
  const cell = cellFact(document);
  if (cell) facts.push(["Cell", cell]);
  const list = h("dl", { class: "facts" });
  for (const [name, value] of facts) {
    const shown = name === "Verdict" ? badge(session.verdict) : value;
    list.append(h("div", {}, h("dt", {}, name), h("dd", {}, shown)));
  }
  return h(
    "section",
    { class: `verdict ${family(session.verdict)}`, id: "verdict", "aria-label": "Verdict" },
    h("p", { class: "says" }, unbroken(session.says)),
    list,
  );
}

function transfersFact(document: DiagnoseDocument): string {
  const named: Record<string, string> = { given: "as given", captured: "requests and answers of the capture" };
  const from = named[document.transfers_from] ?? "activity split at pauses";
  const n = document.transfers.length;
  return n === 0 ? "none" : `${n} (${from})`;
}

/** The name of a carrier's frequency number. */
export function arfcnName(document: Pick<DiagnoseDocument, "evidence_counts">): string {
  const { nr_blocks, dl_blocks, ul_blocks } = document.evidence_counts;
  return nr_blocks > 0 && nr_blocks === dl_blocks + ul_blocks ? "NR-ARFCN" : "EARFCN";
}

function cellFact(document: DiagnoseDocument): string {
  const parts: string[] = [];
  const cell = document.cells.toSorted((a, b) => b.measurements - a.measurements)[0];
  if (typeof cell?.pci === "number") parts.push(`PCI ${cell.pci}`);
  if (typeof cell?.earfcn === "number") parts.push(`${arfcnName(document)} ${cell.earfcn}`);
  if (document.cells.length > 1) parts.push(`and ${document.cells.length - 1} more`);
  if (document.n_prb_cell) parts.push(`${document.n_prb_cell} PRBs`);
  return parts.join(", ");
}

/** The input files, and the time of the log. */
export function sourceLine(document: DiagnoseDocument): HTMLElement {
  const files = document.files.map((file) => file.path.split(/[/\\]/).at(-1) ?? file.path);
  const starts = document.files.flatMap((file) => file.start_us ?? []);
  const ends = document.files.flatMap((file) => file.end_us ?? []);
  const parts = [files.length > 3 ? plural(files.length, "file") : files.join(", ")];
  if (starts.length > 0 && ends.length > 0) {
    const start = Math.min(...starts);
    parts.push(`${dateTime(start)} ${zoneName(start)}`);
    parts.push(duration((Math.max(...ends) - start) / 1_000));
  }
  return h("p", { class: "source" }, parts.join(" · "));
}
