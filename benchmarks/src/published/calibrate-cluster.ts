import { fitLeastSquares, type LeastSquaresFit } from "@skein/cost-model/calibration";
import { type Cluster, type ClusterNetwork, gpusPerNode } from "./cluster.ts";
import { predictIteration } from "./predict-iteration.ts";
import { type Cell, type Method, type Network, networks } from "./seven-methods.ts";

/** Parameter of a cluster that the calibration fits. */
export interface FreeParameter {
  readonly name: string;
  readonly unit: string;
  /**
   * How the fit treats the parameter. `positive`: the value is above 0, and the fit uses its logarithm. `if-shown`: the
   * fit uses the value itself; a value below √2 times its standard error is replaced by 0.
   */
  readonly range: "positive" | "if-shown";
  /**
   * Returns whether the effect of the parameter on these cells differs from the effects of other parameters. Absent:
   * the parameter is fitted if a change of the parameter changes a prediction.
   */
  readonly isKnownBy?: (cells: readonly Cell[]) => boolean;
  readonly read: (cluster: Cluster) => number;
  readonly write: (cluster: Cluster, value: number) => Cluster;
}

const shared = (
  key: Exclude<keyof Cluster, "networks" | "negotiationSeconds">,
  name: string,
  unit: string,
): FreeParameter => ({
  name,
  unit,
  range: "positive",
  read: (cluster) => cluster[key],
  write: (cluster, value) => ({ ...cluster, [key]: value }),
});

const negotiationOf = (of: "images" | "text", name: string): FreeParameter => ({
  name: `negotiation of a collective, ${name}`,
  unit: "s",
  range: "positive",
  read: ({ negotiationSeconds }) => negotiationSeconds[of],
  write: (cluster, value) => ({ ...cluster, negotiationSeconds: { ...cluster.negotiationSeconds, [of]: value } }),
});

const ofNetwork = (
  network: Network,
  key: keyof ClusterNetwork,
  name: string,
  unit: string,
  range: FreeParameter["range"] = "positive",
): FreeParameter => ({
  name: `${name}, ${network}`,
  unit,
  range,
  read: ({ networks: all }) => all[network][key],
  write: (cluster, value) => ({
    ...cluster,
    networks: { ...cluster.networks, [network]: { ...cluster.networks[network], [key]: value } },
  }),
});

/**
 * Returns the parameter for the relative growth of the ring's cost per doubling of nodes. The growth can be separated
 * from the cost itself only by cells with two different numbers of nodes that use the network.
 */
const growthOf = (network: Network): FreeParameter => ({
  ...ofNetwork(network, "ringGrowthPerDoubling", "growth of the ring per doubling of nodes", "share", "if-shown"),
  isKnownBy: (cells) =>
    new Set(
      cells
        .filter((cell) => cell.network === network && cell.worldSize > gpusPerNode)
        .map(({ worldSize }) => worldSize),
    ).size > 1,
});

/**
 * Calibration stage: the parameters to fit, and the methods whose measurements the fit uses. Parameters of earlier
 * stages keep their fitted values.
 */
export interface Stage {
  readonly title: string;
  readonly methods: readonly Method[];
  readonly parameters: readonly FreeParameter[];
  /**
   * Whether to scan each parameter over a factor of 16 before the fit. ByteScheduler's plans change abruptly with a
   * parameter, so a fit that starts far from the optimum stops at such a change. Default: false.
   */
  readonly scanned?: boolean;
}

/**
 * Calibration stages in order. They fit 9 to 11 parameters of all-reduces, then 2 of ByteScheduler, then 4 of parameter
 * servers.
 */
