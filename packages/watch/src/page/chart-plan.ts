import { bytesText, digitsText, quantityText, secondsText, shareText } from "@skein/report";

/** A quantity in the lines of one type in `metrics.jsonl`. */
export interface Quantity {
  readonly type: string;
  readonly name: string;
}

/** Content of a chart, and the format of its values. */
export interface ChartPlan {
  readonly id: string;
  readonly title: string;
  readonly quantities: readonly Quantity[];
  /** Number of quantities of this chart that are not drawn. */
  readonly leftOut: number;
  /** Whether each line shows a quantity of one rank and is named after the rank. */
  readonly isOfRanks: boolean;
  readonly text: (value: number) => string;
  /** Upper bound of the values, such as 1 for a share. Absent: no bound. */
  readonly most?: number | undefined;
}

const maxLines = 12;

const known: readonly {
  readonly title: string;
  readonly quantities: readonly string[];
  readonly text?: (value: number) => string;
}[] = [
  { title: "Training loss", quantities: ["step/loss"] },
  { title: "Held-out loss", quantities: ["evaluation/loss"] },
  { title: "Held-out accuracy", quantities: ["evaluation/accuracy"], text: shareText },
  { title: "Learning rate", quantities: ["update/learningRate", "step/learningRate"] },
  { title: "Samples per second", quantities: ["step/samplesPerSecond"] },
  {
    title: "Step time",
    quantities: ["step/seconds", "step/exposedSeconds", "step/exposedAllToAllSeconds", "step/dataSeconds"],
    text: secondsText,
  },
  { title: "Resident memory", quantities: ["step/residentBytes"], text: bytesText },
];

/** Returns the format of a quantity, determined by the unit at the end of its name. */
const textOf = (name: string): ((value: number) => string) => {
  const last = name.split(/[./]/).findLast((part) => !/^\d+$/.test(part)) ?? name;
  if (/seconds$/i.test(last)) return secondsText;
  if (/bytes/i.test(last)) return bytesText;
  if (/(share|accuracy)$/i.test(last)) return shareText;
  return (value) => (Math.abs(value) >= 1e5 ? quantityText(value, countUnits) : digitsText(value));
};

const countUnits = [
  [1, ""],
  [1e3, "k"],
  [1e6, "M"],
  [1e9, "G"],
  [1e12, "T"],
] as const;

/**
 * Returns the name prefix that is common to the quantities in one chart: the name of a quantity up to its last dot or
 * slash, or the complete name.
 */
const prefixOf = (name: string): string => /^(.+)[./][^./]+$/.exec(name)?.[1] ?? name;

/** Whether a quantity was reported by a single rank, in lines with a type such as `rank-3`. */
const isOfRank = ({ type }: Quantity): boolean => /^rank-\d+$/.test(type);

/** Quantity with the step time of a rank, excluding waits for other ranks. The value is larger for a slower rank. */
const paceOfRank = "ownSeconds";

/** Quantities that are not drawn, because they are only used as positions along the x axis. */
const hidden: ReadonlySet<string> = new Set(["step/epoch"]);

const byName = new Intl.Collator("en", { numeric: true }).compare;

/** Plans charts for quantities: first the standard quantities of training, then other quantities by name prefix. */
export const chartPlans = (all: readonly Quantity[]): { readonly main: ChartPlan[]; readonly others: ChartPlan[] } => {
  const keyOf = ({ type, name }: Quantity): string => `${type}/${name}`;
  const byKey = new Map(all.map((quantity) => [keyOf(quantity), quantity]));
  const main = known.flatMap(({ title, quantities, text }): ChartPlan[] => {
    const found = quantities.flatMap((key) => byKey.get(key) ?? []);
    return found.length === 0
      ? []
      : [
          {
            id: quantities[0]!,
            title,
            quantities: found,
            leftOut: 0,
            isOfRanks: false,
            text: text ?? ((value) => digitsText(value, 4)),
            most: text === shareText ? 1 : undefined,
          },
        ];
  });
  const taken = new Set([...hidden, ...known.flatMap(({ quantities }) => quantities)]);
  const groups = Map.groupBy(
    [...byKey.values()]
      .filter((quantity) => !taken.has(keyOf(quantity)))
      .toSorted((a, b) => byName(a.name, b.name) || byName(a.type, b.type)),
    (quantity) => (isOfRank(quantity) ? `ranks/${quantity.name}` : `${quantity.type}/${prefixOf(quantity.name)}`),
  );
  const others = [...groups].map(([id, quantities]): ChartPlan => {
    const { type, name } = quantities[0]!;
    const isOfRanks = id.startsWith("ranks/");
    const title = isOfRanks
      ? `${name === paceOfRank ? "Step time without waits" : name} of each rank`
      : `${prefixOf(name)}${type === "step" ? "" : ` (${type})`}`;
    return {
      id,
      title,
      quantities: quantities.slice(0, maxLines),
      leftOut: Math.max(0, quantities.length - maxLines),
      isOfRanks,
      text: textOf(name),
      most: textOf(name) === shareText ? 1 : undefined,
    };
  });
  const isPace = ({ id }: ChartPlan): boolean => id === `ranks/${paceOfRank}`;
  return {
    main: [...main, ...others.filter(isPace)],
    others: others.filter((plan) => !isPace(plan)).toSorted((a, b) => byName(a.title, b.title)),
  };
};

/** Whether a chart matches a search: each word must occur in the title, or in the name of one of the quantities. */
export const matchesWords = ({ title, quantities }: ChartPlan, words: string): boolean => {
  const texts = [title, ...quantities.map(({ type, name }) => `${type}/${name}`)].map((text) => text.toLowerCase());
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => texts.some((text) => text.includes(word)));
};
