/** The head of a study: notable findings, and the comparison with the paper. */

import { append, h, headerRow, prose, section } from "../dom";
import { bytes, count, DASH, duration, orDash, percent, plural, unbroken } from "../format";
import { dateTime, zoneName } from "../zone";
import type { StudyDocument, Table1Row } from "../generated/study";
import type { FlowViewer } from "./flow_viewer";
import { value } from "./study_figures";

export function studySource(document: StudyDocument): HTMLElement {
  const { packets } = document;
  const files = packets.files.map((file) => file.path.split(/[/\\]/).at(-1) ?? file.path);
  const parts = [files.length > 3 ? plural(files.length, "file") : files.join(", ")];
  if (typeof packets.start_us === "number" && typeof packets.end_us === "number") {
    parts.push(`${dateTime(packets.start_us)} ${zoneName(packets.start_us)}`);
    parts.push(duration((packets.end_us - packets.start_us) / 1e3));
  }
  return h("p", { class: "source" }, parts.join(" · "));
}

export function headlineSection(document: StudyDocument, viewer: FlowViewer): HTMLElement {
  const { headline, packets } = document;
  const { quality } = packets;
  const facts: [string, string][] = [
    ["Packets", count(quality.packets)],
    ["IP bytes", bytes(quality.ip_bytes)],
    ["TCP flows", count(packets.tcp_flows)],
    ["Large TCP flows", count(packets.large_flows)],
    ["UDP flows", count(packets.udp_flows)],
    ["Users", count(packets.users)],
  ];
  const list = h("dl", { class: "facts" });
  for (const [name, text] of facts) list.append(h("div", {}, h("dt", {}, name), h("dd", {}, text)));
  const box = h(
    "section",
    { class: `verdict ${headline.findings.length > 0 ? "not_radio" : "radio"}`, id: "headline", "aria-label": "Notable findings" },
    h("p", { class: "says" }, unbroken(headline.says)),
    list,
  );
  const cards = h("div", { class: "cards" });
  for (const finding of headline.findings) {
    const links = h("p", { class: "note" });
    if (typeof finding.figure === "number") {
      links.append(h("a", { href: `#figure-${finding.figure}` }, `Figure ${finding.figure}`));
    }
    const { flow } = finding;
    if (typeof flow === "number" && viewer.has(flow)) {
      const go = (event: Event): void => {
        event.preventDefault();
        viewer.show(flow);
      };
      append(links, [links.childNodes.length > 0 && " · ", h("a", { href: "#flows", click: go }, `Flow ${flow}`)]);
    }
    cards.append(
      h(
        "article",
        { class: "card" },
        headline.findings.length > 1 && h("h3", {}, unbroken(finding.what)),
        h("p", {}, unbroken(finding.evidence)),
        links,
        h("p", { class: "next" }, h("strong", {}, "What to do: "), ...prose(finding.next_step)),
      ),
    );
  }
  const out = h("div", {}, box);
  if (headline.findings.length > 0) out.append(cards);
  if (headline.cautions.length > 0) {
    const cautions = h("ul", { class: "cautions" });
    for (const text of headline.cautions) cautions.append(h("li", {}, ...prose(text)));
    out.append(section("cautions", "Limits of this capture", cautions));
  }
  return out;
}

const SECTIONS: Record<string, string> = {
  "4.1": "Flows: size, duration, rate, concurrency",
  "4.2": "Latency",
  "4.3": "Queues and retransmissions",
  "5": "Abnormal TCP",
  "6": "Available bandwidth",
  "7": "Applications and radio energy",
};

/** The summary: this capture, the paper, and the number of samples. */
export function summarySection(document: StudyDocument): HTMLElement {
  const box = section("summary", "Comparison with the paper");
  const body = h("tbody");
  let before = "";
  for (const row of document.packets.summary) {
    if (row.section !== before) {
      before = row.section;
      const name = `${row.section} ${SECTIONS[row.section] ?? ""}`;
      body.append(h("tr", { class: "group" }, h("th", { colspan: 4, scope: "colgroup" }, name)));
    }
    const known = typeof row.here === "number";
    body.append(
      h(
        "tr",
        { class: known ? "" : "unknown-row" },
        h("th", { scope: "row" }, row.what),
        h("td", { class: "number" }, orDash(row.here, (v) => value(v, row.unit))),
        h("td", { class: "number" }, orDash(row.paper, (v) => value(v, row.unit))),
        h("td", { class: "number" }, orDash(row.n, count)),
      ),
    );
  }
  const head = headerRow(["", "here", "paper", "n"]);
  const table = h("table", { class: "compare" }, h("caption", {}, "This capture and the paper"), h("thead", {}, head), body);
  const absent = document.packets.summary.filter((row) => typeof row.here !== "number").length;
  const toggle = h("input", { type: "checkbox", id: "show-absent" });
  toggle.addEventListener("change", () => table.classList.toggle("all", toggle.checked));
  append(box, [
    h("p", { class: "note" }, "Paper: LTE, October 2012, one US metropolitan area, 47 million flows."),
    absent > 0 &&
      h("label", { class: "toggle", for: "show-absent" }, toggle, ` Show ${plural(absent, "row")} that the capture cannot provide`),
    h("div", { class: "boxed" }, h("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": "Summary" }, table)),
  ]);
  return box;
}

