/** Lanes on the time axis: transfers as spans, the state of each queue. */

import type { DiagnoseDocument, Direction, TransferDiagnosis } from "../generated/diagnose";
import { bucketWidth } from "../data/pyramid";
import type { Series } from "../series";
import { colour, onTheme } from "../theme";
import type { View } from "../view";
import { FONT, GUTTER, MARGIN, sharpCanvas } from "./axes";
import { family } from "./verdict";

const ROW = 24;
const BAR = 18;
/** The maximum number of rows of transfers; transfers beyond share the last row. */
const MAX_ROWS = 24;
/** Height of all rows of transfers, from which each is lower, down to the minimum. */
const ROWS_HEIGHT = 5 * ROW;
const LOWEST = 7;

/** Shares of a span by the queue's state; they add up to 1. */
export interface QueueShares {
  burst: number;
  /** Scheduled, but each block emptied the queue. */
  scheduled: number;
  unknown: number;
  empty: number;
}

export function queueShares(
  series: Series,
  dir: Direction,
  from: number,
  to: number,
  scheduledShare: number,
): QueueShares {
  const ttis = Math.max(1e-9, to - from);
  const burst = series.bursts[dir].spans.cover(from, to) / ttis;
  const unknown = Math.min(1 - burst, series.holes.cover(from, to) / ttis);
  // Scheduled TTIs count for bursts first; the rest lies outside of them.
  const inside = Math.min(scheduledShare, burst * scheduledInBursts(series, dir, from, to));
  const scheduled = Math.max(0, Math.min(1 - burst - unknown, scheduledShare - inside));
  return { burst, scheduled, unknown, empty: Math.max(0, 1 - burst - unknown - scheduled) };
}

/** The part of the bursts' TTIs in which something was scheduled. */
function scheduledInBursts(series: Series, dir: Direction, from: number, to: number): number {
  const { spans, scheduled } = series.bursts[dir];
  const [first, last] = spans.within(from, to);
  // For more than some hundreds, the first ones represent all.
  const end = Math.min(last, first + 200);
  let ttis = 0;
  let busy = 0;
  for (let i = first; i < end; i++) {
    ttis += spans.length(i);
    busy += scheduled[i] ?? 0;
  }
  return ttis > 0 ? Math.min(1, busy / ttis) : 0;
}

/** Draws the causes as columns of a pixel, divided by their shares. */
export function causeLane(box: HTMLElement, series: Series, view: View): void {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  box.append(canvas);
  const draw = (): void => {
    const width = box.clientWidth;
    const context = sharpCanvas(canvas, width, ROW + 2);
    if (!context) return;
    context.font = FONT;
    context.textBaseline = "middle";
    label(context, "cause", 0);
    const { from, to } = view.range;
    const scale = (width - GUTTER - MARGIN) / (to - from);
    context.fillStyle = colour("empty");
    context.fillRect(GUTTER, (ROW - BAR) / 2, width - GUTTER - MARGIN, BAR);
    for (let x = GUTTER; x < width - MARGIN; x++) {
      const start = from + (x - GUTTER) / scale;
      let bottom = (ROW + BAR) / 2;
      for (const [cause, ttis] of series.causes.within(start, start + 1 / scale)) {
        const tall = ttis * scale * BAR;
        bottom -= tall;
        context.fillStyle = colour(causeColour(cause));
        context.fillRect(x, bottom, 1, tall);
      }
    }
  };
  view.onChange(draw);
  onTheme(draw);
  new ResizeObserver(draw).observe(box);
  draw();
}

function causeColour(cause: string): string {
  if (cause === "radio") return "burst";
  if (cause === "unknown") return cause;
  return cause.startsWith("loss_recovery") ? "cause-loss" : `cause-${cause}`;
}

export function lanes(
  box: HTMLElement,
  document: DiagnoseDocument,
  series: Series,
  view: View,
): void {
  const canvas = globalThis.document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  box.append(canvas);
  const transfers = document.transfers.toSorted((a, b) => a.start_tti - b.start_tti);
  const directions = (["dl", "ul"] as const).filter((dir) => series.has(dir));
  const stack = stacked(transfers);
  const needed = stack.reduce((most, row) => Math.max(most, row + 1), 1);
  const rows = rowsOf(needed);
  const shared = needed - rows.count;
  const queues = rows.count * rows.height;
  const height = queues + directions.length * ROW + 2;
  const draw = (): void => {
    const width = box.clientWidth;
    const context = sharpCanvas(canvas, width, height);
    if (!context) return;
    context.font = FONT;
    context.textBaseline = "middle";
    label(context, "transfers", 0);
    if (shared > 0) label(context, `+${shared} rows`, ROW);
    drawTransfers(context, transfers, stack, rows, series, view, width);
    directions.forEach((dir, i) => {
      const top = queues + i * ROW;
      label(context, dir === "dl" ? "queue ↓" : "queue ↑", top);
      drawQueue(context, series, dir, view, top, width);
    });
  };
  view.onChange(draw);
  onTheme(draw);
  new ResizeObserver(draw).observe(box);
  draw();
}