export const stages: readonly Stage[] = [
  {
    title: "all-reduce",
    methods: ["BSP-A2A", "WFBP-A2A", "MG-WFBP"],
    parameters: [
      shared("nodeSecondsPerByte", "ring within a node", "s/B"),
      shared("nodeRingStepSeconds", "ring step within a node", "s"),
      shared("slowdownWhileComputing", "slow-down of PCIe while GPUs compute", "×"),
      shared("backwardShare", "share of the backward pass", "of an iteration"),
      ofNetwork("10GbE", "ringSecondsPerByte", "ring", "s/B"),
      ofNetwork("100GbE", "ringSecondsPerByte", "ring", "s/B"),
      growthOf("10GbE"),
      growthOf("100GbE"),
      ...networks.map((network) => ofNetwork(network, "ringStepSeconds", "ring step", "s")),
    ],
  },
  {
    title: "ByteScheduler over all-reduce",
    methods: ["ByteScheduler-A2A"],
    parameters: [negotiationOf("images", "ResNet-50"), negotiationOf("text", "BERT")],
    scanned: true,
  },
  {
    title: "parameter servers",
    methods: ["BSP-PS", "WFBP-PS", "ByteScheduler-PS"],
    parameters: [
      shared("serverStartSeconds", "start of a push and pull", "s"),
      ...networks.map((network) => ofNetwork(network, "serverSecondsPerByte", "servers", "s/B")),
    ],
  },
];

/**
 * Start values of fits: bandwidths of data sheets (PCIe 3.0 through a shared switch, 10 and 100 Gbit/s), and orders of
 * magnitude. For 100 Gbit/s InfiniBand, the ring's seconds per byte are 0, because the network is faster than a node's
 * PCIe lanes and so cannot be measured.
 */
export const nominalCluster: Cluster = {
  nodeSecondsPerByte: 2e-10,
  nodeRingStepSeconds: 1e-5,
  slowdownWhileComputing: 2,
  backwardShare: 2 / 3,
  negotiationSeconds: { images: 1e-3, text: 1e-3 },
  serverStartSeconds: 1e-4,
  networks: {
    "10GbE": {
      ringStepSeconds: 1e-5,
      ringSecondsPerByte: 8e-10,
      ringGrowthPerDoubling: 0,
      serverSecondsPerByte: 8e-10,
    },
    "100GbIB": { ringStepSeconds: 1e-5, ringSecondsPerByte: 0, ringGrowthPerDoubling: 0, serverSecondsPerByte: 2e-10 },
    "100GbE": {
      ringStepSeconds: 1e-5,
      ringSecondsPerByte: 4e-10,
      ringGrowthPerDoubling: 0,
      serverSecondsPerByte: 4e-10,
    },
  },
};

const withValues = (cluster: Cluster, parameters: readonly FreeParameter[], fitted: readonly number[]): Cluster =>
  parameters.reduce(
    (changed, { range, write }, k) => write(changed, range === "positive" ? Math.exp(fitted[k]!) : fitted[k]!),
    cluster,
  );

/**
 * Returns a key made of the properties of a cell that its prediction depends on. Within one node the network has no
 * influence.
 */
const keyOf = ({ model, method, network, worldSize }: Cell): string =>
  [model, method, worldSize, ...(worldSize > 4 ? [network] : [])].join(" ");

/**
 * Returns the relative error (predicted − measured) / measured of each cell. Cells that differ only by an unused
 * network are predicted once.
 */
const relativeErrors = (cluster: Cluster, cells: readonly Cell[]): readonly number[] => {
  const predicted = new Map<string, number>();
  return cells.map((cell) => {
    const seconds = predicted.get(keyOf(cell)) ?? predictIteration(cluster, cell);
    predicted.set(keyOf(cell), seconds);
    return seconds / cell.iterationSeconds - 1;
  });
};

/** A measured cell with its prediction error. */
export interface PredictedCell extends Cell {
  /** (predicted − measured) / measured iteration time. */
  readonly relativeError: number;
}

export const predictCells = (cluster: Cluster, cells: readonly Cell[]): readonly PredictedCell[] => {
  const errors = relativeErrors(cluster, cells);
  return cells.map((cell, i) => ({ ...cell, relativeError: errors[i]! }));
};

/**
 * A fitted parameter with its relative standard error. The error is undefined if the cells do not determine the
 * parameter; the parameter then keeps its start value.
 */
export interface FoundParameter {
  readonly parameter: FreeParameter;
  readonly value: number;
  readonly relativeError?: number;
}

