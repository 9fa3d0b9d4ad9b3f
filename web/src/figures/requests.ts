/** Periodic requests by port, and the client's received bytes (the paper's figure 24). */

import uPlot from "uplot";
import { h } from "../dom";
import { count } from "../format";
import type { Requests } from "../generated/study";
import { colour } from "../theme";
import { GUTTER, plainAxis } from "./axes";
import { draw, figureFrame, namedAxis } from "./plot";

const ROW = 10;

/** Restores bins without traffic, which the document omits, as zeros. */
export function filled(of: Requests): { x: number[]; y: number[] } {
  const x: number[] = [];
  const y: number[] = [];
  let end = 0;
  for (const [at, bps] of of.received_bps as [number, number][]) {
    if (at > end + of.bin_s / 2) {
      x.push(end, at);
      y.push(0, 0);
    }
    x.push(at, at + of.bin_s);
    y.push(bps / 1e6, bps / 1e6);
    end = at + of.bin_s;
  }
  return { x, y };
}

export function requestsFigure(box: HTMLElement, of: Requests): HTMLElement {
  const ports = [...new Set(of.transfers.map((transfer) => transfer.port))];
  const { x, y } = filled(of);
  const end = Math.max(1, x.at(-1) ?? 1, ...of.transfers.map((transfer) => transfer.to_s));
  const upper = h("div");
  const lower = h("div");
  box.append(
    h("p", { class: "panel-title" }, "Transfers from the server, a row per port of the client"),
    upper,
    h("p", { class: "panel-title" }, "What the client receives, Mbit/s"),
    lower,
  );
  const time: uPlot.Scale = { time: false, auto: false, range: [0, end] };
  draw(upper, () => {
    const options: uPlot.Options = {
      ...figureFrame(upper, Math.min(260, 50 + ROW * Math.max(4, ports.length))),
      scales: { x: time, y: { auto: false, range: [0, Math.max(1, ports.length)] } },
      axes: [
        { ...plainAxis(), size: 30 },
        {
          ...plainAxis(),
          size: GUTTER,
          splits: () => ports.map((_, i) => i + 0.5).filter((_, i) => ports.length <= 12 || i % Math.ceil(ports.length / 10) === 0),
          values: (_, splits) => splits.map((v) => String(ports[Math.floor(v)] ?? "")),
        },
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [(plot) => paint(plot, of, ports)] },
    };
    return [options, [[0, end], [0, 1]]];
  });
  draw(lower, () => {
    const options: uPlot.Options = {
      ...figureFrame(lower, 170),
      scales: { x: time, y: { range: (_, _min, max) => [0, (max || 1) * 1.08] } },
      axes: [namedAxis("time, s"), { ...plainAxis(), size: GUTTER }],
      series: [
        {},
        { stroke: () => colour("ack"), fill: () => colour("burst-fill"), width: 1, points: { show: false } },
      ],
    };
    return [options, [x, y]];
  });
  const n = `${count(of.transfers.length)} transfers`;
  const more = of.packets_left_out > 0 ? `; ${count(of.packets_left_out)} packets belong to none of them` : "";
  return h("ul", { class: "legend" }, h("li", {}, `n = ${n}, bins of ${of.bin_s} s${more}`));
}

function paint(plot: uPlot, of: Requests, ports: number[]): void {
  const { ctx } = plot;
  const density = devicePixelRatio || 1;
  ctx.save();
  ctx.fillStyle = colour("ack");
  for (const transfer of of.transfers) {
    const row = ports.indexOf(transfer.port);
    const left = plot.valToPos(transfer.from_s, "x", true);
    const right = plot.valToPos(transfer.to_s, "x", true);
    const middle = plot.valToPos(row + 0.5, "y", true);
    // Keeps short transfers visible.
    ctx.fillRect(left, middle - 3 * density, Math.max(3 * density, right - left), 6 * density);
  }
  ctx.restore();
}
