import { type JobFile, layJobs } from "../studies/job-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions } from "../studies/study.ts";
import {
  type HostNetwork,
  hostNetworks,
  narrow,
  networkJob,
  numbersOfRanks,
  numHosts,
  sizes,
  ways,
} from "./layer-plan.ts";

/**
 * Comparison that a run belongs to: `ways` compares methods to exchange tokens, `shards` compares schedules for ranks
 * of a host that share each expert.
 */
export type StepGroup = "ways" | "shards";

/** Value of a job option that lets the trainer choose among the alternatives. */
export const automatic = "auto";

/** Run of full training steps of a GPT with experts, on several ranks over a network. */
export interface StepRun extends Run {
  readonly network: HostNetwork;
  readonly ranks: number;
  /** Comparison that the run belongs to. */
  readonly group: StepGroup;
  readonly choice: string;
}

/** Sizes of the GPT. All blocks have experts, with the number and width of the study of one layer. */
export const gpt = { layers: 2, heads: 4, window: 128 } as const;
/** Number of ranks of a host that share each expert. */
export const tensorRanks = 2;
const steps = 20;
const warmUpSteps = 4;

interface Variant {
  readonly network: HostNetwork;
  readonly ranks: number;
  readonly group: StepGroup;
  readonly choice: string;
  /** Options of `model.experts`. */
  readonly experts: JobFile;
  readonly mesh: JobFile;
  /** Number of data-parallel ranks, each with different samples. */
  readonly parts: number;
}

const jobOf = ({ ranks, experts, mesh, parts }: Variant): JobFile => ({
  name: "moe-step",
  ranks,
  threads: 1,
  backend: "cpu",
  mesh,
  batch: (parts * sizes.tokens) / gpt.window,
  evaluation: { batch: ranks },
  data: { kind: "moby-dick", window: gpt.window, trainSamples: 1024, testSamples: ranks },
  model: {
    kind: "gpt",
    layers: gpt.layers,
    heads: gpt.heads,
    width: sizes.width,
    experts: { count: sizes.numExperts, topK: sizes.topK, gate: "sigmoid", every: 1, hidden: narrow, ...experts },
  },
  optimizer: { kind: "sgd" },
  learningRate: { peak: 0.001 },
  compression: { kind: "identity" },
});

const runOf = (variant: Variant, { quick, seed }: { readonly quick: boolean; readonly seed: number }): StepRun => {
  const { network, ranks, group, choice } = variant;
  const prefix = `${group}/${network.name}/${ranks}-ranks`;
  return {
    name: `${prefix}/${choice}`,
    job: layJobs(jobOf(variant), { seed, steps: quick ? 4 : steps }, networkJob(network, ranks)),
    core: true,
    warmUpSteps: quick ? 1 : warmUpSteps,
    minutes: 5,
    expected: { seconds: 6 + 2 * ranks, prefix },
    network,
    ranks,
    group,
    choice,
  };
};

const levelsOf = (ranks: number): JobFile => (ranks > numHosts ? { expertLevels: [numHosts, ranks / numHosts] } : {});

/**
 * Returns the variants that compare methods to exchange tokens. Capacity is unlimited, so no token is dropped and all
 * methods compute the same result.
 */
const waysOn = (network: HostNetwork, ranks: number): Variant[] => {
  const own = { network, ranks, group: "ways", parts: ranks } as const;
  const named = ways.filter(({ dispatch, byHosts }) => dispatch !== "dense" && (ranks > numHosts || !byHosts));
  return [
    ...named.map(({ name, dispatch, byHosts }) => ({
      ...own,
      choice: name,
      mesh: { expert: ranks, ...(byHosts && levelsOf(ranks)) },
      experts: { capacity: "all", dispatch },
    })),
    {
      ...own,
      choice: automatic,
      mesh: { expert: ranks, ...levelsOf(ranks) },
      experts: { capacity: "all", dispatch: "auto", chunks: "auto" },
    },
  ];
};

/**
 * Returns the variants that compare schedules for sharded experts. Experts have a fixed number of slots, which all
 * schedules support.
 */
const shardsOn = (network: HostNetwork, ranks: number): Variant[] =>
  ["none", "baseline", "split-before-gate", "split-after-gate", automatic].map((shards) => ({
    network,
    ranks,
    group: "shards",
    choice: shards,
    parts: ranks / tensorRanks,
    mesh: { expert: ranks / tensorRanks, tensor: tensorRanks },
    experts: { capacity: 1.25, dispatch: "dense", shards },
  }));

/** Variants in the order of the runs. Variants that are compared with each other are adjacent. */
const variants: readonly Variant[] = hostNetworks
  .filter(({ bytesPerSecond }) => bytesPerSecond !== undefined)
  .flatMap((network) => [
    ...numbersOfRanks.flatMap((ranks) => waysOn(network, ranks)),
    ...numbersOfRanks.filter((ranks) => ranks > tensorRanks).flatMap((ranks) => shardsOn(network, ranks)),
  ]);

export const planSteps = ({ quick, seeds }: Pick<PlanOptions, "quick" | "seeds">): StepRun[] =>
  variants.map((variant) => runOf(variant, { quick, seed: seeds[0]! }));
