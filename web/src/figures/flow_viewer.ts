/** The flow viewer: select a flow, see it over time, zoom to unusual events. */

import { isAll, around as room, View, type Range } from "../view";
import { firstFrom } from "../data/lines";
import { countIn, lastBefore, UNIT_MS, windowEdge } from "../data/sequence";
import { append, h, section } from "../dom";
import { bitrate, bytes, byteTicks, count, duration, elapsed, percent, plural, words } from "../format";
import { dateTime, zoneName } from "../zone";
import type { FlowPlot, StudyDocument } from "../generated/study";
import { eventStyle, sequenceLegend } from "./events";
import { HELP, interact, zoomButtons } from "./interact";
import { measure, rangePanel } from "./range_panel";
import { sequencePanel } from "./sequence";
import { pagedTable } from "./tables";

export interface FlowViewer {
  element: HTMLElement;
  /** Whether the document includes a flow. */
  has(flow: number): boolean;
  /** Shows a flow, or a range of it in ms, and scrolls there. */
  show(flow: number, spanMs?: [number, number]): void;
}

export function flowViewer(document: StudyDocument): FlowViewer {
  const { flows } = document;
  const place = h("div", { id: "flow" });
  const select = h("select", { id: "flow-picker" });
  for (const flow of flows) {
    const text = `${flow.flow}: ${flow.label} · ${bytes(flow.facts.bytes)} · ${flow.why.join(", ")}`;
    select.append(h("option", { value: flow.flow }, text));
  }
  let drawn: Drawn | null = null;
  const open = (number: number): void => {
    const flow = flows.find((each) => each.flow === number);
    if (!flow || drawn?.flow === flow) return;
    select.value = String(number);
    drawn = draw(place, flow);
  };
  select.addEventListener("change", () => open(Number(select.value)));
  const step = (by: number): void => {
    const at = flows.findIndex((flow) => flow === drawn?.flow);
    const next = flows[(at + by + flows.length) % flows.length];
    if (next) open(next.flow);
  };
  const box = section("flows", "Flows over time");
  if (flows.length === 0) {
    box.append(h("p", { class: "absent" }, document.flows_missing ?? "There are none."));
  } else {
    const button = (text: string, label: string, by: number): HTMLElement =>
      h("button", { type: "button", "aria-label": label, click: () => step(by) }, text);
    append(box, [
      h(
        "div",
        { class: "picker" },
        h("label", { for: "flow-picker" }, plural(flows.length, "flow"), ": "),
        select,
        flows.length > 1 && button("‹", "Previous flow", -1),
        flows.length > 1 && button("›", "Next flow", 1),
      ),
      h("p", { class: "note" }, leftOut(document)),
      place,
    ]);
  }
  return {
    element: box,
    has: (number) => flows.some((flow) => flow.flow === number),
    show(number, spanMs) {
      open(number);
      if (spanMs) drawn?.view.show(units(spanMs));
      box.scrollIntoView({ block: "start" });
      drawn?.plots.focus({ preventScroll: true });
    },
  };
}

/** Draws the first flow, after the viewer is on the page. */
export function startViewer(viewer: FlowViewer, document: StudyDocument): void {
  const first = document.flows[0];
  if (!first) return;
  const select = viewer.element.querySelector<HTMLSelectElement>("#flow-picker");
  if (select) {
    select.value = String(first.flow);
    select.dispatchEvent(new Event("change"));
  }
}

export function leftOut(document: StudyDocument): string {
  const { flows, with_retransmissions, with_slow_starts, window_limited } = document.left_out;
  if (flows === 0) return "All TCP flows with data are included.";
  const parts = [
    [with_retransmissions, "with retransmissions"],
    [with_slow_starts, "with undesired slow starts"],
    [window_limited, "limited by the receive window"],
  ] as const;
  const counts = parts.filter(([n]) => n > 0).map(([n, what]) => `${count(n)} ${what}`);
  const of = counts.length > 0 ? ` (including ${counts.join(", ")})` : "";
  return `Left out: ${plural(flows, "TCP flow")} with data${of}; --flow selects others.`;
}

interface Drawn {
  flow: FlowPlot;
  view: View;
  plots: HTMLElement;
}

const units = ([from, to]: [number, number]): Range => ({
  from: from / UNIT_MS,
  to: to / UNIT_MS,
});

