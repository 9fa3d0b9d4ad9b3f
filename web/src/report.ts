/** The report page: reads the embedded data and builds its parts. */

import "uplot/dist/uPlot.min.css";
import "./report.css";
import type { DiagnoseDocument } from "./generated/diagnose";
import { Arrays, type SeriesHead } from "./data/decode";
import { append, h, section } from "./dom";
import { cdfFigure } from "./figures/cdf";
import { scatterFigure } from "./figures/scatter";
import { pagesSection, playersSection } from "./figures/pages";
import { marksSection, missingSection, tablesSection } from "./figures/tables";
import { timelineSection } from "./figures/timeline";
import { transfersSection } from "./figures/transfers";
import { sourceLine, verdictHeader } from "./figures/verdict";
import { Series } from "./series";
import { themeToggle } from "./theme";
import { setZone, type ZoneData } from "./zone";

const textOf = (id: string): string | undefined =>
  document.getElementById(id)?.textContent ?? undefined;

function read<T>(id: string): T {
  return JSON.parse(textOf(id) ?? "null") as T;
}

async function build(): Promise<void> {
  const main = document.getElementById("report");
  if (!main) return;
  setZone(read<ZoneData | null>("airmile-zone"));
  const answer = read<DiagnoseDocument>("airmile-document");
  const head = read<SeriesHead>("airmile-series");
  const banner = h(
    "header",
    { class: "banner" },
    h("h1", {}, answer.pages.length > 0 ? "What did the page wait for?" : "Was the radio the bottleneck?"),
    themeToggle(),
    sourceLine(answer),
  );
  const waiting = h("p", { class: "note", role: "status" }, "Reading the time series…");
  append(main, [banner, pagesSection(answer), playersSection(answer), verdictHeader(answer), waiting]);

  const arrays = await Arrays.decode(head, (name) => textOf(`array-${name}`));
  for (const name of Object.keys(head.arrays)) document.getElementById(`array-${name}`)?.remove();
  const series = new Series(head, arrays);
  const timeline = timelineSection(answer, series);
  const transfers = transfersSection(answer, head, (transfer, from, to) =>
    timeline.locate(transfer.dir, series.offset(from), series.offset(to)),
  );
  const dir = answer.session.dir ?? (series.has("dl") ? "dl" : "ul");
  const figures = section("figures", "Distributions");
  const grid = h("div", { class: "figures" });
  append(grid, [cdfFigure(series, dir), scatterFigure(answer)]);
  figures.append(grid);
  waiting.remove();
  append(main, [timeline.element, transfers]);
  if (grid.childElementCount > 0) main.append(figures);
  append(main, [
    marksSection(answer),
    missingSection(answer),
    tablesSection(answer, series, (to, from, end) => timeline.locate(to, from, end)),
    h("footer", {}, `Made by ${answer.made_by}. This file contains all its data and loads nothing.`),
  ]);
  timeline.start();
  document.documentElement.dataset["ready"] = "yes";
}

build().catch((error: unknown) => {
  console.error(error);
  const text = `This report could not be displayed: ${String(error)}. A current browser is needed.`;
  document.getElementById("report")?.append(h("p", { role: "alert", class: "failed" }, text));
});
