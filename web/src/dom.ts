/** Elements, made in one line each; text is always text, never markup. */

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

/** A titled part of the page. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  const heading = h("h2", { id: `${id}-title` }, title);
  return h("section", { id, "aria-labelledby": `${id}-title` }, heading, ...children);
}
