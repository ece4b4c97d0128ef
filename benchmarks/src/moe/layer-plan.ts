import { readFileSync } from "node:fs";
import type { DispatchWay } from "@skein/cost-model/planners";
import { placeHeaviestFirst, slotOfExpert } from "@skein/moe-parallel/placement";
import { type JobFile, layJobs } from "../studies/job-file.ts";
import type { Run } from "../studies/run.ts";
import type { PlanOptions } from "../studies/study.ts";

/** A network to emulate between two hosts. Ranks of one host share memory. */
export interface HostNetwork {
  readonly name: string;
  readonly title: string;
  /**
   * Bandwidth of each rank's link to the other host, in bytes per second and direction. Absent: all ranks share memory.
   */
  readonly bytesPerSecond?: number;
}

export const hostNetworks: readonly HostNetwork[] = [
  { name: "memory", title: "one host" },
  { name: "10-gbps", title: "two hosts, 10 Gbit/s from each rank", bytesPerSecond: 1.25e9 },
  { name: "1-gbps", title: "two hosts, 1 Gbit/s from each rank", bytesPerSecond: 125e6 },
];

/** Method to exchange tokens between ranks. */
export interface Way {
  readonly name: string;
  readonly dispatch: DispatchWay;
  /** Whether tokens are exchanged between hosts first and then inside a host, instead of directly between all ranks. */
  readonly byHosts: boolean;
}

/** Baseline exchange method of comparisons: rows are sent directly to the ranks of their experts. */
export const flat = "ragged";

export const ways: readonly Way[] = [
  { name: flat, dispatch: "ragged", byHosts: false },
  { name: "dense", dispatch: "dense", byHosts: false },
  { name: "hierarchical", dispatch: "hierarchical", byHosts: true },
  { name: "duplicate-free-ranks", dispatch: "duplicate-free", byHosts: false },
  { name: "duplicate-free", dispatch: "duplicate-free", byHosts: true },
];

/**
 * Comparison that a run belongs to. `ways` compares exchange methods for one layer, `chunks` compares chunk counts for
 * one exchange method, and `places` compares sequential with balanced expert placement.
 */
export type Group = "ways" | "chunks" | "places";

export type RoutingName = "uniform" | "skewed";

/** Run of one expert layer, forward and backward, on several ranks over a network. */
export interface LayerRun extends Run {
  readonly network: HostNetwork;
  readonly ranks: number;
  readonly way: Way;
  readonly chunks: number;
  readonly routing: RoutingName;
  /** Comparison that the run belongs to. */
  readonly group: Group;
  /** Whether experts are placed so that ranks have equal loads, instead of in order. */
  readonly isPlaced: boolean;
}

export const sizes = { tokens: 512, width: 256, numExperts: 16, topK: 4 } as const;
/** Inner width of an expert for which communication takes much longer than compute. */
export const narrow = 64;
/**
 * Inner width for which compute takes about as long as communication over 1 Gbit/s, so that communication of one chunk
 * can overlap compute of another chunk.
 */
const wide = 256;
export const numHosts = 2;
export const numbersOfRanks: readonly number[] = [2, 4, 8];
export const numbersOfChunks: readonly number[] = [1, 2, 4, 8];
const steps = 20;
const warmUpSteps = 4;

const textOf = (file: string): string => readFileSync(new URL(`layer/${file}`, import.meta.url), "utf8");
const files: NonNullable<Run["files"]> = { "model.ts": textOf("model.ts"), "data.ts": textOf("data.ts") };

/** Relative load of each expert, 1 / (1 + expert), as in layer/data.ts. */
const skewedLoads: readonly number[] = Array.from({ length: sizes.numExperts }, (_, expert) => 1 / (1 + expert));

/**
 * Returns the slot index of each expert in a balanced placement: all ranks have the same number of experts and about
 * equal loads.
 */
const balancedPlaces = (numRanks: number): readonly number[] =>
  slotOfExpert(placeHeaviestFirst(skewedLoads, { numRanks }));

/** Returns the job options for a network. */
export const networkJob = ({ bytesPerSecond }: HostNetwork, ranks: number): JobFile =>
  bytesPerSecond === undefined
    ? { transport: "threads" }
    : {
        transport: "tcp",
        network: {
          emulate: { bytesPerSecond, latencySeconds: 50e-6, sharesLine: true },
          ranksPerProcess: ranks / numHosts,
          codec: "never",
          timeoutSeconds: 120,
        },
      };

