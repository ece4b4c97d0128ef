import { readFileSync } from "node:fs";
import { elementCount } from "@skein/tensor-core";
import { describe, expect, it } from "vitest";
import {
  type Aggregator,
  type Bucket,
  denseUntil,
  identityCompressor,
  isMatrix,
  lengthOf,
  partitionAggregator,
  topKCompressor,
  withEf21,
  withErrorFeedback,
  withMomentum,
  withMomentumCorrection,
} from "../src/index.ts";
import { chainCompressors } from "../src/chain.ts";
import { buckets, cycleOf, worldsOf } from "./laws/law.ts";
import type { Row } from "./rows/row.ts";
import { stateElements, stepperOf } from "./stepper.ts";
import { rows } from "./table.ts";

type Symbols = Readonly<Record<string, number>>;

const symbols = ["P", "Q", "n", "t", "k", "c", "h", "m", "b", "B", "w", "p", "q", "v"];

/**
 * Compiles a formula of docs/algorithms.md, such as `8 · k · (P − 1)`, to a function. Apart from the operator signs,
 * the formulas are valid JavaScript.
 */
const formula = (text: string): ((values: Symbols) => number) => {
  const code = text
    .replace("(most)", "")
    .replace("(P = 1)", "")
    .replaceAll("·", "*")
    .replaceAll("−", "-")
    .replaceAll("²", "**2")
    .replaceAll(/log₂(?=\()/g, "Math.log2")
    .replaceAll(/log₂([PQ])/g, "Math.log2($1)")
    .replaceAll("⌈", "Math.ceil(")
    .replaceAll("⌉", ")")
    .replaceAll(/\bmin\(/g, "Math.min(");
  const compiled = new Function(...symbols, `return ${code};`) as (...values: (number | undefined)[]) => number;
  return (values) => compiled(...symbols.map((symbol) => values[symbol]));
};

const page = readFileSync(new URL("../../../docs/algorithms.md", import.meta.url), "utf8");
const tableOf = (numColumns: number): string[][] =>
  page
    .slice(page.indexOf("\n## Compressors"), page.indexOf("\n## Bucket plans"))
    .split("\n")
    .map((line) =>
      line
        .split("|")
        .map((cell) => cell.trim())
        .slice(1, -1),
    )
    .filter((cells) => cells.length === numColumns && cells[0]!.startsWith("`"));

const kept = (density: number, n: number): number => Math.min(n, Math.max(1, Math.floor(density * n)));

const blocks = (n: number, most: number, bits = 8): Symbols => {
  const m = Math.ceil(n / most);
  return { B: most, m, b: Math.ceil(n / Math.max(1, m)), w: bits };
};

/**
 * Returns the number of elements of the rank-1 factors P (`p`) and Q (`q`), for the matrices for which `pays` returns
 * true, and of all other tensors (`v`).
 */
const factors = ({ tensors }: Bucket, pays: (elements: number, sent: number) => boolean): Symbols => {
  const counts = { p: 0, q: 0, v: 0 };
  for (const { shape } of tensors) {
    const elements = elementCount(shape);
    const columns = shape.at(-1) ?? 1;
    if (shape.length > 1 && elements > 0 && pays(elements, elements / columns + columns)) {
      counts.p += elements / columns;
      counts.q += columns;
    } else counts.v += elements;
  }
  return counts;
};

const hosts = (worldSize: number): number => (worldSize % 2 === 0 ? 2 : worldSize);

/**
 * Returns the values of a formula's symbols, by row of the law table. Formulas of rows that are not listed use only n,
 * P, Q and t.
 */
const settings: Readonly<Record<string, (bucket: Bucket, worldSize: number) => Symbols>> = {
  "top-k": (bucket) => ({ k: kept(0.1, lengthOf(bucket)) }),
  "random-k": (bucket) => ({ k: kept(0.3, lengthOf(bucket)) }),
  "scaled random-k": (bucket) => ({ k: kept(0.3, lengthOf(bucket)) }),
  threshold: (bucket) => ({ c: lengthOf(bucket) }),
  "gaussian-k": (bucket) => ({ k: kept(0.1, lengthOf(bucket)) }),
  "ms-top-k": (bucket) => ({ k: kept(0.1, lengthOf(bucket)) }),
  dgc: (bucket) => ({ k: kept(0.1, lengthOf(bucket)) }),
  "g-top-k": (bucket) => ({ k: kept(0.2, lengthOf(bucket)) }),
  "hierarchical top-k": (bucket, worldSize) => ({
    h: hosts(worldSize),
    k: kept(0.2, Math.ceil(lengthOf(bucket) / hosts(worldSize))),
  }),
  "ok-top-k": (bucket) => ({ k: kept(0.2, lengthOf(bucket)) }),
  "one-bit": (bucket) => blocks(lengthOf(bucket), 8),
  qsgd: (bucket) => blocks(lengthOf(bucket), 128),
  "qsgd of 4 bits": (bucket) => blocks(lengthOf(bucket), 8, 4),
  "qsgd of 2 bits": (bucket) => blocks(lengthOf(bucket), 4, 2),
  "eight-bit": (bucket) => blocks(lengthOf(bucket), 16),
  "eight-bit, stochastic": (bucket) => blocks(lengthOf(bucket), 256),
  agoq: (bucket, worldSize) => blocks(Math.ceil(lengthOf(bucket) / worldSize), 16),
  "power-sgd": (bucket) => factors(bucket, (elements, sent) => elements > 2 * sent),
  "acp-sgd": (bucket) => factors(bucket, (elements, sent) => elements > sent),
};

const symbolsOf = ({ name }: Row, bucket: Bucket, worldSize: number): Symbols => ({
  P: worldSize,
  Q: 2 ** Math.floor(Math.log2(worldSize)),
  n: lengthOf(bucket),
  t: bucket.tensors.length,
  ...settings[name]?.(bucket, worldSize),
});

/** Whether a row of the table combines a wrapper with an aggregator that has a separate row. */
const isComposed = ({ name }: Row): boolean =>
  /^(ef21|chain|partition|per-path|dense phase|identity in pieces)|with (error feedback|momentum)/.test(name);

const documented = tableOf(10);
const tried = Object.entries(buckets).filter(([name]) => name !== "empty");

it("the page has exactly one row per aggregator", () => {
  expect(documented.map(([name]) => name!.replaceAll("`", "")).toSorted()).toEqual(
    rows
      .filter((row) => !isComposed(row))
      .map(({ name }) => name)
      .toSorted(),
  );
});

describe.each(documented)("%s", (name, _what, collectives, bytes, biased, draws, scope, contraction, state) => {
  const row = rows.find((candidate) => `\`${candidate.name}\`` === name)!;

  it("sends the bytes that the page states, by the collectives that it lists", () => {
    for (const [bucketName, bucket] of tried) {
      for (const worldSize of [2, 3, 4, 5, 8, 12]) {
        const expected = formula(bytes!)(symbolsOf(row, bucket, worldSize));
        const what = `${bucketName} on ${worldSize} ranks`;
        expect(Math.abs(row.aggregator.bytesSent(bucket, worldSize) - expected), what).toBeLessThanOrEqual(
          1e-9 * Math.max(1, expected),
        );
      }
    }
    expect(bytes!.includes("(most)")).toBe(row.bytesAreMost === true);
    const { graph } = worldsOf(row, cycleOf(row))(buckets.mixed, 4)[0]!;
    const used = graph.nodes.filter(({ op }) =>
      /^(ragged-)?all-(gather|reduce|to-all)$|^(reduce-scatter|send-receive|broadcast)$/.test(op),
    );
    expect([...new Set(used.map(({ op }) => op))].toSorted().join(", ")).toBe(collectives);
  });

  it("has the bias, randomness, scope, contraction and state that the page states", () => {
    const yes = (flag: boolean): string => (flag ? "yes" : "no");
    expect([biased, draws, scope]).toEqual([yes(row.aggregator.biased), yes(row.randomised), row.aggregator.scope]);
    expect(contraction === "–").toBe(row.contraction === undefined);
    for (const [bucketName, bucket] of tried) {
      const values = symbolsOf(row, bucket, 1);
      for (const numRanks of row.contraction === undefined ? [] : [1, 2, 3, 4]) {
        const known = row.contraction!(bucket, numRanks);
        const what = `${bucketName} on ${numRanks} ranks`;
        expect(known === undefined, what).toBe(numRanks > 1 && contraction!.includes("(P = 1)"));
        if (known !== undefined)
          expect(Math.abs(formula(contraction!)(values) - known), what).toBeLessThanOrEqual(1e-3);
      }
      expect(stateElements(worldsOf(row, cycleOf(row))(bucket, 1)[0]!), bucketName).toBe(formula(state!)(values));
    }
  });
});

/** Each wrapper, applied to an aggregator without state. */
const wrapped: Readonly<Record<string, Aggregator>> = {
  withErrorFeedback: withErrorFeedback(identityCompressor()) as Aggregator,
  withMomentumCorrection: withMomentumCorrection(identityCompressor(), { momentum: 0.9 }) as Aggregator,
  withMomentum: withMomentum(identityCompressor(), { momentum: 0.9 }) as Aggregator,
  withEf21: withEf21(identityCompressor()) as Aggregator,
  chainCompressors: chainCompressors(topKCompressor({ density: 0.5 }), topKCompressor({ density: 0.5 })) as Aggregator,
  partitionAggregator: partitionAggregator([
    { when: isMatrix, aggregator: topKCompressor({ density: 0.5 }) },
  ]) as Aggregator,
  denseUntil: denseUntil(10, topKCompressor({ density: 0.5 }))[0]!.aggregator as Aggregator,
};

it("wrappers have the state that the page states", () => {
  const documentedElements = new Map(
    tableOf(5).flatMap(([names, , , state]) =>
      names!.split(", ").map((name) => [name.replaceAll("`", ""), state!] as const),
    ),
  );
  for (const [name, aggregator] of Object.entries(wrapped)) {
    for (const [bucketName, bucket] of tried) {
      const elements = stateElements(stepperOf(aggregator, bucket, 1, { keyed: false }));
      expect(elements, `${name}, ${bucketName}`).toBe(
        formula(documentedElements.get(name) ?? "NaN")({ n: lengthOf(bucket) }),
      );
    }
  }
});
