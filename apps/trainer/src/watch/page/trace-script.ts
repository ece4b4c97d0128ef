// Reader and renderer of traces: several times the size of the rest of the page, so a separate script, which the page
// loads when a trace is opened. The script holds no state, because it contains copies of other modules.
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

/** HTML of a timeline figure; all text from the trace is escaped. */
export const timelineHtml = (ranks: readonly RankSpans[], hasSteps: boolean, label: string): string =>
  timelineFigure(rankTracks(ranks, undefined, hasSteps), { label, all: "all" });

/** Make the timelines in an element zoom, pan and show tooltips. */
export const zoom = (container: HTMLElement): void => {
  if (document.querySelector(".tip") === null) showTips(document);
  zoomTimeline(container, secondsText, ticksOf);
};
