import { type EmulatedNetwork, linkFileOf, networkJob, networks } from "../slow-links/links.ts";
import { speedModels } from "../slow-links/models.ts";
import { type JobFile, layJobs } from "../studies/job-file.ts";
import type { PlacedRun } from "../studies/orderings-section.ts";
import type { PlanOptions } from "../studies/study.ts";
import { stageRules } from "./stages.ts";

/** A K-FAC variant to time, or the baseline optimizer. */
export interface LinksMethod {
  readonly name: string;
  readonly optimizer: JobFile;
  readonly note?: string;
}

/** A model whose steps are timed. */
interface LinksModel {
  readonly name: string;
  readonly title: string;
  readonly batchPerRank: number;
  readonly job: JobFile;
}

/** Short training run of a model with a K-FAC variant over an emulated network. */
export interface LinksRun extends PlacedRun {
  readonly network: EmulatedNetwork;
  readonly model: LinksModel;
  readonly method: LinksMethod;
  /** `timed`: measures step times. `traced`: measures the stages of a step. */
  readonly kind: "timed" | "traced";
}

/**
 * Returns K-FAC options with all second-order work in each step, so that all stages are visible, as in the papers'
 * tables.
 */
const kfac = (form: string, options: JobFile = {}): JobFile => ({
  kind: "kfac",
  size: "gradient-norm",
  factorEvery: 1,
  inverseEvery: 1,
  blockSize: 512,
  form,
  ...options,
});

const planned: JobFile = { factorBuckets: { kind: "planned" } };
/** Bucket options with a bucket size that exceeds the total size of all factors of any model. */
const allInOne: JobFile = { kind: "fixed-size", bytes: 2 ** 30 };

export const linksBaseline = "momentum";

export const linksMethods: readonly LinksMethod[] = [
  { name: linksBaseline, optimizer: { kind: "momentum" } },
  { name: "d", optimizer: kfac("d", planned), note: "each rank inverts all; messages planned" },
  { name: "mpd", optimizer: kfac("mpd"), note: "layers in turn; messages of 4 MiB" },
  // Layers are assigned to fixed ranks, so that only the messages differ.
  {
    name: "mpd-per-factor",
    optimizer: kfac("mpd", { factorBuckets: { kind: "per-factor" } }),
    note: "a message per factor, as soon as it is computed",
  },
  {
    name: "mpd-together",
    optimizer: kfac("mpd", { factorBuckets: allInOne }),
    note: "one message after all factors",
  },
  { name: "mpd-planned", optimizer: kfac("mpd", planned), note: "layers in turn; messages planned" },
  { name: "spd", optimizer: kfac("spd"), note: "inverses by measurements; messages planned" },
  { name: "kaisa-0.5", optimizer: kfac("kaisa"), note: "half of the ranks precondition a layer" },
  { name: "pad-0.5", optimizer: kfac("pad"), note: "the same, factors only to who inverts them" },
  {
    name: "pad-1",
    optimizer: kfac("pad", { gradientWorkers: 1 }),
    note: "all precondition, factors only to who inverts them",
  },
  { name: "dp", optimizer: kfac("dp"), note: "factors of a rank's own samples, which do not travel" },
  { name: "auto", optimizer: kfac("auto"), note: "by measurements" },
];

const cnn = speedModels.find(({ name }) => name === "cnn")!;

export const linksModels: readonly LinksModel[] = [
  cnn,
  {
    name: "gpt",
    title: "GPT of 2 layers and 128 features, windows of 64 bytes",
    batchPerRank: 4,
    job: {
      data: { kind: "moby-dick", window: 64, testSamples: 32 },
      model: { kind: "gpt", layers: 2, heads: 4, width: 128 },
    },
  },
];

/**
 * Networks to emulate: a network on which dividing the K-FAC computation among ranks should save time, and a network
 * ten times slower.
 */
const linksNetworks = networks.filter(({ name }) => name === "10-gbps" || name === "1-gbps");
const numbersOfRanks: readonly number[] = [2, 4];
const lengths = { steps: 15, warmUpSteps: 3 } as const;

const runOf = (
  { network, ranks, model, method, kind }: Pick<LinksRun, "network" | "ranks" | "model" | "method" | "kind">,
  { quick, seed }: { readonly quick: boolean; readonly seed: number },
): LinksRun => {
  const { steps, warmUpSteps } = quick ? { steps: 4, warmUpSteps: 1 } : lengths;
  const prefix = `${network.name}/${ranks}-ranks/${model.name}/${method.name}`;
  return {
    name: `${prefix}/${kind}`,
    job: layJobs(
      {
        name: "second-order-links",
        ranks,
        threads: 1,
        backend: "cpu",
        batch: model.batchPerRank * ranks,
        steps,
        seed,
        evaluation: { batch: 4 * ranks },
        compression: { kind: "identity" },
        optimizer: method.optimizer,
        learningRate: { peak: 0.01 },
      },
      model.job,
      networkJob(network),
    ),
    files: { "links.json": linkFileOf(network, ranks) },
    core: true,
    warmUpSteps,
    ...(kind === "traced" && { stages: stageRules }),
    minutes: 10,
    expected: { seconds: 4 + steps * 0.1 * ranks, prefix },
    network,
    ranks,
    model,
    method,
    kind,
  };
};

/**
 * Plans every network, number of ranks, model and K-FAC variant. Runs that are compared with each other are adjacent.
 */
export const planLinks = ({ quick, seeds }: Pick<PlanOptions, "quick" | "seeds">): LinksRun[] =>
  linksNetworks.flatMap((network) =>
    numbersOfRanks.flatMap((ranks) =>
      linksModels.flatMap((model) =>
        (["timed", "traced"] as const).flatMap((kind) =>
          linksMethods.map((method) => runOf({ network, ranks, model, method, kind }, { quick, seed: seeds[0]! })),
        ),
      ),
    ),
  );
