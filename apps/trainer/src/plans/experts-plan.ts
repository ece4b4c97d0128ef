import { backwardChunksOf, type DispatchChoice, type DispatchWay } from "@skein/cost-model";
import { z } from "zod";
import { gatesAllPositions, numFusedShards } from "../job/build-shards.ts";
import { expertsOf } from "../job/experts-of.ts";
import type { ExpertsJob, Job, MeshJob } from "../job/job.ts";
import { expertLevelsOf, tensorAxis } from "../job/mesh.ts";

/**
 * Plan of the dispatch of tokens to experts, measured before a run. Equal on all ranks, and saved with each checkpoint.
 */
export interface ExpertsPlan {
  readonly dispatch: DispatchWay;
  readonly chunks: number;
  /** Number of chunks in the backward pass. Absent: as in the forward pass. */
  readonly backwardChunks?: number | undefined;
}

/** Older checkpoints have another key, `on`, which is ignored. */
export const expertsPlanSchema: z.ZodType<ExpertsPlan> = z.object({
  dispatch: z.enum(["dense", "ragged", "hierarchical", "duplicate-free"]),
  chunks: z.int().min(1),
  backwardChunks: z.int().min(1).optional(),
});

/** A mesh axis of the token exchange, with its number of ranks. */
export interface ExchangeAxis {
  readonly axis: string;
  readonly size: number;
}

/** Levels of the token exchange of a job, the outermost first. Empty: fewer than two levels. */
export const exchangeLevels = (experts: Pick<ExpertsJob, "shards">, mesh: MeshJob): readonly ExchangeAxis[] => {
  const levels = [...expertLevelsOf(mesh), { axis: tensorAxis, size: numFusedShards(experts, mesh) }].filter(
    ({ size }) => size > 1,
  );
  return levels.length > 1 ? levels : [];
};

/** Numbers of chunks to consider, as in pipeline planners. */
const degrees: readonly number[] = [1, 2, 4, 8];

/** Dispatch methods that compute the same and drop the same tokens. The first is the flat method. */
const waysOf = (experts: ExpertsJob, mesh: MeshJob): readonly DispatchWay[] => {
  const { gate, placement } = experts;
  if (gate === "soft") return ["dense"]; // soft mixtures fill all slots, and no two of a token go to several experts
  return [
    "ragged",
    ...(placement?.when === "pays" ? [] : (["dense"] as const)), // it sends all slots, whatever the placement
    ...(mesh.expert * numFusedShards(experts, mesh) > 1 ? (["duplicate-free"] as const) : []),
    ...(exchangeLevels(experts, mesh).length > 1 ? (["hierarchical"] as const) : []),
  ];
};

/**
 * Choices that a plan may make for the experts of a job; the first is flat and has the fewest chunks. With
 * `backwardChunks: auto`, slots may be sent back in any number of chunks, and the number of the forward pass comes
 * first.
 */
export const dispatchChoices = (experts: ExpertsJob, mesh: MeshJob): readonly [DispatchChoice, ...DispatchChoice[]] => {
  const ways = experts.dispatch === "auto" ? waysOf(experts, mesh) : [experts.dispatch];
  const isAlone = mesh.expert === 1 && (mesh.tensor === 1 || experts.shards === "none");
  const [chunks, backwardCounts] = [experts.chunks, experts.backwardChunks].map((given) =>
    given !== "auto" ? [given] : isAlone ? [1] : degrees,
  ) as [readonly number[], readonly (number | undefined)[]];
  const choices = ways.flatMap((way) =>
    chunks.flatMap((numChunks): DispatchChoice[] => {
      const same: DispatchChoice = { way, numChunks };
      if (way !== "dense" || experts.backwardChunks === undefined || gatesAllPositions(experts, mesh)) return [same];
      const separate = backwardCounts.flatMap((backwardChunks) =>
        backwardChunks === numChunks ? [] : [{ ...same, backwardChunks }],
      );
      return experts.backwardChunks === "auto" || separate.length === 0 ? [same, ...separate] : separate;
    }),
  );
  return choices as [DispatchChoice, ...DispatchChoice[]];
};

/** Number of chunks of a choice, in the pass that has more. */
export const maxChunksOf = (choice: DispatchChoice): number => Math.max(choice.numChunks, backwardChunksOf(choice));

/** Whether two choices are equivalent. */
export const isSameChoice = (a: DispatchChoice, b: DispatchChoice): boolean =>
  a.way === b.way && a.numChunks === b.numChunks && backwardChunksOf(a) === backwardChunksOf(b);

/** Whether any part of the dispatch depends on measurements. */
const isAuto = ({ dispatch, chunks, backwardChunks }: ExpertsJob): boolean =>
  dispatch === "auto" || chunks === "auto" || backwardChunks === "auto";

/** Whether the job leaves the dispatch to measurements before its first step. */
export const isExpertsPlanned = (job: Pick<Job, "model">): boolean => {
  const experts = expertsOf(job);
  return experts !== undefined && isAuto(experts);
};

/** Whether this job could have made a plan. */
export const isExpertsPlanFor = (plan: ExpertsPlan, job: Pick<Job, "model" | "mesh">): boolean => {
  const experts = expertsOf(job);
  const { dispatch: way, chunks: numChunks, backwardChunks } = plan;
  return (
    experts !== undefined &&
    dispatchChoices(experts, job.mesh).some((choice) => isSameChoice(choice, { way, numChunks, backwardChunks }))
  );
};

/** Experts with a settled dispatch. */
export type SettledExperts = Omit<ExpertsJob, "dispatch" | "chunks" | "backwardChunks"> & {
  readonly dispatch: DispatchWay;
  readonly chunks: number;
  readonly backwardChunks?: number | undefined;
};

/**
 * Replace `auto` by the plan. Without a plan, as when only shapes, costs or memory are computed: the flat method in one
 * chunk.
 */
export const settledExperts = (experts: ExpertsJob, mesh: MeshJob, plan: ExpertsPlan | undefined): SettledExperts => {
  const [{ way, numChunks }] = dispatchChoices(experts, mesh);
  const { dispatch, chunks, backwardChunks }: ExpertsPlan = plan ?? { dispatch: way, chunks: numChunks };
  return {
    ...experts,
    dispatch: experts.dispatch === "auto" ? dispatch : experts.dispatch,
    chunks: experts.chunks === "auto" ? chunks : experts.chunks,
    backwardChunks: experts.backwardChunks === "auto" ? backwardChunks : experts.backwardChunks,
  };
};
