// What reads traces and draws them: several times the rest of the page, so a script of its own, which the page loads
// when a trace is opened. It holds no state, since all it has of other modules are copies.
import {
  linearTicks,
  secondsText,
  showTips,
  tickTexts,
  timelineFigure,
  timeUnits,
  tracksOfRanks,
  zoomTimeline,
} from "@skein/report";
import type { RankSpans } from "@skein/tensor-core";

export { shownRanks, timelineKeys } from "@skein/report";
export { readTraceText, rowsOfSpans, windowsOf } from "./trace-view.ts";

const ticksOf = (from: number, to: number, count: number): { readonly at: number; readonly text: string }[] => {
  const places = linearTicks(from, to, count);
  const texts = tickTexts(places, timeUnits);
  return places.map((at, i) => ({ at, text: texts[i]! }));
};

/** What stands in the figure of a timeline; all that a trace says is escaped. */
export const timelineHtml = (ranks: readonly RankSpans[], hasSteps: boolean, label: string): string =>
  timelineFigure(tracksOfRanks(ranks, undefined, hasSteps), { label, all: "all" });

/** Make the timelines in a place zoom, pan and tell what lies under the pointer. */
export const zoom = (place: HTMLElement): void => {
  if (document.querySelector(".tip") === null) showTips(document);
  zoomTimeline(place, secondsText, ticksOf);
};
