import { fitLink } from "@skein/collectives";
import { type DispatchedLayer, type DispatchLinks, dispatchSeconds, rankDispatches } from "@skein/cost-model/planners";
import type { LinearCollectiveModel } from "@skein/cost-model";
import { alignColumns } from "../report/align-columns.ts";
import { milliseconds } from "../report/milliseconds.ts";
import type { RangePlot } from "../report/range-plot.ts";
import type { Figures } from "../studies/outcome.ts";
import type { Draw, ResultOf } from "../studies/study.ts";
import { flat, type LayerRun, numbersOfChunks, numHosts, sizes, type Way } from "./layer-plan.ts";
import { speedRange, spread } from "./step-times.ts";

/** A finished run, compared with the baseline run of its table. */
interface ComparedRun {
  readonly run: LayerRun;
  readonly figures: Figures;
  /** Time of the baseline run divided by the time of this run. Undefined while the baseline run is missing. */
  readonly speedUp: number | undefined;
}

/**
 * Required ratios: minimum speed-ups of duplicate-free exchange and balanced placement, and the maximum time of the
 * planned choice relative to the fastest choice.
 */
const wanted = { duplicateFree: 1.5, planned: 1.1, placed: 1.2 } as const;

const seconds = ({ stepSeconds }: Figures): number => stepSeconds.median;
const times = (value: number | undefined): string => (value === undefined ? "–" : `${value.toFixed(2)}×`);

const compareRuns = (
  runs: readonly LayerRun[],
  resultOf: ResultOf,
  baseOf: (run: LayerRun) => LayerRun | undefined,
): ComparedRun[] => {
  const figuresOf = (run: LayerRun | undefined): Figures | undefined => {
    const outcome = run && resultOf(run)?.outcome;
    return outcome?.kind === "done" ? outcome : undefined;
  };
  return runs.flatMap((run) => {
    const [figures, base] = [figuresOf(run), figuresOf(baseOf(run))];
    return figures === undefined ? [] : [{ run, figures, speedUp: base && seconds(base) / seconds(figures) }];
  });
};

const isSamePlace = (a: LayerRun, b: LayerRun): boolean =>
  a.group === b.group && a.network === b.network && a.ranks === b.ranks && a.routing === b.routing;

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(2);

/**
 * Startup seconds of an all-to-all over emulated links: link latency plus overhead per message
 * (docs/network-emulation.md).
 */
const lineStartupSeconds = 0.0002;

/**
 * Returns the cost model of an all-to-all between two hosts. Half of each rank's bytes go over the rank's link to the
 * other host.
 */
const acrossHosts = (bytesPerSecond: number): LinearCollectiveModel => ({
  startupSeconds: lineStartupSeconds,
  secondsPerByte: 0.5 / bytesPerSecond,
});

/**
 * Cost of an all-to-all inside a host, assumed zero: tokens are copied while experts compute, so the measured compute
 * time includes the copies.
 */
const insideHost: LinearCollectiveModel = { startupSeconds: 0, secondsPerByte: 0 };

const layer: DispatchedLayer = {
  numTokens: sizes.tokens,
  width: sizes.width,
  numExperts: sizes.numExperts,
  expertsPerToken: sizes.topK,
  slots: sizes.tokens,
};

const linksOf = (
  { byHosts }: Pick<Way, "byHosts">,
  { ranks, bytesPerSecond }: { readonly ranks: number; readonly bytesPerSecond: number },
): DispatchLinks => {
  const flatModel = acrossHosts(bytesPerSecond);
  const levels = [
    { size: numHosts, model: flatModel },
    { size: ranks / numHosts, model: insideHost },
  ];
  return { numRanks: ranks, flat: flatModel, levels: byHosts ? levels : [] };
};

/**
 * Returns the number of chunks that the cost model plans for an exchange method, without a measurement over slow links.
 * The compute time and the overhead per chunk are measured in steps within one host. Traffic is computed for uniform
 * routing.
 *
 * @param alone Measured seconds per step within one host, by number of chunks.
 */
export const plannedChunks = (
  way: Pick<Way, "dispatch" | "byHosts">,
  alone: readonly { readonly chunks: number; readonly seconds: number }[],
  on: { readonly ranks: number; readonly bytesPerSecond: number },
): number => {
  const line = fitLink(alone.map(({ chunks, seconds: own }) => ({ bytes: chunks, seconds: own })));
  const choices = numbersOfChunks.map((numChunks) => ({ way: way.dispatch, numChunks }));
  const computing = { expertSeconds: line.secondsPerMessage, chunkSeconds: line.secondsPerByte, otherSeconds: 0 };
  return rankDispatches(choices, layer, linksOf(way, on), computing)[0]!.numChunks;
};

