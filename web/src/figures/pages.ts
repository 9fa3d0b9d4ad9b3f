/** Pages: the verdict on each, the savings of each fix, and the waterfall of its requests. */

import type { DiagnoseDocument, Page, PageRequest } from "../generated/diagnose";
import { h, prose } from "../dom";
import { bytes, count, duration, orDash, percent, plural, unbroken, words } from "../format";
import { inFull, timesOf } from "../zone";
import { family } from "./verdict";

/** Number of rows shown at first; more on demand. */
const ROWS = 40;

type Cause = PageRequest["cause"];

/** Names of causes, the same as in the sentences of the document. */
const CAUSES: Record<Cause, string> = {
  browser: "the page's own work",
  unlogged: "requests that the log lacks",
  blocked: "blocked by other requests",
  dns: "name lookup",
  setup: "connection set-up",
  server: "your server",
  round_trip: "round trips of requests",
  slow_start: "slow start",
  loss: "lost packets",
  receive_window: "the receive window",
  uplink_queue: "the phone's own upload",
  wireline: "a slow link before the radio",
  radio: "radio",
  transfer: "receiving data",
  unknown: "unknown",
};

const EVIDENCE: Record<string, string> = {
  log: "the browser's log only",
  packets: "the browser's log and packets",
  radio: "the browser's log, packets and the radio",
};

/** Pages, the slowest first; nothing if there are none. */
export function pagesSection(document: DiagnoseDocument): HTMLElement | null {
  const pages = document.pages.toSorted((a, b) => b.wait_ms - a.wait_ms);
  const [first] = pages;
  if (!first) return null;
  const box = h("div");
  const show = (page: Page): void => box.replaceChildren(verdict(document, page), waterfall(page));
  const section = h("section", { id: "pages", "aria-label": "Pages" });
  if (pages.length > 1) {
    const choice = h("select", { id: "page-choice" });
    pages.forEach((page, i) => {
      const text = `${page.url} (${duration(page.wait_ms)})`;
      choice.append(h("option", { value: i }, text));
    });
    choice.addEventListener("change", () => {
      const page = pages[choice.selectedIndex];
      if (page) show(page);
    });
    const label = h("label", { for: "page-choice" }, `${plural(pages.length, "page")}, slowest first: `);
    section.append(h("p", { class: "page-choice" }, label, choice));
  }
  section.append(box);
  show(first);
  return section;
}

/** Players: what stalls and changes of bitrate waited for; nothing if there are none. */
export function playersSection(document: DiagnoseDocument): HTMLElement | null {
  if (document.players.length === 0) return null;
  const box = h("section", { id: "players", "aria-label": "Players" });
  for (const player of document.players) {
    const list = h("ol", { class: "fixes" });
    const times = timesOf([...player.stalls, ...player.switches].map((one) => one.at_us));
    const item = (us: number, says: string): HTMLElement =>
      h("li", {}, h("span", { class: "note" }, `${times.show(us)} `), unbroken(says));
    for (const stall of player.stalls.slice(0, ROWS)) list.append(item(stall.at_us, stall.says));
    const switches = h("ol", { class: "fixes" });
    for (const one of player.switches.slice(0, ROWS)) switches.append(item(one.at_us, one.says));
    const name = player.path.split(/[/\\]/).at(-1) ?? player.path;
    box.append(
      h(
        "section",
        { class: "verdict page unknown", "aria-label": `Player ${name}` },
        h("p", { class: "page-url" }, name),
        h("p", { class: "says" }, unbroken(player.says)),
        player.stalls.length > 0 && h("h2", {}, "Stalls ", h("span", { class: "note" }, `(times: ${times.title})`)),
        player.stalls.length > 0 && list,
        player.switches.length > 0 &&
          h("details", {}, h("summary", {}, plural(player.switches.length, "change of bitrate", "changes of bitrate")), switches),
      ),
    );
  }
  return box;
}

/** What the shares of a page and of its transfers are of; a browser's log alone gives no verdict on transfers. */
export function whoseTime({ evidence_counts: counts, session, transfers }: DiagnoseDocument): string {
  let says = "These shares are of the load, along its critical path, and a request starts when the page asks for it.";
  const judged = counts.dl_blocks + counts.ul_blocks > 0 || session.suspects.length > 0;
  if (!judged || transfers.length === 0) return says;
  says += " The verdict on all transfers, below, adds up the time of each, and starts it when the browser sends it";
  const causes = "; causes of transfers that overlap are those of all the phone's packets meanwhile";
  return `${says}${Object.keys(session.shares).length > 0 ? causes : ""}.`;
}

