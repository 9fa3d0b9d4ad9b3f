/**
 * The share of the cell's PRBs that each TTI gave to this phone, with bursts
 * as bands (BurstTracker, figures 3 and 7b). Zoomed in, a bar is a TTI; zoomed
 * out, an area shows the mean, with the range from minimum to maximum around it.
 * If the cell's bandwidth is unknown, it is the share of TTIs that are scheduled.
 */

import uPlot from "uplot";
import type { Direction } from "../generated/diagnose";
import { bucketWidth, hasShares } from "../data/pyramid";
import type { Series } from "../series";
import { colour, onTheme } from "../theme";
import type { View } from "../view";
import { clockAxis, GUTTER, keepWidth, MARGIN } from "./axes";
import { panelFrame, selection, shareAxis } from "./plot";

const HEIGHT = 220;
/** More bursts than this are drawn as coverage. */
const SINGLE_BURSTS = 300;

export interface AllocationPanel {
  plot: uPlot;
  setDirection(dir: Direction): void;
}

/** What the panel shows for a direction. */
export function allocationTitle(series: Series, dir: Direction): string {
  if (series.allocation[dir].empty) return "Allocations of this direction: not in the log";
  return hasShares(series.allocation[dir])
    ? "Share of the cell's PRBs per TTI"
    : "Share of TTIs scheduled for this phone (of the cell's PRBs: unknown)";
}

export function allocationPanel(
  box: HTMLElement,
  series: Series,
  view: View,
  start: Direction,
  onSelect: (from: number, to: number) => void,
): AllocationPanel {
  let dir = start;
  const stepped = uPlot.paths.stepped?.({ align: 1 });
  const paths = stepped ? { paths: stepped } : {};
  const points = { show: false };
  const options: uPlot.Options = {
    ...panelFrame(box, HEIGHT),
    scales: { x: { time: false, auto: false }, y: { auto: false, range: [0, 1.02] } },
    axes: [
      clockAxis(series, view.full.from),
      shareAxis(),
    ],
    series: [
      {},
      { label: "maximum", stroke: () => colour("span-line"), width: 1, points, ...paths },
      { label: "least", width: 0, points, ...paths },
      {
        label: "mean",
        stroke: () => colour("prb"),
        fill: () => colour("prb-fill"),
        width: 1,
        points,
        ...paths,
      },
    ],
    bands: [{ series: [1, 2], fill: () => colour("span") }],
    hooks: {
      drawClear: [(plot) => drawBursts(plot, series, dir, view)],
      draw: [(plot) => drawMark(plot, view)],
      setSelect: [selection(onSelect)],
    },
  };
  const plot = new uPlot(options, [[], [], [], []], box);
  let isKnown = hasShares(series.allocation[dir]);
  const draw = (): void => {
    const { from, to } = view.range;
    const width = bucketWidth(to - from, Math.max(100, plot.width - GUTTER - MARGIN));
    const sample = series.allocation[dir].sample(from, to, width);
    // The last bucket needs an end.
    const end = sample.start.length > 0 ? (sample.start.at(-1) as number) + width : 0;
    const closed = <T>(values: T[]): T[] =>
      values.length > 0 ? [...values, values.at(-1) as T] : values;
    const x = sample.start.length > 0 ? [...sample.start, end] : [];
    const single = width === 1 || !isKnown;
    const most = single ? sample.max.map(() => null) : sample.max;
    const least = single ? most : sample.min;
    plot.batch(() => {
      plot.setData([x, closed(most), closed(least), closed(isKnown ? sample.mean : sample.scheduled)], false);
      plot.setScale("x", { min: from, max: to });
    });
  };
  view.onChange(draw);
  onTheme(() => plot.redraw(false));
  keepWidth(plot, box, draw);
  draw();
  return {
    plot,
    setDirection(to) {
      dir = to;
      isKnown = hasShares(series.allocation[dir]);
      draw();
    },
  };
}

/** Bursts in the background of the plot: single ones if distinguishable, else their density. */
function drawBursts(plot: uPlot, series: Series, dir: Direction, view: View): void {
  const { ctx, bbox } = plot;
  const { from, to } = view.range;
  const { spans } = series.bursts[dir];
  const scale = bbox.width / (to - from);
  const place = (tti: number): number => bbox.left + (tti - from) * scale;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  const [first, last] = spans.within(from, to);
  ctx.fillStyle = colour("burst-fill");
  if (last - first <= SINGLE_BURSTS) {
    for (let i = first; i < last; i++) {
      const left = place(spans.start[i] as number);
      const right = place(spans.end[i] as number);
      ctx.fillRect(left, bbox.top, Math.max(1, right - left), bbox.height);
    }
    ctx.fillStyle = colour("burst");
    if (last - first <= SINGLE_BURSTS / 3) {
      for (let i = first; i < last; i++) {
        const left = place(spans.start[i] as number);
        const right = place(spans.end[i] as number);
        if (right - left < 6) continue;
        ctx.fillRect(left, bbox.top, 1, bbox.height);
        ctx.fillRect(right - 1, bbox.top, 1, bbox.height);
      }
    }
  } else {
    const step = 2;
    for (let px = 0; px < bbox.width; px += step) {
      const t = from + px / scale;
      const share = spans.cover(t, t + step / scale) / (step / scale);
      if (share <= 0) continue;
      ctx.globalAlpha = Math.min(1, share);
      ctx.fillRect(bbox.left + px, bbox.top, step, bbox.height);
    }
    ctx.globalAlpha = 1;
  }
  const holes = series.holes.within(from, to);
  ctx.fillStyle = colour("hole");
  for (let i = holes[0]; i < Math.min(holes[1], holes[0] + 2_000); i++) {
    const left = place(series.holes.start[i] as number);
    const right = place(series.holes.end[i] as number);
    ctx.fillRect(left, bbox.top, Math.max(1, right - left), bbox.height);
  }
  ctx.restore();
}

/** Highlights the range that a link points to. */
export function drawMark(plot: uPlot, view: View): void {
  if (!view.mark) return;
  const { ctx, bbox } = plot;
  const left = plot.valToPos(view.mark.from, "x", true);
  const right = plot.valToPos(view.mark.to, "x", true);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left - 2, bbox.top, bbox.width + 4, bbox.height);
  ctx.clip();
  ctx.strokeStyle = colour("text");
  ctx.lineWidth = Math.max(1, devicePixelRatio);
  ctx.setLineDash([6, 4]);
  ctx.strokeRect(left, bbox.top + 1, right - left, bbox.height - 2);
  ctx.restore();
}
