import { ArgumentError } from "@skein/tensor-core";
import { stepSegments } from "../phases.ts";
import type { Advice, OutsideRow, ProfileReport, RowPhase } from "../profile-report.ts";
import { bytesText, digitsText, secondsText, shareText } from "../quantities.ts";
import { dateText, exposedShare, errorText, outsideText, settingText } from "../sections/head.ts";
import type { Kind } from "../tokens.ts";
import { hangingIndent, printable, wrapped } from "./display-width.ts";
import { barLengths } from "./text-bar.ts";
import { type TextColumn, textTable } from "./text-table.ts";

/** Layout options of a report in a terminal. */
export interface TerminalReportOptions {
  /** Width of the terminal in columns, at least 20. Every line fits. */
  readonly columns: number;
  /** Whether to write color codes. Default: false. */
  readonly colour?: boolean | undefined;
}

const minColumns = 20;
const maxOperators = 10;
const maxCollectives = 10;
const maxBlocks = 3;

/** Letter and color code (ECMA-48) of each kind of mark in the time bar. */
const marks: Readonly<Record<Kind, { readonly letter: string; readonly code: number }>> = {
  forward: { letter: "f", code: 36 },
  backward: { letter: "b", code: 34 },
  update: { letter: "u", code: 32 },
  communication: { letter: "p", code: 33 },
  exposed: { letter: "c", code: 31 },
  other: { letter: "·", code: 90 },
};

const text = (heading: string, weight: number, least = 8, cutAt: "middle" | "end" = "end"): TextColumn => ({
  heading,
  numeric: false,
  cutAt,
  least,
  weight,
});
const number = (heading: string, weight: number): TextColumn => ({
  heading,
  numeric: true,
  cutAt: "end",
  least: 0,
  weight,
});

const shortPhases: Readonly<Record<RowPhase, string>> = {
  forward: "fwd",
  backward: "bwd",
  update: "upd",
  communication: "comm",
  other: "other",
};

const shortOutside: Readonly<Record<OutsideRow["kind"], string>> = {
  waiting: "exposed",
  data: "batch wait",
  host: "host work",
  between: "gaps",
};

const milliseconds = (seconds: number | undefined): string =>
  digitsText(seconds === undefined ? undefined : 1e3 * seconds);

const headLines = (report: ProfileReport): [string, string][] => {
  const { step, samplesPerStep, predictedStepSeconds, warmUpSteps, ranks } = report;
  return [
    [
      "step",
      `${secondsText(step.median)} ± ${secondsText(step.mad)}: median of ${step.n} ${step.n === 1 ? "step" : "steps"}, after ${warmUpSteps} to warm up`,
    ],
    ["speed", `${digitsText(samplesPerStep / step.median)} samples/s`],
    [
      "exposed",
      ranks === 1
        ? "none: a single rank does not communicate"
        : `${shareText(exposedShare(report))} of the step is waiting for communication: ${secondsText(exposedShare(report) * step.median)}`,
    ],
    ...(predictedStepSeconds === undefined
      ? []
      : [
          ["predicted", `${secondsText(predictedStepSeconds)}, ${errorText(predictedStepSeconds, step.median)}`] as [
            string,
            string,
          ],
        ]),
  ];
};

/**
 * Formats a table of the slowest operators, the other operators as one row, time outside kernels, and the step. The
 * shares add up to 100 %.
 */
const operatorTable = ({ operators, outside, step }: ProfileReport, columns: number): string[] => {
  const ordered = operators.toSorted((a, b) => b.seconds.median - a.seconds.median);
  const others = ordered.slice(maxOperators);
  const summary = (name: string, share: number, mad = ""): string[] => [
    name,
    "",
    "",
    milliseconds(share * step.median),
    mad,
    digitsText(100 * share),
    "",
    "",
  ];
  const total = [...operators, ...outside].reduce((sum, { share }) => sum + share, 0);
  return textTable(
    [
      text("operator", 9, 10),
      text("scope", 8, 12, "middle"),
      text("phase", 6),
      number("ms", 10),
      number("± ms", 3),
      number("%", 7),
      number("roof %", 4),
      number("pred. ms", 5),
    ],
    [
      ...ordered
        .slice(0, maxOperators)
        .map(({ operator, scope, phase, calls, seconds, share, rooflineSeconds, predictedSeconds }) => [
          calls === 1 ? printable(operator) : `${printable(operator)} × ${calls}`,
          printable(scope),
          shortPhases[phase],
          milliseconds(seconds.median),
          digitsText(1e3 * seconds.mad, 2),
          digitsText(100 * share),
          digitsText(
            rooflineSeconds === undefined || !(seconds.median > 0)
              ? undefined
              : (100 * rooflineSeconds) / seconds.median,
          ),
          milliseconds(predictedSeconds),
        ]),
      ...(others.length === 0
        ? []
        : [
            summary(
              `${others.length} others`,
              others.reduce((sum, { share }) => sum + share, 0),
            ),
          ]),
      ...outside.filter(({ share }) => share > 0).map(({ kind, share }) => summary(shortOutside[kind], share)),
      summary("step", total, digitsText(1e3 * step.mad, 2)),
    ],
    columns,
  );
};

/**
 * Returns the name of an algorithm without its suffix, the kind of collective, which has a separate column:
 * `ring-all-reduce` → `ring`.
 */
const shortAlgorithm = (algorithm: string, kind: string): string =>
  algorithm.endsWith(`-${kind}`) ? algorithm.slice(0, -kind.length - 1) : algorithm;

