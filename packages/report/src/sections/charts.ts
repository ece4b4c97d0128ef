import type { RankSpans } from "@skein/tensor-core";
import { flameChart } from "../charts/flame-chart.ts";
import { memoryChart, peakPosition } from "../charts/memory-chart.ts";
import { numUndrawablePoints, rooflineChart } from "../charts/roofline-chart.ts";
import { flameOfOperators } from "../flame-of-operators.ts";
import { escapeText } from "../html.ts";
import { rankTracks } from "../rank-tracks.ts";
import { kindOfPhase } from "../phases.ts";
import type { MemoryProfile, ProfileReport } from "../profile-report.ts";
import { bytesText } from "../quantities.ts";
import { kindKey } from "./legend.ts";
import { timelineFigure, timelineHelp } from "./timeline-figure.ts";

/** Maximum number of ranks to show, so that the page stays readable; a trace contains all ranks. */
const maxRanks = 8;
/** Maximum number of values to list for the memory peak. */
const maxBlocks = 8;

const waitedSeconds = ({ spans }: RankSpans): number =>
  spans.reduce(
    (sum, { track, startSeconds, endSeconds }) => sum + (track === "waiting" ? endSeconds - startSeconds : 0),
    0,
  );

/**
 * Selects the ranks to show, in rank order: all ranks if there are few, otherwise the ranks that wait least and the
 * ranks that wait most.
 */
export const selectRanks = (ranks: readonly RankSpans[]): readonly RankSpans[] => {
  if (ranks.length <= maxRanks) return ranks;
  const byWait = ranks.toSorted((a, b) => waitedSeconds(a) - waitedSeconds(b));
  const chosen = new Set([...byWait.slice(0, maxRanks / 2), ...byWait.slice(-maxRanks / 2)]);
  return ranks.filter((rank) => chosen.has(rank));
};

export const timelineSection = ({ timeline, predicted }: ProfileReport): string => {
  const ranks = selectRanks(timeline);
  const fewer =
    ranks.length < timeline.length
      ? `<p class="quiet">${ranks.length} of ${timeline.length} ranks are shown: those that wait least and those that wait most.</p>`
      : "";
  const hatched = predicted === undefined ? "" : "; hatched rows are the prediction";
  return `<section aria-labelledby="timeline-heading"><h2 id="timeline-heading">Timeline</h2>
<p class="quiet">The step of median duration${hatched}. <span class="scripted">${timelineHelp}</span></p>${fewer}
<figure data-timeline>${timelineFigure(rankTracks(ranks, predicted), { label: `Timeline of ${ranks.length} ranks`, all: "whole step" })}</figure></section>`;
};

export const flameSection = (report: ProfileReport): string =>
  `<section aria-labelledby="flame-heading"><h2 id="flame-heading">Flame chart</h2>
<p class="quiet">Scopes and their operators; widths are seconds. <span class="scripted">Click a cell to open it; arrow keys, Enter and Backspace do the same.</span></p>
<fieldset class="choice"><legend>Forward and backward</legend><label><input type="radio" name="flame" value="separate" checked>separate</label><label><input type="radio" name="flame" value="combined">combined</label></fieldset>
<figure class="separate">${flameChart(flameOfOperators(report, "separate"), { label: "Flame chart, by phase, scope and operator" })}</figure>
<figure class="combined">${flameChart(flameOfOperators(report, "combined"), { label: "Flame chart, by scope, operator and phase" })}</figure>
${kindKey(["forward", "backward", "update", "communication", "exposed", "other"])}</section>`;

export const rooflineSection = ({ operators, device }: ProfileReport): string => {
  const points = operators.map(({ operator, scope, phase, flops = 0, bytes = 0, seconds }) => ({
    name: `${operator} ${scope}, ${phase}`,
    kind: kindOfPhase[phase],
    flops,
    bytes,
    seconds: seconds.median,
  }));
  const heading = '<section aria-labelledby="roofline-heading"><h2 id="roofline-heading">Roofline</h2>';
  if (operators.every(({ flops }) => flops === undefined))
    return `${heading}
<p class="quiet">No roofline: the graph of the step is unknown, and with it the flops and bytes of its operators.</p></section>`;
  const absent = numUndrawablePoints(points);
  const roof = device === undefined ? "No roof: the device's peak rates are unknown." : `Roof: ${device.name}.`;
  const note =
    absent === 0
      ? ""
      : ` ${absent} of ${points.length} operators are not shown, because they have no arithmetic or no time.`;
  return `${heading}
<p class="quiet">${escapeText(`Each dot is an operator, and its area is its time: the closer to the roof, the less there is to gain. ${roof}${note}`)}</p>
<figure>${rooflineChart(points, { label: "Roofline plot", roof: device })}${kindKey(["forward", "backward", "update", "communication", "other"])}</figure></section>`;
};

const memoryFigure = ({ residentBytes, liveBytes, workspaceBytes, blocks }: MemoryProfile): string => {
  const peak = peakPosition(liveBytes);
  const atPeak = blocks.filter(({ from, to }) => from <= peak && peak <= to).toSorted((a, b) => b.bytes - a.bytes);
  const visible = atPeak
    .slice(0, maxBlocks)
    .map((block) => ({ ...block, name: block.shape === undefined ? block.name : `${block.name}, ${block.shape}` }));
  const rest = Math.max(0, (liveBytes[peak] ?? 0) - visible.reduce((sum, { bytes }) => sum + bytes, 0));
  const words = [
    `${bytesText(residentBytes)} resident (parameters, optimizer state, batch)`,
    `intermediates peak at ${bytesText(liveBytes[peak] ?? 0)}`,
    `planned workspace ${bytesText(workspaceBytes)}`,
  ];
  const named =
    visible.length === 0
      ? ""
      : ` Below: the largest values at the peak, each from the node that produces it to its last use${rest > 0 ? `; smaller values take ${bytesText(rest)}` : ""}.`;
  return `<p class="quiet">${words.join("; ")}.${named}</p>
<figure>${memoryChart({ residentBytes, liveBytes, lifetimes: visible }, { label: `Memory over the nodes of a step: ${words.join("; ")}` })}</figure>`;
};

export const memorySection = ({ memory }: ProfileReport): string =>
  `<section aria-labelledby="memory-heading"><h2 id="memory-heading">Memory</h2>
${memory === undefined ? '<p class="quiet">No memory profile.</p>' : memoryFigure(memory)}</section>`;
