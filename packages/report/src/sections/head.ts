import { stackedBar } from "../charts/stacked-bar.ts";
import { escapeText } from "../html.ts";
import { kindOfPhase, outsideNames, stepSegments } from "../phases.ts";
import type { Advice, OperatorRow, ProfileReport } from "../profile-report.ts";
import { digitsText, secondsText, shareText } from "../quantities.ts";
import { legend } from "./legend.ts";
import { tile } from "./tile.ts";

/** Formats an ISO 8601 time: 2026-11-23T09:30:00.000Z → 2026-11-23 09:30 UTC. Other text is returned unchanged. */
export const dateText = (iso: string): string => {
  const [, day, minute] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d+)?)?Z$/.exec(iso) ?? [];
  return day === undefined ? iso : `${day} ${minute} UTC`;
};

/** Formats the relative error of a prediction: "3.2 % too short". */
export const errorText = (predicted: number, measured: number): string => {
  const error = predicted / measured - 1;
  if (!Number.isFinite(error)) return "not comparable";
  return Math.abs(error) < 0.0005 ? "as measured" : `${shareText(Math.abs(error))} too ${error < 0 ? "short" : "long"}`;
};

/** Formats a setting as in a job file. */
export const settingText = (key: string, value: unknown): string =>
  `${key}: ${typeof value === "string" ? value : JSON.stringify(value)}`;

/** Returns the fraction of the total time of all ranks that is spent waiting for communication. */
export const exposedShare = ({ outside }: ProfileReport): number =>
  outside.reduce((sum, { kind, share }) => sum + (kind === "waiting" ? share : 0), 0);

/** Formats the kinds of time outside kernels with their shares: "between kernels 2.1 %, waiting for a batch 0.4 %". */
export const outsideText = ({ outside }: ProfileReport): string =>
  outside
    .filter(({ kind, share }) => kind !== "waiting" && share >= 0.0005)
    .map(({ kind, share }) => `${outsideNames[kind]} ${shareText(share)}`)
    .join(", ");

const tiles = (report: ProfileReport): string => {
  const { step, samplesPerStep, predictedStepSeconds, ranks, steps, warmUpSteps } = report;
  return `<dl class="tiles">${[
    tile("step", secondsText(step.median), `± ${secondsText(step.mad)}, median of ${step.n}`),
    tile(
      "speed",
      `${digitsText(samplesPerStep / step.median)} samples/s`,
      `${steps} steps after ${warmUpSteps} warm-up steps`,
    ),
    tile(
      "exposed communication",
      shareText(exposedShare(report)),
      ranks === 1
        ? "one rank: nothing to send"
        : `${secondsText(exposedShare(report) * step.median)} per step, mean of ${ranks} ranks`,
      "k-exposed",
    ),
    predictedStepSeconds === undefined
      ? tile("predicted step", "–", "no --hardware given")
      : tile("predicted step", secondsText(predictedStepSeconds), errorText(predictedStepSeconds, step.median)),
  ].join("")}</dl>`;
};

const slowest = (operators: readonly OperatorRow[]): string => {
  const rows = operators.toSorted((a, b) => b.seconds.median - a.seconds.median).slice(0, 3);
  const most = rows[0]?.seconds.median ?? 0;
  if (!(most > 0)) return '<p class="quiet">No operator was timed.</p>';
  return `<ol class="slowest">${rows
    .map(
      ({ operator, scope, phase, seconds, share, calls }) =>
        `<li class="k-${kindOfPhase[phase]}"><span class="operator"><b>${escapeText(operator)}</b> ${escapeText(scope === "" ? "(no scope)" : scope)}, ${phase}${calls === 1 ? "" : `, ${calls} calls`}</span><span class="time"><b>${secondsText(
          seconds.median,
        )}</b> ± ${secondsText(seconds.mad)}, ${shareText(share)}</span><span class="bar"><i style="width:${Math.max(0, Math.min(100, (100 * seconds.median) / most)).toFixed(1)}%"></i></span></li>`,
    )
    .join("")}</ol>`;
};

const adviceItem = ({ finding, cure, change, saves, basis }: Advice): string => {
  const settings = Object.entries(change ?? {}).map(
    ([key, value]) => `<code>${escapeText(settingText(key, value))}</code>`,
  );
  const gain =
    saves === undefined ? "" : ` <strong class="gain">Predicted to save ${shareText(saves)} of the step.</strong>`;
  return `<li><p>${escapeText(finding)}</p>${cure === undefined ? "" : `<p>${escapeText(cure)}${gain}</p>`}${cure === undefined && gain !== "" ? `<p>${gain}</p>` : ""}${
    settings.length === 0 ? "" : `<p>${settings.join(" ")}</p>`
  }<p class="quiet">How found: ${escapeText(basis)}</p></li>`;
};

/**
 * Renders the head of the page: the job, four key metrics, the segments of the step, the three slowest operators and
 * the advice.
 */
export const headSection = (report: ProfileReport): string => {
  const { job, machine, backend, ranks, madeAt, advice, operators } = report;
  const segments = stepSegments(report);
  const entries = segments.map(
    ({ name, kind, seconds }) =>
      [kind, `${name} ${secondsText(seconds)}, ${shareText(seconds / report.step.median)}`] as const,
  );
  const [outside, clock] = [outsideText(report), report.clock];
  const quiet = [
    ...(ranks > 1 ? [`Mean of ${ranks} ranks.`] : []),
    ...(outside === "" ? [] : [`Outside of kernels: ${outside}.`]),
    ...(clock === undefined ? [] : [`Timed: ${clock}.`]),
  ].join(" ");
  return `<header><h1>${escapeText(job)}</h1><p class="quiet">${escapeText(`${machine}; ${backend}, ${ranks} ${ranks === 1 ? "rank" : "ranks"}; ${dateText(madeAt)}`)}</p></header>
${tiles(report)}
<section aria-labelledby="step-heading"><h2 id="step-heading">Where a step goes</h2>
${stackedBar(segments, { label: `A step: ${entries.map(([, words]) => words).join("; ")}`, wholeSeconds: report.step.median })}
${legend(entries.filter((_, index) => segments[index]!.seconds > 0))}${quiet === "" ? "" : `<p class="quiet">${escapeText(quiet)}</p>`}</section>
<div class="columns"><section aria-labelledby="slowest-heading"><h2 id="slowest-heading">Slowest operators</h2>${slowest(operators)}</section>
<section aria-labelledby="advice-heading"><h2 id="advice-heading">Advice</h2>${
    advice.length === 0
      ? '<p class="quiet">No way to shorten the step was found.</p>'
      : `<ul class="advice">${advice.map(adviceItem).join("")}</ul>`
  }</section></div>`;
};
