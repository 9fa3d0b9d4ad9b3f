/** Transfers: verdict, shares of time, evidence with links to its place. */

import type { DiagnoseDocument, EvidenceItem, TransferDiagnosis } from "../generated/diagnose";
import type { SeriesHead } from "../data/decode";
import { h, prose, section } from "../dom";
import { bitrate, bytes, confidence, DASH, duration, orDash, percent, unbroken, words } from "../format";
import { inFull } from "../zone";
import { badge, family } from "./verdict";

/** Number of transfers explained at first; more on demand. */
const EXPLAINED = 4;
const EXPLAINED_NARROW = 2;
const MORE = 20;

export type Locate = (transfer: TransferDiagnosis, fromTti: number, toTti: number) => void;

/** `head` has a saving and frames for each transfer in the order of the document. */
export function transfersSection(document: DiagnoseDocument, head: SeriesHead, locate: Locate): HTMLElement {
  const order = slowestFirst(document.transfers, head);
  const list = h("div", { class: "cards" });
  let shown = 0;
  const more = h("button", { type: "button", class: "more" });
  const show = (n: number): void => {
    for (const one of order.slice(shown, shown + n)) list.append(card(one, locate));
    shown = Math.min(order.length, shown + n);
    const rest = order.length - shown;
    more.hidden = rest === 0;
    more.textContent = rest > MORE ? `Explain ${MORE} of ${rest} more` : `Explain ${rest} more`;
  };
  more.addEventListener("click", () => show(MORE));
  show(matchMedia("(max-width: 560px)").matches ? EXPLAINED_NARROW : EXPLAINED);
  if (order.length === 0) list.append(h("p", {}, "No transfer was found."));
  const notes = ["Evidence links show their place on the timeline."];
  if (order.length > 1) notes.unshift("Slowest first.");
  if (order.some((one) => one.frames.some((frames) => frames !== null))) {
    const name = head.capture?.split(/[/\\]/).at(-1) ?? "";
    notes.push(`Frames are those of ${name} in that time, by the numbers of Wireshark.`);
  }
  return section("transfers", "Transfers", h("p", { class: "note" }, notes.join(" ")), list, more);
}

interface Explained {
  transfer: TransferDiagnosis;
  saving: string | null | undefined;
  frames: ([number, number] | null)[];
}

/** Transfers with their savings, those that took longest first: the order of the command's summary. */
export function slowestFirst(
  transfers: TransferDiagnosis[],
  { savings, frames }: Pick<SeriesHead, "savings" | "frames">,
): Explained[] {
  return transfers
    .map((transfer, i) => ({ transfer, saving: savings[i], frames: frames?.[i] ?? [] }))
    .sort((a, b) => b.transfer.duration_ms - a.transfer.duration_ms);
}

function card({ transfer, saving, frames }: Explained, locate: Locate): HTMLElement {
  const facts: string[] = [];
  if (typeof transfer.start_us === "number") facts.push(`from ${inFull(transfer.start_us)}`);
  facts.push(duration(transfer.duration_ms));
  if (typeof transfer.bytes === "number") facts.push(bytes(transfer.bytes));
  facts.push(transfer.dir === "dl" ? "downlink" : "uplink");
  if (transfer.overlapped) facts.push("overlaps another transfer");
  const evidence = h("ul", { class: "evidence" });
  // Evidence of the whole transfer has its frames.
  const isWhole = (one: EvidenceItem): boolean => one.from_tti === transfer.start_tti && one.to_tti === transfer.end_tti;
  transfer.evidence.forEach((item, i) => {
    evidence.append(h("li", {}, link(item, transfer, locate), isWhole(item) ? null : framesOf(frames[i])));
  });
  if (saving) evidence.append(h("li", {}, unbroken(saving)));
  const title = h("h3", {}, transfer.id, " ", badge(transfer.verdict));
  if (transfer.verdict !== "unknown") {
    title.append(h("span", { class: "confidence" }, `${confidence(transfer.confidence)} confident`));
  }
  return h(
    "article",
    { class: `card ${family(transfer.verdict)}` },
    title,
    transfer.name && transfer.name !== transfer.id && h("p", { class: "page-url" }, transfer.name),
    h("p", { class: "note" }, place(facts.join(" · "), transfer, locate, transfer.start_tti, transfer.end_tti), framesOf(frames[transfer.evidence.findIndex(isWhole)])),
    sharesBar(transfer, locate),
    evidence,
    h("p", { class: "next" }, h("strong", {}, "Next: "), ...prose(transfer.next_step)),
  );
}