const MEASURES: Record<string, string> = {
  dl_kbps: "TCP downlink, kbit/s",
  ul_kbps: "TCP uplink, kbit/s",
  handshake_rtt_ms: "Handshake RTT, ms",
};

/** Table 1 of the paper with a column for this capture. */
export function tableOneSection(document: StudyDocument): HTMLElement {
  const names = [
    "", "here", "paper (LTE)", "3GTest", "4GTest LTE", "4GTest WiMAX", "New York cellular", "New York WiFi",
    "Madison cellular", "Madison WiFi", "Manchester cellular", "Manchester WiFi",
  ];
  const whole = (v: number): string => count(Math.round(v));
  const body = h("tbody");
  for (const row of document.packets.table1) {
    const cells = [orDash(row.value, whole), whole(row.paper), (row.three_g_test as number[]).map(whole).join("–")];
    cells.push(whole(row.four_g_test_lte), whole(row.four_g_test_wimax));
    cells.push(...(row.speed_test as number[][]).flat().map(whole));
    const name = `${row.percentile} % ${MEASURES[row.measure] ?? row.measure}`;
    const line = h("tr", {}, h("th", { scope: "row" }, name));
    cells.forEach((text, i) => line.append(h("td", { class: i === 0 ? "number here" : "number" }, text)));
    body.append(line);
  }
  const none = absentMeasures(document.packets.table1);
  const table = h("table", {}, h("caption", {}, "Table 1"), h("thead", {}, headerRow(names)), body);
  const note =
    "Percentiles. Downlink: flows of 1 MB or more, uplink: of 200 kB or more, without a pause of 1 s and " +
    `not through the proxy's ports.${none.length > 0 ? ` The capture has no values for: ${none.join("; ")}.` : ""}`;
  return section(
    "table1",
    "Table 1: other studies",
    h("p", { class: "note" }, note),
    h("div", { class: "boxed" }, h("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": "Table 1" }, table)),
  );
}

function absentMeasures(rows: Table1Row[]): string[] {
  const absent = rows.filter((row) => typeof row.value !== "number").map((row) => MEASURES[row.measure] ?? row.measure);
  return [...new Set(absent)];
}

/** Applications, periodic requests and files. */
export function detailsSection(document: StudyDocument): HTMLElement {
  const { packets } = document;
  const box = section("details", "Tables");
  const add = (id: string, title: string, header: string[], rows: string[][]): void => {
    if (rows.length === 0) return;
    const body = h("tbody");
    for (const row of rows) {
      const line = h("tr");
      row.forEach((text, i) => line.append(i === 0 ? h("th", { scope: "row" }, text) : h("td", { class: "number" }, text)));
      body.append(line);
    }
    const table = h("table", {}, h("caption", {}, title), h("thead", {}, headerRow(header)), body);
    const scroller = h("div", { class: "scroller", tabindex: 0, role: "region", "aria-label": title }, table);
    box.append(h("details", { id }, h("summary", {}, `${title} (${count(rows.length)})`), scroller));
  };
  const byBytes = <T extends { bytes: number }>(of: Record<string, T>): [string, T][] =>
    Object.entries(of).sort((a, b) => b[1].bytes - a[1].bytes);
  add(
    "table-applications",
    "Applications",
    ["application", "flows", "bytes"],
    byBytes(packets.applications).map(([name, of]) => [name, count(of.flows), bytes(of.bytes)]),
  );
  add(
    "table-periodic",
    "Periodic requests",
    ["client and server", "period", "requests", "bytes", "idle"],
    packets.periodic.map((p) => [
      `${p.client} to ${p.server}`,
      `${p.period_s.toFixed(1)} s`,
      count(p.requests),
      bytes(p.bytes),
      percent(p.idle_share),
    ]),
  );
  add(
    "table-terminations",
    "How TCP flows ended",
    ["by", "flows"],
    Object.entries(packets.terminations).map(([name, n]) => [name.replaceAll("_", " "), count(n)]),
  );
  add(
    "table-files",
    "Files",
    ["file", "kind", "bytes", "frames", "not read", "problems"],
    packets.files.map((file) => [
      file.path,
      file.kind,
      bytes(file.bytes),
      count(file.items),
      file.bad_items > 0 ? count(file.bad_items) : DASH,
      count(file.problems.length + file.more_problems),
    ]),
  );
  const problems = packets.files.flatMap((file) =>
    file.problems.map((p) => [p.what, orDash(p.offset, count), p.severity, file.path.split(/[/\\]/).at(-1) ?? ""]),
  );
  add("table-problems", "Problems", ["what", "byte offset", "severity", "file"], problems);
  return box;
}
