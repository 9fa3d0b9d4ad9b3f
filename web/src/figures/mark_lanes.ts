/** Events of applications, in lanes on the time axis. */

import type { MarkList } from "../data/marks";
import type { Series } from "../series";
import { bitrate } from "../format";
import { colour, onTheme } from "../theme";
import type { View } from "../view";
import { FONT, GUTTER, MARGIN, sharpCanvas } from "./axes";

const ROW = 22;
const BAR = 14;

interface Lane {
  name: string;
  paint: (area: Area) => void;
}

/** A lane to paint in. */
interface Area {
  context: CanvasRenderingContext2D;
  top: number;
  width: number;
  view: View;
}

/** Draws requests, stalls and bitrates, if there are any. */
export function markLanes(box: HTMLElement, series: Series, view: View): void {
  const canvas = document.createElement("canvas");
  box.append(canvas);
  const lanes = lanesOf(series);
  const draw = (): void => {
    const width = box.clientWidth;
    const context = sharpCanvas(canvas, width, lanes.length * ROW + 2);
    if (!context) return;
    context.font = FONT;
    context.textBaseline = "middle";
    lanes.forEach(({ name, paint }, i) => {
      const top = i * ROW;
      context.fillStyle = colour("muted");
      context.textAlign = "right";
      context.fillText(name, GUTTER - 6, top + ROW / 2, GUTTER - 8);
      context.save();
      context.beginPath();
      context.rect(GUTTER, top, width - GUTTER - MARGIN, ROW);
      context.clip();
      context.fillStyle = colour("empty");
      context.fillRect(GUTTER, top + (ROW - BAR) / 2, width, BAR);
      paint({ context, top, width, view });
      context.restore();
    });
  };
  view.onChange(draw);
  onTheme(draw);
  new ResizeObserver(draw).observe(box);
  draw();
}

function lanesOf({ marks }: Series): Lane[] {
  const lanes: Lane[] = [];
  if (marks.of("request").count > 0) {
    lanes.push({
      name: "requests",
      paint(area) {
        bars(area, marks.of("request"), "request", 0);
        bars(area, marks.of("wait"), "wait", 4);
        ticks(area, marks.of("failed"), "failed");
      },
    });
  }
  if (marks.of("switch").count > 0 || marks.of("playing").count > 0) {
    lanes.push({
      name: "bitrate",
      paint(area) {
        ticks(area, marks.of("playing"), "start");
        bitrates(area, marks.of("switch"));
      },
    });
  }
  if (marks.of("stall").count > 0) {
    lanes.push({ name: "stalls", paint: (area) => bars(area, marks.of("stall"), "stall", 0) });
  }
  return lanes;
}

/** The x position of a time in a lane. */
function place({ width, view }: Area): (at: number) => number {
  const { from, to } = view.range;
  const scale = (width - GUTTER - MARGIN) / (to - from);
  return (at) => GUTTER + (at - from) * scale;
}

/** Spans as bars with an edge at their start; those within a pixel are merged. */
function bars(area: Area, list: MarkList, name: string, inset: number): void {
  const { context, top, view } = area;
  const x = place(area);
  let drawn = -Infinity;
  context.fillStyle = colour(name);
  for (const i of list.within(view.range.from, view.range.to)) {
    const { from, to } = list.get(i);
    const left = x(from);
    const right = Math.max(x(to), left + 1);
    if (right <= drawn + 0.5) continue;
    const start = Math.max(left, drawn);
    context.globalAlpha = 0.55;
    context.fillRect(start, top + (ROW - BAR) / 2 + inset, right - start, BAR - 2 * inset);
    context.globalAlpha = 1;
    if (left > drawn) context.fillRect(left, top + (ROW - BAR) / 2 + inset, 1, BAR - 2 * inset);
    drawn = right;
  }
}

/** Points in time as ticks of the lane's height. */
function ticks(area: Area, list: MarkList, name: string): void {
  const { context, top, view } = area;
  const x = place(area);
  context.fillStyle = colour(name);
  let drawn = -Infinity;
  for (const i of list.within(view.range.from, view.range.to)) {
    const left = x(list.get(i).from);
    if (left < drawn + 1) continue;
    context.fillRect(left - 1, top + 1, 2, ROW - 2);
    drawn = left;
  }
}

/** Changes of bitrate as ticks, with the bitrate if there is room. */
function bitrates(area: Area, list: MarkList): void {
  const { context, top, view } = area;
  ticks(area, list, "switch");
  const x = place(area);
  context.fillStyle = colour("text");
  context.textAlign = "left";
  // At the left edge the last bitrate before it holds.
  const shown = [...list.within(0, view.range.to)].filter(
    (i) => i + 1 >= list.count || list.get(i + 1).from > view.range.from,
  );
  for (const [n, i] of shown.slice(0, 500).entries()) {
    const { from, value } = list.get(i);
    const left = Math.max(GUTTER, x(from)) + 4;
    const next = shown[n + 1];
    const right = next === undefined ? area.width - MARGIN : x(list.get(next).from);
    const text = bitrate(value * 1e3);
    if (context.measureText(text).width < right - left - 2) {
      context.fillText(text, left, top + ROW / 2);
    }
  }
}
