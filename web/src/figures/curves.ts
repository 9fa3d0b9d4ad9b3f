/** Cumulative distributions of a capture, with the paper's published points. */

import type uPlot from "uplot";
import { h, lineSwatch } from "../dom";
import { bitrate, count, duration, percent, short } from "../format";
import type { Cumulative } from "../generated/study";
import { colour } from "../theme";
import { draw, figureFrame, namedAxis, shareAxis } from "./plot";

/** Colour and dashes of the curves in their order. */
const STYLES: { colour: string; dash: number[] }[] = [
  { colour: "start", dash: [] },
  { colour: "end", dash: [7, 4] },
  { colour: "load", dash: [2, 3] },
  { colour: "mixed", dash: [10, 3, 2, 3] },
  { colour: "prb", dash: [4, 2] },
];

const styleOf = (i: number): { colour: string; dash: number[] } =>
  STYLES[i % STYLES.length] ?? { colour: "prb", dash: [] };

type Points = [number, number][];

/** A value of an axis with its unit, short. */
export function valueLabel(value: number, unit: string): string {
  switch (unit) {
    case "bytes":
      return short(Math.round(value), "B");
    case "bit/s":
      return bitrate(value);
    case "s":
      return duration(value * 1e3);
    case "ms":
      return duration(value < 10 ? Math.round(value * 10) / 10 : value);
    case "share":
      return percent(value);
    default:
      return value >= 100 ? count(Math.round(value)) : plain(value);
  }
}

/** Two decimals, or two significant digits of smaller values. */
function plain(value: number): string {
  return String(Math.abs(value) < 0.1 ? Number(value.toPrecision(2)) : Math.round(value * 100) / 100);
}

/** Short tick labels without insignificant digits. */
export function tickLabel(value: number, unit: string): string {
  const rounded = (n: number): number => Math.round(n * 100) / 100;
  if (unit === "share") return `${Math.round(value * 100)} %`;
  if (unit === "bytes") return short(value, "B");
  if (unit === "bit/s") return short(value, "");
  if (unit === "ms") return value >= 1e3 ? `${rounded(value / 1e3)} s` : `${rounded(value)} ms`;
  if (unit === "s") return value < 1 ? `${rounded(value * 1e3)} ms` : `${rounded(value)} s`;
  return value >= 1 ? String(rounded(value)) : plain(value);
}

/**
 * The curve as a staircase from the left edge on. Values that a logarithmic
 * axis cannot show (zero) raise it at the edge.
 */
export function staircase(points: Points, left: number, right: number): { x: number[]; y: number[] } {
  let share = 0;
  const x: number[] = [];
  const y: number[] = [];
  const inside = points.filter(([value, below]) => {
    if (value > left) return true;
    share = below;
    return false;
  });
  const put = (at: number, value: number): void => {
    x.push(at);
    y.push(value);
  };
  put(left, share);
  for (const [value, below] of inside) {
    put(value, share);
    put(value, below);
    share = below;
  }
  put(right, share);
  return { x, y };
}

/** Where the axis begins and ends: round values around all curves and points. */
export function bounds(values: number[], log: boolean): [number, number] {
  if (!log) return [0, Math.max(1, ...values) * 1.1];
  const positive = values.filter((value) => value > 0);
  if (positive.length === 0) return [0.1, 10];
  const low = 10 ** Math.floor(Math.log10(Math.min(...positive)) - 1e-9);
  const high = 10 ** Math.ceil(Math.log10(Math.max(...positive)) + 1e-9);
  return [low, high];
}

