/** Interaction with a time axis. */

import { h } from "../dom";
import { isAll, type View } from "../view";
import { GUTTER, MARGIN } from "./axes";

export const HELP =
  "Drag or pinch to zoom; wheel to zoom after a click, or with Ctrl. Shift and wheel or arrow keys " +
  "to move, plus and minus to zoom, 0 or double click for all.";

/** Buttons with the functions of the keys; `opened` names the part on which the view opened. */
export function zoomButtons(view: View, opened?: string): HTMLElement {
  const button = (name: string, label: string, act: () => void): HTMLElement =>
    h("button", { type: "button", "aria-label": label, title: label, click: act }, name);
  return h(
    "div",
    { class: "buttons" },
    button("‹", "Earlier", () => view.pan(-0.25)),
    button("›", "Later", () => view.pan(0.25)),
    button("−", "Zoom out", () => view.zoom(2)),
    button("+", "Zoom in", () => view.zoom(0.5)),
    button("All", "Show all", () => view.reset()),
    opened !== undefined &&
      !isAll(view.start, view.full) &&
      button(opened, `Show ${opened.toLowerCase()}`, () => view.reset(view.start)),
  );
}

/** Wheel, pinch, touch and keys; the plots handle dragging with a mouse. */
export function interact(
  plots: HTMLElement,
  view: View,
  hover: (at: number | null) => void,
): void {
  const placeOf = (clientX: number): number => {
    const box = plots.getBoundingClientRect();
    const share = (clientX - box.left - GUTTER) / Math.max(1, box.width - GUTTER - MARGIN);
    const { from, to } = view.range;
    return from + Math.min(1, Math.max(0, share)) * (to - from);
  };
  plots.addEventListener(
    "wheel",
    (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
      // A reader who scrolls the page past the graph does not mean the graph.
      const meant = event.ctrlKey || document.activeElement === plots;
      if (!sideways && !meant) return;
      event.preventDefault();
      const by = event.deltaMode === 1 ? 30 : 1;
      if (sideways) {
        const delta = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.deltaY;
        view.pan((delta * by) / 600);
      } else {
        const factor = Math.exp(Math.min(1, Math.max(-1, (event.deltaY * by) / 300)));
        view.zoom(factor, placeOf(event.clientX));
      }
    },
    { passive: false },
  );
  plots.addEventListener("pointerdown", () => plots.focus({ preventScroll: true }));
  plots.addEventListener("dblclick", () => view.reset());
  plots.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act(view);
  });
  let pointer: number | null = null;
  let frame = 0;
  const update = (): void => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => hover(pointer === null ? null : placeOf(pointer)));
  };
  plots.addEventListener("pointermove", (event) => {
    pointer = event.clientX;
    update();
  });
  plots.addEventListener("pointerleave", () => {
    pointer = null;
    update();
  });
  view.onChange(update);
  touches(plots, view, placeOf);
}

const KEYS: Record<string, (view: View) => void> = {
  ArrowLeft: (view) => view.pan(-0.2),
  ArrowRight: (view) => view.pan(0.2),
  PageUp: (view) => view.pan(-0.9),
  PageDown: (view) => view.pan(0.9),
  Home: (view) => view.set({ from: view.full.from, to: view.full.from + span(view) }),
  End: (view) => view.set({ from: view.full.to - span(view), to: view.full.to }),
  "+": (view) => view.zoom(0.5),
  "=": (view) => view.zoom(0.5),
  "-": (view) => view.zoom(2),
  "0": (view) => view.reset(),
  Escape: (view) => {
    view.mark = null;
    view.changed();
  },
};

function span(view: View): number {
  return view.range.to - view.range.from;
}

/** One finger pans, two fingers zoom; vertical movement scrolls the page. */
function touches(plots: HTMLElement, view: View, placeOf: (x: number) => number): void {
  let last: { x: number; apart: number } | null = null;
  const state = (list: TouchList): { x: number; apart: number } => {
    const a = list[0]?.clientX ?? 0;
    const b = list[1]?.clientX ?? a;
    return { x: (a + b) / 2, apart: Math.abs(a - b) };
  };
  plots.addEventListener("touchstart", (event) => (last = state(event.touches)), { passive: true });
  plots.addEventListener("touchend", (event) => {
    last = event.touches.length > 0 ? state(event.touches) : null;
  });
  plots.addEventListener(
    "touchmove",
    (event) => {
      const now = state(event.touches);
      if (last && event.touches.length === 2 && last.apart > 10 && now.apart > 10) {
        event.preventDefault();
        view.zoom(last.apart / now.apart, placeOf(now.x));
      } else if (last && event.touches.length === 1) {
        const width = Math.max(1, plots.clientWidth - GUTTER - MARGIN);
        view.pan((last.x - now.x) / width);
      }
      last = now;
    },
    { passive: false },
  );
}
