/** Creates elements; text is never parsed as markup. */

import { unbroken } from "./format";

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** Text in which `backticks` mark code; numbers stay on one line with their units. */
export function prose(text: string): Node[] {
  const parts = unbroken(text).split("`");
  return parts.map((part, i) =>
    i % 2 === 1 && i < parts.length - 1 ? h("code", {}, part) : document.createTextNode(part),
  );
}

/** A titled part of the page. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  const heading = h("h2", { id: `${id}-title` }, title);
  return h("section", { id, "aria-labelledby": `${id}-title` }, heading, ...children);
}

/** A table's header: a column of text, then numbers. A cell without text is no header cell. */
export function headerRow(names: string[]): HTMLElement {
  const cells = names.map((name, i) =>
    name === "" ? h("td") : h("th", { scope: "col", class: i === 0 ? "text" : "number" }, name),
  );
  return h("tr", {}, ...cells);
}

const SVG = "http://www.w3.org/2000/svg";

/** A line sample for a legend, in a colour of the style sheet (class `stroke-...`). */
export function lineSwatch(colour: string, dash: number[]): SVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `line-swatch stroke-${colour}`);
  svg.setAttribute("viewBox", "0 0 26 4");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "line");
  for (const [name, value] of [["x1", "0"], ["x2", "26"], ["y1", "2"], ["y2", "2"]] as const) {
    line.setAttribute(name, value);
  }
  if (dash.length > 0) line.setAttribute("stroke-dasharray", dash.join(" "));
  svg.append(line);
  return svg;
}
