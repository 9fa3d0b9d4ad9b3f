/** RTT against bytes in flight; the shade shows the number of samples (the paper's figure 10). */

import type uPlot from "uplot";
import { h } from "../dom";
import { count } from "../format";
import type { Density } from "../generated/study";
import { colour } from "../theme";
import { GUTTER, plainAxis } from "./axes";
import { decades, tickLabel } from "./curves";
import { draw, figureFrame, namedAxis } from "./plot";

/** The lower edge of cell `i`, in its unit, as defined by `Density`. */
export const cellEdge = (i: number): number => 2 ** (i / 8);

export function densityFigure(box: HTMLElement, of: Density): HTMLElement {
  const legend = h("ul", { class: "legend" });
  const item = (name: string, text: string): void =>
    legend.append(h("li", {}, h("span", { class: `swatch ${name}` }), text));
  item("fill-burst", "samples: stronger colour, more samples");
  if (of.medians_ms.length > 0) item("line-window", "median RTT");
  const alone = of.alone > 0 ? `; ${count(of.alone)} without other data in flight, not drawn` : "";
  legend.append(h("li", {}, `n = ${count(of.n)}${alone}`));
  draw(box, () => {
    const columns = of.cells.map((cell) => cell[0] as number);
    const rows = of.cells.map((cell) => cell[1] as number);
    const x: [number, number] = [cellEdge(Math.min(...columns)), cellEdge(Math.max(...columns) + 1)];
    // Rows are in microseconds, the axis in milliseconds.
    const y: [number, number] = [cellEdge(Math.min(...rows) - 2) / 1e3, cellEdge(Math.max(...rows) + 3) / 1e3];
    const scale = (range: [number, number]): uPlot.Scale => ({
      time: false,
      auto: false,
      range,
      distr: 3,
      log: 10,
    });
    const ticks = (_plot: unknown, _axis: unknown, min: number, max: number): number[] => {
      const out = decades(min, max).flatMap((ten) => [ten, 2 * ten, 5 * ten]);
      const below = decades(min / 10, min).flatMap((ten) => [2 * ten, 5 * ten]);
      return [...below, ...out].filter((v) => v >= min && v <= max);
    };
    const crowded = Math.log10(x[1] / x[0]) > 2.2;
    const isDecade = (v: number): boolean => Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9;
    const options: uPlot.Options = {
      ...figureFrame(box),
      scales: { x: scale(x), y: scale(y) },
      axes: [
        {
          ...namedAxis("bytes in flight"),
          splits: ticks,
          filter: (_, splits) => splits,
          values: (_, splits) => splits.map((v) => (crowded && !isDecade(v) ? "" : tickLabel(v, "bytes"))),
        },
        {
          ...plainAxis(),
          size: GUTTER + 6,
          splits: ticks,
          filter: (_, splits) => splits,
          values: (_, splits) => splits.map((v) => tickLabel(v, "ms")),
        },
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [(plot) => paint(plot, of)] },
    };
    return [options, [x, y]];
  });
  return legend;
}

function paint(plot: uPlot, of: Density): void {
  const { ctx } = plot;
  const density = devicePixelRatio || 1;
  const most = Math.max(1, ...of.cells.map((cell) => cell[2] as number));
  const x = (value: number): number => plot.valToPos(value, "x", true);
  const y = (ms: number): number => plot.valToPos(ms, "y", true);
  ctx.save();
  ctx.fillStyle = colour("radio");
  for (const [column, row, n] of of.cells as [number, number, number][]) {
    // Logarithmic, so that a single sample is visible.
    ctx.globalAlpha = 0.2 + (0.8 * Math.log(n)) / Math.max(1e-9, Math.log(most) || 1);
    const left = x(cellEdge(column));
    const top = y(cellEdge(row + 1) / 1e3);
    ctx.fillRect(left, top, Math.max(2, x(cellEdge(column + 1)) - left - 0.5), Math.max(2, y(cellEdge(row) / 1e3) - top - 0.5));
  }
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colour("window");
  ctx.lineWidth = 2.5 * density;
  ctx.setLineDash([6 * density, 3 * density]);
  ctx.beginPath();
  (of.medians_ms as [number, number][]).forEach(([column, ms], i) => {
    const px = x(cellEdge(column + 0.5));
    if (i === 0) ctx.moveTo(px, y(ms));
    else ctx.lineTo(px, y(ms));
  });
  ctx.stroke();
  ctx.restore();
}
