/** The timeline: panels on one axis, and every way to move along it. */

import type { DiagnoseDocument, Direction } from "../generated/diagnose";
import { h, section } from "../dom";
import { duration, elapsed, percent, plural, timeOfDay } from "../format";
import { meanShare } from "../data/pyramid";
import type { Series } from "../series";
import { View } from "../view";
import { allocationPanel } from "./allocation";
import { GUTTER, MARGIN } from "./axes";
import { lanes } from "./lanes";
import { linePanel } from "./line_panel";

const HELP =
  "Drag to zoom, wheel or pinch to zoom, shift and wheel or arrow keys to move, " +
  "plus and minus to zoom, 0 or double click for all.";

export interface Timeline {
  element: HTMLElement;
  view: View;
  /** Draws; call it once the element is on the page. */
  start(): void;
  /** Zooms to TTIs from the axis' origin, and goes there. */
  locate(dir: Direction, from: number, to: number): void;
}

export function timelineSection(document: DiagnoseDocument, series: Series): Timeline {
  const view = new View(fullRange(document, series));
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
  const button = (name: string, label: string, act: () => void): HTMLElement =>
    h("button", { type: "button", "aria-label": label, title: label, click: act }, name);
  const controls = h(
    "div",
    { class: "controls" },
    directions.length > 1 && choose,
    h(
      "div",
      { class: "buttons" },
      button("‹", "Earlier", () => view.pan(-0.25)),
      button("›", "Later", () => view.pan(0.25)),
      button("−", "Zoom out", () => view.zoom(2)),
      button("+", "Zoom in", () => view.zoom(0.5)),
      button("All", "Show all", () => view.reset()),
    ),
  );
  const box = section(
    "timeline",
    "Timeline",
    controls,
    legend(series),
    plots,
    hover,
    status,
    h("p", { class: "note", id: "timeline-help" }, HELP),
  );

  const select = (from: number, to: number): void => view.set({ from, to });
  const panel = (title: string): HTMLElement => {
    const place = h("div", { class: "panel", "aria-hidden": "true" });
    plots.append(h("p", { class: "panel-title" }, title), place);
    return place;
  };
  const start = (): void => {
    setDirection = allocationPanel(
      panel("Share of the cell's PRBs per TTI"),
      series,
      view,
      dir,
      select,
    ).setDirection;
    lanes(panel("Transfers and the state of the queue"), document, series, view);
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

/** From the first thing that is drawn; the axis itself begins at a block. */
function fullRange(document: DiagnoseDocument, series: Series): { from: number; to: number } {
  const starts = series.starts();
  for (const transfer of document.transfers) {
    const at = series.offset(transfer.start_tti);
    if (at >= 0) starts.push(at);
  }
  const to = series.head.n_tti;
  return { from: Math.min(to - 1, ...starts), to };
}

function legend(series: Series): HTMLElement {
  const items: [string, string][] = [
    ["prb", "mean share"],
    ["span", "least to most"],
    ["burst", "burst: data waits"],
    ["scheduled", "scheduled, queue emptied at once"],
    ["empty", "queue empty"],
  ];
  if (series.holes.count > 0) items.push(["hole", "records missing"]);
  const list = h("ul", { class: "legend" });
  for (const [name, text] of items) {
    list.append(h("li", {}, h("span", { class: `swatch fill-${name}` }), text));
  }
  return list;
}

/** What is shown, in words. */
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
  const whole = span >= (view.full.to - first) * 0.999;
  const width = 2 ** Math.max(0, Math.floor(Math.log2(span / 64)));
  const sample = series.allocation[dir].sample(from, to, width);
  const mean = meanShare(sample);
  const step = span * tti_ms < 1_000 ? 1 : span * tti_ms < 10_000 ? 10 : 1_000;
  const at = (tti: number): string => elapsed((tti - first) * tti_ms, step);
  const inside = document.transfers.filter(
    (t) => series.offset(t.start_tti) < to && series.offset(t.end_tti) > from,
  );
  const parts = [
    `${whole ? "All" : `From ${at(from)} to ${at(to)}`} (${duration(span * tti_ms)}), ` +
      `${dir === "dl" ? "downlink" : "uplink"}: ${plural(b - a, "burst")}, data waited for ` +
      `${percent(spans.cover(from, to) / span)} of the time`,
  ];
  if (mean !== null) parts.push(`on average ${percent(mean, 1)} of the cell's PRBs`);
  else parts.push("its share of the cell's PRBs is unknown");
  if (inside.length > 0) {
    const ids = inside.slice(0, 4).map((t) => t.id);
    const more = inside.length > 4 ? ` and ${inside.length - 4} more` : "";
    parts.push(`${inside.length === 1 ? "transfer" : "transfers"} ${ids.join(", ")}${more}`);
  }
  return `${parts.join("; ")}.`;
}

/** What is under the pointer, in words. */
function readout(
  document: DiagnoseDocument,
  series: Series,
  dir: Direction,
  at: number,
): string {
  const tti = Math.floor(at);
  const clock = series.clock(tti);
  const parts = [`TTI ${series.head.first_tti + tti}`];
  if (clock !== null) parts.push(`${timeOfDay(clock)} UTC`);
  const code = series.allocation[dir].code(tti);
  const share = series.allocation[dir].share(code);
  if (code === 0) parts.push("not scheduled");
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
    parts.push(code === 0 ? "queue empty" : "the queue was emptied");
  }
  const first = tti + series.head.first_tti;
  const inside = document.transfers.filter((t) => t.start_tti <= first && first < t.end_tti);
  if (inside.length > 0) parts.push(`transfer ${inside.slice(0, 3).map((t) => t.id).join(", ")}`);
  return parts.join(" · ");
}

