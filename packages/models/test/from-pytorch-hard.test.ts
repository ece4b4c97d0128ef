import { readFileSync } from "node:fs";
import * as core from "@skein/tensor-core";
import { assertClose } from "@skein/testing";
import { describe, expect, test } from "vitest";
import recorded from "./from-pytorch-hard.json" with { type: "json" };
import plain from "./from-pytorch.json" with { type: "json" };

interface Recorded {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly values: readonly (number | string)[];
}

interface Row {
  readonly values: readonly Recorded[];
  readonly gradients?: Readonly<Record<string, Recorded>>;
}

const page = readFileSync(new URL("../../../docs/guides/from-pytorch.md", import.meta.url), "utf8");
const skeinOf = new Map(
  [...page.matchAll(/^\| `(.*?)` \| `(.*?)` \| .*$/gm)].map(([, torch, skein]) => [torch!, skein!]),
);
const hard = recorded.hard as unknown as Record<
  string,
  { inputs: Record<string, Recorded>; rows: Record<string, Row> }
>;

const arrayOf = ({ dtype, shape, values }: Recorded): core.NdArray =>
  core.NdArray.from(values.map(Number), shape, dtype as core.DType);

const backend = core.referenceBackend();
const weightsOf = (leaf: core.Tensor): core.Tensor => {
  const entries = [1, -2, 0.5];
  return core.constant(
    Array.from({ length: core.elementCount(leaf.shape) }, (_, i) => entries[i % 3]!),
    "f32",
    leaf.shape,
  );
};

/**
 * Returns the value of a row of docs/guides/from-pytorch.md, followed by the gradients of the given inputs, with fixed
 * weights as cotangents.
 */
const run = async (
  code: string,
  inputs: Readonly<Record<string, core.NdArray>>,
  names: readonly string[],
): Promise<core.NdArray[]> => {
  const traced = (own: Readonly<Record<string, core.Tensor>>): core.Tensor[] => {
    const leavesOf = (values: Readonly<Record<string, core.Tensor>>): core.Tensor[] => {
      const scope: Record<string, unknown> = { ...core, ...values };
      // The evaluated code comes from docs/guides/from-pytorch.md.
      const value = new Function(...Object.keys(scope), `"use strict"; return (${code});`)(...Object.values(scope));
      return core.flattenTree<core.Tensor>(value as core.Tensor).leaves;
    };
    const values = leavesOf(own);
    if (names.length === 0) return values;
    const { value, pullback } = core.vjp(
      (wanted: readonly core.Tensor[]) =>
        leavesOf({ ...own, ...Object.fromEntries(names.map((name, i) => [name, wanted[i]!])) }).filter(
          ({ dtype }) => dtype === "f32",
        ),
      names.map((name) => own[name]!),
    );
    return [...values, ...pullback(value.map(weightsOf))];
  };
  return (await core.evaluate(traced as never, backend)(inputs as never)) as unknown as core.NdArray[];
};

/**
 * Rows whose results intentionally differ from PyTorch at the listed points; see the section on NaN and infinities of
 * docs/guides/from-pytorch.md.
 */
const differing: Readonly<Record<string, readonly string[]>> = {
  zeros: [],
  ties: [],
  infinities: ["x.int()", "F.gelu(x)", "x.var(1)"],
  NaN: [
    "x.abs()",
    "x.clamp(-1, 1)",
    "x.int()",
    "F.elu(x, 1.5)",
    "F.cross_entropy(logits, labelsOrNot)",
    'F.cross_entropy(logits, labelsOrNot, label_smoothing=0.1, reduction="none")',
    "F.l1_loss(x, y)",
  ],
};

describe.each(Object.entries(hard))("PyTorch's values and gradients at %s", (name, { inputs, rows }) => {
  const arrays = Object.fromEntries(
    Object.entries({ ...(plain.inputs as Record<string, Recorded>), ...inputs }).map(([key, value]) => [
      key,
      arrayOf(value),
    ]),
  );
  test.each(Object.keys(rows))("%s", async (torch) => {
    const { values, gradients = {} } = rows[torch]!;
    const names = Object.keys(gradients);
    const skein = skeinOf.get(torch)!;
    const found = await run(skein, arrays, names);
    expect(found).toHaveLength(values.length + names.length);
    const check = (i: number, wanted: Recorded, what: string): void => {
      expect(found[i]!.shape, what).toEqual(wanted.shape);
      const data = wanted.values.map(Number);
      assertClose(found[i]!, { spec: found[i]!, data }, what, { absolute: 2e-5, relative: 1e-5 });
    };
    const compare = (): void => {
      values.forEach((wanted, i) => check(i, wanted, `value ${i} of ${skein}`));
      names.forEach((input, i) => check(values.length + i, gradients[input]!, `gradient of ${input} through ${skein}`));
    };
    if (differing[name]!.includes(torch)) expect(compare).toThrow(/the reference says/);
    else compare();
  });
});
