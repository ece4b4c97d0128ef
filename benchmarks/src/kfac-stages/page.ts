import {
  calibratedOn,
  type KfacCalibration,
  type PublishedNetwork,
  publishedRun,
} from "../published/calibrate-kfac.ts";
import { peakMultiplyAddsPerSecond, type SecondOrderStages, stageOptionsOf } from "../published/kfac-cluster.ts";
import { convolutionLayers, inputRows } from "../published/convolution-layers.ts";
import { formatMilliseconds as ms, formatShare } from "../predictions/format.ts";
import { alignColumns } from "../report/align-columns.ts";
import type { PageFacts } from "../report/page-command.ts";
import type { RangePlot } from "../report/range-plot.ts";
import {
  type Figure,
  forms,
  formTitles,
  heldOut,
  isMet,
  type KfacStagesResults,
  networks,
  pipeliningTitles,
  ratioOf,
  stageTitles,
  tolerance,
} from "./results.ts";

/** Largest ratio of predicted to published time on the axis; larger ratios are drawn at the edge. */
const maxRatio = 2;

/** Returns a plot of the predicted time of each stage divided by the published time. */
export const stageRatiosPlot = ({ stages }: KfacStagesResults): RangePlot => ({
  name: "ratios",
  title: "Predicted over published time of each stage of K-FAC, 64 GPUs",
  axis: "predicted time / published time",
  scale: "linear",
  reference: 1,
  most: maxRatio,
  legend: `filled: ${heldOut.join(", ")}, which the calibration did not see; hollow: ${calibratedOn.join(" and ")}, which it saw`,
  rows: heldOut.concat(calibratedOn).flatMap((network) =>
    stages
      .filter((figure) => figure.network === network)
      .map((figure) => {
        const ratio = ratioOf(figure);
        return {
          label: `${network}, ${figure.title}`,
          value: ratio,
          low: Math.min(1, ratio),
          high: Math.max(1, ratio),
          solid: heldOut.includes(network),
          note: ratio.toFixed(2),
        };
      }),
  ),
});

const isHeldOut = ({ network }: Figure): boolean => heldOut.includes(network);

/** Whether the predicted order of an ablation's variants equals the published order for every network. */
const isOrdered = (figures: readonly Figure[]): boolean =>
  networks.every((network) => {
    const own = figures.filter((figure) => figure.network === network);
    const order = (of: "predicted" | "published"): string =>
      own
        .toSorted((a, b) => a[of] - b[of])
        .map(({ title }) => title)
        .join();
    return order("predicted") === order("published");
  });

const worstError = (figures: readonly Figure[]): number =>
  Math.max(...figures.map((figure) => Math.abs(ratioOf(figure) - 1)));

/** Returns three sentences that summarize the page. */
export const sentencesOf = (results: KfacStagesResults): readonly [string, string, string] => {
  const { stages, pipelining, placement, calibration } = results;
  const unseen = stages.filter(isHeldOut);
  const met = unseen.filter(isMet);
  const missed = unseen.filter((figure) => !isMet(figure));
  const orders = [pipelining, placement].filter(isOrdered).length;
  return [
    `With ${calibration.found.length} numbers from ${calibratedOn.join(" and ")} the model says ${met.length} of ${unseen.length} stages of ${heldOut.join()} within ${(100 * tolerance).toFixed(0)} %; off are ${missed.map((figure) => `${figure.title} (${ratioOf(figure).toFixed(2)} of what was published)`).join("; ")}.`,
    `What counts for a choice is nearer: inverses with their exchange are met within ${formatShare(worstError(placement.filter(isHeldOut)))}, factors with theirs within ${formatShare(worstError(pipelining.filter(isHeldOut)))}, in each way of both ablations.`,
    `${orders === 2 ? "Both ablations stand" : `${orders} of 2 ablations stand`} in the published order in all ${networks.length} networks: factors sent one by one as early as they can be are slower than all in one message at the end, merged by plan they are fastest, and inverses are fastest when balanced.`,
  ];
};

const figureTable = (figures: readonly Figure[], first: string): string =>
  alignColumns([
    [first, "predicted, ms", "published, ms", "ratio", "within 20 %"],
    ...figures.map((figure) => [
      figure.title,
      ms(figure.predicted),
      ms(figure.published),
      ratioOf(figure).toFixed(2),
      isMet(figure) ? "yes" : "no",
    ]),
  ]);

const stagesSection = ({ stages }: KfacStagesResults): string =>
  heldOut
    .concat(calibratedOn)
    .map(
      (network) =>
        `## ${network}, ${heldOut.includes(network) ? "which the calibration did not see" : "which it saw"}\n\n${figureTable(
          stages.filter((figure) => figure.network === network),
          "stage",
        )}`,
    )
    .join("\n\n");

const ablationTable = (figures: readonly Figure[]): string =>
  alignColumns([
    ["", ...networks.map((network) => `${network}: predicted / published, ms`)],
    ...[...new Set(figures.map(({ title }) => title))].map((title) => [
      title,
      ...networks.map((network) => {
        const figure = figures.find((one) => one.network === network && one.title === title)!;
        return `${ms(figure.predicted)} / ${ms(figure.published)} = ${ratioOf(figure).toFixed(2)}`;
      }),
    ]),
  ]);

