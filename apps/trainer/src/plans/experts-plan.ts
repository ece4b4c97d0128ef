import { backwardChunksOf, type DispatchChoice, type DispatchWay } from "@skein/cost-model";
import { z } from "zod";
import { gatesAlike, numFusedShards } from "../job/build-shards.ts";
import { expertsOf } from "../job/experts-of.ts";
import type { ExpertsJob, Job, MeshJob } from "../job/job.ts";
import { expertLevelsOf, tensorAxis } from "../job/mesh.ts";

/**
 * What was measured and decided before a run about the way of tokens to their experts. Equal on all ranks, and kept
 * with each checkpoint.
 */
export interface ExpertsPlan {
  readonly dispatch: DispatchWay;
  readonly chunks: number;
  /** Of the backward pass, where they are others. */
  readonly backwardChunks?: number | undefined;
}

/** Older checkpoints have another key, `on`, which is not read. */
export const expertsPlanSchema: z.ZodType<ExpertsPlan> = z.object({
  dispatch: z.enum(["dense", "ragged", "hierarchical", "duplicate-free"]),
  chunks: z.int().min(1),
  backwardChunks: z.int().min(1).optional(),
});

/** An axis that tokens travel along, with its ranks. */
export interface TravelAxis {
  readonly axis: string;
  readonly size: number;
}

/** Levels that tokens travel over to the experts of a job, the outermost first: at least two, or none. */
export const travelLevels = (experts: Pick<ExpertsJob, "shards">, mesh: MeshJob): readonly TravelAxis[] => {
  const levels = [...expertLevelsOf(mesh), { axis: tensorAxis, size: numFusedShards(experts, mesh) }].filter(
    ({ size }) => size > 1,
  );
  return levels.length > 1 ? levels : [];
};

/** Numbers of chunks that are looked at, as the planners of pipelines do. */
const degrees: readonly number[] = [1, 2, 4, 8];

/** Ways in which tokens may travel: all compute the same and drop the same tokens. The first is the flat one. */
const waysOf = (experts: ExpertsJob, mesh: MeshJob): readonly DispatchWay[] => {
  const { gate, placement } = experts;
  if (gate === "soft") return ["dense"]; // mixtures fill all slots, and no two go to several experts
  return [
    "ragged",
    ...(placement?.when === "pays" ? [] : (["dense"] as const)), // whose slots travel wherever experts lie
    ...(mesh.expert * numFusedShards(experts, mesh) > 1 ? (["duplicate-free"] as const) : []),
    ...(travelLevels(experts, mesh).length > 1 ? (["hierarchical"] as const) : []),
  ];
};

/**
 * What a plan may choose for the experts of a job; the first is flat and in the fewest chunks. With `backwardChunks:
 * auto` slots may travel back in any number of chunks, first of all in that of forward.
 */
export const dispatchChoices = (experts: ExpertsJob, mesh: MeshJob): readonly [DispatchChoice, ...DispatchChoice[]] => {
  const ways = experts.dispatch === "auto" ? waysOf(experts, mesh) : [experts.dispatch];
  const isAlone = mesh.expert === 1 && (mesh.tensor === 1 || experts.shards === "none");
  const [chunks, ofBackward] = [experts.chunks, experts.backwardChunks].map((given) =>
    given !== "auto" ? [given] : isAlone ? [1] : degrees,
  ) as [readonly number[], readonly (number | undefined)[]];
  const choices = ways.flatMap((way) =>
    chunks.flatMap((numChunks): DispatchChoice[] => {
      const same: DispatchChoice = { way, numChunks };
      if (way !== "dense" || experts.backwardChunks === undefined || gatesAlike(experts, mesh)) return [same];
      const apart = ofBackward.flatMap((backwardChunks) =>
        backwardChunks === numChunks ? [] : [{ ...same, backwardChunks }],
      );
      return experts.backwardChunks === "auto" || apart.length === 0 ? [same, ...apart] : apart;
    }),
  );
  return choices as [DispatchChoice, ...DispatchChoice[]];
};

/** Of a choice, in the pass that has more of them. */
export const mostChunksOf = (choice: DispatchChoice): number => Math.max(choice.numChunks, backwardChunksOf(choice));

/** Whether two choices come to the same. */
export const isSameChoice = (a: DispatchChoice, b: DispatchChoice): boolean =>
  a.way === b.way && a.numChunks === b.numChunks && backwardChunksOf(a) === backwardChunksOf(b);

/** Whether anything about the way of tokens follows from measurements. */
const isAuto = ({ dispatch, chunks, backwardChunks }: ExpertsJob): boolean =>
  dispatch === "auto" || chunks === "auto" || backwardChunks === "auto";

/** Whether the job leaves the way of tokens to measurements before its first step. */
export const isExpertsPlanned = (job: Pick<Job, "model">): boolean => {
  const experts = expertsOf(job);
  return experts !== undefined && isAuto(experts);
};

/** Whether a plan is one that this job could have made. */
export const isExpertsPlanFor = (plan: ExpertsPlan, job: Pick<Job, "model" | "mesh">): boolean => {
  const experts = expertsOf(job);
  const { dispatch: way, chunks: numChunks, backwardChunks } = plan;
  return (
    experts !== undefined &&
    dispatchChoices(experts, job.mesh).some((choice) => isSameChoice(choice, { way, numChunks, backwardChunks }))
  );
};

/** Experts of which it is settled how tokens travel to them. */
export type SettledExperts = Omit<ExpertsJob, "dispatch" | "chunks" | "backwardChunks"> & {
  readonly dispatch: DispatchWay;
  readonly chunks: number;
  readonly backwardChunks?: number | undefined;
};

/**
 * What `auto` stands for: what was planned, or, where nothing was measured (to look at shapes, prices, memory), the
 * flat way in one chunk.
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