/**
 * Returns the exchange method with the shortest communication time according to the cost model, with one chunk. If
 * several methods have equal times, the first method is returned.
 */
export const plannedWay = (
  some: readonly Way[],
  on: { readonly ranks: number; readonly bytesPerSecond: number },
): Way | undefined =>
  some
    .map((way) => ({
      way,
      seconds: dispatchSeconds({ way: way.dispatch, numChunks: 1 }, layer, linksOf(way, on), {
        expertSeconds: 0,
        chunkSeconds: 0,
        otherSeconds: 0,
      }),
    }))
    .toSorted((x, y) => x.seconds - y.seconds)[0]?.way;

const wayName = ({ way, chunks, isPlaced, group }: LayerRun): string =>
  [way.name, ...(group === "chunks" ? [`in ${chunks}`] : []), ...(isPlaced ? ["balanced"] : [])].join(", ");

const tableOf = (all: readonly ComparedRun[], speedHeader: string): string =>
  alignColumns([
    ["way", "ms per step", speedHeader, "MB sent per step and rank", "ms of waiting"],
    ...all.map(({ run, figures, speedUp }) => [
      wayName(run),
      spread(figures),
      times(speedUp),
      megabytes(figures.bytesSentPerStep),
      figures.exposedSeconds === undefined ? "–" : milliseconds(figures.exposedSeconds.median),
    ]),
  ]);

const placeName = ({ network, ranks, routing }: LayerRun): string =>
  `${network.title}, ${ranks} ranks, ${routing} routing`;

const waysPlot = (all: readonly ComparedRun[]): RangePlot => ({
  name: "ways",
  title: `A layer of ${sizes.numExperts} experts, ${sizes.topK} for a token, ${sizes.tokens} tokens of ${4 * sizes.width} bytes per rank: ways to travel`,
  axis: `speed beside ${flat}, forward and backward`,
  scale: "log",
  reference: 1,
  legend: `marks: medians of steps; filled: as fast as ${flat} or faster`,
  rows: all.flatMap(({ run, figures, speedUp }) => {
    if (speedUp === undefined || run.way.name === flat) return [];
    return [
      {
        label: `${run.network.name}, ${run.ranks} ranks, ${run.way.name}`,
        solid: speedUp >= 1,
        ...speedRange(speedUp, figures),
      },
    ];
  }),
});

const verdict = (value: number | undefined, least: number): string =>
  value === undefined ? "not known yet" : `${times(value)} (wanted ${times(least)}${value >= least ? "" : ", missed"})`;

/**
 * Returns the number of chunks that the cost model plans for an exchange method, and the measured time with this number
 * relative to the fastest number of chunks.
 */
const plannedOf = (
  chunked: readonly ComparedRun[],
  name: string,
): { readonly planned: number; readonly relativeTime: number } | undefined => {
  const own = chunked.filter(({ run }) => run.way.name === name);
  const alone = own.filter(({ run }) => run.network.bytesPerSecond === undefined);
  const slow = own.filter(({ run }) => run.network.bytesPerSecond !== undefined);
  const one = slow.find(({ run }) => run.chunks === 1);
  if (alone.length < numbersOfChunks.length || one === undefined || slow.length < numbersOfChunks.length)
    return undefined;
  const planned = plannedChunks(
    one.run.way,
    alone.map(({ run: { chunks }, figures }) => ({ chunks, seconds: seconds(figures) })),
    { ranks: one.run.ranks, bytesPerSecond: one.run.network.bytesPerSecond! },
  );
  const best = Math.min(...slow.map(({ figures }) => seconds(figures)));
  return { planned, relativeTime: seconds(slow.find(({ run }) => run.chunks === planned)!.figures) / best };
};

/**
 * Returns texts about uniform routing over the slowest links, one per number of ranks: the exchange method that the
 * cost model plans, with its time relative to the fastest measured method.
 */
