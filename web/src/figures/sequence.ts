/**
 * A flow as a time-sequence graph (after tcptrace; the paper's figures 15, 16
 * and 23): data, acknowledgements, the receive window, and unusual events.
 */

import uPlot from "uplot";
import { byteTicks } from "../format";
import { firstFrom } from "../data/lines";
import { around, offsets, UNIT_MS, windowEdge } from "../data/sequence";
import type { FlowPlot } from "../generated/study";
import { onTheme, colour } from "../theme";
import type { Range, View } from "../view";
import { FONT, GUTTER, keepWidth, plainAxis, timeAxis } from "./axes";
import { EVENTS, eventStyle } from "./events";
import { figureFrame, panelFrame, selection } from "./plot";

const HEIGHT = 340;
const EXCERPT_HEIGHT = 280;
/** Events that occur in large numbers: signs that would overlap are omitted. */
/** Maximum number of vertical lines of one kind that keep the graph visible (chosen here). */
const MOST_LINES = 60;
const CROWDS = new Set(["window_full", "zero_window", "window_probe", "ahead", "keep_alive"]);

interface Graph {
  flow: FlowPlot;
  /** Bandwidth of the ideal case in bit/s: from the first byte on, without a pause. */
  idealBps: number | null;
}

function options(
  frame: Pick<uPlot.Options, "width" | "height" | "padding" | "legend" | "cursor">,
  graph: Graph,
): uPlot.Options {
  return {
    ...frame,
    scales: { x: { time: false, auto: false }, y: { auto: false, range: (_, min, max) => [min, max] } },
    axes: [
      timeAxis(UNIT_MS, 0),
      { ...plainAxis(), size: GUTTER, values: (_, splits) => byteTicks(splits) },
    ],
    series: [{}, { show: true, paths: () => null, points: { show: false } }],
    hooks: { draw: [(plot) => paint(plot, graph)] },
  };
}

function show(plot: uPlot, flow: FlowPlot, range: Range): void {
  const { least, most } = offsets(flow, range.from * UNIT_MS, range.to * UNIT_MS);
  plot.batch(() => {
    plot.setScale("x", { min: range.from, max: range.to });
    plot.setScale("y", { min: least, max: most });
  });
}

/** The panel of the flow viewer: zooms with the view. */
export function sequencePanel(
  box: HTMLElement,
  flow: FlowPlot,
  view: View,
  onSelect: (from: number, to: number) => void,
): void {
  const of = options(panelFrame(box, HEIGHT), { flow, idealBps: null });
  (of.hooks ??= {}).setSelect = [selection(onSelect)];
  const plot = new uPlot(of, [[], []], box);
  const redraw = (): void => show(plot, flow, view.range);
  view.onChange(redraw);
  onTheme(() => plot.redraw(false));
  keepWidth(plot, box, redraw);
  redraw();
}

/** A flow, or a part of it, as a static figure. */
export function sequenceFigure(box: HTMLElement, flow: FlowPlot, idealBps: number | null): void {
  const plot = new uPlot(options(figureFrame(box, EXCERPT_HEIGHT), { flow, idealBps }), [[], []], box);
  const [from, to] = flow.span_ms.map((ms) => ms / UNIT_MS) as [number, number];
  const redraw = (): void => show(plot, flow, { from, to: Math.max(to, from + 1) });
  keepWidth(plot, box, redraw);
  onTheme(() => plot.redraw(false));
  redraw();
}

/** Draws the data inside the plot's scales. */
function paint(plot: uPlot, { flow, idealBps }: Graph): void {
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales["x"] ?? {};
  if (typeof min !== "number" || typeof max !== "number") return;
  const density = devicePixelRatio || 1;
  const range = { from: min * UNIT_MS, to: max * UNIT_MS };
  const x = (ms: number): number => plot.valToPos(ms / UNIT_MS, "x", true);
  const y = (bytes: number): number => plot.valToPos(bytes, "y", true);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const brush: Brush = { ctx, x, y, density, ...range };
  if (idealBps !== null) ideal(brush, flow, idealBps);
  windowLine(brush, flow);
  ackLine(brush, flow);
  data(brush, flow);
  for (const name of Object.keys(EVENTS)) {
    for (const line of flow.events) if (line.event === name) marks(brush, line);
  }
  ctx.restore();
}

interface Brush {
  ctx: CanvasRenderingContext2D;
  x: (ms: number) => number;
  y: (bytes: number) => number;
  density: number;
  from: number;
  to: number;
}

