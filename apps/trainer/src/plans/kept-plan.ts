import { formatRanks } from "@skein/collectives";
import { withPlannedSchedule } from "./expert-schedule-plan.ts";
import { type ExchangePlan, type PlanBasis, type PlanName, planKinds, planNames } from "./exchange-plan.ts";
import type { Job } from "../job/job.ts";

/** Circumstances of a run that plans depend on, next to its job. The same on all ranks. */
export interface PlanWorld {
  /** Ranks of each host. */
  readonly hosts: readonly (readonly number[])[];
  /** Hash of the paths, dtypes and shapes of the trained tensors. */
  readonly trainedHash: string;
}

/** Everything that a plan of a job depends on; the first entry that differs is the one that a message names. */
export const planBasis = (name: PlanName, job: Job, { hosts, trainedHash }: PlanWorld): PlanBasis => ({
  ranks: `${job.ranks}`,
  mesh: JSON.stringify({ expert: job.mesh.expert, levels: job.mesh.expertLevels, tensor: job.mesh.tensor }),
  hosts: hosts.map((ranks) => formatRanks(ranks)).join(" | "),
  backend: job.backend,
  batch: `${job.batch}`,
  accumulate: `${job.accumulate ?? 1}`,
  "trained tensors": trainedHash,
  settings: JSON.stringify(planKinds[name].settings(job)),
});

/** A plan without the parts named. */
const without = (plan: ExchangePlan, names: readonly PlanName[]): ExchangePlan => {
  const fields = new Set<string>(names.flatMap((name) => planKinds[name].fields));
  const basis = Object.entries(plan.basis ?? {}).filter(([name]) => !names.includes(name as PlanName));
  return {
    ...Object.fromEntries(Object.entries(plan).filter(([field]) => field !== "basis" && !fields.has(field))),
    ...(basis.length > 0 && { basis: Object.fromEntries(basis) }),
  };
};

const holds = (plan: ExchangePlan, name: PlanName): boolean =>
  planKinds[name].fields.some((field) => plan[field] !== undefined);

/** The parts of a plan that state of single ranks is laid out by. @param own paths of that state. */
export const boundPlans = (own: Iterable<string>): readonly PlanName[] => [
  ...new Set([...own].map((path) => (path.startsWith("residuals.") ? "exchange" : "curvature"))),
];

/** The parts of a plan that the job still leaves to plans; settings that the job gives itself replace the others. */
export const wantedPlan = (job: Job, plan: ExchangePlan | undefined): ExchangePlan | undefined =>
  plan &&
  without(
    plan,
    planNames.filter((name) => !planKinds[name].isPlanned(job)),
  );

/**
 * Compare each part of a plan from a checkpoint with the run that resumes. A part stays if it was made for the same
 * circumstances, or if ranks have state of their own that is laid out by it. Ranks plan the others again.
 *
 * @param bound parts that state of single ranks is laid out by, such as residuals by buckets.
 * @returns what stays, and a line per part that does not.
 */
export const keptPlan = (
  known: ExchangePlan | undefined,
  job: Job,
  world: PlanWorld,
  bound: readonly PlanName[],
): { readonly plan: ExchangePlan | undefined; readonly remarks: readonly string[] } => {
  const wanted = wantedPlan(job, known);
  if (wanted === undefined) return { plan: undefined, remarks: [] };
  const dropped: PlanName[] = [];
  const remarks: string[] = [];
  for (const name of planNames) {
    if (!holds(wanted, name) || bound.includes(name)) continue;
    const shared = withPlannedSchedule(job, dropped.includes("expertSchedule") ? undefined : wanted.expertSchedule);
    const reason =
      basisDifference(wanted.basis?.[name], planBasis(name, job, world)) ??
      (planKinds[name].fits?.(wanted, shared) === false ? "the job does not allow it" : undefined);
    if (reason === undefined) continue;
    dropped.push(name);
    remarks.push(`the checkpoint's plan of ${planKinds[name].title} is not used (${reason}); planning again`);
  }
  return { plan: without(wanted, dropped), remarks };
};

const basisDifference = (before: PlanBasis | undefined, now: PlanBasis): string | undefined => {
  if (before === undefined) return "it does not record what it was made for";
  const key = Object.keys({ ...now, ...before }).find((each) => before[each] !== now[each]);
  return key && `${key}: ${before[key] ?? "not recorded"}, now ${now[key] ?? "not used"}`;
};