function verdict(document: DiagnoseDocument, page: Page): HTMLElement {
  const facts: [string, string][] = [
    ["Requests", `${count(page.requests.length)}, ${bytes(page.bytes)}`],
    ["Load", duration(page.load_ms)],
    ["Evidence", EVIDENCE[page.evidence] ?? page.evidence],
  ];
  if (typeof page.first_paint_ms === "number") facts.unshift(["First paint", duration(page.first_paint_ms)]);
  if (typeof page.start_us === "number") facts.push(["Start", inFull(page.start_us)]);
  if (page.grouped_by === "pauses") facts.push(["Its requests", "estimated from pauses between requests"]);
  const list = h("dl", { class: "facts" });
  for (const [name, value] of facts) list.append(h("div", {}, h("dt", {}, name), h("dd", {}, value)));
  const fixes = h("ol", { class: "fixes" });
  for (const saving of page.savings) {
    fixes.append(h("li", {}, h("span", { class: `swatch page-${saving.cause}` }), ...prose(saving.says)));
  }
  // The causes are the verdict; what follows them is its evidence.
  const [says = "", ...evidence] = page.says.split(/(?<=%\.) /);
  return h(
    "section",
    { class: `verdict page ${family(page.verdict)}`, "aria-label": "Verdict on the page" },
    h("p", { class: "page-url" }, page.url),
    h("p", { class: "says" }, unbroken(says).replaceAll("-", "\u2011")),
    evidence.length > 0 && h("p", {}, unbroken(evidence.join(" "))),
    shares(page),
    h("p", { class: "note" }, whoseTime(document)),
    page.savings.length > 0 && h("h2", {}, "What each fix would save"),
    page.savings.length > 0 && fixes,
    list,
  );
}

/** The critical path by cause. */
function shares(page: Page): HTMLElement {
  const bar = h("div", { class: "bar", "aria-hidden": "true" });
  const legend = h("ul", { class: "legend" });
  const parts = Object.entries(page.shares).toSorted(([, a], [, b]) => b - a);
  for (const [cause, ms] of parts) {
    const part = h("span", { class: `part page-${cause}` });
    part.style.flexGrow = String(ms / page.wait_ms);
    bar.append(part);
    const name = CAUSES[cause as Cause] ?? words(cause);
    const text = `${name} ${percent(ms / page.wait_ms)}, ${duration(ms)}`;
    legend.append(h("li", {}, h("span", { class: `swatch page-${cause}` }), text));
  }
  return h("div", { class: "shares" }, bar, legend);
}

type Order = "slowest" | "start" | "bytes";

const ORDERS: Record<Order, string> = {
  slowest: "slowest first",
  start: "by start",
  bytes: "largest first",
};

function sorted(requests: PageRequest[], order: Order): PageRequest[] {
  const length = (one: PageRequest): number => one.end_ms - one.start_ms;
  switch (order) {
    case "slowest":
      return requests.toSorted((a, b) => length(b) - length(a));
    case "bytes":
      return requests.toSorted((a, b) => (b.bytes ?? 0) - (a.bytes ?? 0));
    default:
      return requests.toSorted((a, b) => a.start_ms - b.start_ms);
  }
}

