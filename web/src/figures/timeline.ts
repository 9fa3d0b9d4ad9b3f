/** The timeline: panels on one axis, and every way to move along it. */

import type { DiagnoseDocument, Direction } from "../generated/diagnose";
import { h, section } from "../dom";
import { duration, elapsed, percent, plural } from "../format";
import { meanShare } from "../data/pyramid";
import type { Series } from "../series";
import { isAll, opening, type Range, View } from "../view";
import { date, inFull, tickTime, zoneName } from "../zone";
import { allocationPanel, allocationTitle } from "./allocation";
import { HELP, interact, zoomButtons } from "./interact";
import { causeLane, lanes } from "./lanes";
import { linePanel } from "./line_panel";
import { causeWords } from "./transfers";
import { senderLegend, senderPanels, senderReadout, senderSummary } from "./sender_panels";

export interface Timeline {
  element: HTMLElement;
  view: View;
  /** Draws; call it after the element is on the page. */
  start(): void;
  /** Zooms to a range of TTIs from the axis' origin, and scrolls there. */
  locate(dir: Direction, from: number, to: number): void;
}

export function timelineSection(document: DiagnoseDocument, series: Series): Timeline {
  const full = fullRange(document, series);
  const view = new View(full, opening(transferRanges(document, series), full));
  const directions = (["dl", "ul"] as const).filter((dir) => series.has(dir));
  const wanted = document.session.dir ?? "dl";
  let dir: Direction = directions.includes(wanted) ? wanted : (directions[0] ?? "dl");
  let setDirection: (dir: Direction) => void = () => {};

  const hover = h("p", { class: "readout", "aria-hidden": "true" });
  const status = h("p", { class: "summary", role: "status", id: "timeline-summary" });
  const plots = h("div", {
    class: "plots",
    id: "timeline-plots",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "zoomable timeline",
    "aria-label": "Timeline of the allocation",
    "aria-describedby": "timeline-help timeline-summary",
  });
  const choose = h("fieldset", { class: "choice" }, h("legend", { class: "hidden" }, "Direction"));
  for (const each of directions) {
    const id = `direction-${each}`;
    const input = h("input", { type: "radio", name: "direction", id, value: each });
    input.checked = each === dir;
    input.addEventListener("change", () => choice(each));
    const name = each === "dl" ? "Downlink" : "Uplink";
    choose.append(h("label", { for: id }, input, ` ${name}`));
  }
  const choice = (to: Direction): void => {
    dir = to;
    const input = choose.querySelector<HTMLInputElement>(`#direction-${to}`);
    if (input) input.checked = true;
    setDirection(to);
    describe();
  };
  const describe = (): void => {
    status.textContent = summary(document, series, dir, view);
  };
  const controls = h(
    "div",
    { class: "controls" },
    directions.length > 1 && choose,
    zoomButtons(view, "Transfers"),
  );
  const box = section(
    "timeline",
    "Timeline",
    controls,
    directions.length > 0 && legend(series),
    causeLegend(document, series, full),
    senderLegend(series),
    plots,
    hover,
    status,
    axisNote(series, full),
    h("p", { class: "note", id: "timeline-help" }, HELP),
  );

  const select = (from: number, to: number): void => view.set({ from, to });
  const panel = (title: string): HTMLElement => {
    const place = h("div", { class: "panel", "aria-hidden": "true" });
    plots.append(h("p", { class: "panel-title" }, title), place);
    return place;
  };
  const start = (): void => {
    if (directions.some((each) => !series.allocation[each].empty)) {
      const place = panel(allocationTitle(series, dir));
      const plot = allocationPanel(place, series, view, dir, select);
      setDirection = (to): void => {
        const title = place.previousElementSibling;
        if (title) title.textContent = allocationTitle(series, to);
        plot.setDirection(to);
      };
    }
    const queue = directions.length > 0 ? "Transfers and the state of the queue" : "Transfers";
    lanes(panel(queue), document, series, view);
    if (series.causes.spans.count > 0) causeLane(panel("What limited the transfers"), series, view);
    senderPanels(panel, series, view, select);
    if (series.load.at.length > 0) {
      const show = (v: number): string => `${Math.round(v * 100)} %`;
      const common = { side: "left", show, range: [0, 1.02] as [number, number] } as const;
      linePanel(panel("Cell load: all users (solid), this phone (dashed)"), series, view, [
        { line: series.load, label: "cell", colour: "load", ...common },
        { line: series.ownLoad, label: "own", colour: "prb", dashed: true, ...common },
      ], select);
    }
    if (series.rsrp.at.length > 0) {
      linePanel(panel("Signal: RSRP in dBm (solid, left), SNR in dB (dashed, right)"), series, view, [
        { line: series.rsrp, label: "RSRP", colour: "rsrp", side: "left", show: (v) => v.toFixed(0) },
        {
          line: series.snr,
          label: "SNR",
          colour: "snr",
          dashed: true,
          side: "right",
          show: (v) => `${v.toFixed(0)} dB`,
        },
      ], select);
    }
    interact(plots, view, (tti) => {
      hover.textContent = tti === null ? "" : readout(document, series, dir, tti);
    });
    let timer = 0;
    view.onChange(() => {
      clearTimeout(timer);
      timer = setTimeout(describe, 250);
    });
    describe();
  };
  return {
    element: box,
    view,
    start,
    locate(to, from, end) {
      if (to !== dir && directions.includes(to)) choice(to);
      view.show({ from, to: end });
      plots.focus({ preventScroll: true });
      box.scrollIntoView({ block: "start" });
    },
  };
}

