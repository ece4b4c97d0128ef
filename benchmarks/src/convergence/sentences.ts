import type { Entry } from "./entries.ts";
import type { Quality } from "./verdict.ts";

const amount = (value: number, { unit }: Quality): string =>
  unit === "%" ? `${value.toFixed(2)} points` : `${value.toFixed(3)} bits per byte`;

const timesLess = ({ outcomes }: Entry): number => {
  const first = outcomes.find((outcome) => outcome?.kind === "done");
  return first === undefined ? 0 : first.denseBytesPerStep / first.bytesSentPerStep;
};

const countSentence = (entries: readonly Entry[]): string => {
  const judged = entries.filter(({ standing }) => standing !== "dense" && standing !== "not run");
  const named = (wanted: Entry["standing"]): string =>
    judged.flatMap(({ standing, setting }) => (standing === wanted ? setting.name : [])).join(", ");
  const numHold = judged.filter(({ standing }) => standing === "holds").length;
  const [failing, undecided] = [named("fails"), named("undecided")];
  return `Of ${judged.length} methods ${numHold} hold their margin; ${failing === "" ? "none fails" : `these fail: ${failing}`}; ${
    undecided === "" ? "none is undecided" : `undecided are ${undecided}`
  }.`;
};

const frugalSentence = (entries: readonly Entry[]): string => {
  const holding = entries.filter(({ standing }) => standing === "holds");
  if (holding.length === 0) return "No method that sends less than dense training may be claimed to hold.";
  const best = holding.reduce((so, next) => (timesLess(next) > timesLess(so) ? next : so));
  const { verdict, quality, setting } = best;
  return `Of those that hold, ${setting.name} sends least: ${timesLess(best).toFixed(1)} times less than dense training, and ends ${amount(
    Math.abs(verdict!.worseBy),
    quality!,
  )} ${verdict!.worseBy > 0 ? "worse" : "better"} on the mean (${amount(verdict!.margin, quality!)} are allowed).`;
};

const noiseSentence = (entries: readonly Entry[]): string => {
  const dense = entries.find(({ standing }) => standing === "dense");
  if (dense?.quality === undefined || dense.quality.seeds < 2)
    return "Dense training was not run with several seeds yet, so its own spread is not known.";
  const { quality } = dense;
  return `Seeds of dense training (${dense.setting.name}) alone lie up to ${amount(quality.greatest - quality.least, quality)} apart: smaller differences between methods mean nothing.`;
};

/** Returns three sentences that summarize a model's table. */
export const convergenceSentences = (entries: readonly Entry[]): readonly [string, string, string] => [
  countSentence(entries),
  frugalSentence(entries),
  noiseSentence(entries),
];
