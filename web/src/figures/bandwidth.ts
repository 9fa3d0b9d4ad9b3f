/** Available and used bandwidth of each flow over time (the paper's figure 22). */

import uPlot from "uplot";
import { h } from "../dom";
import { count } from "../format";
import type { BandwidthTimeline } from "../generated/study";
import { colour } from "../theme";
import { GUTTER, plainAxis } from "./axes";
import { draw, figureFrame, namedAxis } from "./plot";

const HEIGHT = 200;

export function bandwidthFigure(box: HTMLElement, flows: BandwidthTimeline[]): HTMLElement {
  const legend = h(
    "ul",
    { class: "legend" },
    h("li", {}, h("span", { class: "swatch line-ack" }), "available: dots, joined where windows follow"),
    h("li", {}, h("span", { class: "swatch line-used" }), "passed the monitor for the first time"),
  );
  for (const flow of flows) {
    const place = h("div");
    const title = `Flow ${flow.flow}, ${flow.label} (n = ${count(flow.n)}, windows of ${flow.window_s} s)`;
    box.append(h("p", { class: "panel-title" }, title), place);
    draw(place, () => plotOf(place, flow, flows.length > 1 ? HEIGHT * 0.8 : HEIGHT));
  }
  return legend;
}

function plotOf(
  box: HTMLElement,
  flow: BandwidthTimeline,
  height: number,
): [uPlot.Options, uPlot.AlignedData] {
  const mbps = (bps: number | null): number | null => (bps === null ? null : bps / 1e6);
  const used = flow.used_bps.map(mbps);
  const available = flow.available_bps.map(mbps);
  const most = Math.max(0.1, ...[...used, ...available].map((v) => v ?? 0));
  const x = used.map((_, i) => (i + 0.5) * flow.window_s);
  const options: uPlot.Options = {
    ...figureFrame(box, Math.round(height)),
    scales: {
      x: { time: false, range: [0, Math.max(1, used.length) * flow.window_s] },
      y: { range: [0, most * 1.08] },
    },
    axes: [
      { ...namedAxis("time, s") },
      { ...plainAxis(), size: GUTTER, label: "Mbit/s", labelSize: 16, labelFont: "12px system-ui" },
    ],
    series: [
      {},
      { stroke: () => colour("prb"), fill: () => colour("prb-fill"), width: 1, points: { show: false } },
      {
        stroke: () => colour("ack"),
        width: 1.5,
        spanGaps: false,
        points: { show: true, size: 5, width: 1, fill: () => colour("ack"), stroke: () => colour("ack") },
      },
    ],
  };
  return [options, [x, used, available]];
}