export interface Calibration {
  readonly cluster: Cluster;
  readonly found: readonly FoundParameter[];
  /** Standard deviation of the relative errors of each stage. */
  readonly residuals: readonly number[];
}

/** Whether a prediction changes if the parameter grows by a thousandth, or from 0 to a thousandth. */
const shows = (cluster: Cluster, cells: readonly Cell[], { read, write, isKnownBy }: FreeParameter): boolean => {
  if (isKnownBy?.(cells) === false) return false;
  const before = relativeErrors(cluster, cells);
  return relativeErrors(write(cluster, read(cluster) * 1.001 || 0.001), cells).some(
    (error, i) => Math.abs(error - before[i]!) > 1e-9,
  );
};

/**
 * Minimum number of standard errors above 0 for an `if-shown` parameter. From √2, Akaike's criterion prefers the model
 * with the parameter.
 */
const shownFrom = Math.SQRT2;

/** Factors of a start value that the scan tries. */
const scannedFactors = [1 / 4, 1 / 2, 1, 2, 4];

/**
 * Scans the parameters one after the other. For each parameter, keeps the factor of its start value with the smallest
 * sum of squared errors.
 */
const scan = (start: Cluster, cells: readonly Cell[], parameters: readonly FreeParameter[]): Cluster =>
  parameters.reduce((cluster, { read, write }) => {
    const tried = scannedFactors.map((factor) => write(cluster, factor * read(cluster)));
    const sums = tried.map((one) => relativeErrors(one, cells).reduce((sum, error) => sum + error ** 2, 0));
    return tried[sums.indexOf(Math.min(...sums))]!;
  }, start);

interface StageFit {
  /** Parameters that the stage fitted. */
  readonly free: readonly FreeParameter[];
  /** Least-squares fit of the parameters. Undefined: no parameter was fitted. */
  readonly fit: LeastSquaresFit | undefined;
  readonly fitted: Cluster;
}

/** Fits parameters, then fits again without the `if-shown` parameters that do not differ clearly from 0. */
const fitShown = (before: Cluster, cells: readonly Cell[], free: readonly FreeParameter[]): StageFit => {
  if (free.length === 0) return { free, fit: undefined, fitted: before };
  const fit = fitLeastSquares(
    (fitted) => relativeErrors(withValues(before, free, fitted), cells),
    free.map(({ range, read }) => (range === "positive" ? Math.log(read(before)) : read(before))),
    // Plans change in jumps, so a finite difference over a larger step gives a more accurate slope.
    { relativeStep: 1e-4, tolerance: 1e-4, maxIterations: 30 },
  );
  const shown = free.filter(
    ({ range }, k) => range === "positive" || fit.parameters[k]! >= shownFrom * fit.standardErrors[k]!,
  );
  return shown.length < free.length
    ? fitShown(before, cells, shown)
    : { free, fit, fitted: withValues(before, free, fit.parameters) };
};

/**
 * Fits a cluster to cells of the table, stage by stage, by least squares of the relative errors of iteration times.
 *
 * @param cells All cells, or the cells that are not held out. Parameters that the cells do not determine keep their
 * value from `start`.
 */
export const calibrateCluster = (cells: readonly Cell[], start: Cluster = nominalCluster): Calibration => {
  let cluster = start;
  const found: FoundParameter[] = [];
  const residuals: number[] = [];
  for (const { methods, parameters, scanned = false } of stages) {
    const own = cells.filter(({ method }) => methods.includes(method));
    const shown = parameters.filter((parameter) => own.length > 0 && shows(cluster, own, parameter));
    const { free, fit, fitted } = fitShown(scanned ? scan(cluster, own, shown) : cluster, own, shown);
    cluster = fitted;
    residuals.push(fit?.residual ?? Number.NaN);
    for (const parameter of parameters) {
      const k = free.indexOf(parameter);
      found.push({
        parameter,
        value: parameter.read(cluster),
        ...(k >= 0 && { relativeError: fit!.standardErrors[k]! }),
      });
    }
  }
  return { cluster, found, residuals };
};
