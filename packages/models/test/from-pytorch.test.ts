import { readFileSync } from "node:fs";
import * as core from "@skein/tensor-core";
import { assertClose } from "@skein/testing";
import { describe, expect, test } from "vitest";
import * as models from "../src/index.ts";
import recorded from "./from-pytorch.json" with { type: "json" };

interface Recorded {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

const { results, inputs } = recorded as unknown as {
  results: Record<string, Recorded[]>;
  inputs: Record<string, Recorded>;
};
const page = readFileSync(new URL("../../../docs/guides/from-pytorch.md", import.meta.url), "utf8");

/** Rows of the tables of docs/guides/from-pytorch.md, in one section per heading. */
const sections = page
  .split("\n## ")
  .slice(1)
  .map((part) => ({
    heading: part.slice(0, part.indexOf("\n")),
    rows: [...part.matchAll(/^\| `(.*?)` \| `(.*?)` \| .*$/gm)].map(([, torch, skein]) => ({
      torch: torch!,
      skein: skein!,
    })),
    // The separator line and the line of column names are not counted.
    numLines: [...part.matchAll(/^\| /gm)].length - 2,
  }))
  .filter(({ rows }) => rows.length > 0);

const backend = core.referenceBackend();
const named = (name: string): core.NdArray => {
  const { dtype, shape, values } = inputs[name]!;
  return core.NdArray.from(values, shape, dtype as core.DType);
};
const arrays = {
  ...Object.fromEntries(Object.keys(inputs).map((name) => [name, named(name)])),
  params: named("x"),
  batch: named("y"),
  key: core.randomKey(7),
};

/** Runs the code of the second column. All exports of the two packages, and the inputs by their names, are in scope. */
const run = async (code: string, others: Record<string, unknown> = {}): Promise<core.NdArray[]> => {
  const traced = (own: Record<string, core.Tensor>): core.Tensor[] => {
    const names: Record<string, unknown> = { ...core, ...models, backend, ...others, ...own };
    // The evaluated code comes from docs/guides/from-pytorch.md.
    const value: unknown = new Function(...Object.keys(names), `"use strict"; return (${code});`)(
      ...Object.values(names),
    );
    return core
      .flattenTree<core.Tensor>(typeof value === "object" ? (value as core.Tensor) : [])
      .leaves.filter((leaf) => leaf instanceof core.Tensor);
  };
  return (await core.evaluate(traced as never, backend)(arrays as never)) as unknown as core.NdArray[];
};

test("parses every line of the page's tables", () => {
  expect(sections.length).toBe(9);
  for (const { heading, rows, numLines } of sections) expect([heading, rows.length]).toEqual([heading, numLines]);
  const compared = sections
    .filter(({ heading }) => heading !== "Programs")
    .flatMap(({ rows }) => rows.map(({ torch }) => torch));
  expect(Object.keys(results).toSorted()).toEqual(compared.toSorted());
});

describe.each(sections.filter(({ heading }) => heading !== "Programs"))("$heading: PyTorch's results", ({ rows }) => {
  test.each(rows)("$torch", async ({ torch, skein }) => {
    const leaves = await run(skein);
    const wanted = results[torch]!;
    expect(leaves.length).toBe(wanted.length);
    leaves.forEach((leaf, i) => {
      const { shape, values } = wanted[i]!;
      expect(leaf.shape).toEqual(shape);
      assertClose(leaf, { spec: leaf, data: values }, skein, { absolute: 2e-5, relative: 1e-5 });
    });
  });
});

describe.each(sections.filter(({ heading }) => heading === "Programs"))(
  "$heading: code without a result to compare",
  ({ rows }) => {
    const loss = (params: core.Tensor, batch: core.Tensor): core.Tensor => core.mean(core.multiply(params, batch));
    test.each(rows)("$skein", async ({ skein }) => {
      for (const leaf of await run(skein, { loss, fn: core.relu }))
        expect(leaf.toNumbers().every(Number.isFinite)).toBe(true);
    });
  },
);