/** A row for each transfer, so that overlapping ones do not hide each other. */
export function stacked(transfers: { start_tti: number; end_tti: number }[]): number[] {
  const ends: number[] = [];
  return transfers.map((transfer) => {
    let row = ends.findIndex((end) => end <= transfer.start_tti);
    if (row < 0) row = ends.length;
    ends[row] = transfer.end_tti;
    return row;
  });
}

/** Number and height of the rows of transfers, lower ones where many are needed. */
export function rowsOf(needed: number): { count: number; height: number } {
  const count = Math.min(MAX_ROWS, Math.max(1, needed));
  return { count, height: Math.max(LOWEST, Math.min(ROW, Math.floor(ROWS_HEIGHT / count))) };
}

function label(context: CanvasRenderingContext2D, text: string, top: number): void {
  context.fillStyle = colour("muted");
  context.textAlign = "right";
  context.fillText(text, GUTTER - 6, top + ROW / 2, GUTTER - 8);
}

function drawTransfers(
  context: CanvasRenderingContext2D,
  transfers: TransferDiagnosis[],
  stack: number[],
  rows: { count: number; height: number },
  series: Series,
  view: View,
  width: number,
): void {
  const { from, to } = view.range;
  const scale = (width - GUTTER - MARGIN) / (to - from);
  const bar = rows.height - (rows.height < ROW ? 2 : ROW - BAR);
  context.save();
  context.beginPath();
  context.rect(GUTTER, 0, width - GUTTER - MARGIN, rows.count * rows.height);
  context.clip();
  context.textAlign = "left";
  transfers.forEach((transfer, i) => {
    const start = series.offset(transfer.start_tti);
    const end = series.offset(transfer.end_tti);
    if (end < from || start > to) return;
    const left = GUTTER + Math.max(-4, (start - from) * scale);
    const right = GUTTER + Math.min(width, (end - from) * scale);
    const row = Math.min(stack[i] ?? 0, rows.count - 1);
    const top = row * rows.height + (rows.height - bar) / 2;
    const kind = family(transfer.verdict);
    context.fillStyle = colour(`${kind}-soft`);
    context.fillRect(left, top, Math.max(2, right - left), bar);
    context.fillStyle = colour(kind);
    context.fillRect(left, top, Math.max(1, Math.min(2, right - left)), bar);
    context.fillRect(left, top + bar - 2, Math.max(2, right - left), 2);
    if (bar >= 12 && right - left > context.measureText(transfer.id).width + 12) {
      context.fillStyle = colour("text");
      context.fillText(transfer.id, Math.max(left, GUTTER) + 6, top + bar / 2);
    }
  });
  context.restore();
}

/** Draws each bucket as a column, divided by the shares of its states. */
function drawQueue(
  context: CanvasRenderingContext2D,
  series: Series,
  dir: Direction,
  view: View,
  top: number,
  width: number,
): void {
  const { from, to } = view.range;
  const plotWidth = width - GUTTER - MARGIN;
  const scale = plotWidth / (to - from);
  const bucket = bucketWidth(to - from, plotWidth);
  const sample = series.allocation[dir].sample(from, to, bucket);
  context.save();
  context.beginPath();
  context.rect(GUTTER, top, plotWidth, ROW);
  context.clip();
  context.fillStyle = colour("empty");
  context.fillRect(GUTTER, top + (ROW - BAR) / 2, plotWidth, BAR);
  sample.start.forEach((start, i) => {
    const shares = queueShares(series, dir, start, start + bucket, sample.scheduled[i] ?? 0);
    // Whole pixels avoid gaps between neighbours.
    const left = Math.round(GUTTER + (start - from) * scale);
    const wide = Math.max(1, Math.round(GUTTER + (start + bucket - from) * scale) - left);
    let bottom = top + (ROW + BAR) / 2;
    for (const [state, share] of [
      ["burst", shares.burst],
      ["scheduled", shares.scheduled],
      ["hole", shares.unknown],
    ] as const) {
      if (share <= 0) continue;
      const tall = Math.max(0.5, share * BAR);
      bottom -= tall;
      context.fillStyle = colour(state);
      context.fillRect(left, bottom, wide, tall);
    }
  });
  context.restore();
}
