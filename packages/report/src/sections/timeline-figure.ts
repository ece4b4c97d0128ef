import { timelineChart, type TimelineTrack } from "../charts/timeline-chart.ts";
import { escapeText } from "../html.ts";
import { kindKey } from "./legend.ts";

/** What a timeline answers to once `zoomTimeline` has it. */
export const timelineKeys =
  "Click into it: then the wheel zooms and arrow keys go from span to span; + and − zoom, Shift with ← or → pans, Enter fits the span, 0 shows all. Drag to pan.";

/**
 * What stands in the figure of a timeline: buttons and a line for what is chosen, the chart, the key to its colours.
 * `zoomTimeline` makes a figure with `data-timeline` around it work.
 *
 * @param options what the chart is of, and the word for all of it.
 */
export const timelineFigure = (
  tracks: readonly TimelineTrack[],
  { label, all }: { readonly label: string; readonly all: string },
): string => {
  const buttons = [
    ["in", "+", "zoom in"],
    ["out", "−", "zoom out"],
    ["left", "←", "earlier"],
    ["right", "→", "later"],
    ["all", all, `show the ${all}`],
  ].map(
    ([action, text, name]) =>
      `<button type="button" data-zoom="${action}" aria-label="${escapeText(name!)}">${escapeText(text!)}</button>`,
  );
  return [
    `<div class="toolbar scripted">${buttons.join("")}<output aria-live="polite"></output></div>`,
    timelineChart(tracks, { label }),
    kindKey(["forward", "backward", "update", "communication", "exposed", "other"]),
  ].join("");
};