interface Variant {
  readonly network: HostNetwork;
  readonly ranks: number;
  readonly way: Way;
  readonly routing: RoutingName;
  readonly chunks?: number;
  readonly isPlaced?: boolean;
  readonly hidden?: number;
  readonly group: Group;
}

const runOf = (
  { network, ranks, way, routing, chunks = 1, isPlaced = false, hidden = narrow, group }: Variant,
  { quick, seed }: { readonly quick: boolean; readonly seed: number },
): LayerRun => {
  const levels = way.byHosts && ranks > numHosts ? [numHosts, ranks / numHosts] : undefined;
  const axes = levels === undefined ? ["expert"] : levels.map((_, i) => `expert-level-${i + 1}`);
  const { tokens, ...layer } = sizes;
  const layerJob: JobFile = {
    batch: ranks,
    data: {
      kind: "module",
      file: "data.ts",
      export: "toldTokens",
      options: {
        samples: 4 * ranks,
        tokens,
        width: layer.width,
        numExperts: layer.numExperts,
        topK: layer.topK,
        routing,
      },
    },
    model: {
      kind: "module",
      file: "model.ts",
      export: "oneLayer",
      options: {
        ...layer,
        hidden,
        dispatch: way.dispatch,
        axes,
        chunks,
        ...(isPlaced && { placement: balancedPlaces(ranks) }),
      },
    },
  };
  const prefix = `${group}/${network.name}/${ranks}-ranks`;
  return {
    name: `${prefix}/${routing}/${way.name}${group === "chunks" ? `/${chunks}-chunks` : ""}${isPlaced ? "/placed" : ""}`,
    job: layJobs(
      {
        name: "moe-layer",
        seed,
        ranks,
        threads: 1,
        backend: "cpu",
        mesh: { expert: ranks, ...(levels && { expertLevels: levels }) },
        steps: quick ? 4 : steps,
        evaluation: { batch: ranks },
        optimizer: { kind: "sgd" },
        learningRate: { peak: 0.001 },
        compression: { kind: "identity" },
      },
      layerJob,
      networkJob(network, ranks),
    ),
    files,
    core: true,
    warmUpSteps: quick ? 1 : warmUpSteps,
    minutes: 5,
    expected: { seconds: 5 + ranks, prefix },
    network,
    ranks,
    way,
    chunks,
    routing,
    group,
    isPlaced,
  };
};

const slow = hostNetworks.at(-1)!;
const wayOf = (name: string): Way => ways.find((way) => way.name === name)!;

/** Variants in the order of the runs. Variants that are compared with each other are adjacent. */
const variants: readonly Variant[] = [
  ...hostNetworks.flatMap((network) =>
    numbersOfRanks.flatMap((ranks) =>
      (["uniform", "skewed"] as const).flatMap((routing) =>
        ways
          .filter(({ byHosts }) => ranks > numHosts || !byHosts)
          .map((way): Variant => ({ group: "ways", network, ranks, way, routing })),
      ),
    ),
  ),
  ...[flat, "duplicate-free"].flatMap((name) =>
    // Runs in one host, without emulated links, measure compute time and the overhead of each chunk.
    [hostNetworks[0]!, slow].flatMap((network) =>
      numbersOfChunks.map(
        (chunks): Variant => ({
          group: "chunks",
          network,
          ranks: 4,
          way: wayOf(name),
          routing: "uniform",
          chunks,
          hidden: wide,
        }),
      ),
    ),
  ),
  ...[4, 8].flatMap((ranks) =>
    [flat, "duplicate-free"].flatMap((name) =>
      [false, true].map(
        (isPlaced): Variant => ({
          group: "places",
          network: slow,
          ranks,
          way: wayOf(name),
          routing: "skewed",
          isPlaced,
        }),
      ),
    ),
  ),
];

export const planLayer = ({ quick, seeds }: Pick<PlanOptions, "quick" | "seeds">): LayerRun[] =>
  variants.map((variant) => runOf(variant, { quick, seed: seeds[0]! }));
