import { backwardChunksOf, type DispatchChoice, type DispatchWay } from "@skein/cost-model/planners";
import {
  expertLevelsOf,
  type ExpertsJob,
  expertsOf,
  gatesAllPositions,
  type Job,
  type MeshJob,
  numFusedShards,
  tensorAxis,
} from "@skein/job/node";
import { z } from "zod";

/**
 * Plan for the dispatch of tokens to experts, made from measurements before a run. Equal on all ranks, and saved with
 * each checkpoint.
 */
export interface ExpertsPlan {
  readonly dispatch: DispatchWay;
  readonly chunks: number;
  /**
   * Number of chunks of the token exchange in the backward pass. Absent: equal to `chunks`, the number in the forward
   * pass.
   */
  readonly backwardChunks?: number | undefined;
}

/** Schema of the planned token dispatch in a checkpoint. Older checkpoints also have a key `on`, which is ignored. */
export const expertsPlanSchema: z.ZodType<ExpertsPlan> = z.object({
  dispatch: z.enum(["dense", "ragged", "hierarchical", "duplicate-free"]),
  chunks: z.int().min(1),
  backwardChunks: z.int().min(1).optional(),
});

/** Mesh axis of the token exchange, and the number of ranks along the axis. */
export interface ExchangeAxis {
  readonly axis: string;
  readonly size: number;
}

/** Returns the levels of the token exchange of a job, outermost first. Empty if there are fewer than two levels. */
export const exchangeLevels = (experts: Pick<ExpertsJob, "shards">, mesh: MeshJob): readonly ExchangeAxis[] => {
  const levels = [...expertLevelsOf(mesh), { axis: tensorAxis, size: numFusedShards(experts, mesh) }].filter(
    ({ size }) => size > 1,
  );
  return levels.length > 1 ? levels : [];
};

/** Chunk counts that a plan may choose for the token exchange. Pipeline planners consider the same counts. */
const degrees: readonly number[] = [1, 2, 4, 8];

/** Returns the dispatch methods that drop the same tokens and give equal results, with the flat method first. */
const waysOf = (experts: ExpertsJob, mesh: MeshJob): readonly DispatchWay[] => {
  const { gate, placement } = experts;
  if (gate === "soft") return ["dense"]; // with a soft gate all slots are used, and each slot has exactly one expert
  return [
    "ragged",
    ...(placement?.when === "pays" ? [] : (["dense"] as const)), // dense dispatch sends all slots under any placement
    ...(mesh.expert * numFusedShards(experts, mesh) > 1 ? (["duplicate-free"] as const) : []),
    ...(exchangeLevels(experts, mesh).length > 1 ? (["hierarchical"] as const) : []),
  ];
};

/**
 * Returns the dispatch choices that a plan may make for the experts of a job. The first choice is the flat method with
 * the fewest chunks. With `backwardChunks: auto`, the number of chunks may differ between forward and backward pass;
 * choices with equal numbers are listed first.
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

/** Returns the maximum of the chunk counts of the forward and the backward pass. */
export const maxChunksOf = (choice: DispatchChoice): number => Math.max(choice.numChunks, backwardChunksOf(choice));

/** Whether two dispatch choices have the same method and the same chunk counts. */
export const isSameChoice = (a: DispatchChoice, b: DispatchChoice): boolean =>
  a.way === b.way && a.numChunks === b.numChunks && backwardChunksOf(a) === backwardChunksOf(b);

/** Whether any setting of the dispatch is planned from measurements. */
const isAuto = ({ dispatch, chunks, backwardChunks }: ExpertsJob): boolean =>
  dispatch === "auto" || chunks === "auto" || backwardChunks === "auto";

/** Whether the dispatch of a job is planned from measurements before its first step. */
export const isExpertsPlanned = (job: Pick<Job, "model">): boolean => {
  const experts = expertsOf(job);
  return experts !== undefined && isAuto(experts);
};

/** Whether the planned dispatch is one of the dispatch choices that this job allows. */
export const isExpertsPlanFor = (plan: ExpertsPlan, job: Pick<Job, "model" | "mesh">): boolean => {
  const experts = expertsOf(job);
  const { dispatch: way, chunks: numChunks, backwardChunks } = plan;
  return (
    experts !== undefined &&
    dispatchChoices(experts, job.mesh).some((choice) => isSameChoice(choice, { way, numChunks, backwardChunks }))
  );
};

/** Expert settings of a job after `auto` in the dispatch settings is replaced by planned values. */
export type SettledExperts = Omit<ExpertsJob, "dispatch" | "chunks" | "backwardChunks"> & {
  readonly dispatch: DispatchWay;
  readonly chunks: number;
  readonly backwardChunks?: number | undefined;
};

/**
 * Replaces `auto` by the planned values. Without a plan, as when only shapes, costs or memory are computed, `auto`
 * becomes the flat method in one chunk.
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
