/** Tables: the data of the figures as numbers. */

import type { DiagnoseDocument, Direction } from "../generated/diagnose";
import { h, prose, section } from "../dom";
import { bytes, count, DASH, orDash, plural, unbroken, words } from "../format";
import { timesOf } from "../zone";
import type { Series } from "../series";
import { transferRow } from "./transfers";

const PAGE_ROWS = 25;

interface Column {
  name: string;
  text?: boolean;
}

interface TableOptions {
  columns: Column[];
  rows: number;
  row: (i: number) => (string | Node)[];
  caption: string;
  /** What times are in; empty without any. */
  times?: string;
}

/** A table in pages; rows are created when they are shown. */
export function pagedTable({ columns, rows, row, caption, times }: TableOptions): HTMLElement {
  const body = h("tbody");
  const head = h("tr");
  for (const column of columns) {
    head.append(h("th", { scope: "col", class: column.text ? "text" : "number" }, column.name));
  }
  const table = h("table", {}, h("caption", {}, caption), h("thead", {}, head), body);
  const scroller = h(
    "div",
    { class: "scroller", tabindex: 0, role: "region", "aria-label": `Table: ${caption}` },
    table,
  );
  const box = h("div", {}, times ? h("p", { class: "note" }, `Times: ${times}`) : null, scroller);
  const pages = Math.max(1, Math.ceil(rows / PAGE_ROWS));
  let page = 0;
  const where = h("span", { role: "status" });
  const show = (to: number): void => {
    page = Math.min(pages - 1, Math.max(0, to));
    const first = page * PAGE_ROWS;
    const last = Math.min(rows, first + PAGE_ROWS);
    body.replaceChildren();
    for (let i = first; i < last; i++) {
      const cells = row(i).map((cell, at) => {
        const kind = columns[at]?.text ? "text" : "number";
        return at === 0 ? h("th", { scope: "row", class: kind }, cell) : h("td", { class: kind }, cell);
      });
      body.append(h("tr", {}, ...cells));
    }
    where.textContent = `${count(first + 1)}–${count(last)} of ${count(rows)}`;
  };
  show(0);
  if (pages > 1) {
    const button = (label: string, text: string, to: () => number): HTMLElement =>
      h("button", { type: "button", "aria-label": `${label}: ${caption}`, click: () => show(to()) }, text);
    box.append(
      h(
        "div",
        { class: "pager" },
        button("First page", "«", () => 0),
        button("Previous page", "‹", () => page - 1),
        where,
        button("Next page", "›", () => page + 1),
        button("Last page", "»", () => pages - 1),
      ),
    );
  }
  return box;
}

function folded(id: string, title: string, open: boolean, ...children: Node[]): HTMLElement {
  return h("details", { id, open }, h("summary", {}, title), ...children);
}

export function transfersTable(document: DiagnoseDocument): HTMLElement {
  const columns = [
    { name: "id", text: true },
    { name: "verdict", text: true },
    { name: "confidence" },
    { name: "direction", text: true },
    { name: "start" },
    { name: "ms" },
    { name: "bytes" },
    { name: "radio ms" },
    { name: "not radio ms" },
    { name: "unknown ms" },
    { name: "link demand" },
    { name: "link throughput" },
  ];
  const times = timesOf(document.transfers.flatMap((transfer) => transfer.start_us ?? []));
  const rows = document.transfers.map((transfer) => transferRow(transfer, times.show));
  // Without a modem log whole columns are empty.
  const hasValues = columns.map((_, at) => rows.some((cells) => cells[at] !== DASH));
  const row = (i: number): string[] => (rows[i] ?? []).filter((_, at) => hasValues[at]);
  const kept = columns.filter((_, at) => hasValues[at]);
  return pagedTable({ columns: kept, rows: rows.length, row, caption: "Transfers", times: times.title });
}

function burstsTable(
  series: Series,
  dir: Direction,
  locate: (dir: Direction, from: number, to: number) => void,
): HTMLElement {
  const bursts = series.bursts[dir];
  const { spans } = bursts;
  const slots = series.head.tti_ms < 1;
  const columns = [
    { name: slots ? "start slot" : "start TTI" },
    { name: "start" },
    { name: slots ? `slots of ${series.head.tti_ms} ms` : "TTIs" },
    { name: "scheduled" },
    { name: "bytes" },
    { name: "opened by", text: true },
    { name: "closed by", text: true },
    { name: "confidence" },
  ];
  const row = (i: number): (string | Node)[] => {
    const start = spans.start[i] ?? 0;
    const end = spans.end[i] ?? 0;
    const clock = series.clock(start);
    const go = (event: Event): void => {
      event.preventDefault();
      locate(dir, start, Math.max(end, start + 1));
    };
    const tti = String(series.head.first_tti + start);
    return [
      h("a", { href: "#timeline", click: go, "aria-label": `TTI ${tti}: show on the timeline` }, tti),
      clock === null ? DASH : times.show(clock),
      count(end - start),
      count(bursts.scheduled[i] ?? 0),
      bytes(bursts.bytes[i] ?? 0),
      series.bound(bursts.openedBy[i]),
      series.bound(bursts.closedBy[i]),
      `${bursts.confidence[i] ?? 0} %`,
    ];
  };
  const ends = [spans.start[0], spans.start[spans.count - 1]].map((at) => series.clock(at ?? 0));
  const times = timesOf(ends.flatMap((us) => us ?? []));
  const caption = `Bursts, ${dir === "dl" ? "downlink" : "uplink"}`;
  return pagedTable({ columns, rows: spans.count, row, caption, times: times.title });
}

