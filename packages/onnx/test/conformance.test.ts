import { type DType, evaluate, type NdArray, referenceBackend, type Tensor } from "@skein/tensor-core";
import {
  composedCases,
  conformanceCases,
  type ConformanceCase,
  defaultTolerance,
  firstDifference,
} from "@skein/testing";
import { describe, expect, test } from "vitest";
import { exportOnnx, OnnxError } from "../src/index.ts";
import { emitters } from "../src/operators/table.ts";
import { refusalOf, refusals } from "./refusals.ts";
import { runOnnx } from "./run-onnx.ts";

const listOf = (results: Tensor | readonly Tensor[]): readonly Tensor[] =>
  Array.isArray(results) ? (results as readonly Tensor[]) : [results as Tensor];

const exported = ({ fn, inputs }: ConformanceCase): Uint8Array =>
  exportOnnx({
    fn: (_: object, given) =>
      Object.fromEntries(listOf(fn(...inputs.map((_, i) => given[`in${i}`]!))).map((each, i) => [`out${i}`, each])),
    weights: {},
    inputs: Object.fromEntries(inputs.map(({ dtype, shape }, i) => [`in${i}`, { dtype, shape }])),
  });

/** Returns whether a dtype is a 16-bit float. The runner has no host type for 16-bit floats, and models are f32. */
const is16Bit = (dtype: DType): boolean => dtype === "f16" || dtype === "bf16";

/** Matches the names of cases that onnxruntime does not support: images without channels. */
const beyondRuntime = /^no channels/;

/** Returns whether a case sorts values that include NaN, because ONNX does not define the position of NaN. */
const openOrder = ({ op, name }: ConformanceCase): boolean =>
  ["top-k", "sort", "argsort"].includes(op) && name.includes("NaN");

/**
 * Matches the names of cases with sums of many elements that have the same sign. onnxruntime adds these elements
 * sequentially.
 */
const longSums = /of one sign|many rows|wide rows/;

/** Matches the names of cases with rows far from zero, for which onnxruntime rounds the mean to f32. */
const farFromZero = /far from zero/;

const cases = [...conformanceCases, ...composedCases].filter(
  (one) => !one.inputs.some(({ dtype }) => is16Bit(dtype)) && !beyondRuntime.test(one.name) && !openOrder(one),
);

const reference = referenceBackend();

/** Entries of `refusals` that at least one case needs. */
const needed = new Set<(typeof refusals)[number]>();

/**
 * Returns the expected result of a case, and onnxruntime's result of the exported model; undefined if the case is
 * rejected and `refusals` allows the rejection.
 */
const compared = async (
  one: ConformanceCase,
): Promise<{ readonly ours: readonly NdArray[]; readonly theirs: readonly NdArray[] } | undefined> => {
  let model: Uint8Array;
  try {
    model = exported(one);
  } catch (error) {
    const refusal = error instanceof OnnxError ? refusalOf(one, error.message) : undefined;
    if (refusal === undefined) throw error;
    needed.add(refusal);
    return undefined;
  }
  const call = evaluate((...given: Tensor[]) => listOf(one.fn(...given)), reference) as unknown as (
    ...given: readonly NdArray[]
  ) => Promise<readonly NdArray[]>;
  const ours = await call(...one.inputs);
  if (ours.some(({ dtype }) => is16Bit(dtype))) return undefined;
  const theirs = await runOnnx(model, Object.fromEntries(one.inputs.map((array, i) => [`in${i}`, array])));
  return { ours, theirs: ours.map((_, i) => theirs[`out${i}`]!) };
};

describe("onnxruntime equals the reference", () => {
  const ran = new Set<string>();

  test.each([...Map.groupBy(cases, ({ op }) => op)])("%s", async (op, ofOperator) => {
    for (const one of ofOperator) {
      const both = await compared(one);
      if (both === undefined) continue;
      ran.add(op);
      const { absolute, relative } = one.tolerance ?? defaultTolerance.f32;
      const room = longSums.test(one.name) ? 1e-4 : 0;
      both.ours.forEach((array, i) => {
        const label = `${op}: ${one.name}, result ${i}`;
        expect([both.theirs[i]!.dtype, both.theirs[i]!.shape], label).toEqual([array.dtype, array.shape]);
        // onnxruntime's sigmoid is exact to seven digits after the decimal point
        const least = farFromZero.test(one.name) ? 3e-4 : op === "silu" ? 2e-6 : 1e-6;
        const tolerance =
          array.dtype === "f32"
            ? { absolute: Math.max(absolute, least), relative: Math.max(relative, 1e-5, room) }
            : { absolute: 0, relative: 0 };
        expect(firstDifference(both.theirs[i]!.toNumbers(), array.toNumbers(), tolerance), label).toBeUndefined();
      });
    }
  });

  test("exports all operators except the listed ones, and every entry of the list is needed", () => {
    expect(refusals.filter((refusal) => !needed.has(refusal)).map(({ op, why }) => `${op}: ${why}`)).toEqual([]);
  });

  test("covers every exported operator", () => {
    expect(
      [...emitters.keys()].filter((op) => !ran.has(op) && !["identity", "optimization-barrier"].includes(op)),
    ).toEqual([]);
  });
});
