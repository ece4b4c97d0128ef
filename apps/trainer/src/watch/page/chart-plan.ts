import { bytesText, digitsText, quantityText, secondsText, shareText } from "@skein/report";

/** A quantity of one type of line. */
export interface Quantity {
  readonly type: string;
  readonly name: string;
}

/** One chart: what it shows, and how its numbers are written. */
export interface ChartPlan {
  readonly id: string;
  readonly title: string;
  readonly quantities: readonly Quantity[];
  /** Quantities that belong here and find no room. */
  readonly leftOut: number;
  /** Its quantities are of ranks, one each, and are named by them. */
  readonly isOfRanks: boolean;
  readonly text: (value: number) => string;
  /** No value is greater by what it is. */
  readonly most?: number | undefined;
}

const mostLines = 12;

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

/** Numbers of a quantity by what its name ends in, which is its unit. */
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

/** What quantities of one chart have in common: all before the last dot or slash; else the name itself. */
const prefixOf = (name: string): string => /^(.+)[./][^./]+$/.exec(name)?.[1] ?? name;

/** What each rank tells of itself comes in lines of its own type: `rank-3`. */
const isOfRank = ({ type }: Quantity): boolean => /^rank-\d+$/.test(type);

/** Time of a step less what a rank waits for others in it: of two ranks the slower one has more. */
const paceOfRank = "ownSeconds";

/** What places a line, and no more. */
const hidden: ReadonlySet<string> = new Set(["step/epoch"]);

const byName = new Intl.Collator("en", { numeric: true }).compare;

/** Charts of quantities: those that training has in any case first, the others by what their names begin with. */
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
      quantities: quantities.slice(0, mostLines),
      leftOut: Math.max(0, quantities.length - mostLines),
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

/** Whether a chart is one that a person looks for: its title, or one of its quantities, holds each of the words. */
export const matchesWords = ({ title, quantities }: ChartPlan, words: string): boolean => {
  const texts = [title, ...quantities.map(({ type, name }) => `${type}/${name}`)].map((text) => text.toLowerCase());
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => texts.some((text) => text.includes(word)));
};
