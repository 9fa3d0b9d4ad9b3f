/** Theme: light, dark or the system's; and the colours for canvases. */

import { h } from "./dom";

export type Theme = "auto" | "light" | "dark";

const NAMES: Record<Theme, string> = { auto: "Auto", light: "Light", dark: "Dark" };
const ORDER: Theme[] = ["auto", "light", "dark"];

let listeners: (() => void)[] = [];
let cache = new Map<string, string>();

/** Takes on a colour, because the value of its property names those of both themes. */
let probe: HTMLElement | undefined;

/** The value of a colour of the style sheet, such as `radio` for `--radio`. */
export function colour(name: string): string {
  let value = cache.get(name);
  if (value === undefined) {
    if (!probe) document.body.append((probe = h("span", { hidden: true })));
    probe.style.color = `var(--${name})`;
    value = getComputedStyle(probe).color;
    cache.set(name, value);
  }
  return value;
}

export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

function changed(): void {
  cache = new Map();
  listeners.forEach((listener) => listener());
}

function apply(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  changed();
}

/** The button that cycles through the themes. Print is always light. */
export function themeToggle(): HTMLElement {
  let theme: Theme = "auto";
  const button = h("button", { type: "button", id: "theme" });
  const label = (): void => {
    button.textContent = `Theme: ${NAMES[theme].toLowerCase()}`;
    button.setAttribute("aria-label", `Colour theme: ${NAMES[theme]}. Press to change.`);
  };
  button.addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? "auto";
    label();
    apply(theme);
  });
  label();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  addEventListener("beforeprint", () => apply("light"));
  addEventListener("afterprint", () => apply(theme));
  return button;
}
