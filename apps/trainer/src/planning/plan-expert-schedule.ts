import {
  everyRankAxis,
  expertAxis,
  expertShardsAxis,
  hiddenOf,
  type Job,
  meshOf,
  samplesAtOnce,
  type ShardSchedule,
  tensorAxis,
} from "@skein/job/node";
import { millisecondsText } from "@skein/report";
import {
  planParmSchedule,
  parmCosts,
  type ParmLayer,
  type ParmModels,
  type ParmSchedule,
} from "@skein/cost-model/planners";
import type { LinearCollectiveModel } from "@skein/cost-model";
import { type ExpertSchedulePlan, isAllowed } from "@skein/step/node";
import { InvariantError } from "@skein/tensor-core";
import { measureRates } from "../backend/measure-rates.ts";
import { agreement } from "./agree.ts";
import type { MeasuredCollective } from "./measure-collectives.ts";
import { agreedModel } from "./measure-exchange.ts";
import type { ProfileInput } from "./profile-steps.ts";

const scheduleNames: Readonly<Record<ParmSchedule, ShardSchedule>> = {
  S1: "split-before-gate",
  S2: "split-after-gate",
  baseline: "baseline",
};

/** Describes an expert layer of a job for the cost model. @param length Number of positions (tokens) per sample. */
const layerOf = (job: Job, length: number): ParmLayer => {
  const { model, mesh } = job;
  if (model.kind !== "gpt" || model.experts === undefined)
    throw new InvariantError("a job without experts has a layer");
  const { count, topK, capacity, dispatch, activation } = model.experts;
  const room = capacity === "all" ? count / topK : capacity;
  return {
    numTokens: samplesAtOnce(job) * length,
    hidden: model.width,
    expertHidden: hiddenOf(model.experts, model.width),
    numProducts: activation === "gelu" ? 2 : 3,
    expertsPerToken: topK,
    capacityFactor: dispatch === "dense" ? room : Math.min(1, room), // other dispatch methods send only used slots
    bytesPerElement: 4,
    numTensorRanks: mesh.tensor,
    numShards: mesh.tensor,
    hasOwnTokens: true, // each tensor rank has its own positions of a sample
  };
};

/** Chooses the fastest schedule for sharded experts that the job allows, from predicted times. Pure. */
export const decideSchedule = (
  job: Job,
  length: number,
  { models, secondsPerFlop }: { readonly models: ParmModels; readonly secondsPerFlop: number },
): ExpertSchedulePlan => {
  const costs = parmCosts(layerOf(job, length), models, secondsPerFlop);
  const allowed = (Object.keys(costs) as ParmSchedule[]).filter((name) => isAllowed(job, scheduleNames[name]));
  const unless = (name: ParmSchedule) => (allowed.includes(name) ? costs[name] : { ...costs[name], seconds: Infinity });
  const chosen = planParmSchedule({ baseline: unless("baseline"), S1: unless("S1"), S2: unless("S2") });
  return {
    schedule: scheduleNames[chosen],
    seconds: Object.fromEntries(allowed.map((name) => [scheduleNames[name], costs[name].seconds])),
  };
};

/** Maximum size in bytes of a measured collective. */
const maxBytes = 1_048_576;

const free: LinearCollectiveModel = { startupSeconds: 0, secondsPerByte: 0 };

/**
 * Measures the collectives of all three schedules for sharded experts and the speed of matrix products, and chooses the
 * fastest schedule. All ranks use the measurements of rank 0. Must be called on all ranks.
 */
export const planExpertSchedule = async (input: Omit<ProfileInput, "parts">): Promise<ExpertSchedulePlan> => {
  const { job, backend, communicators, train } = input;
  const mesh = meshOf(job);
  const agree = agreement(backend, communicators, everyRankAxis(mesh));
  const timed = async (kind: MeasuredCollective, axis: string): Promise<LinearCollectiveModel> =>
    (mesh[axis] ?? 1) === 1 ? free : agreedModel(kind, axis, { backend, communicators, maxBytes }, agree);
  try {
    const gather = await timed("all-gather", tensorAxis);
    const models: ParmModels = {
      expertAllToAll: await timed("all-to-all", expertAxis),
      fusedAllToAll: await timed("all-to-all", expertShardsAxis),
      fusedWorldSize: mesh[expertShardsAxis]!,
      shardAllGather: gather,
      shardAllReduce: await timed("all-reduce", tensorAxis),
      tensorAllGather: gather,
    };
    const [secondsPerFlop] = await agree([1 / (await measureRates(backend)).flopsPerSecond]);
    return decideSchedule(job, train.fields["inputs"]!.shape[0]!, { models, secondsPerFlop: secondsPerFlop! });
  } finally {
    agree.release();
  }
};

/** Describes the chosen schedule for sharded experts to the user, with the predicted times of the allowed schedules. */
export const formatSchedule = ({ schedule, seconds: each }: ExpertSchedulePlan): string => {
  const times = Object.entries(each).map(([name, own]) => `${name} ${millisecondsText(own)}`);
  return `experts are sharded by ${schedule}; expected time of a pass through a layer: ${times.join(", ")}`;
};
