/** The page of a packet study: unpacks its document and builds its parts. */

import "uplot/dist/uPlot.min.css";
import "./report.css";
import "./study.css";
import { fromBase64, gunzip } from "./data/decode";
import { append, h } from "./dom";
import { figuresSection } from "./figures/study_figures";
import { flowViewer, startViewer } from "./figures/flow_viewer";
import {
  detailsSection,
  headlineSection,
  studySource,
  summarySection,
  tableOneSection,
} from "./figures/study_summary";
import type { StudyDocument } from "./generated/study";
import { themeToggle } from "./theme";
import { setZone, type ZoneData } from "./zone";

const PARTS = [
  ["flows", "Flows over time"],
  ["figures", "Figures"],
  ["summary", "Summary"],
  ["table1", "Table 1"],
  ["details", "Tables"],
] as const;

async function build(): Promise<void> {
  const main = document.getElementById("report");
  const packed = document.getElementById("airmile-study");
  if (!main || !packed) return;
  setZone(JSON.parse(document.getElementById("airmile-zone")?.textContent ?? "null") as ZoneData | null);
  const bytes = await gunzip(fromBase64(packed.textContent ?? ""));
  const study = JSON.parse(new TextDecoder().decode(bytes)) as StudyDocument;
  packed.remove();
  const viewer = flowViewer(study);
  const contents = h("nav", { class: "contents", "aria-label": "Parts of this page" });
  for (const [id, title] of PARTS) contents.append(h("a", { href: `#${id}` }, title));
  const banner = h(
    "header",
    { class: "banner" },
    h("h1", {}, "What the packets show"),
    themeToggle(),
    studySource(study),
  );
  append(main, [
    banner,
    headlineSection(study, viewer),
    contents,
    viewer.element,
    figuresSection(study, viewer),
    summarySection(study),
    tableOneSection(study),
    detailsSection(study),
    h("footer", {}, `Made by ${study.made_by}. This file contains all its data and loads nothing.`),
  ]);
  startViewer(viewer, study);
  document.documentElement.dataset["ready"] = "yes";
}

build().catch((error: unknown) => {
  console.error(error);
  const text = `This study could not be displayed: ${String(error)}. A current browser is needed.`;
  document.getElementById("report")?.append(h("p", { role: "alert", class: "failed" }, text));
});