function transferRanges(document: DiagnoseDocument, series: Series): Range[] {
  return document.transfers.map((transfer) => ({
    from: series.offset(transfer.start_tti),
    to: series.offset(transfer.end_tti),
  }));
}

/** Start of the first data; the axis itself begins at a block. */
function fullRange(document: DiagnoseDocument, series: Series): Range {
  const starts = series.starts();
  for (const { from } of transferRanges(document, series)) if (from >= 0) starts.push(from);
  const to = series.head.n_tti;
  return { from: Math.min(to - 1, ...starts), to };
}

/** The date and the zone of the axis; nothing if its times are unknown. */
function axisNote(series: Series, full: Range): HTMLElement | null {
  const [from, to] = [series.clock(full.from), series.clock(full.to)];
  if (from === null || to === null) return null;
  const [first, last] = [date(from), date(to)];
  const dates = first === last ? first : `${first} to ${last}`;
  return h("p", { class: "note", id: "timeline-zone" }, `Times of day in ${zoneName(from)}, ${dates}.`);
}

function legend(series: Series): HTMLElement {
  const items: [string, string][] = [
    ["prb", "mean share"],
    ["span", "minimum to maximum"],
    ["burst", "burst: data is waiting"],
    ["scheduled", "scheduled, queue emptied by each block"],
    ["empty", "queue empty"],
  ];
  if (series.holes.count > 0) items.push(["hole", "records missing"]);
  const list = h("ul", { class: "legend" });
  for (const [name, text] of items) {
    list.append(h("li", {}, h("span", { class: `swatch fill-${name}` }), text));
  }
  return list;
}

function causeLegend(document: DiagnoseDocument, { causes }: Series, { from, to }: Range): HTMLElement | null {
  const items = causes.within(from, to).map(([cause]) =>
    h("li", {}, h("span", { class: `swatch cause-${cause}` }), causeName(document, cause)),
  );
  return items.length > 0 ? h("ul", { class: "legend" }, ...items) : null;
}

/** The cause in words: whether the radio was logged is the same for all transfers. */
const causeName = ({ transfers }: DiagnoseDocument, cause: string): string =>
  causeWords(cause, transfers[0] ?? { suspects: [] });

