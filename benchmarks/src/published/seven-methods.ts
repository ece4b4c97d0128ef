/** Networks of the table, in the order of its columns. */
export const networks = ["10GbE", "100GbIB", "100GbE"] as const;
export type Network = (typeof networks)[number];

/** GPU counts of the measurements, on one, two and four nodes of 4 GPUs. */
export const worldSizes = [4, 8, 16] as const;

export const methods = [
  "BSP-A2A",
  "WFBP-A2A",
  "MG-WFBP",
  "ByteScheduler-A2A",
  "BSP-PS",
  "WFBP-PS",
  "ByteScheduler-PS",
] as const;
/**
 * Method to exchange gradients: after the backward pass (BSP), per tensor (WFBP), merged (MG-WFBP), or partitioned with
 * priorities (ByteScheduler); by all-reduce (A2A) or parameter servers (PS).
 */
export type Method = (typeof methods)[number];

export const modelNames = ["ResNet-50", "BERT-Base", "BERT-Large"] as const;
export type ModelName = (typeof modelNames)[number];

/** Batch size and samples per second on one GPU. */
export const singleGpu: Readonly<Record<ModelName, { readonly batch: number; readonly samplesPerSecond: number }>> = {
  "ResNet-50": { batch: 64, samplesPerSecond: 253.1 },
  "BERT-Base": { batch: 64, samplesPerSecond: 212.8 },
  "BERT-Large": { batch: 8, samplesPerSecond: 49 },
};

/**
 * Samples per second of the whole cluster: 4 / 8 / 16 GPUs over 10 Gbit/s Ethernet | 100 Gbit/s InfiniBand (RDMA) | 100
 * Gbit/s Ethernet (TCP).
 */
const table: Readonly<Record<ModelName, Readonly<Record<Method, string>>>> = {
  "ResNet-50": {
    "BSP-A2A": "925.0 / 1282.3 / 2485.1 | 920.3 / 1821.2 / 3602.9 | 926.0 / 1601.4 / 3087.2",
    "WFBP-A2A": "1015.4 / 1795.7 / 3146.8 | 1014.3 / 2017.1 / 3946.1 | 1015.1 / 1985.7 / 3650.7",
    "MG-WFBP": "1003.2 / 1980.6 / 3785.0 | 1003.9 / 2001.7 / 3987.4 | 1002.7 / 1990.7 / 3946.0",
    "ByteScheduler-A2A": "658.1 / 1319.1 / 2701.5 | 653.8 / 1257.7 / 2529.1 | 728.5 / 1344.3 / 2687.7",
    "BSP-PS": "866.3 / 1194.4 / 2361.3 | 863.0 / 1694.9 / 3353.2 | 864.1 / 1191.7 / 2353.2",
    "WFBP-PS": "1017.3 / 2021.4 / 3812.0 | 1010.8 / 2008.1 / 3988.7 | 1014.8 / 2002.1 / 3811.4",
    "ByteScheduler-PS": "1018.4 / 2025.6 / 3815.6 | 1015.8 / 2018.4 / 4013.9 | 1015.1 / 2017.7 / 3996.0",
  },
  "BERT-Base": {
    "BSP-A2A": "555.5 / 518.9 / 984.9 | 555.7 / 1082.4 / 2113.0 | 555.4 / 804.6 / 1504.6",
    "WFBP-A2A": "634.1 / 582.3 / 1069.5 | 631.8 / 1195.7 / 2217.2 | 632.6 / 933.2 / 1671.6",
    "MG-WFBP": "659.1 / 611.4 / 1153.2 | 660.4 / 1235.0 / 2515.3 | 658.4 / 1021.4 / 1880.3",
    "ByteScheduler-A2A": "623.4 / 624.0 / 1177.4 | 621.2 / 1223.3 / 2379.6 | 620.6 / 992.4 / 1792.6",
    "BSP-PS": "559.3 / 505.4 / 1022.4 | 557.9 / 1040.0 / 2077.7 | 557.2 / 748.8 / 1689.0",
    "WFBP-PS": "653.5 / 657.4 / 1341.1 | 652.8 / 1203.5 / 2409.3 | 652.5 / 1020.6 / 2272.0",
    "ByteScheduler-PS": "652.6 / 634.7 / 1343.5 | 651.7 / 1239.6 / 2403.0 | 652.8 / 956.3 / 2181.6",
  },
  "BERT-Large": {
    "BSP-A2A": "53.04 / 28.96 / 54.30 | 53.08 / 99.18 / 191.64 | 52.90 / 55.80 / 103.34",
    "WFBP-A2A": "56.04 / 29.06 / 53.42 | 56.30 / 101.68 / 185.42 | 56.00 / 54.82 / 98.98",
    "MG-WFBP": "57.34 / 30.04 / 54.26 | 57.50 / 106.78 / 205.78 | 57.54 / 62.02 / 107.48",
    "ByteScheduler-A2A": "51.32 / 30.40 / 56.00 | 49.42 / 91.27 / 171.90 | 48.90 / 56.03 / 99.50",
    "BSP-PS": "51.42 / 28.37 / 59.22 | 51.38 / 88.51 / 168.22 | 51.46 / 27.86 / 59.19",
    "WFBP-PS": "55.42 / 29.80 / 61.32 | 55.30 / 89.89 / 175.74 | 55.32 / 29.61 / 61.61",
    "ByteScheduler-PS": "55.34 / 29.31 / 61.21 | 55.36 / 85.52 / 148.09 | 55.40 / 50.20 / 151.54",
  },
};

/** A measured run of the published table. */
export interface Cell {
  readonly model: ModelName;
  readonly method: Method;
  readonly network: Network;
  readonly worldSize: number;
  readonly samplesPerSecond: number;
  readonly iterationSeconds: number;
}

/**
 * All 189 measurements: 3 models × 7 methods × 3 networks × 4, 8 and 16 GPUs.
 *
 * Source: `results/2020-05-29/README.md` of github.com/HKBU-HPML/ddl-benchmarks (means of samples per second; PyTorch
 * 1.4, NCCL 2.4, Horovod 0.19, BytePS 0.2; 4 GPUs per node, synthetic inputs, 32-bit gradients). Its column of 32 GPUs
 * is omitted here, because these values are predicted.
 */
export const cells: readonly Cell[] = modelNames.flatMap((model) =>
  methods.flatMap((method) =>
    table[model][method].split(" | ").flatMap((column, network) =>
      column.split(" / ").map((text, place) => {
        const [worldSize, samplesPerSecond] = [worldSizes[place]!, Number(text)];
        const iterationSeconds = (worldSize * singleGpu[model].batch) / samplesPerSecond;
        return { model, method, network: networks[network]!, worldSize, samplesPerSecond, iterationSeconds };
      }),
    ),
  ),
);
