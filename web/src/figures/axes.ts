/** Common parts of all plots on the time axis, so that they are aligned. */

import uPlot from "uplot";
import { elapsed } from "../format";
import type { Series } from "../series";
import { colour } from "../theme";

/** Left of the plots: axis labels, such as `12.25 MB`, and names of lanes. */
export const GUTTER = 68;
/** Right of the plots: half of the last tick's label. */
export const MARGIN = 20;

export const FONT = "12px system-ui, sans-serif";

/** Distances of ticks in ms: decimal below a minute, clock units above. */
const TICKS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 12e5, 18e5,
  36e5, 72e5, 144e5, 216e5, 432e5, 864e5, 1728e5, 6048e5,
];

/** The axis of a log's time: times of day, or time since `origin` if those are unknown. */
export function clockAxis(series: Series, origin: number): uPlot.Axis {
  const ttiMs = series.head.tti_ms;
  const axis = timeAxis(ttiMs, origin);
  if (series.clock(0) === null) return axis;
  return {
    ...axis,
    space: (_plot, _axis, min, max, length) => {
      const step = ((max - min) * 64 * ttiMs) / Math.max(64, length);
      return 2 * halfWidth(series.tick(min, step)) + 16;
    },
    splits: (_plot, _axis, min, max, step) => series.ticks(min, max, step * ttiMs),
    values: (plot, splits, _axis, _space, step) => {
      let last = -Infinity;
      return splits.map((tti) => {
        const text = series.tick(tti, step * ttiMs);
        const at = GUTTER + plot.valToPos(tti, "x");
        const [left, right] = [at - halfWidth(text), at + halfWidth(text)];
        // Where a clock was set, ticks may be nearer to each other than labels.
        if (right > plot.width || left < last) return "";
        last = right;
        return text;
      });
    },
  };
}

/** The axis of time since `origin`; `ttiMs` is a TTI's length. */
export function timeAxis(ttiMs: number, origin: number): uPlot.Axis {
  return {
    ...plainAxis(),
    space: (_plot, _axis, min, max, length) => {
      const step = ((max - min) * 64) / Math.max(64, length);
      return Math.max(64, 2 * halfWidth(elapsed((max - origin) * ttiMs, step * ttiMs)) + 16);
    },
    size: 30,
    incrs: TICKS_MS.map((ms) => ms / ttiMs),
    splits: (_plot, _axis, min, max, step) => {
      const out: number[] = [];
      for (let i = Math.ceil((min - origin) / step); origin + i * step <= max; i++) {
        out.push(origin + i * step);
      }
      return out;
    },
    values: (plot, splits) => {
      const step = splits.length > 1 ? (splits[1] as number) - (splits[0] as number) : 1;
      return splits.map((tti) => {
        const text = elapsed((tti - origin) * ttiMs, step * ttiMs);
        const right = GUTTER + plot.valToPos(tti, "x") + halfWidth(text);
        return right > plot.width ? "" : text;
      });
    },
  };
}

/** Half the width of a label in pixels, at most: a label that the edge would cut is left out. */
const halfWidth = (text: string): number => text.length * 3.8;

/** An axis in the theme's colours. */
export function plainAxis(): uPlot.Axis {
  return {
    stroke: () => colour("muted"),
    font: FONT,
    ticks: { stroke: () => colour("line"), width: 1, size: 4 },
    grid: { stroke: () => colour("grid"), width: 1 },
  };
}

/** A panel that follows the width of its box. */
export function keepWidth(plot: uPlot, box: HTMLElement, redraw?: () => void): void {
  const observer = new ResizeObserver(() => {
    const width = Math.floor(box.clientWidth);
    if (width === 0 || width === plot.width) return;
    plot.setSize({ width, height: plot.height });
    redraw?.();
  });
  observer.observe(box);
}

/** A drawing area of a canvas that follows its box and the screen's density. */
export function sharpCanvas(
  canvas: HTMLCanvasElement,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
  const density = devicePixelRatio || 1;
  const w = Math.round(width * density);
  const h = Math.round(height * density);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context?.setTransform(density, 0, 0, density, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}