/** Summary of the visible range, in words. */
function summary(
  document: DiagnoseDocument,
  series: Series,
  dir: Direction,
  view: View,
): string {
  const { from, to } = view.range;
  const { tti_ms } = series.head;
  const span = to - from;
  const first = view.full.from;
  const { spans } = series.bursts[dir];
  const [a, b] = spans.within(from, to);
  const width = 2 ** Math.max(0, Math.floor(Math.log2(span / 64)));
  const sample = series.allocation[dir].sample(from, to, width);
  const mean = meanShare(sample);
  const step = span * tti_ms < 1_000 ? 1 : span * tti_ms < 10_000 ? 10 : 1_000;
  const at = (tti: number): string => {
    const us = series.clock(tti);
    return us === null ? elapsed((tti - first) * tti_ms, step) : tickTime(us, step);
  };
  const inside = document.transfers.filter(
    (t) => series.offset(t.start_tti) < to && series.offset(t.end_tti) > from,
  );
  const shown = isAll(view.range, view.full)
    ? `All (${duration(span * tti_ms)})`
    : `From ${at(from)} to ${at(to)} (${duration(span * tti_ms)} of ${duration((view.full.to - first) * tti_ms)})`;
  const parts = [
    `${shown}, ` +
      `${dir === "dl" ? "downlink" : "uplink"}: ${plural(b - a, "burst")}, data waited for ` +
      `${percent(spans.cover(from, to) / span)} of the time`,
  ];
  const radio = series.has("dl") || series.has("ul");
  if (!radio) parts[0] = shown;
  else if (series.allocation[dir].empty) parts.push("its allocations are not in the log");
  else if (mean !== null) parts.push(`on average ${percent(mean, 1)} of the cell's PRBs`);
  else parts.push("its share of the cell's PRBs is unknown");
  const load = meanLoad(series, from, to);
  if (load) parts.push(`cell load ${percent(load.cell)} (this phone ${percent(load.own)})`);
  const causes = series.causes.within(from, to).sort(([, a], [, b]) => b - a);
  const ttis = causes.reduce((sum, [, n]) => sum + n, 0);
  const most = causes.slice(0, 3).map(([cause, n]) => `${causeName(document, cause)} ${percent(n / ttis)}`);
  if (most.length > 0) parts.push(`of the transfers' time: ${most.join(", ")}`);
  parts.push(...senderSummary(series, from, to));
  if (inside.length > 0) {
    const ids = inside.slice(0, 4).map((t) => t.id);
    const more = inside.length > 4 ? ` and ${inside.length - 4} more` : "";
    parts.push(`${inside.length === 1 ? "transfer" : "transfers"} ${ids.join(", ")}${more}`);
  }
  return `${parts.join("; ")}.`;
}

/** Means of the cell's load, as a share of its PRBs, and of this phone's part; `null` where no window is known. */
function meanLoad({ load, ownLoad }: Series, from: number, to: number): { cell: number; own: number } | null {
  let [cell, own, n] = [0, 0, 0];
  load.at.forEach((at, i) => {
    if (at < from || at >= to) return;
    cell += load.value(i) ?? 0;
    own += ownLoad.value(i) ?? 0;
    n += 1;
  });
  return n > 0 ? { cell: cell / n, own: own / n } : null;
}

/** Values under the pointer, in words. */
function readout(
  document: DiagnoseDocument,
  series: Series,
  dir: Direction,
  at: number,
): string {
  const tti = Math.floor(at);
  const clock = series.clock(tti);
  const radio = series.has("dl") || series.has("ul");
  const parts = [
    radio
      ? `TTI ${series.head.first_tti + tti}`
      : duration((series.head.first_tti + tti) * series.head.tti_ms),
  ];
  if (clock !== null) parts.push(inFull(clock));
  if (radio) parts.push(...radioReadout(series, dir, tti));
  const cause = series.causes.at(tti);
  if (cause !== null) parts.push(`cause: ${causeName(document, cause)}`);
  parts.push(...senderReadout(series, tti));
  const first = tti + series.head.first_tti;
  const inside = document.transfers.filter((t) => t.start_tti <= first && first < t.end_tti);
  if (inside.length > 0) parts.push(`transfer ${inside.slice(0, 3).map((t) => t.id).join(", ")}`);
  return parts.join(" · ");
}

function radioReadout(series: Series, dir: Direction, tti: number): string[] {
  const parts: string[] = [];
  const { empty } = series.allocation[dir];
  const code = series.allocation[dir].code(tti);
  const share = series.allocation[dir].share(code);
  if (empty) parts.push("allocations are not in the log");
  else if (code === 0) parts.push("not scheduled");
  else parts.push(share === null ? "scheduled" : `${percent(share)} of the PRBs`);
  const bursts = series.bursts[dir];
  const i = bursts.spans.at(tti);
  if (i >= 0) {
    parts.push(
      `burst of ${duration(bursts.spans.length(i) * series.head.tti_ms)}, opened by ` +
        `${series.bound(bursts.openedBy[i])}, closed by ${series.bound(bursts.closedBy[i])} ` +
        `(${bursts.confidence[i] ?? 0} % sure)`,
    );
  } else if (series.holes.at(tti) >= 0) {
    parts.push("records are missing here");
  } else {
    parts.push(code === 0 ? (empty ? "no burst seen" : "queue empty") : "the queue was emptied");
  }
  return parts;
}