/** A staircase through points; a gap where a value is unknown. */
function steps(brush: Brush, at: number[], value: (i: number) => number | null): void {
  const { ctx, x, y } = brush;
  const [first, end] = around(at, brush.from, brush.to);
  let before: number | null = null;
  ctx.beginPath();
  for (let i = first; i < end; i++) {
    const now = value(i);
    if (now === null) {
      before = null;
      continue;
    }
    const px = x(at[i] as number);
    if (before === null) ctx.moveTo(px, y(now));
    else {
      ctx.lineTo(px, y(before));
      ctx.lineTo(px, y(now));
    }
    before = now;
  }
  if (before !== null && end === at.length) ctx.lineTo(x(brush.to), y(before));
  ctx.stroke();
}

function ackLine(brush: Brush, flow: FlowPlot): void {
  brush.ctx.strokeStyle = colour("ack");
  brush.ctx.lineWidth = 1.5 * brush.density;
  steps(brush, flow.acks.at_ms, (i) => flow.acks.acked_bytes[i] ?? null);
}

function windowLine(brush: Brush, flow: FlowPlot): void {
  brush.ctx.strokeStyle = colour("window");
  brush.ctx.lineWidth = 1.5 * brush.density;
  brush.ctx.setLineDash([6 * brush.density, 3 * brush.density]);
  steps(brush, flow.acks.at_ms, (i) => windowEdge(flow, i));
  brush.ctx.setLineDash([]);
}

/** Segments: vertical lines for single ones, slanted for a bin of several. */
function data(brush: Brush, flow: FlowPlot): void {
  const { ctx, x, y, density } = brush;
  const { from_ms, to_ms, from_bytes, to_bytes } = flow.data;
  ctx.strokeStyle = colour("prb");
  ctx.lineWidth = 2 * density;
  ctx.beginPath();
  for (let i = firstFrom(to_ms, brush.from); i < from_ms.length; i++) {
    if ((from_ms[i] as number) > brush.to) break;
    const low = y(from_bytes[i] as number);
    const high = y(to_bytes[i] as number);
    ctx.moveTo(x(from_ms[i] as number), low);
    // At least a pixel high, to stay visible.
    ctx.lineTo(x(to_ms[i] as number), Math.min(high, low - 1.5 * density));
  }
  ctx.stroke();
}

/** The download at the available bandwidth (figure 23). */
function ideal(brush: Brush, flow: FlowPlot, bps: number): void {
  const start = flow.data.from_ms[0];
  const first = flow.data.from_bytes[0];
  const last = flow.data.to_bytes.at(-1);
  if (start === undefined || first === undefined || last === undefined) return;
  const { ctx, x, y, density } = brush;
  ctx.strokeStyle = colour("load");
  ctx.lineWidth = 2 * density;
  ctx.setLineDash([2 * density, 3 * density]);
  ctx.beginPath();
  ctx.moveTo(x(start), y(first));
  ctx.lineTo(x(start + ((last - first) * 8e3) / bps), y(last));
  ctx.stroke();
  ctx.setLineDash([]);
}

function marks(brush: Brush, line: FlowPlot["events"][number]): void {
  const { ctx, x, y, density } = brush;
  const { glyph, colour: name } = eventStyle(line.event);
  ctx.fillStyle = ctx.strokeStyle = colour(name);
  ctx.font = `${11 * density}px ${FONT.split(" ").slice(1).join(" ")}`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.lineWidth = 1.5 * density;
  const last = firstFrom(line.at_ms, brush.to + 1e-6);
  const first = firstFrom(line.at_ms, brush.from);
  const crowded = last - first > MOST_LINES;
  let drawn = -Infinity;
  for (let i = first; i < last; i++) {
    const px = x(line.at_ms[i] as number);
    const low = y(line.from_bytes[i] as number);
    const high = y(line.to_bytes[i] as number);
    switch (line.event) {
      case "dup_ack":
        ctx.fillRect(px - 4 * density, low - density, 8 * density, 2 * density);
        continue;
      case "sack":
        ctx.fillRect(px - density / 2, high, density, Math.max(density, low - high));
        continue;
      case "slow_start":
      case "recovered":
        if (crowded) break;
        ctx.setLineDash([3 * density, 3 * density]);
        ctx.beginPath();
        ctx.moveTo(px, 0);
        ctx.lineTo(px, ctx.canvas.height);
        ctx.stroke();
        ctx.setLineDash([]);
        ctx.fillText(glyph, px + 7 * density, low - 14 * density);
        continue;
    }
    // Signs of frequent events are not drawn over each other; all are counted.
    if (crowded || CROWDS.has(line.event)) {
      if (px - drawn < 7 * density) continue;
      drawn = px;
    }
    if (high !== low) {
      ctx.beginPath();
      ctx.moveTo(px, low);
      ctx.lineTo(px, high);
      ctx.stroke();
    }
    ctx.fillText(glyph, px, high - 6 * density);
  }
}
