/** Link demand against link throughput, a point for each transfer (BurstTracker, figure 6). */

import type uPlot from "uplot";
import type { DiagnoseDocument, TransferDiagnosis } from "../generated/diagnose";
import { h } from "../dom";
import { bitrate, percent, plural } from "../format";
import { colour } from "../theme";
import { draw, figureFrame, namedAxis, shareAxis } from "./plot";
import { family } from "./verdict";

const RADIUS = 5;

interface Point {
  demand: number;
  mbps: number;
  family: ReturnType<typeof family>;
}

export function points(transfers: TransferDiagnosis[]): Point[] {
  return transfers.flatMap((t) =>
    typeof t.link_demand === "number" && typeof t.link_throughput_bps === "number"
      ? [{ demand: t.link_demand, mbps: t.link_throughput_bps / 1e6, family: family(t.verdict) }]
      : [],
  );
}

export function scatterFigure(document: DiagnoseDocument): HTMLElement | null {
  const all = points(document.transfers).sort((a, b) => a.mbps - b.mbps);
  if (all.length === 0) return null;
  const box = h("div", { class: "plot", "aria-hidden": "true" });
  const families = (["radio", "not_radio", "mixed", "unknown"] as const).filter((one) =>
    all.some((p) => p.family === one),
  );
  const legend = h("ul", { class: "legend" });
  for (const one of families) {
    const mark = h("span", { class: "mark" });
    legend.append(h("li", { class: `badge ${one}` }, mark, one.replaceAll("_", " ")));
  }
  const demands = all.map((p) => p.demand).sort((a, b) => a - b);
  const middle = demands[Math.floor(demands.length / 2)] ?? 0;
  const text =
    `${plural(all.length, "transfer")}; link demand from ${percent(demands[0] ?? 0)} to ` +
    `${percent(demands.at(-1) ?? 0)}, median ${percent(middle)}; link throughput from ` +
    `${bitrate((all[0]?.mbps ?? 0) * 1e6)} to ${bitrate((all.at(-1)?.mbps ?? 0) * 1e6)}. ` +
    "All values are in the transfers table.";
  const title = h("h3", {}, "Link demand against link throughput");
  const figure = h("figure", { class: "figure" }, title, box, legend, h("figcaption", {}, text));
  draw(box, () => {
    const most = all.at(-1)?.mbps ?? 1;
    const options: uPlot.Options = {
      ...figureFrame(box),
      scales: {
        x: { time: false, range: [0, most > 0 ? most * 1.1 : 1] },
        y: { range: [0, 1.05] },
      },
      axes: [namedAxis("link throughput, Mbit/s"), shareAxis()],
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      hooks: { draw: [(plot) => all.forEach((p) => drawPoint(plot, p))] },
    };
    return [options, [all.map((p) => p.mbps), all.map((p) => p.demand)]];
  });
  return figure;
}

/** The shape of a verdict, as in its badge. */
function drawPoint(plot: uPlot, point: Point): void {
  const { ctx } = plot;
  const r = RADIUS * (devicePixelRatio || 1);
  const x = plot.valToPos(point.mbps, "x", true);
  const y = plot.valToPos(point.demand, "y", true);
  ctx.save();
  ctx.fillStyle = colour(point.family);
  ctx.strokeStyle = colour("surface");
  ctx.lineWidth = 1;
  ctx.beginPath();
  if (point.family === "radio") {
    ctx.rect(x - r, y - r, 2 * r, 2 * r);
  } else if (point.family === "mixed") {
    ctx.moveTo(x, y - r * 1.3);
    ctx.lineTo(x + r * 1.3, y);
    ctx.lineTo(x, y + r * 1.3);
    ctx.lineTo(x - r * 1.3, y);
    ctx.closePath();
  } else {
    ctx.arc(x, y, r, 0, 2 * Math.PI);
  }
  ctx.fill();
  ctx.stroke();
  ctx.restore();
}