const stageRow = (title: string, stages: SecondOrderStages): readonly string[] => [
  title,
  ...(Object.keys(stageTitles) as (keyof SecondOrderStages)[]).map((stage) => ms(stages[stage])),
  ms(Object.values(stages).reduce((sum: number, seconds: number) => sum + seconds, 0)),
];

const unpublishedSection = ({ unpublished, plain, lookedBack }: KfacStagesResults): string => {
  const { run, forms: byForm, factorCommunication, plain: step, exchangeByPasses } = unpublished;
  const offBy = plain.filter(isHeldOut).map((figure) => `${figure.title} ${ratioOf(figure).toFixed(2)}`);
  return `## ${run.network}, of which no figure was seen

Predicted, ms, batch ${run.batchPerGpu} per GPU; nothing was fitted to it.

${alignColumns([
  ["form", ...Object.values(stageTitles), "all four"],
  ...forms.map((form) => stageRow(formTitles[form], byForm[form])),
  stageRow(`SPD-KFAC, sending what has more than ${lookedBack.largestKept} rows`, unpublished.spdLookedBack),
])}

${alignColumns([
  ["computing and exchange of factors", "predicted, ms"],
  ...(Object.keys(pipeliningTitles) as (keyof typeof pipeliningTitles)[]).map((name) => [
    pipeliningTitles[name],
    ms(byForm.d.factorCompute + factorCommunication[name]),
  ]),
])}

By the rule all GPUs invert factors up to ${unpublished.largestKept} rows. The last row of the first table has the bound that fits ${heldOut.join()} afterwards; see below.
Its plain step is a guess: both passes ${ms(step.passes)} ms, exchange of gradients ${ms(step.gradientCommunication)} ms, by layers and multiply-adds, tensors and bytes, through both networks of the calibration. Of ${heldOut.join()} such a guess is far off (${offBy.join(", ")} of what was published), but little rests on it, only how far factors hide behind the forward pass: with half and twice these passes, the exchange of SPD-KFAC takes ${exchangeByPasses.map(ms).join(" and ")} ms.`;
};

const parametersSection = ({ calibration: { found, scatter } }: KfacStagesResults): string =>
  `## The model and its parameters

A factor of n rows takes start + batch · positions · (row + n² / peak), with the ${(2e-12 * peakMultiplyAddsPerSecond).toFixed(2)} Tflop/s of the GPU's data sheet for the peak. An inverse takes start + cube · n³. An all-reduce of M bytes takes start + 2 (P − 1) / P · M through the slowest link, a broadcast start + M through the same link.
Triangles of floats travel, and each factor is packed and unpacked for an all-reduce. Factors travel as soon as they are computed, but behind the forward pass alone. Plans are those of \`planFactorBuckets\`, placements those of \`placeBalanced\`, stages those of \`formStages\`.

Least squares of relative errors; ± is a standard error by the Jacobian, where there are more figures than parameters.

${alignColumns([
  ["parameter", "value", "unit", "±"],
  ...found.map(({ parameter: { name, unit }, value, relativeError }) => [
    name,
    value.toPrecision(4),
    unit,
    Number.isNaN(relativeError) ? "as many figures as parameters" : formatShare(relativeError),
  ]),
])}

Scatter: ${scatter.map(({ title, figures, residual }) => `${title}, ${figures} figures, ${Number.isNaN(residual) ? "none left" : formatShare(residual)}`).join("; ")}.`;

/** Returns the share of total inversion time spent on factors with at least `from` and fewer than `to` rows. */
const shareOfInverses = ({ cluster }: KfacCalibration, network: PublishedNetwork, from: number, to: number): number => {
  const { layers, times } = stageOptionsOf(cluster, publishedRun(network));
  const sizes = layers.flatMap(({ numInputs, numOutputs }) => [numInputs, numOutputs]);
  const secondsOf = (some: readonly number[]): number =>
    some.reduce((sum, size) => sum + times.inverseSeconds(size), 0);
  return secondsOf(sizes.filter((size) => size >= from && size < to)) / secondsOf(sizes);
};

