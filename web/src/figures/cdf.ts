/**
 * Distribution of the cell's share in a scheduled TTI (BurstTracker, figure 4):
 * in all scheduled TTIs, at the start of bursts, and at their end.
 */

import type uPlot from "uplot";
import type { Direction } from "../generated/diagnose";
import { cumulative, type Distribution, distributions, quantile } from "../data/distribution";
import { h } from "../dom";
import { count, percent } from "../format";
import type { Series } from "../series";
import { colour } from "../theme";
import { draw, figureFrame, namedAxis, shareAxis } from "./plot";

const CURVES = [
  { key: "all", label: "all scheduled TTIs", colour: "prb", dash: [] as number[] },
  { key: "first", label: "first TTI of a burst", colour: "start", dash: [7, 4] },
  { key: "last", label: "TTI that emptied the queue", colour: "end", dash: [2, 3] },
] as const;

export function cdfFigure(series: Series, dir: Direction): HTMLElement | null {
  const found = distributions(series.allocation[dir], series.bursts[dir].spans);
  if (found.all.n === 0) return null;
  const curves = CURVES.filter((curve) => found[curve.key].n > 0);
  const box = h("div", { class: "plot", "aria-hidden": "true" });
  const caption = h("figcaption", {}, summary(found.all, found.first, found.last));
  const legend = h("ul", { class: "legend" });
  for (const curve of curves) {
    legend.append(h("li", {}, h("span", { class: `swatch line-${curve.key}` }), curve.label));
  }
  const link = dir === "dl" ? "downlink" : "uplink";
  const title = h("h3", {}, `Share of the cell per scheduled TTI, ${link}`);
  const figure = h("figure", { class: "figure" }, title, box, legend, caption);
  draw(box, () => {
    const n = found.all.counts.length;
    const x = Array.from({ length: n }, (_, i) => (100 * i) / (n - 1));
    const options: uPlot.Options = {
      ...figureFrame(box),
      scales: { x: { time: false, range: [0, 100] }, y: { range: [0, 1] } },
      axes: [namedAxis("share of the cell's PRBs, %"), shareAxis()],
      series: [
        {},
        ...curves.map(
          (curve): uPlot.Series => ({
            stroke: () => colour(curve.colour),
            width: 2,
            dash: [...curve.dash],
            points: { show: false },
          }),
        ),
      ],
    };
    return [options, [x, ...curves.map((c) => cumulative(found[c.key]))]];
  });
  return figure;
}

function summary(all: Distribution, first: Distribution, last: Distribution): string {
  const quarter = (of: Distribution): string =>
    [0.25, 0.5, 0.75].map((q) => percent(quantile(of, q))).join(", ");
  const parts = [`Quartiles of ${count(all.n)} scheduled TTIs: ${quarter(all)} of the cell`];
  if (first.n > 0) parts.push(`first TTIs of bursts: ${quarter(first)}`);
  if (last.n > 0) parts.push(`TTIs that emptied the queue: ${quarter(last)}`);
  return `${parts.join("; ")}.`;
}
