import type { ContendedSample } from "@skein/cost-model/calibration";
import type { LinearCollectiveModel } from "@skein/cost-model";

/** Milliseconds of 1, 2, … simultaneous all-reduces of `bytes` bytes each, as text separated by spaces. */
interface Row {
  readonly bytes: number;
  readonly milliseconds: string;
}

const samplesOf = (rows: readonly Row[]): readonly ContendedSample[] =>
  rows.flatMap(({ bytes, milliseconds }) =>
    milliseconds.split(" ").map((time, i) => ({ numFlows: i + 1, bytes, seconds: 1e-3 * Number(time) })),
  );

/**
 * All-reduce of a single job on two nodes over gigabit-class Ethernet, OSU benchmark: 10 MiB to 100 MiB in ten steps.
 *
 * Source of this file: `offline/network_contention/*.csv` of github.com/HKBU-HPML/dl-scheduling (arXiv 2002.10105).
 */
export const alone: readonly ContendedSample[] = "144.8 212.2 317.4 423.3 529.4 635.7 742.3 847.3 955.6 1060.6"
  .split(" ")
  .map((time, i) => ({ numFlows: 1, bytes: 10 * 2 ** 20 * (i + 1), seconds: 1e-3 * Number(time) }));

/** Times of simultaneous jobs, mean over the jobs (`results_avg.csv`). */
export const meanOfFlows: readonly ContendedSample[] = samplesOf([
  {
    bytes: 10_485_760,
    milliseconds:
      "144.4 218.7 335.9 406.1 535.0 633.8 743.1 829.1 926.5 1020.8 1103.4 1191.1 1291.4 1386.3 1472.3 1574.0",
  },
  {
    bytes: 20_971_520,
    milliseconds:
      "211.1 489.4 650.2 844.7 1043.9 1235.0 1448.0 1691.9 1848.2 2008.8 2205.5 2398.2 2578.4 2760.1 2934.4 3105.1",
  },
  {
    bytes: 41_943_040,
    milliseconds:
      "421.5 893.1 1340.4 1649.3 2091.4 2496.6 2864.9 3260.6 3650.4 4031.7 4487.4 4772.8 5178.1 5514.9 5905.9 6170.9",
  },
]);

/** Times of simultaneous jobs, apparently the slowest job in an average repetition (`results.csv`). */
export const slowestOfFlows: readonly ContendedSample[] = samplesOf([
  { bytes: 10_485_760, milliseconds: "145 253 404 412 744 951 1190 1185 1874 1622 1775 2380 2356 2589 2453 2358" },
  { bytes: 20_971_520, milliseconds: "211 573 843 1104 1367 1658 1935 2369 3968 3943 4310 4534 4664 5024 4517 5961" },
  {
    bytes: 41_943_040,
    milliseconds: "422 1115 1789 2036 2828 3401 3420 3581 6996 7755 10150 10331 10393 10492 12832 13036",
  },
]);

/** Times of simultaneous jobs, the slowest job in the worst repetition (`results_max_max.csv`). */
export const worstOfFlows: readonly ContendedSample[] = samplesOf([
  {
    bytes: 10_485_760,
    milliseconds:
      "145.0 267.4 455.6 414.0 1234.9 1412.9 1848.2 1885.1 4277.0 4713.4 4344.9 7044.1 5845.2 8577.4 7716.2 7428.6",
  },
  {
    bytes: 20_971_520,
    milliseconds:
      "211.7 682.5 974.9 1507.4 1680.9 2187.5 2556.8 3366.4 9643.2 9930.3 13531.8 9960.6 9104.4 15196.0 14406.7 21641.3",
  },
  {
    bytes: 41_943_040,
    milliseconds:
      "422.7 1216.7 2087.1 2370.6 4079.1 4665.8 4352.7 4739.9 18187.4 28167.8 36870.1 25288.5 29920.0 25282.8 29379.6 38706.5",
  },
]);

/** Published cost model of a single job, a least-squares fit of seconds. */
export const linkAlone: LinearCollectiveModel = { startupSeconds: 14.9e-3, secondsPerByte: 9.917e-9 };