function filesTables(document: DiagnoseDocument): HTMLElement[] {
  return document.files.map((file) => {
    const parts = [words(file.kind), bytes(file.bytes)];
    const hasFrames = file.messages.length > 0 || file.kind.startsWith("pcap");
    parts.push(plural(file.items, hasFrames ? "frame" : "row"));
    if (file.bad_items > 0) parts.push(`${count(file.bad_items)} bad`);
    const title = h("h3", { class: "path" }, file.path);
    const box = h("div", { class: "file" }, title, h("p", { class: "note" }, parts.join(" · ")));
    if (file.messages.length > 0) {
      const messages = file.messages.toSorted((a, b) => b.count - a.count);
      const columns = [
        { name: "code", text: true },
        { name: "message", text: true },
        { name: "version" },
        { name: "count" },
        { name: "decoded" },
      ];
      const row = (i: number): string[] => {
        const m = messages[i];
        if (!m) return [];
        const version = typeof m.version === "number" ? String(m.version) : DASH;
        return [m.code, m.name, version, count(m.count), count(m.decoded)];
      };
      const caption = `Messages of ${file.path.split(/[/\\]/).at(-1) ?? ""}`;
      box.append(pagedTable({ columns, rows: messages.length, row, caption }));
    } else if (Object.keys(file.records).length > 0) {
      const records = Object.entries(file.records).map(([name, n]) => plural(n, `${name} record`));
      box.append(h("p", {}, records.join(", ")));
    }
    return box;
  });
}

function problemsTable(document: DiagnoseDocument): HTMLElement {
  const all = document.files.flatMap((file) =>
    file.problems.map((problem) => ({ path: file.path.split(/[/\\]/).at(-1) ?? "", ...problem })),
  );
  const more = document.files.reduce((sum, file) => sum + file.more_problems, 0);
  if (all.length === 0) return h("p", {}, "None: the whole input was read.");
  const columns = [
    { name: "file", text: true },
    { name: "byte offset" },
    { name: "severity", text: true },
    { name: "what", text: true },
  ];
  const row = (i: number): string[] => {
    const p = all[i];
    return p ? [p.path, orDash(p.offset, count), words(p.severity), p.what] : [];
  };
  const box = h("div", {}, pagedTable({ columns, rows: all.length, row, caption: "Problems" }));
  if (more > 0) box.append(h("p", { class: "note" }, `and ${count(more)} more`));
  return box;
}

function missingList(document: DiagnoseDocument): HTMLElement {
  if (document.missing.length === 0) return h("p", {}, "Nothing: the files contain all evidence.");
  const list = h("dl", { class: "missing" });
  for (const item of document.missing) {
    list.append(h("dt", {}, item.what), h("dd", {}, ...prose(item.how_to_capture)));
  }
  return list;
}

/** Missing evidence, shown before the tables. */
export function missingSection(document: DiagnoseDocument): HTMLElement {
  return section("missing", "Missing, and how to capture it", missingList(document));
}

/** Whether queues of the radio link mark packets; null where no packet was ECN-capable. */
export function marksSection(document: DiagnoseDocument): HTMLElement | null {
  if (document.ecn.length === 0) return null;
  const list = h("ul", {});
  for (const path of document.ecn) list.append(h("li", {}, unbroken(path.says)));
  return section("marks", "Congestion marks (ECN)", list);
}

export function tablesSection(
  document: DiagnoseDocument,
  series: Series,
  locate: (dir: Direction, from: number, to: number) => void,
): HTMLElement {
  const problems = document.files.reduce((n, f) => n + f.problems.length + f.more_problems, 0);
  const box = section("tables", "Tables");
  const n = document.transfers.length;
  if (n > 0) {
    box.append(folded("table-transfers", `Transfers (${count(n)})`, true, transfersTable(document)));
  }
  for (const dir of ["dl", "ul"] as const) {
    const bursts = series.bursts[dir].spans.count;
    if (bursts === 0) continue;
    const title = `Bursts, ${dir === "dl" ? "downlink" : "uplink"} (${count(bursts)})`;
    box.append(folded(`table-bursts-${dir}`, title, false, burstsTable(series, dir, locate)));
  }
  const files = filesTables(document);
  box.append(folded("table-files", `Files and messages (${files.length})`, false, ...files));
  const title = `Problems (${count(problems)})`;
  box.append(folded("table-problems", title, false, problemsTable(document)));
  return box;
}
