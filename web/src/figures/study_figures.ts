/** The paper's figures from this capture, or the reason why it cannot provide them. */

import { append, h, headerRow, prose, section } from "../dom";
import { bitrate, bytes, count, duration, orDash } from "../format";
import type { Compared, Figure, StudyDocument } from "../generated/study";
import { bandwidthFigure } from "./bandwidth";
import { curvesFigure } from "./curves";
import { densityFigure } from "./density";
import { sequenceLegend } from "./events";
import type { FlowViewer } from "./flow_viewer";
import { whenShown } from "./plot";
import { requestsFigure } from "./requests";
import { sequenceFigure } from "./sequence";

/** A value of the summary with its unit. */
export function value(of: number, unit: string): string {
  switch (unit) {
    case "share":
      return shareText(of);
    case "bytes":
      return bytes(Math.round(of));
    case "bit/s":
      return bitrate(of);
    case "ms":
      return of < 10 ? `${of.toFixed(1)} ms` : duration(of);
    case "s":
      return `${of.toFixed(1)} s`;
    case "correlation":
      return of.toFixed(3);
    case "ratio":
      return of.toFixed(1);
    case "":
      return count(Math.round(of));
    default:
      return `${of.toFixed(of < 10 ? 2 : 0)} ${unit}`;
  }
}

/** The paper's number of digits: one, or two below a tenth of a percent, without zeros. */
function shareText(share: number): string {
  const p = share * 100;
  if (p > 0 && p < 0.1) return `${p.toFixed(2)} %`;
  return `${p.toFixed(1).replace(/\.0$/, "")} %`;
}

export function figuresSection(document: StudyDocument, viewer: FlowViewer): HTMLElement {
  const drawn = document.figures.filter((figure) => figure.plot);
  const missing = document.figures.filter((figure) => !figure.plot);
  const grid = h("div", { class: "figures" });
  append(grid, drawn.map((figure) => card(figure, document, viewer)));
  const note =
    "Numbered as in Huang et al., SIGCOMM 2013; rhombs are the paper's values. " +
    "Figures 11, 12 and 18 to 20 of the paper need the truth at the phone: ";
  const box = section("figures", "The paper's figures from this capture", h("p", { class: "note" }, note, h("code", {}, "airmile lab reproduce"), "."), grid);
  if (missing.length > 0) {
    const list = h("dl", { class: "missing" });
    for (const figure of missing) {
      append(list, [
        h("dt", { id: `figure-${figure.number}` }, `Figure ${figure.number}: ${figure.title}`),
        h("dd", {}, ...prose(figure.missing ?? "")),
      ]);
    }
    box.append(h("h3", { class: "missing-title" }, "Not in this capture"), list);
  }
  return box;
}

/** Plots over time take the full width. */
const WIDE = new Set(["bandwidth", "excerpt", "flow", "requests"]);

function card(figure: Figure, document: StudyDocument, viewer: FlowViewer): HTMLElement {
  const box = h("div", { class: "plot", "aria-hidden": "true" });
  const extra: (HTMLElement | null)[] = [];
  const { plot } = figure;
  const toFlow = (flow: number, span?: [number, number]): HTMLElement | null => {
    if (!viewer.has(flow)) return null;
    const go = (event: Event): void => {
      event.preventDefault();
      viewer.show(flow, span);
    };
    return h("p", {}, h("a", { href: "#flows", click: go }, `Show it in the flow viewer (flow ${flow})`));
  };
  switch (plot?.kind) {
    case "cumulative":
      extra.push(curvesFigure(box, plot.of, document.packets.curves as Record<string, [number, number][]>));
      break;
    case "density":
      extra.push(densityFigure(box, plot.of));
      break;
    case "bandwidth":
      extra.push(bandwidthFigure(box, plot.flows));
      break;
    case "requests":
      extra.push(requestsFigure(box, plot.of));
      break;
    case "excerpt":
      whenShown(box, () => sequenceFigure(box, plot.flow, null));
      extra.push(sequenceLegend(plot.flow), toFlow(plot.flow.flow, plot.flow.span_ms as [number, number]));
      break;
    case "flow": {
      const flow = document.flows.find((each) => each.flow === plot.flow);
      if (!flow) break;
      whenShown(box, () => sequenceFigure(box, flow, plot.ideal_bps ?? null));
      extra.push(sequenceLegend(flow, typeof plot.ideal_bps === "number"), toFlow(plot.flow));
      break;
    }
  }
  const element = h(
    "figure",
    { class: plot && WIDE.has(plot.kind) ? "figure wide" : "figure", id: `figure-${figure.number}` },
    h("h3", {}, `${figure.number}. ${figure.title}`),
    box,
    ...extra,
  );
  const caption = h("figcaption", {}, ...prose(figure.says), " ", keyTable(figure.key));
  element.append(caption);
  return element;
}

/** A figure's numbers with the paper's. */
function keyTable(key: Compared[]): HTMLElement {
  const body = h("tbody");
  for (const each of key) {
    body.append(
      h(
        "tr",
        {},
        h("th", { scope: "row" }, each.what),
        h("td", { class: "number" }, orDash(each.here, (v) => value(v, each.unit))),
        h("td", { class: "number" }, orDash(each.paper, (v) => value(v, each.unit))),
      ),
    );
  }
  if (key.length === 0) return h("span", {}, "");
  const caption = h("caption", {}, "Here and in the paper");
  return h("table", { class: "key" }, caption, h("thead", {}, headerRow(["", "here", "paper"])), body);
}

