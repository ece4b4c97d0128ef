import type { FusedInstruction, FusedParams, KernelNode } from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";
import { opcodes } from "./fused-opcode.ts";
import { fusedProgram } from "./fused-program.ts";

const step = (op: string, ...args: number[]): FusedInstruction => ({ op, args, dtype: "f32", params: {} });
const number = (value: number): FusedInstruction => ({ op: "constant", args: [], dtype: "f32", params: { value } });

const node = (
  numInputs: number,
  instructions: readonly FusedInstruction[],
  results: readonly number[],
  shape: readonly number[] = [100],
  views: readonly (readonly number[])[] = [],
): KernelNode<FusedParams> => ({
  op: "fused",
  inputs: Array.from({ length: numInputs }, () => ({ dtype: "f32", shape })),
  outputs: results.map(() => ({ dtype: "f32", shape })),
  params: {
    shape,
    views: Array.from({ length: numInputs }, (_, i) => ({ strides: views[i] ?? [1] })),
    instructions,
    results,
  } satisfies FusedParams,
});

const nameOf = new Map(Object.entries(opcodes).map(([name, number]) => [number, name]));

/** Decodes the words of a program: micro-operations, their slots, and whether each output is written in place. */
const decode = (source: KernelNode<FusedParams>): { ops: string[]; slots: number[]; direct: boolean[] } => {
  const { words } = fusedProgram(source);
  const [, outputs, constants, micros] = words;
  const outputWords = words[9]! + constants!;
  const code = outputWords + 3 * outputs!;
  const at = (i: number, field: number): number => words[code + 6 * i + field]!;
  const indices = Array.from({ length: micros! }, (_, i) => i);
  return {
    ops: indices.map((i) => nameOf.get(at(i, 0))!),
    slots: indices.map((i) => at(i, 5)),
    direct: Array.from({ length: outputs! }, (_, i) => words[outputWords + 3 * i + 2] === 1),
  };
};

describe("multiply-add", () => {
  test("joins a product that only one sum reads", () => {
    expect(decode(node(3, [step("multiply", 0, 1), step("add", 3, 2)], [4])).ops).toEqual(["madd"]);
    expect(decode(node(3, [step("multiply", 0, 1), step("subtract", 2, 3)], [4])).ops).toEqual(["nmadd"]);
    expect(decode(node(3, [step("multiply", 0, 1), step("subtract", 3, 2)], [4])).ops).toEqual(["msub"]);
  });

  test("keeps a product that other instructions read or that is a result", () => {
    expect(decode(node(2, [step("multiply", 0, 1), step("add", 2, 2)], [3])).ops).toEqual(["multiply", "add"]);
    expect(decode(node(2, [step("multiply", 0, 1), step("add", 2, 0)], [2, 3])).ops).toEqual(["multiply", "add"]);
  });
});

describe("outputs", () => {
  test("are written directly to their memory", () => {
    expect(decode(node(2, [step("exp", 0), step("add", 2, 1)], [2, 3])).direct).toEqual([true, true]);
  });

  // Result 4 may reuse the memory of input 0, which instruction 0 reads last. After instruction 0 has been merged into
  // the sum, the read of input 0 happens after the write of result 4.
  test("are delayed if joining moved the last read of an input after them", () => {
    const source = node(3, [step("multiply", 0, 1), step("exp", 2), step("add", 3, 4)], [4, 5]);
    expect(decode(source).ops).toEqual(["exp", "madd"]);
    expect(decode(source).direct).toEqual([false, true]);
  });

  test("are delayed if a result only renames an input", () => {
    expect(decode(node(2, [step("stop-gradient", 0), step("exp", 1), step("add", 2, 3)], [3, 4])).direct).toEqual([
      false,
      true,
    ]);
  });

  test("write a result in place once if the node returns it twice", () => {
    expect(decode(node(1, [step("exp", 0)], [1, 1])).direct).toEqual([true, false]);
  });

  test("copy an operand that is a result", () => {
    expect(decode(node(1, [number(2)], [0, 1])).ops).toEqual(["copy", "copy"]);
  });
});

test("need one slot for a chain of any length", () => {
  const chain = Array.from({ length: 20 }, (_, i) => step("exp", i));
  const { slots } = decode(node(1, chain, [20]));
  expect(new Set(slots)).toEqual(new Set([0, -1]));
});

test("drop instructions without a use", () => {
  expect(decode(node(1, [step("exp", 0), step("log", 0)], [2])).ops).toEqual(["log"]);
});

describe("extremes", () => {
  test("take one instruction with a constant that is not zero or NaN", () => {
    const opsWith = (bound: number): string[] =>
      decode(node(1, [number(bound), step("maximum", 0, 1), step("minimum", 1, 2)], [3])).ops;
    expect(opsWith(0.5)).toEqual(["pmaximum", "pminimum"]);
    expect(opsWith(-Infinity)).toEqual(["pmaximum", "pminimum"]);
    for (const bound of [0, -0, NaN]) expect(opsWith(bound)).toEqual(["maximum", "minimum"]);
    expect(decode(node(2, [step("maximum", 0, 1)], [2])).ops).toEqual(["maximum"]);
  });
});

describe("casts to bytes", () => {
  const toByte = (arg: number): FusedInstruction => ({ op: "cast", args: [arg], dtype: "u8", params: {} });
  const opsTo = (
    dtypes: readonly ("f32" | "u8")[],
    instructions: readonly FusedInstruction[],
    results: readonly number[],
  ): string[] => {
    const source = node(1, instructions, results);
    return decode({ ...source, outputs: dtypes.map((dtype) => ({ dtype, shape: [100] })) }).ops;
  };

  test("move to the store if only one output reads them", () => {
    expect(opsTo(["u8"], [step("exp", 0), toByte(1)], [2])).toEqual(["exp"]);
    expect(opsTo(["f32", "u8"], [step("exp", 0), toByte(1)], [1, 2])).toEqual(["exp"]);
  });

  test("stay if other instructions read them, or if nothing else would be computed", () => {
    expect(opsTo(["u8", "u8"], [step("exp", 0), toByte(1)], [2, 2])).toEqual(["exp", "toU8"]);
    expect(opsTo(["u8"], [toByte(0)], [1])).toEqual(["toU8"]);
  });
});
