// Parser and renderer of traces. A separate script that the page loads when a trace is opened, because the script is
// several times larger than the rest of the page. The script has no state, because it contains copies of the page's
// modules.
import {
  linearTicks,
  secondsText,
  showTips,
  tickTexts,
  timelineFigure,
  timeUnits,
  rankTracks,
  zoomTimeline,
} from "@skein/report";
import type { RankSpans } from "@skein/tensor-core";

export { selectRanks, timelineHelp } from "@skein/report";
export { readTraceText, rowsOfSpans, windowsOf } from "./trace-view.ts";

const ticksOf = (from: number, to: number, count: number): { readonly at: number; readonly text: string }[] => {
  const places = linearTicks(from, to, count);
  const texts = tickTexts(places, timeUnits);
  return places.map((at, i) => ({ at, text: texts[i]! }));
};

/** Returns the HTML of a timeline figure. All text from the trace is escaped. */
export const timelineHtml = (ranks: readonly RankSpans[], hasSteps: boolean, label: string): string =>
  timelineFigure(rankTracks(ranks, undefined, hasSteps), { label, all: "all" });

/** Adds zooming, panning and tooltips to the timelines in an element. */
export const zoom = (container: HTMLElement): void => {
  if (document.querySelector(".tip") === null) showTips(document);
  zoomTimeline(container, secondsText, ticksOf);
};
