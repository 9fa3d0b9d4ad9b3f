/** A small panel of lines on the time axis: signal, cell load. */

import uPlot from "uplot";
import { thin } from "../data/lines";
import type { Line, Series } from "../series";
import { colour, onTheme } from "../theme";
import type { View } from "../view";
import { clockAxis, GUTTER, keepWidth, MARGIN, plainAxis } from "./axes";
import { panelFrame, selection } from "./plot";

const HEIGHT = 130;
/** A pause of this many TTIs breaks a line. */
const GAP_TTIS = 5_000;

export interface LineOf {
  line: Line;
  label: string;
  /** Colour of the style sheet. */
  colour: string;
  /** Dashed, to be distinguishable without colour. */
  dashed?: boolean;
  /** `right`: with its own axis on the right. */
  side: "left" | "right";
  show: (value: number) => string;
  range?: [number, number];
}

export function linePanel(
  box: HTMLElement,
  series: Series,
  view: View,
  lines: LineOf[],
  onSelect: (from: number, to: number) => void,
): uPlot {
  const right = lines.find((line) => line.side === "right");
  const left = lines.find((line) => line.side === "left");
  const axis = (of: LineOf | undefined, side: 1 | 3, scale: string): uPlot.Axis => ({
    ...plainAxis(),
    scale,
    side,
    size: side === 3 ? GUTTER : 40,
    ...(side === 1 ? { grid: { show: false } } : {}),
    values: (_, splits) => splits.map((v) => of?.show(v) ?? ""),
  });
  const scale = (of: LineOf | undefined): uPlot.Scale =>
    of?.range ? { auto: false, range: of.range } : { range: padded };
  const options: uPlot.Options = {
    // The right axis is drawn over the plot, because the other panels have no margin there.
    ...panelFrame(box, HEIGHT),
    scales: { x: { time: false, auto: false }, left: scale(left), right: scale(right) },
    axes: [clockAxis(series, view.full.from), axis(left, 3, "left")],
    series: [
      {},
      ...lines.map(
        (line): uPlot.Series => ({
          label: line.label,
          scale: line.side,
          stroke: () => colour(line.colour),
          width: 1.5,
          spanGaps: false,
          points: { show: (_plot, _i, first, last) => last - first < 60, size: 4 },
          ...(line.dashed ? { dash: [6, 3] } : {}),
        }),
      ),
    ],
    hooks: {
      draw: [(plot) => rightLabels(plot, right)],
      setSelect: [selection(onSelect)],
    },
  };
  const plot = new uPlot(options, [[], ...lines.map(() => [])], box);
  const draw = (): void => {
    const { from, to } = view.range;
    const n = Math.max(50, (plot.width - GUTTER - MARGIN) / 2);
    const gap = Math.max(GAP_TTIS, ((to - from) / n) * 3);
    const found = lines.map(({ line }) => thin(line.at, line.value, from, to, n, gap));
    const x = found[0]?.x ?? [];
    plot.batch(() => {
      plot.setData([x, ...found.map((f) => f.y)], true);
      plot.setScale("x", { min: from, max: to });
    });
  };
  view.onChange(draw);
  onTheme(() => plot.redraw(false));
  keepWidth(plot, box, draw);
  draw();
  return plot;
}

function padded(_plot: uPlot, min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [0, 1];
  const room = Math.max(2, (max - min) * 0.15);
  return [Math.floor(min - room), Math.ceil(max + room)];
}

/** Minimum and maximum of the right scale, written inside the plot. */
function rightLabels(plot: uPlot, right: LineOf | undefined): void {
  const scale = plot.scales["right"];
  if (!right || typeof scale?.min !== "number" || typeof scale.max !== "number") return;
  const { ctx, bbox } = plot;
  const density = devicePixelRatio || 1;
  ctx.save();
  ctx.font = `${11 * density}px system-ui, sans-serif`;
  ctx.fillStyle = colour(right.colour);
  ctx.textAlign = "right";
  ctx.textBaseline = "top";
  ctx.fillText(right.show(scale.max), bbox.left + bbox.width - 3 * density, bbox.top + density);
  ctx.textBaseline = "bottom";
  const bottom = bbox.top + bbox.height - density;
  ctx.fillText(right.show(scale.min), bbox.left + bbox.width - 3 * density, bottom);
  ctx.restore();
}