/** The frames of a piece of evidence, with Wireshark's display filter for them. */
function framesOf(frames: [number, number] | null | undefined): HTMLElement | null {
  if (!frames) return null;
  const [first, last] = frames;
  const filter = `frame.number >= ${first} && frame.number <= ${last}`;
  const text = first === last ? `frame ${first}` : `frames ${first} to ${last}`;
  return h("span", { class: "note", title: filter }, ` (${text})`);
}

const link = (item: EvidenceItem, transfer: TransferDiagnosis, locate: Locate): HTMLElement =>
  place(item.what, transfer, locate, item.from_tti, item.to_tti);

/** A text that links to its place on the timeline, if it has one. */
function place(
  text: string,
  transfer: TransferDiagnosis,
  locate: Locate,
  fromTti: number,
  toTti: number,
): HTMLElement {
  const shown = unbroken(text);
  if (toTti <= fromTti) return h("span", {}, shown);
  const go = (event: Event): void => {
    event.preventDefault();
    locate(transfer, fromTti, toTti);
  };
  return h("a", { href: "#timeline", click: go, "aria-label": `${text}: show on the timeline` }, shown);
}

/** Causes in drawing order: the radio's first. */
export function orderedShares(transfer: TransferDiagnosis): [string, number][] {
  const rank = (cause: string): number =>
    cause.startsWith("radio") ? 0 : cause === "unknown" ? 2 : 1;
  return Object.entries(transfer.shares)
    .filter(([, ms]) => ms > 0)
    .sort(([a, most], [b, ms]) => rank(a) - rank(b) || ms - most || a.localeCompare(b));
}

const CAUSE_WORDS: Record<string, string> = {
  radio: "data waited for the radio",
  not_radio: "queue empty",
  unknown: "unknown",
};

/** A cause in words. The time that packets alone do not assign is not unknown: data was on its way. */
export function causeWords(cause: string, transfer: Pick<TransferDiagnosis, "suspects">): string {
  if (cause === "unknown" && transfer.suspects.length > 0) return "in the network: packets alone do not show in which queue";
  return CAUSE_WORDS[cause] ?? words(cause);
}

/** Causes and their shares; a cause links to its evidence. */
function sharesBar(transfer: TransferDiagnosis, locate: Locate): HTMLElement {
  const shares = orderedShares(transfer);
  const total = shares.reduce((sum, [, ms]) => sum + ms, 0) || 1;
  const bar = h("div", { class: "bar", "aria-hidden": "true" });
  const legend = h("ul", { class: "legend" });
  for (const [cause, ms] of shares) {
    const part = h("span", { class: `part cause-${cause}` });
    part.style.flexGrow = String(ms / total);
    bar.append(part);
    const text = `${causeWords(cause, transfer)} ${percent(ms / total)}, ${duration(ms)}`;
    const swatch = h("span", { class: `swatch cause-${cause}` });
    const item = transfer.evidence.find(({ what }) => what.startsWith(`${words(cause)}:`));
    legend.append(h("li", {}, swatch, item ? link({ ...item, what: text }, transfer, locate) : text));
  }
  return h("div", { class: "shares" }, bar, legend);
}

/** The columns of the transfers table. */
export function transferRow(transfer: TransferDiagnosis, time: (us: number) => string): string[] {
  const shares = transfer.throughput_time_ms === null ? [] : Object.entries(transfer.shares);
  const ms = (is: (cause: string) => boolean): string => {
    const found = shares.filter(([cause]) => is(cause));
    return found.length > 0 ? found.reduce((sum, [, v]) => sum + v, 0).toFixed(0) : DASH;
  };
  const radio = (cause: string): boolean => cause.startsWith("radio");
  const unknown = (cause: string): boolean => cause === "unknown";
  return [
    transfer.id,
    words(transfer.verdict),
    transfer.verdict === "unknown" ? DASH : confidence(transfer.confidence),
    transfer.dir,
    orDash(transfer.start_us, time),
    transfer.duration_ms.toFixed(0),
    orDash(transfer.bytes, bytes),
    ms(radio),
    ms((cause) => !radio(cause) && !unknown(cause)),
    ms(unknown),
    orDash(transfer.link_demand, (demand) => percent(demand, 1)),
    orDash(transfer.link_throughput_bps, bitrate),
  ];
}