function draw(place: HTMLElement, flow: FlowPlot): Drawn {
  const [from, to] = flow.span_ms as [number, number];
  const full = units([from, Math.max(to, from + 1)]);
  const view = new View(room(full, { from: full.from, to: full.to }));
  const status = h("p", { class: "summary", role: "status", id: "flow-summary" });
  const hover = h("p", { class: "readout", "aria-hidden": "true" });
  const plots = h("div", {
    class: "plots",
    id: "flow-plots",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "zoomable graph",
    "aria-label": `Flow ${flow.flow} over time`,
    "aria-describedby": "flow-help flow-summary",
  });
  const known = flow.server_name && !flow.label.includes(flow.server_name);
  const name = known ? ` (${flow.server_name})` : "";
  place.replaceChildren(
    h("p", { class: "flow-says" }, h("strong", {}, flow.label, name), ` ${flow.why.join("; ")}`),
    facts(flow),
    h("div", { class: "controls" }, zoomButtons(view)),
    sequenceLegend(flow),
    plots,
    hover,
    status,
    h("p", { class: "note", id: "flow-help" }, `${merged(flow)}${HELP}`),
  );
  const list = eventTable(flow, (at) => {
    const width = Math.min(2_000, Math.max(50, (to - from) / 20));
    view.show(units([Math.max(from, at - width / 2), Math.min(to, at + width / 2)]));
    plots.focus();
  });
  if (list) place.append(list);

  const select = (a: number, b: number): void => view.set({ from: a, to: b });
  const panel = (...title: (string | Node)[]): HTMLElement => {
    const box = h("div", { class: "panel", "aria-hidden": "true" });
    plots.append(h("p", { class: "panel-title" }, ...title), box);
    return box;
  };
  const end = flow.dir === "dl" ? "client" : "server";
  sequencePanel(panel("Sequence: bytes from the start of the stream"), flow, view, select);
  if (flow.rtt.n + flow.rtt_dup_ack.n > 0) {
    const title: (string | Node)[] = [`RTT between monitor and ${end}, ms`];
    if (flow.rtt_dup_ack.n > 0) {
      const sign = (name: string): HTMLElement => h("span", { class: `glyph ${name}` }, "■");
      title.push(": ", sign("prb"), " from new ACKs, ", sign("sack"), " from the SACKs of duplicate ACKs");
    }
    const lines = [measure(flow.rtt, "prb", true), measure(flow.rtt_dup_ack, "sack", true)];
    rangePanel(panel(...title), lines, view, (ticks) => ticks.map((ms) => ms.toFixed(ms > 0 && ms < 10 ? 1 : 0)), select);
  }
  const window = flow.acks.window_bytes;
  rangePanel(
    panel("Bytes in flight, and the receive window (dashed)"),
    [
      measure(flow.flight, "burst", false),
      { at: flow.acks.at_ms, least: window, most: window, colour: "window", limit: true },
    ],
    view,
    byteTicks,
    select,
  );
  interact(plots, view, (at) => {
    hover.textContent = at === null ? "" : readout(flow, at * UNIT_MS);
  });
  let timer = 0;
  const describe = (): void => {
    status.textContent = summary(flow, view);
  };
  view.onChange(() => {
    clearTimeout(timer);
    timer = setTimeout(describe, 200);
  });
  describe();
  return { flow, view, plots };
}

function facts(flow: FlowPlot): HTMLElement {
  const { facts: f } = flow;
  const seconds = f.duration_ms / 1e3;
  const items: [string, string][] = [
    ["Start", `${dateTime(flow.start_us)} ${zoneName(flow.start_us)}`],
    ["Duration", duration(f.duration_ms)],
    [flow.dir === "dl" ? "To the client" : "From the client", bytes(f.bytes)],
  ];
  if (seconds > 0) items.push(["Rate", bitrate((f.bytes * 8) / seconds)]);
  // An estimate below the used bandwidth is not shown.
  const { available_bps } = f;
  if (typeof available_bps === "number" && available_bps * seconds >= f.bytes * 8) items.push(["Available, estimate", bitrate(available_bps)]);
  if (f.rtt_ms) items.push(["RTT minimum, mean, maximum", f.rtt_ms.map((ms) => duration(Math.round(ms))).join(", ")]);
  items.push(["Retransmissions", `${count(f.retx)} of ${count(f.segments)}`]);
  items.push(["Duplicate ACKs", count(f.dup_acks)]);
  if (f.slow_starts > 0) items.push(["Undesired slow starts", count(f.slow_starts)]);
  items.push(["Window full", percent(f.window_full_share)]);
  const sure = f.congestion_control_confidence;
  if (f.congestion_control !== "unknown") items.push(["Sender, estimated", `${f.congestion_control}, ${percent(sure)} sure`]);
  items.push(["Ended by", words(f.termination)]);
  const list = h("dl", { class: "facts" });
  for (const [name, value] of items) list.append(h("div", {}, h("dt", {}, name), h("dd", {}, value)));
  return list;
}

