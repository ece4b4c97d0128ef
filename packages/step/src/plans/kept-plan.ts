import { formatRanks } from "@skein/collectives";
import type { Job } from "@skein/job/node";
import { withPlannedSchedule } from "./expert-schedule-plan.ts";
import { type ExchangePlan, type PlanBasis, type PlanName, planKinds, planNames } from "./exchange-plan.ts";

/** Properties of a run that plans depend on, in addition to the job. Equal on all ranks. */
export interface PlanWorld {
  /** Ranks on each host: one list of ranks per host. */
  readonly hosts: readonly (readonly number[])[];
  /** Hash of the paths, dtypes and shapes of the trained tensors. */
  readonly trainedHash: string;
}

/**
 * Returns the values that a part of a job's plan depends on, by name. When a part cannot be reused, a message names the
 * first of these values that differs.
 */
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

/** Returns a plan without the named parts. */
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

/**
 * Returns the names of the plan parts that determine the layout of rank-specific state.
 *
 * @param own Paths of the leaves of rank-specific state.
 */
export const boundPlans = (own: Iterable<string>): readonly PlanName[] => [
  ...new Set([...own].map((path) => (path.startsWith("residuals.") ? "exchange" : "curvature"))),
];

/** Returns a plan without the parts that the job now sets itself. */
export const wantedPlan = (job: Job, plan: ExchangePlan | undefined): ExchangePlan | undefined =>
  plan &&
  without(
    plan,
    planNames.filter((name) => !planKinds[name].isPlanned(job)),
  );

/**
 * Selects the parts of a checkpoint's plan that a resumed run can reuse. A part is reused if it is in `bound`, or if
 * the values that the part depends on are unchanged and the job allows the planned values. Ranks plan the other parts
 * again.
 *
 * @param bound Parts that determine the layout of rank-specific state, such as buckets for residuals.
 * @returns the reused parts, and one remark per dropped part.
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
