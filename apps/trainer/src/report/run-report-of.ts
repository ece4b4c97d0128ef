import type { Job } from "@skein/job/node";
import { median } from "@skein/measuring";
import type { ExpertLoads, ExpertMoves, RunReport, StepValue } from "@skein/report";
import type { MetricLine } from "@skein/run-files/node";

const valuesOf = (lines: readonly MetricLine[], name: string): StepValue[] =>
  lines.flatMap((line) => {
    const value = line[name];
    return typeof value === "number" && Number.isFinite(value) ? [[line.step, value] as const] : [];
  });

/**
 * Returns the median share of the step time that the duration `name` accounts for, over all steps with this duration.
 * Undefined: no step has this duration.
 */
const shareOfStep = (steps: readonly MetricLine[], name: string): number | undefined => {
  const shares = steps.flatMap((line) => {
    const [part, whole] = [line[name], line["seconds"]];
    return typeof part === "number" && typeof whole === "number" && whole > 0 ? [part / whole] : [];
  });
  return shares.length === 0 ? undefined : median(shares);
};

/** Returns the names of layers with expert loads, in the order of the first line in which each name occurs. */
const layersOf = (steps: readonly MetricLine[]): string[] => [
  ...new Set(steps.flatMap((line) => Object.keys(line).flatMap((name) => /^(.+)\.load_E\.0$/.exec(name)?.[1] ?? []))),
];

const loadsOf = (steps: readonly MetricLine[], layer: string): ExpertLoads => {
  const withLoads = steps.filter((line) => typeof line[`${layer}.load_E.0`] === "number");
  const numExperts = Object.keys(withLoads[0]!).filter((name) => name.startsWith(`${layer}.load_E.`)).length;
  return {
    layer,
    steps: withLoads.map(({ step }) => step),
    loads: withLoads.map((line) =>
      Array.from({ length: numExperts }, (_, expert) => Number(line[`${layer}.load_E.${expert}`] ?? 0)),
    ),
    droppedShare: withLoads.map((line) => Number(line[`${layer}.droppedShare`] ?? 0)),
  };
};

const movesOf = (lines: readonly MetricLine[]): ExpertMoves[] =>
  lines
    .filter(({ type }) => type === "placement")
    .map((line) => ({
      layer: String(line["layer"]),
      step: line.step,
      moves: Number(line["moves"]),
      busiestBefore: Number(line["busiestBefore"]),
      busiestAfter: Number(line["busiestAfter"]),
    }));

const count = (number: number, one: string): string => `${number} ${one}${number === 1 ? "" : "s"}`;

const aboutOf = ({ ranks, mesh, backend, transport, model, data, optimizer }: Job): string =>
  [
    `${model.kind} on ${data.kind}`,
    optimizer.kind,
    `${backend}, ${count(ranks, "rank")}${ranks > 1 ? ` over ${transport}` : ""}`,
    ...(mesh.expert > 1 ? [`experts sharded over ${mesh.expert} ranks`] : []),
  ].join("; ");

/** Builds the report of a run from its metrics. @param job Job of the run. */
export const runReportOf = (job: Job, lines: readonly MetricLine[]): RunReport => {
  const steps = lines.filter(({ type }) => type === "step");
  const tests = lines.filter(({ type }) => type === "evaluation");
  const names = [...new Set(tests.flatMap((line) => Object.keys(line)))].filter(
    (name) => name !== "type" && name !== "step",
  );
  const [exposedShare, exposedAllToAllShare] = [
    shareOfStep(steps, "exposedSeconds"),
    shareOfStep(steps, "exposedAllToAllSeconds"),
  ];
  return {
    name: job.name,
    about: aboutOf(job),
    losses: valuesOf(steps, "loss"),
    evaluations: Object.fromEntries(
      names.map((name) => [name, valuesOf(tests, name)] as const).filter(([, values]) => values.length > 0),
    ),
    samplesPerSecond: valuesOf(steps, "samplesPerSecond"),
    ...(job.ranks > 1 && exposedShare !== undefined && { exposedShare }),
    ...(exposedAllToAllShare !== undefined && { exposedAllToAllShare }),
    experts: layersOf(steps).map((layer) => loadsOf(steps, layer)),
    moves: movesOf(lines),
  };
};
