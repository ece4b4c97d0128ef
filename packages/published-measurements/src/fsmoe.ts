/** Published linear fit: start-up time, and time per multiply-add of a matrix product or per byte of a collective. */
interface PublishedLine {
  readonly startupSeconds: number;
  readonly secondsPerUnit: number;
}

/** Creates a fit from values that are printed in milliseconds. */
const line = (startup: number, perUnit: number): PublishedLine => ({
  startupSeconds: startup * 1e-3,
  secondsPerUnit: perUnit * 1e-3,
});

/** GPU cluster of the FSMoE paper, with the linear fits measured on the cluster. */
interface Testbed {
  /** Number of GPUs per node. Each expert is sharded over the GPUs of a node. */
  readonly gpusPerNode: number;
  readonly matrixProduct: PublishedLine;
  readonly allToAll: PublishedLine;
  readonly allGather: PublishedLine;
  readonly reduceScatter: PublishedLine;
  readonly allReduce: PublishedLine;
}

/**
 * Fits of matrix products and collectives on two clusters: testbed A has 6 nodes of 8 RTX A6000 over 200 Gbit/s,
 * testbed B has 8 nodes of 4 RTX 2080 Ti over 100 Gbit/s. Exponents are as printed. Some exponents of testbed A do not
 * match the paper's own table of times; `packages/cost-model/test/fsmoe.test.ts` lists them.
 *
 * Source: FSMoE, ASPLOS 2025, figure 5.
 */
export const fsmoeTestbeds: Readonly<Record<"A" | "B", Testbed>> = {
  A: {
    gpusPerNode: 8,
    matrixProduct: line(4.26e-2, 2.29e-11),
    allToAll: line(2.87e-1, 2.21e-7),
    allGather: line(3.37e-1, 2.32e-6),
    reduceScatter: line(3.95e-1, 2.34e-7),
    allReduce: line(5.11e-1, 4.95e-6),
  },
  B: {
    gpusPerNode: 4,
    matrixProduct: line(9.24e-2, 4.42e-11),
    allToAll: line(1.75e-1, 3.06e-7),
    allGather: line(3.2e-2, 1.68e-7),
    reduceScatter: line(3.91e-2, 1.67e-7),
    allReduce: line(8.37e-2, 5.99e-7),
  },
};

/**
 * MoE layers of the FSMoE paper, derived from two published models: 4 sequences of 1024 tokens, 2 experts per token,
 * capacity factor 1.2. Hidden sizes and the number of matrix products per expert are taken from the published models.
 *
 * Source: FSMoE, ASPLOS 2025; shapes of GPT-2 XL and Mistral 7B.
 */
export const fsmoeModels = {
  "GPT2-XL": {
    numTokens: 4096,
    expertsPerToken: 2,
    capacityFactor: 1.2,
    hidden: 1600,
    expertHidden: 6400,
    numProducts: 2,
  },
  "Mixtral-7B": {
    numTokens: 4096,
    expertsPerToken: 2,
    capacityFactor: 1.2,
    hidden: 4096,
    expertHidden: 14_336,
    numProducts: 3,
  },
} as const;

/** Measured times of one MoE layer by operation, in milliseconds. */
export interface FsmoeLayerTimes {
  readonly testbed: keyof typeof fsmoeTestbeds;
  readonly model: keyof typeof fsmoeModels;
  readonly pass: "forward" | "backward";
  readonly allToAll: number;
  readonly allReduce: number;
  readonly allGather: number;
  readonly reduceScatter: number;
  readonly experts: number;
  readonly routing: number;
  readonly order: number;
  readonly attention: number;
}

const row = (
  testbed: FsmoeLayerTimes["testbed"],
  model: FsmoeLayerTimes["model"],
  pass: FsmoeLayerTimes["pass"],
  times: readonly [number, number, number, number, number, number, number, number],
): FsmoeLayerTimes => {
  const [allToAll, allReduce, allGather, reduceScatter, experts, routing, order, attention] = times;
  return { testbed, model, pass, allToAll, allReduce, allGather, reduceScatter, experts, routing, order, attention };
};

/** Published times of MoE layers, one row per testbed, model and pass. Source: FSMoE, ASPLOS 2025, table 2. */
export const fsmoeLayerTimes: readonly FsmoeLayerTimes[] = [
  row("A", "GPT2-XL", "forward", [6.9, 0, 4.6, 5.4, 3.1, 0.1, 0.3, 1.7]),
  row("A", "GPT2-XL", "backward", [6.9, 5.26, 4.6, 5.4, 6.1, 0.1, 0.4, 3.6]),
  row("A", "Mixtral-7B", "forward", [19.5, 0, 12.3, 13.7, 15.6, 0.1, 0.3, 4.1]),
  row("A", "Mixtral-7B", "backward", [19.6, 26.45, 12.3, 13.7, 31.8, 0.1, 0.5, 7.7]),
  row("B", "GPT2-XL", "forward", [11.2, 0, 15.5, 15.7, 6.7, 0.1, 0.3, 4.5]),
  row("B", "GPT2-XL", "backward", [11.2, 7.3, 15.5, 15.2, 13, 0.1, 0.3, 8.6]),
  row("B", "Mixtral-7B", "forward", [28.3, 0, 39.6, 40.8, 58.5, 0.1, 0.7, 9.5]),
  row("B", "Mixtral-7B", "backward", [30.8, 32.1, 40.1, 41.8, 119.7, 0.2, 1.2, 18.1]),
];