const inferred = ({
  calibration,
  stages,
  unpublished,
  lookedBack,
  hiddenBehindBoth,
}: KfacStagesResults): readonly string[] => {
  const { cluster } = calibration;
  const [unseenNetwork] = heldOut as readonly [PublishedNetwork];
  const unseen = (title: string): Figure => stages.find((figure) => isHeldOut(figure) && figure.title === title)!;
  const inTurn = unseen("inverses, MPD");
  const [kept, sent] = [unseen("inverses, SPD"), unseen("exchange of inverses, SPD")];
  const both = hiddenBehindBoth
    .map(({ network, predicted, published }) => `${ms(predicted)} of ${ms(published)} ms of ${network}`)
    .join(", ");
  return [
    "Given, not predicted: seconds of both passes and the exchange of gradients, which K-FAC adds to. The passes settle only how far factors hide behind the forward pass; a third of them is taken for forward.",
    "Taken, not published: the bound of 64 MiB of merging without a model (the default of Horovod), one message where nothing is sent early, a broadcast for each inverse, patches as many as positions of the output. Stages of preconditioning are none of the published tables.",
    `The form of the model was chosen with ${networks.join(", ")} in sight; held out of the calibration are its numbers alone. Eleven forms of the exchange were tried (what it hides behind, whether computing slows it, packing, which numbers all-reduces and broadcasts share), five of the times of inverses and 21 of computing factors, by leaving each network out in turn: with a peak and a cost of each row the network that was left out is met to 1 %, with one rate per multiply-add to 11 %, 7 % and 4 %. So ${unpublished.run.network} is the only test that chose nothing. Broadcasts have a start-up of their own, since with one for both kinds of messages the two slowest ways of ${calibratedOn[0]!}'s exchange change places.`,
    `That factors hide behind the forward pass alone is inferred: by these numbers, hidden behind both passes hardly more than packing would be left, ${both}. The exchange of gradients outlasts the backward pass in all of these networks, so the network is taken from the begin of that pass on. It is not the only form that fits: hidden behind both passes, over a link that is five times slower while GPUs compute and without packing, both ResNets are met within 20 %, too, and of ${unseenNetwork} three of four ways are 21 to 25 % too fast. It was set aside for that.`,
    `A row of a factor takes ${(1e9 * cluster.secondsPerFactorRow).toFixed(0)} ns whatever its size, as long as the multiply-adds of ${Math.sqrt(cluster.secondsPerFactorRow * peakMultiplyAddsPerSecond).toFixed(0)} columns at the GPU's peak, and the slowest link carries ${(1e-9 / cluster.linkSecondsPerByte).toFixed(1)} GB/s of the 12.5 of 100 Gbit/s. A message starts up in ${ms(cluster.allReduceStartSeconds)} ms; a ring of 64 has 126 steps, and ranks agree on each message beforehand.`,
    `Computing the factors of ${unpublished.run.network} was predicted 1.75 times too long by one rate per multiply-add, as a figure that was kept back shows. It was not used here, and this form predicts ${ms(unpublished.forms.d.factorCompute)} ms instead of 342.8: whatever makes that network's factors cheap, the other three do not show it.`,
    `Inverses of ${unseenNetwork} by MPD take ${ms(inTurn.published)} ms as published, ${(inTurn.published / inTurn.predicted).toFixed(1)} times what the busiest GPU has to invert, by times of inverses that are met where all is inverted everywhere. Its largest factor has ${Math.max(...convolutionLayers[unseenNetwork].map(inputRows))} rows. Why is unknown; work that each GPU has with each of ${2 * convolutionLayers[unseenNetwork].length} factors would look like it, but ${calibratedOn[1]!}, with ${2 * convolutionLayers[calibratedOn[1]!].length}, shows next to none.`,
    `From where on factors are sent is ill-conditioned: around ${unpublished.largestKept} rows inverting and sending take nearly the same. Neither ResNet has a factor of more than 1152 and fewer than 2048 rows, while ${unseenNetwork} has ${formatShare(shareOfInverses(calibration, unseenNetwork, 1152, 2048))} of its inverses' time from 1152 to 2048. So its two stages are off in opposite directions, and their sum is not. Its published stages fit a bound of ${lookedBack.largestKept} rows: then ${ms(lookedBack.spd.inverseCompute)} of ${ms(kept.published)} ms and ${ms(lookedBack.spd.inverseCommunication)} of ${ms(sent.published)} ms; neither ResNet changes by more than a tenth.`,
    `The exchange of factors is the same work in ${formTitles.d} and ${formTitles.mpd}; of ${unseenNetwork} it was published as ${ms(unseen("exchange of factors, D").published)} and ${ms(unseen("exchange of factors, MPD").published)} ms.`,
  ];
};

/** Returns a dated page that compares predicted with published stages of K-FAC. */
export const kfacStagesPage = (
  results: KfacStagesResults,
  { date, command, seconds, draw }: PageFacts,
): string => `# K-FAC's stages beside published ones, ${date}

${draw(stageRatiosPlot(results))}

${sentencesOf(results)
  .map((sentence) => `- ${sentence}`)
  .join("\n")}

Command: \`${command}\` (${seconds.toFixed(0)} s; nothing is timed, so any machine gives the same).
Measurements: figures of SPD-KFAC (arXiv 2107.06533), 64 GPUs over 100 Gbit/s InfiniBand; they stand, with their source, in \`packages/published-measurements\`, where \`benchmarks/src/published/kfac-stages.test.ts\` holds the tolerances.

${stagesSection(results)}

## Exchange of factors, by how early and how merged

Computing and exchanging factors, in all.

${ablationTable(results.pipelining)}

## Inverses, by where they are computed

Inverting and exchanging inverses, in all.

${ablationTable(results.placement)}

${unpublishedSection(results)}

${parametersSection(results)}

## What is inferred, and what fell short

${inferred(results)
  .map((line) => `- ${line}`)
  .join("\n")}
`;
