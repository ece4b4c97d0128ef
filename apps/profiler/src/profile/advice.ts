import {
  type Advice,
  millisecondsText,
  type OperatorRow,
  type OutsideRow,
  type ProfileReport,
  secondsText,
  type Times,
} from "@skein/report";
import { words } from "../plan/plan-lines.ts";
import type { BestSchedule } from "./best-schedule.ts";

/** Minimum share of the step time that a cause must take so that advice mentions the cause. */
const minAdviceShare = 0.05;

/** Minimum predicted saving, as a fraction of the step time, for which advice recommends a change. */
const minSavingShare = 0.03;

/**
 * Maximum ratio of measured to predicted step time, in either direction. A larger ratio means that the run was slowed
 * by causes other than the schedule.
 */
const maxFactor = 2;

/** Returns the report's row for one cause of time outside kernels, such as waiting for communication. */
const outsideRow = ({ outside }: Pick<ProfileReport, "outside">, kind: OutsideRow["kind"]): OutsideRow =>
  outside.find((row) => row.kind === kind)!;

/**
 * Returns whether the exposed communication is a large enough share of the step that a search for a better schedule is
 * useful.
 */
export const isExposed = (figures: Pick<ProfileReport, "outside">): boolean =>
  outsideRow(figures, "waiting").share >= minAdviceShare;

const percent = (share: number): string => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
const describeOperator = ({ operator, scope }: OperatorRow): string =>
  scope === "" ? operator : `${operator} in ${scope}`;

type Figures = Omit<ProfileReport, "advice">;

/** Formats advice about the schedule that a search has found. */
const scheduleCure = (
  schedule: BestSchedule | undefined,
  measured: Times,
): Pick<Advice, "cure" | "change" | "saves"> & { readonly how?: string } => {
  if (schedule === undefined)
    return {
      cure: "give it a hardware file with --hardware, or run skein-profile plan, to see what another schedule would save",
    };
  const { settings, seconds, ownSeconds, configurations, links } = schedule;
  const saves = 1 - seconds / ownSeconds;
  const how = `${configurations} schedules that lose no more were simulated with this run's kernels and ${links}; these predict ${secondsText(ownSeconds)} for the step as it is, measured: ${secondsText(measured.median)}`;
  if (ownSeconds < measured.median / maxFactor || ownSeconds > measured.median * maxFactor)
    return {
      cure: "no schedule is advised, because prices do not explain this run: was the machine busy with other work?",
      how,
    };
  if (!(saves >= minSavingShare))
    return {
      cure: `no schedule that loses no more is predicted to save ${percent(minSavingShare)}; a compression may: skein-profile plan`,
      how,
    };
  const changed = Object.entries(settings)
    .filter(([key, value]) => !(key === "priorities" && value === "none"))
    .map(([key, value]) => `${key}: ${words(value)}`)
    .join(", ");
  return { cure: `exchange gradients with ${changed}`, change: settings, saves, how };
};

const exposedAdvice = (figures: Figures, schedule: BestSchedule | undefined): Advice[] => {
  if (!isExposed(figures)) return [];
  const { collectives, step } = figures;
  const longest = collectives.toSorted((a, b) => b.exposedSeconds.median - a.exposedSeconds.median).slice(0, 3);
  const { share } = outsideRow(figures, "waiting");
  const { how, ...cure } = scheduleCure(schedule, step);
  return [
    {
      finding: `${percent(share)} of the step is communication that computation does not hide (${millisecondsText(share * step.median)}), most of it ${longest.map(({ name }) => name).join(", ")}`,
      ...cure,
      basis: `measured: what ranks waited at the done of a collective; a slower rank's computing is waited for as well${how === undefined ? "" : `; ${how}`}`,
    },
  ];
};

const dataAdvice = (figures: Figures): Advice[] => {
  const { share, seconds } = outsideRow(figures, "data");
  if (share < minAdviceShare) return [];
  return [
    {
      finding: `${percent(share)} of the step is waiting for a batch (${millisecondsText(seconds.median)})`,
      cure: "make samples cheaper to read, or give the reader a core of its own",
      basis: "measured: from the request for a batch until the batch is ready",
    },
  ];
};

const smallKernelAdvice = ({ operators, step }: Figures): Advice[] => {
  const small = operators.filter(({ calls, seconds }) => calls > 0 && seconds.median / calls < 20e-6);
  const total = small.reduce((sum, { seconds }) => sum + seconds.median, 0);
  const share = total / step.median;
  if (share < minAdviceShare) return [];
  const calls = small.reduce((sum, row) => sum + row.calls, 0);
  return [
    {
      finding: `${percent(share)} of the step is spent in ${calls} kernels shorter than 20 µs`,
      cure: "a larger batch gives each kernel more to do",
      basis: "measured: kernels by their mean time",
    },
  ];
};

const rooflineAdvice = ({ operators }: Figures): Advice[] => {
  const far = operators
    .filter(({ rooflineSeconds = 0, seconds }) => rooflineSeconds > 0 && seconds.median > 2 * rooflineSeconds)
    .toSorted((a, b) => b.seconds.median - b.rooflineSeconds! - (a.seconds.median - a.rooflineSeconds!))
    .filter(({ share }) => share >= minAdviceShare)
    .slice(0, 1);
  return far.map((row) => ({
    finding: `${describeOperator(row)} (${row.phase}) takes ${percent(row.share)} of the step and reaches ${percent(row.rooflineSeconds! / row.seconds.median)} of what the device could do`,
    basis: `measured beside the roofline of flops and bytes; bound by ${row.boundBy ?? "the start of kernels"}`,
  }));
};

/**
 * Derives advice from a profile, most important advice first.
 *
 * @param schedule Fastest schedule for the same gradients. Absent: there was no search.
 */
export const adviceOn = (figures: Figures, schedule?: BestSchedule): Advice[] => [
  ...exposedAdvice(figures, schedule),
  ...dataAdvice(figures),
  ...rooflineAdvice(figures),
  ...smallKernelAdvice(figures),
];