const collectiveTable = ({ collectives }: ProfileReport, columns: number): string[] =>
  textTable(
    [
      text("collective", 9, 10, "middle"),
      text("kind", 5),
      text("algorithm", 4),
      number("size", 6),
      number("ms", 10),
      number("exposed ms", 8),
      number("pred. ms", 7),
    ],
    collectives
      .toSorted((a, b) => b.exposedSeconds.median - a.exposedSeconds.median || b.seconds.median - a.seconds.median)
      .slice(0, maxCollectives)
      .map(({ name, kind, algorithm, bytes, seconds, exposedSeconds, predictedSeconds }) => [
        printable(name.startsWith(`${kind} `) ? name.slice(kind.length + 1) : name),
        printable(kind),
        printable(algorithm === undefined ? "–" : shortAlgorithm(algorithm, kind)),
        bytesText(bytes),
        milliseconds(seconds.median),
        milliseconds(exposedSeconds.median),
        milliseconds(predictedSeconds),
      ]),
    columns,
  );

const memoryLines = ({ memory }: ProfileReport, columns: number): string[] => {
  if (memory === undefined) return [];
  const { residentBytes, liveBytes, workspaceBytes, blocks } = memory;
  const peak = liveBytes.reduce((best, bytes, at) => (bytes > (liveBytes[best] ?? -1) ? at : best), -1);
  const named = blocks
    .filter(({ from, to }) => from <= peak && peak <= to)
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, maxBlocks)
    .map(({ name, bytes }) => `${printable(name)} ${bytesText(bytes)}`);
  const live = `${bytesText(liveBytes[peak] ?? 0)} of intermediates at node ${Math.max(0, peak)} (planned ${bytesText(workspaceBytes)})`;
  const largest = named.length === 0 ? "" : `; largest: ${named.join(", ")}`;
  return wrapped(`${bytesText(residentBytes)} all the time, ${live}${largest}`, columns);
};

const adviceLines = ({ finding, cure, change, saves, basis }: Advice, columns: number): string[] => {
  const gain = saves === undefined ? "" : `Predicted to save ${shareText(saves)} of the step.`;
  const settings = Object.entries(change ?? {}).map(([key, value]) => settingText(key, value));
  const further = [[cure ?? "", gain].filter((part) => part !== "").join(" "), ...settings, `How found: ${basis}`];
  return [
    ...hangingIndent("- ", printable(finding), columns),
    ...further.filter((line) => line !== "").flatMap((line) => hangingIndent("  ", printable(line), columns)),
  ];
};

/**
 * Formats a report for a terminal: the step and its segments, the ten slowest operators, collectives, memory and
 * advice. No line is longer than `columns`.
 *
 * @throws ArgumentError if `columns` is below 20.
 */
export const terminalReport = (report: ProfileReport, { columns, colour = false }: TerminalReportOptions): string => {
  if (!(Number.isInteger(columns) && columns >= minColumns))
    throw new ArgumentError(
      `columns is ${columns}, but a report needs a whole number of at least ${minColumns}; widen the terminal`,
    );
  const painted = (words: string, code: number): string =>
    colour && words !== "" ? `\u001B[${code}m${words}\u001B[0m` : words;
  const heading = (words: string): string[] => ["", painted(words, 1)];
  const segments = stepSegments(report);
  const lengths = barLengths(
    segments.map(({ seconds }) => Math.max(0, seconds)),
    columns,
  );
  const bar = segments
    .map(({ kind }, index) => painted(marks[kind].letter.repeat(lengths[index]!), marks[kind].code))
    .join("");
  const key = segments
    .filter(({ seconds }) => seconds > 0)
    .map(
      ({ name, kind, seconds }) =>
        `${marks[kind].letter} ${name} ${secondsText(seconds)} (${shareText(seconds / report.step.median)})`,
    );
  const { job, machine, backend, ranks, madeAt, operators, collectives, advice } = report;
  const outside = outsideText(report);
  const memory = memoryLines(report, columns);
  const lines = [
    ...wrapped(
      printable(`${job}: ${machine}; ${backend}, ${ranks} ${ranks === 1 ? "rank" : "ranks"}; ${dateText(madeAt)}`),
      columns,
    ),
    ...headLines(report).flatMap(([name, words]) => hangingIndent(name.padEnd(10), words, columns)),
    ...heading("Where a step goes"),
    ...(bar === "" ? [] : [bar]),
    ...wrapped(key.join(", "), columns),
    ...(outside === "" ? [] : wrapped(`outside of kernels: ${outside}`, columns)),
    ...(report.clock === undefined ? [] : wrapped(printable(`timed: ${report.clock}`), columns)),
    ...heading(
      operators.length > maxOperators
        ? `Slowest operators (${maxOperators} of ${operators.length})`
        : "Slowest operators",
    ),
    ...(operators.length === 0
      ? ["none timed"]
      : [
          ...operatorTable(report, columns),
          ...wrapped(
            "ms: all calls in a step, on the slowest rank; below the line of others, the mean of ranks. %: of all ranks' time. roof %: of the best that this device can do. pred. ms: by the cost model.",
            columns,
          ),
        ]),
    ...heading(
      collectives.length > maxCollectives ? `Collectives (${maxCollectives} of ${collectives.length})` : "Collectives",
    ),
    ...(collectives.length === 0
      ? ["none"]
      : [
          ...collectiveTable(report, columns),
          ...wrapped("ms: from its start until its result was there. exposed ms: what of it a rank waited.", columns),
        ]),
    ...(memory.length === 0 ? [] : [...heading("Memory"), ...memory]),
    ...heading("Advice"),
    ...(advice.length === 0
      ? wrapped("No way to shorten the step was found.", columns)
      : advice.flatMap((one) => adviceLines(one, columns))),
  ];
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
};