function waterfall(page: Page): HTMLElement {
  let order: Order = "slowest";
  let cause = "";
  let text = "";
  let critical = false;
  let rows = ROWS;
  const end = Math.max(page.wait_ms, ...page.requests.map((one) => one.end_ms), 1);
  const body = h("tbody");
  const shown = h("p", { class: "note", role: "status" });
  const more = h("button", { type: "button", class: "more" }, "Show more requests");
  const names = new Map(page.requests.map((one) => [one.id, one.url]));
  const show = (): void => {
    const found = sorted(page.requests, order).filter(
      (one) =>
        one.url.toLowerCase().includes(text.toLowerCase()) &&
        (cause === "" || one.parts.some((part) => part.cause === cause)) &&
        (!critical || one.critical),
    );
    body.replaceChildren(...found.slice(0, rows).map((one) => row(one, end, names, origin(page.url))));
    more.hidden = found.length <= rows;
    shown.textContent = `${count(Math.min(rows, found.length))} of ${plural(page.requests.length, "request")}; ● is on the critical path`;
  };
  more.addEventListener("click", () => {
    rows += ROWS;
    show();
  });
  const orders = h("select", { id: "waterfall-order" });
  for (const [name, words] of Object.entries(ORDERS)) orders.append(h("option", { value: name }, words));
  orders.addEventListener("change", () => {
    order = orders.value as Order;
    show();
  });
  const causes = h("select", { id: "waterfall-cause" }, h("option", { value: "" }, "any"));
  const legend = h("ul", { class: "legend" });
  const there = new Set(page.requests.flatMap((one) => one.parts.map((part) => part.cause)));
  for (const name of there) {
    causes.append(h("option", { value: name }, CAUSES[name]));
    legend.append(h("li", {}, h("span", { class: `swatch page-${name}` }), CAUSES[name]));
  }
  legend.append(h("li", {}, "high: its bytes arrive"));
  causes.addEventListener("change", () => {
    cause = causes.value;
    show();
  });
  const filter = h("input", { type: "search", id: "waterfall-filter", placeholder: "part of a URL" });
  filter.addEventListener("input", () => {
    text = filter.value;
    show();
  });
  const path = h("input", { type: "checkbox", id: "waterfall-critical" });
  path.addEventListener("change", () => {
    critical = path.checked;
    show();
  });
  show();
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, "Request"),
    h("th", { scope: "col", class: "number" }, "ms"),
    h("th", { scope: "col" }, axisOf(page, end)),
  );
  const caption = "Requests with the cause of each part of their time";
  return h(
    "section",
    { "aria-labelledby": "waterfall-title" },
    h("h2", { id: "waterfall-title" }, "Waterfall"),
    h(
      "div",
      { class: "controls" },
      h("label", {}, "Order ", orders),
      h("label", {}, "Waited for ", causes),
      h("label", {}, "URL ", filter),
      h("label", {}, path, " critical path only"),
    ),
    shown,
    legend,
    h(
      "div",
      { class: "figure" },
      h("table", { class: "waterfall" }, h("caption", {}, caption), h("thead", {}, head), body),
      more,
    ),
  );
}

/** What the bars span. */
function axisOf(page: Page, endMs: number): string {
  const { start_us } = page;
  if (typeof start_us !== "number") return `Time since the start of the page, to ${duration(endMs)}`;
  const { title, show } = timesOf([start_us, start_us + endMs * 1_000]);
  return `Time from ${show(start_us)} to ${show(start_us + endMs * 1_000)} (${duration(endMs)}; ${title})`;
}

/** Scheme and host of a URL. */
function origin(url: string): string {
  return /^[a-z]+:\/\/[^/]+/.exec(url)?.[0] ?? "";
}

/** A row; the host is named only if it is not the page's, `own`. */
function row(one: PageRequest, end: number, names: Map<string, string>, own: string): HTMLElement {
  const url = own !== "" && one.url.startsWith(`${own}/`) ? one.url.slice(own.length) : one.url;
  const lane = h("div", { class: "lane" });
  const at = (ms: number): string => `${((100 * ms) / end).toFixed(3)}%`;
  const described: string[] = [];
  for (const part of one.parts) {
    const ms = part.to_ms - part.from_ms;
    const by = part.blocked_by ? ` (${names.get(part.blocked_by) ?? part.blocked_by})` : "";
    const what = `${part.phase}: ${CAUSES[part.cause]}${by} ${duration(ms)}`;
    const span = h("span", { class: `span page-${part.cause} phase-${part.phase}`, title: what });
    span.style.left = at(part.from_ms);
    span.style.width = at(ms);
    lane.append(span);
    if (ms >= 0.5) described.push(what);
  }
  const about = [CAUSES[one.cause], orDash(one.bytes, bytes), one.protocol, one.failed && "failed"];
  const marked = one.critical ? h("span", { class: "critical" }, "● ") : "";
  return h(
    "tr",
    { class: one.critical ? "on-path" : "" },
    h(
      "th",
      { scope: "row" },
      h("span", { class: "request-url", title: one.url }, marked, one.critical && h("span", { class: "hidden" }, "on the critical path: "), url),
      h("span", { class: "note" }, about.filter((part) => Boolean(part)).join(" · ")),
    ),
    h("td", { class: "number" }, (one.end_ms - one.start_ms).toFixed(0)),
    h("td", {}, h("span", { class: "hidden" }, described.join("; ")), lane),
  );
}