const plannedWays = (waysDone: readonly ComparedRun[]): string[] =>
  [...Map.groupBy(waysDone.filter(isSlowest), ({ run }) => run.ranks)].flatMap(([ranks, own]) => {
    const { bytesPerSecond } = own[0]!.run.network;
    const planned = plannedWay(
      own.map(({ run }) => run.way),
      { ranks, bytesPerSecond: bytesPerSecond! },
    );
    const taken = own.find(({ run }) => run.way === planned);
    const best = Math.min(...own.map(({ figures }) => seconds(figures)));
    return taken === undefined || own.length === 1
      ? []
      : [`${taken.run.way.name} on ${ranks} ranks, ${times(seconds(taken.figures) / best)} the time of the best`];
  });

const isSlowest = ({ run }: ComparedRun): boolean => run.network.name === "1-gbps" && run.routing === "uniform";

/** Returns three sentences that summarize the page. */
const layerSentences = (
  waysDone: readonly ComparedRun[],
  chunked: readonly ComparedRun[],
  placed: readonly ComparedRun[],
): readonly [string, string, string] => {
  const slowest = waysDone.filter((each) => isSlowest(each) && each.run.way.name === "duplicate-free");
  const plans = [flat, "duplicate-free"].flatMap((name) => {
    const plan = plannedOf(chunked, name);
    return plan === undefined ? [] : [`${name} ${plan.planned}, ${times(plan.relativeTime)} the time of the best`];
  });
  return [
    `Over 1 Gbit/s, tokens that travel once to a host are faster than rows that travel straight: ${slowest.map(({ run, speedUp }) => `${verdict(speedUp, wanted.duplicateFree)} on ${run.ranks} ranks`).join(", ") || "not known yet"}.`,
    `Planned by the cost model, wanted at most ${times(wanted.planned)} the time of the best: chunks: ${plans.join("; ") || "not known yet"}; ways over 1 Gbit/s: ${plannedWays(waysDone).join("; ") || "not known yet"}.`,
    `Experts placed by their loads, under a skewed routing: ${
      placed
        .filter(({ run }) => run.isPlaced)
        .map(({ run, speedUp }) => `${run.way.name} on ${run.ranks} ranks ${verdict(speedUp, wanted.placed)}`)
        .join(", ") || "not known yet"
    }.`,
  ];
};

/** Returns a page with a plot, three sentences, and a table per network and number of ranks. */
export const layerPage = (runs: readonly LayerRun[], resultOf: ResultOf, draw: Draw): string => {
  const of = (group: LayerRun["group"]): readonly LayerRun[] => runs.filter((run) => run.group === group);
  const [chunks, places] = [of("chunks"), of("places")];
  const all = of("ways");
  const waysDone = compareRuns(all, resultOf, (run) =>
    all.find((other) => isSamePlace(run, other) && other.way.name === flat),
  );
  const chunked = compareRuns(chunks, resultOf, (run) =>
    chunks.find((other) => isSamePlace(run, other) && other.way === run.way && other.chunks === 1),
  );
  const placed = compareRuns(places, resultOf, (run) =>
    places.find((other) => isSamePlace(run, other) && other.way === run.way && !other.isPlaced),
  );
  const uniform = waysDone.filter(({ run }) => run.routing === "uniform");
  const plot = waysPlot(uniform);
  const sectionsOf = (some: readonly ComparedRun[], speedHeader: string): string[] =>
    [...Map.groupBy(some, ({ run }) => placeName(run))].map(
      ([title, own]) => `### ${title[0]!.toUpperCase()}${title.slice(1)}\n\n${tableOf(own, speedHeader)}`,
    );
  return [
    ...(plot.rows.length > 0 ? [draw(plot)] : []),
    layerSentences(waysDone, chunked, placed).join("\n"),
    `A layer and nothing else, forward, backward and a plain update: ${sizes.numExperts} experts, ${sizes.topK} for each of ${sizes.tokens} tokens of a rank, ${sizes.width} values wide, gelu inside, nothing
dropped. Which experts a token goes to is given: all alike, or (skewed) expert e as popular as 1 / (1 + e). Ranks of a host are threads of a process; hosts
reach each other by TCP through emulated links, one line out of each rank and one into it. Messages and computing are real, the time that a cable would take is added. All
ranks share the cores of one machine, so computing grows with their number.`,
    `## Ways to travel`,
    ...sectionsOf(waysDone, `beside ${flat}`),
    `## Chunks`,
    `Experts are ${4} times as wide inside, so that there is about as much to compute as to travel.`,
    ...sectionsOf(chunked, "beside 1 chunk"),
    `## Where experts lie`,
    `All ranks share the cores of one machine, so places even out what the lines carry, and not what is computed.`,
    ...sectionsOf(placed, "beside experts in order"),
    "",
  ].join("\n\n");
};
