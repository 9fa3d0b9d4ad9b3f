/** Common parts of all plots: frame, axes and lifetime on the page. */

import uPlot from "uplot";
import { onTheme } from "../theme";
import { FONT, GUTTER, keepWidth, MARGIN, plainAxis } from "./axes";

const FIGURE_HEIGHT = 260;

type Frame = Pick<uPlot.Options, "width" | "height" | "padding" | "legend" | "cursor">;

/** A static figure without pointer interaction. */
export function figureFrame(box: HTMLElement, height = FIGURE_HEIGHT): Frame {
  return {
    width: box.clientWidth,
    height,
    // Room for half a label at the right end of the axis.
    padding: [8, MARGIN + 14, 0, 0],
    legend: { show: false },
    cursor: { show: false },
  };
}

/** A panel of a time axis: dragging selects a range, which `selection` reports. */
export function panelFrame(box: HTMLElement, height: number): Frame {
  return {
    ...figureFrame(box, height),
    width: Math.max(200, Math.floor(box.clientWidth)),
    padding: [8, MARGIN, 0, 0],
    cursor: {
      drag: { x: true, y: false, setScale: false },
      bind: { dblclick: () => null },
      points: { show: false },
      y: false,
    },
  };
}

/** The hook for a range dragged in a panel, in values of its axis. */
export function selection(onSelect: (from: number, to: number) => void): (plot: uPlot) => void {
  return (plot) => {
    const { left, width } = plot.select;
    if (width > 4) onSelect(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  };
}

/** An axis with a name below it. */
export function namedAxis(label: string): uPlot.Axis {
  return { ...plainAxis(), size: 30, label, labelSize: 18, labelFont: FONT };
}

/** The left axis of shares from 0 to 100 %. */
export function shareAxis(): uPlot.Axis {
  return {
    ...plainAxis(),
    size: GUTTER,
    splits: () => [0, 0.25, 0.5, 0.75, 1],
    values: (_, splits) => splits.map((v) => `${Math.round(v * 100)} %`),
  };
}

/** Draws a figure when its box has a width, and again when width or theme change. */
export function draw(box: HTMLElement, make: () => [uPlot.Options, uPlot.AlignedData]): void {
  whenShown(box, () => {
    const plot = new uPlot(...make(), box);
    keepWidth(plot, box);
    onTheme(() => plot.redraw(false));
  });
}

/** Runs when the box has a width. */
export function whenShown(box: HTMLElement, run: () => void): void {
  const observer = new ResizeObserver(() => {
    if (box.clientWidth === 0) return;
    observer.disconnect();
    run();
  });
  observer.observe(box);
}