export function curvesFigure(
  box: HTMLElement,
  of: Cumulative,
  curves: Record<string, Points>,
): HTMLElement {
  const legend = h("ul", { class: "legend" });
  const all = of.curves.map((curve) => curves[curve.curve] ?? []);
  of.curves.forEach((curve, i) => {
    const [p5, p50, p95] = curve.percentiles as [number, number, number];
    const label = (value: number): string => valueLabel(value, of.unit);
    const quantiles =
      curve.n > 1 ? `5, 50, 95 %: ${label(p5)}, ${label(p50)}, ${label(p95)}` : label(p50);
    const text = `${curve.label} (n = ${count(curve.n)}; ${quantiles})`;
    const style = styleOf(i);
    legend.append(h("li", {}, lineSwatch(style.colour, style.dash), text));
  });
  if (of.paper.length > 0) {
    legend.append(
      h("li", {}, h("span", { class: "glyph" }, "◇"), "the paper's value, in the colour of its curve"),
    );
  }
  draw(box, () => {
    const values = [...all.flat().map((point) => point[0]), ...of.paper.map((point) => point.x)];
    const [left, right] = bounds(values, of.log);
    const lines = all.map((points) => staircase(points, left, right));
    const axis = namedAxis(of.axis);
    axis.values = (_, splits) =>
      splits.map((v) => (of.log && !decade(v, left, right) ? "" : tickLabel(v, of.unit)));
    if (of.log) {
      axis.splits = (_plot, _axis, min, max) => decades(min, max);
      axis.filter = (_, splits) => splits;
    } else if (of.unit === "") {
      axis.incrs = [1, 2, 5, 10];
    }
    const options: uPlot.Options = {
      ...figureFrame(box),
      scales: {
        x: { time: false, auto: false, range: [left, right], ...(of.log ? { distr: 3, log: 10 } : {}) },
        y: { auto: false, range: [0, 1.02] },
      },
      axes: [axis, shareAxis()],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: {
        draw: [
          (plot) => {
            lines.forEach((line, i) => paintCurve(plot, line, i));
            of.paper.forEach((point) => {
              const i = of.curves.findIndex((curve) => curve.curve === point.curve);
              paintPaper(plot, point.x, point.y, i);
            });
          },
        ],
      },
    };
    // Each curve has its own x values: the hook above draws it.
    return [options, [[left, right], [0, 1]]];
  });
  return legend;
}

/** Powers of ten of an axis. */
export function decades(min: number, max: number): number[] {
  const out: number[] = [];
  for (let e = Math.ceil(Math.log10(min) - 1e-9); e <= Math.log10(max) + 1e-9; e++) out.push(10 ** e);
  return out;
}

/** Labels each decade, or every second one if there are many. */
function decade(value: number, min: number, max: number): boolean {
  const e = Math.round(Math.log10(value));
  return Math.log10(max / min) <= 6 || e % 2 === 0;
}

function paintCurve(plot: uPlot, line: { x: number[]; y: number[] }, i: number): void {
  const { ctx } = plot;
  const density = devicePixelRatio || 1;
  const style = styleOf(i);
  ctx.save();
  ctx.strokeStyle = colour(style.colour);
  ctx.lineWidth = 2 * density;
  ctx.setLineDash(style.dash.map((d) => d * density));
  ctx.beginPath();
  line.x.forEach((x, at) => {
    const px = plot.valToPos(x, "x", true);
    const py = plot.valToPos(line.y[at] as number, "y", true);
    if (at === 0) ctx.moveTo(px, py);
    else ctx.lineTo(px, py);
  });
  ctx.stroke();
  ctx.restore();
}

function paintPaper(plot: uPlot, x: number, y: number, i: number): void {
  const { ctx } = plot;
  const r = 5 * (devicePixelRatio || 1);
  const px = plot.valToPos(x, "x", true);
  const py = plot.valToPos(y, "y", true);
  ctx.save();
  ctx.beginPath();
  ctx.moveTo(px, py - r);
  ctx.lineTo(px + r, py);
  ctx.lineTo(px, py + r);
  ctx.lineTo(px - r, py);
  ctx.closePath();
  ctx.fillStyle = colour("surface");
  ctx.fill();
  ctx.strokeStyle = colour(styleOf(i).colour);
  ctx.lineWidth = 2 * (devicePixelRatio || 1);
  ctx.stroke();
  ctx.restore();
}