/** Wheel, pinch, touch and keys; dragging with a mouse is the plots' own. */
function interact(plots: HTMLElement, view: View, hover: (tti: number | null) => void): void {
  const placeOf = (clientX: number): number => {
    const box = plots.getBoundingClientRect();
    const share = (clientX - box.left - GUTTER) / Math.max(1, box.width - GUTTER - MARGIN);
    const { from, to } = view.range;
    return from + Math.min(1, Math.max(0, share)) * (to - from);
  };
  plots.addEventListener(
    "wheel",
    (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
      event.preventDefault();
      const by = event.deltaMode === 1 ? 30 : 1;
      if (sideways) {
        const delta = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.deltaY;
        view.pan((delta * by) / 600);
      } else {
        const factor = Math.exp(Math.min(1, Math.max(-1, (event.deltaY * by) / 300)));
        view.zoom(factor, placeOf(event.clientX));
      }
    },
    { passive: false },
  );
  plots.addEventListener("dblclick", () => view.reset());
  plots.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act(view);
  });
  let pointer: number | null = null;
  let frame = 0;
  const tell = (): void => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => hover(pointer === null ? null : placeOf(pointer)));
  };
  plots.addEventListener("pointermove", (event) => {
    pointer = event.clientX;
    tell();
  });
  plots.addEventListener("pointerleave", () => {
    pointer = null;
    tell();
  });
  view.onChange(tell);
  touches(plots, view, placeOf);
}

const KEYS: Record<string, (view: View) => void> = {
  ArrowLeft: (view) => view.pan(-0.2),
  ArrowRight: (view) => view.pan(0.2),
  PageUp: (view) => view.pan(-0.9),
  PageDown: (view) => view.pan(0.9),
  Home: (view) => view.set({ from: view.full.from, to: view.full.from + span(view) }),
  End: (view) => view.set({ from: view.full.to - span(view), to: view.full.to }),
  "+": (view) => view.zoom(0.5),
  "=": (view) => view.zoom(0.5),
  "-": (view) => view.zoom(2),
  "0": (view) => view.reset(),
  Escape: (view) => {
    view.mark = null;
    view.changed();
  },
};

function span(view: View): number {
  return view.range.to - view.range.from;
}

/** One finger moves along, two fingers zoom; up and down stays the page's. */
function touches(plots: HTMLElement, view: View, placeOf: (x: number) => number): void {
  let last: { x: number; apart: number } | null = null;
  const state = (list: TouchList): { x: number; apart: number } => {
    const a = list[0]?.clientX ?? 0;
    const b = list[1]?.clientX ?? a;
    return { x: (a + b) / 2, apart: Math.abs(a - b) };
  };
  plots.addEventListener("touchstart", (event) => (last = state(event.touches)), { passive: true });
  plots.addEventListener("touchend", (event) => {
    last = event.touches.length > 0 ? state(event.touches) : null;
  });
  plots.addEventListener(
    "touchmove",
    (event) => {
      const now = state(event.touches);
      if (last && event.touches.length === 2 && last.apart > 10 && now.apart > 10) {
        event.preventDefault();
        view.zoom(last.apart / now.apart, placeOf(now.x));
      } else if (last && event.touches.length === 1) {
        const width = Math.max(1, plots.clientWidth - GUTTER - MARGIN);
        view.pan((last.x - now.x) / width);
      }
      last = now;
    },
    { passive: false },
  );
}