/** States how points were merged; empty if none were. */
export function merged(flow: FlowPlot): string {
  const { data, acks, flight, rtt } = flow;
  const bin = Math.max(data.bin_ms, acks.bin_ms, flight.bin_ms, rtt.bin_ms);
  if (bin === 0) return "";
  return (
    `${plural(data.segments, "segment")} and ${plural(acks.acks, "ACK")} are merged into bins of up to ` +
    `${bin.toFixed(1)} ms, with minimum and maximum of each; events are kept. `
  );
}

/** Summary of the visible range, in words. */
export function summary(flow: FlowPlot, view: View): string {
  const from = view.range.from * UNIT_MS;
  const to = view.range.to * UNIT_MS;
  const step = to - from < 1_000 ? 1 : to - from < 10_000 ? 10 : 1_000;
  const counts = flow.events.flatMap((line) => {
    const n = countIn(line, from, to);
    return n > 0 ? [`${eventStyle(line.event).words}: ${count(n)}`] : [];
  });
  const span = isAll(view.range, view.full) ? "All" : `From ${elapsed(from, step)} to ${elapsed(to, step)}`;
  const events = counts.length > 0 ? counts.join(", ") : "no unusual events";
  return `${span} (${duration(to - from)}): ${events}.`;
}

/** Values under the pointer, in words. */
export function readout(flow: FlowPlot, ms: number): string {
  const parts = [`${(ms / 1e3).toFixed(4)} s`];
  const ack = lastBefore(flow.acks.at_ms, ms);
  if (ack >= 0) {
    parts.push(`acknowledged ${bytes(flow.acks.acked_bytes[ack] as number)}`);
    const edge = windowEdge(flow, ack);
    if (edge !== null) parts.push(`window ${bytes(flow.acks.window_bytes[ack] ?? 0)}`);
  }
  const flight = lastBefore(flow.flight.at_ms, ms);
  if (flight >= 0) parts.push(`in flight ${bytes(flow.flight.most[flight] as number)}`);
  const rtt = lastBefore(flow.rtt.at_ms, ms);
  if (rtt >= 0) parts.push(`RTT ${duration(flow.rtt.most[rtt] as number)}`);
  let near: { name: string; apart: number } | null = null;
  for (const line of flow.events) {
    for (const i of [firstFrom(line.at_ms, ms) - 1, firstFrom(line.at_ms, ms)]) {
      const at = line.at_ms[i];
      if (at === undefined) continue;
      const apart = Math.abs(at - ms);
      if (!near || apart < near.apart) near = { name: eventStyle(line.event).words, apart };
    }
  }
  if (near && near.apart < 100) parts.push(`${near.name} ${duration(near.apart)} away`);
  return parts.join(" · ");
}

/** Events in the order of time, each with a link to its place in the graph. */
function eventTable(flow: FlowPlot, go: (atMs: number) => void): HTMLElement | null {
  const all = flow.events
    .filter((line) => eventStyle(line.event).listed)
    .flatMap((line) =>
      line.at_ms.map((at, i) => ({
        at,
        words: eventStyle(line.event).words,
        from: line.from_bytes[i] as number,
        to: line.to_bytes[i] as number,
        n: line.n[i] as number,
      })),
    )
    .sort((a, b) => a.at - b.at);
  if (all.length === 0) return null;
  const row = (i: number): (string | Node)[] => {
    const event = all[i];
    if (!event) return [];
    const text = `${(event.at / 1e3).toFixed(3)} s`;
    const show = (click: Event): void => {
      click.preventDefault();
      go(event.at);
    };
    const label = `${event.words} at ${text}: show in the graph`;
    return [
      h("a", { href: "#flow", click: show, "aria-label": label }, text),
      event.n > 1 ? `${event.words} × ${count(event.n)}` : event.words,
      count(event.from),
      event.to > event.from ? count(event.to - event.from) : "",
    ];
  };
  const columns = [
    { name: "time" },
    { name: "event", text: true },
    { name: "offset" },
    { name: "bytes" },
  ];
  const table = pagedTable({ columns, rows: all.length, row, caption: `Events of flow ${flow.flow}` });
  return h("details", { id: "flow-events" }, h("summary", {}, `Events (${count(all.length)})`), table);
}
