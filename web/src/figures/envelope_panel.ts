/** A panel of ranges on the time axis: bytes in flight and windows, RTT, buffer. */

import uPlot from "uplot";
import type { Envelope } from "../data/envelope";
import type { Series } from "../series";
import { colour, onTheme } from "../theme";
import type { View } from "../view";
import { clockAxis, GUTTER, keepWidth, MARGIN, plainAxis } from "./axes";
import { drawMark } from "./allocation";
import { panelFrame, selection } from "./plot";

const HEIGHT = 130;
/** A pause of this many ms breaks a line. */
const GAP_MS = 1_000;

export interface RangeOf {
  envelope: Envelope;
  /** Colour of the style sheet. */
  colour: string;
  /** `area`: filled down to zero; `limit`: dashed, holds until the next; `dots`: not connected. */
  style: "area" | "limit" | "dots" | "line";
  /** How long a value holds, in ms; default: a second. */
  gapMs?: number;
}

export function envelopePanel(
  box: HTMLElement,
  series: Series,
  view: View,
  ranges: RangeOf[],
  labels: (ticks: number[]) => string[],
  onSelect: (from: number, to: number) => void,
): void {
  const options: uPlot.Options = {
    ...panelFrame(box, HEIGHT),
    scales: { x: { time: false, auto: false }, y: { auto: false, range: (_, min, max) => [min, max] } },
    axes: [
      clockAxis(series, view.full.from),
      { ...plainAxis(), size: GUTTER, values: (_, splits) => labels(splits) },
    ],
    series: [{}, { show: true, paths: () => null, points: { show: false } }],
    hooks: {
      draw: [
        (plot) => ranges.forEach((of) => paint(plot, of, view, series.head.tti_ms)),
        (plot) => drawMark(plot, view),
      ],
      setSelect: [selection(onSelect)],
    },
  };
  const plot = new uPlot(options, [[], []], box);
  const redraw = (): void => {
    const { from, to } = view.range;
    const most = (of: RangeOf[]): number =>
      Math.max(0, ...of.map(({ envelope }) => envelope.within(from, to)?.[1] ?? 0));
    // Windows far above the bytes in flight do not determine the scale.
    const own = most(ranges.slice(0, 1));
    const all = most(ranges);
    const top = own > 0 ? Math.min(all, own * 1.6) : all;
    plot.batch(() => {
      plot.setScale("x", { min: from, max: to });
      plot.setScale("y", { min: 0, max: top > 0 ? top * 1.08 : 1 });
    });
  };
  view.onChange(redraw);
  onTheme(() => plot.redraw(false));
  keepWidth(plot, box, redraw);
  redraw();
}

function paint(plot: uPlot, of: RangeOf, view: View, ttiMs: number): void {
  const { ctx, bbox } = plot;
  const { from, to } = view.range;
  const density = devicePixelRatio || 1;
  const x = (tti: number): number => plot.valToPos(tti, "x", true);
  const y = (value: number): number => plot.valToPos(value, "y", true);
  const n = Math.max(50, (plot.width - GUTTER - MARGIN) | 0);
  const gap = Math.max((of.gapMs ?? GAP_MS) / ttiMs, ((to - from) / n) * 3);
  const columns = of.envelope.columns(from, to, n, gap);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle = colour(of.colour);
  ctx.lineWidth = (of.style === "area" ? 1 : 1.5) * density;
  if (of.style === "limit") ctx.setLineDash([6 * density, 3 * density]);
  if (of.style === "area") fill(ctx, columns, x, y);
  ctx.beginPath();
  let before: number | null = null;
  columns.x.forEach((at, i) => {
    const low = columns.least[i] ?? null;
    const high = columns.most[i] ?? null;
    if (low === null || high === null) {
      before = null;
      return;
    }
    const px = x(at);
    if (of.style === "dots") {
      const r = 1.5 * density;
      ctx.fillRect(px - r, y(high) - r, 2 * r, Math.max(2 * r, y(low) - y(high)));
      return;
    }
    if (before === null) ctx.moveTo(px, y(low));
    else if (of.style === "limit") ctx.lineTo(px, y(before));
    ctx.lineTo(px, y(low));
    if (high !== low) ctx.lineTo(px, y(high));
    before = of.style === "limit" ? low : high;
  });
  ctx.stroke();
  ctx.restore();
}

/** The area from the maximum down to zero; a part for each continuous range. */
function fill(
  ctx: CanvasRenderingContext2D,
  columns: { x: number[]; most: (number | null)[] },
  x: (at: number) => number,
  y: (value: number) => number,
): void {
  ctx.globalAlpha = 0.25;
  let open: number[] = [];
  const close = (): void => {
    if (open.length > 0) {
      ctx.beginPath();
      ctx.moveTo(x(columns.x[open[0] as number] as number), y(0));
      for (const i of open) ctx.lineTo(x(columns.x[i] as number), y(columns.most[i] as number));
      ctx.lineTo(x(columns.x[open.at(-1) as number] as number) + 1, y(0));
      ctx.fill();
    }
    open = [];
  };
  columns.most.forEach((most, i) => (most === null ? close() : open.push(i)));
  close();
  ctx.globalAlpha = 1;
}
