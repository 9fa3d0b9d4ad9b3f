/** Measures of a flow below its time-sequence graph: RTT; bytes in flight and window. */

import uPlot from "uplot";
import { around, mostIn, UNIT_MS } from "../data/sequence";
import type { RangeLine } from "../generated/study";
import { colour, onTheme } from "../theme";
import type { View } from "../view";
import { GUTTER, keepWidth, plainAxis, timeAxis } from "./axes";
import { panelFrame, selection } from "./plot";

const HEIGHT = 150;

export interface Measure {
  at: number[];
  least: (number | null)[];
  most: (number | null)[];
  colour: string;
  /** Samples that are not connected. */
  dots?: boolean;
  /** Dashed; each value holds until the next. */
  limit?: boolean;
}

export function measure(line: RangeLine, name: string, dots: boolean): Measure {
  return { at: line.at_ms, least: line.least, most: line.most, colour: name, dots };
}

export function rangePanel(
  box: HTMLElement,
  measures: Measure[],
  view: View,
  labels: (ticks: number[]) => string[],
  onSelect: (from: number, to: number) => void,
): void {
  const options: uPlot.Options = {
    ...panelFrame(box, HEIGHT),
    scales: { x: { time: false, auto: false }, y: { auto: false, range: (_, min, max) => [min, max] } },
    axes: [
      timeAxis(UNIT_MS, 0),
      { ...plainAxis(), size: GUTTER, values: (_, splits) => labels(splits) },
    ],
    series: [{}, { show: true, paths: () => null, points: { show: false } }],
    hooks: {
      draw: [(plot) => measures.forEach((of) => paint(plot, of))],
      setSelect: [selection(onSelect)],
    },
  };
  const plot = new uPlot(options, [[], []], box);
  const redraw = (): void => {
    const { from, to } = view.range;
    const most = (of: Measure): number => mostIn(of.at, of.most, from * UNIT_MS, to * UNIT_MS);
    // A limit far above the data does not determine the scale.
    const own = Math.max(0, ...measures.filter((of) => !of.limit).map(most));
    const limits = Math.max(0, ...measures.filter((of) => of.limit).map(most));
    const top = own > 0 ? Math.max(own, Math.min(limits, own * 2)) : limits;
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

function paint(plot: uPlot, of: Measure): void {
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales["x"] ?? {};
  if (typeof min !== "number" || typeof max !== "number") return;
  const density = devicePixelRatio || 1;
  const x = (ms: number): number => plot.valToPos(ms / UNIT_MS, "x", true);
  const y = (value: number): number => plot.valToPos(value, "y", true);
  const [first, end] = around(of.at, min * UNIT_MS, max * UNIT_MS);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle = colour(of.colour);
  ctx.lineWidth = 1.5 * density;
  if (of.limit) ctx.setLineDash([6 * density, 3 * density]);
  ctx.beginPath();
  let before: number | null = null;
  for (let i = first; i < end; i++) {
    const low = of.least[i] ?? null;
    const high = of.most[i] ?? null;
    const px = x(of.at[i] as number);
    if (low === null || high === null) {
      before = null;
    } else if (of.dots) {
      const r = 1.6 * density;
      ctx.fillRect(px - r, y(high) - r, 2 * r, Math.max(2 * r, y(low) - y(high)));
    } else {
      if (before === null) ctx.moveTo(px, y(low));
      else if (of.limit) {
        ctx.lineTo(px, y(before));
        ctx.lineTo(px, y(low));
      } else ctx.lineTo(px, y(low));
      if (high !== low) ctx.lineTo(px, y(high));
      before = of.limit ? low : high;
    }
  }
  if (of.limit && before !== null) ctx.lineTo(x(max * UNIT_MS), y(before));
  ctx.stroke();
  ctx.restore();
}
