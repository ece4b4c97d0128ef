import { timelineChart, type TimelineTrack } from "../charts/timeline-chart.ts";
import { escapeText } from "../html.ts";
import { kindKey } from "./legend.ts";

/** Help text for users about the keys and pointer actions of `zoomTimeline`. */
export const timelineHelp =
  "Click the timeline: then the wheel zooms and arrow keys move from span to span; + and − zoom, Shift with ← or → pans, Enter fits the span, 0 shows all. Drag to pan.";

/**
 * Returns the content of a timeline figure: buttons, an output line for the selected span, the chart, and a legend.
 * `zoomTimeline` makes the figure interactive if the figure is inside an element with `data-timeline`.
 *
 * @param options `label`: name of the chart. `all`: noun for its full time range.
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
