import { frozenPaths } from "../src/building/frozen.ts";
import { parameterGroups } from "../src/building/parameter-groups.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { selectsParameter, namedParameters } from "@skein/job/node";

const specs = (...shape: number[]) => ({ dtype: "f32", shape });

/** Specs of parameters with the structure of a transformer. */
const params = {
  embedding: specs(20, 4),
  blocks: Array.from({ length: 12 }, () => ({
    norm: { gain: specs(4) },
    query: { weight: specs(4, 4), bias: specs(4) },
  })),
  head: { weight: specs(4, 20), bias: specs(20) },
};
const parameters = namedParameters(params);
const paths = parameters.map(({ path }) => path);
const selected = (pattern: string): string[] =>
  parameters.filter((parameter) => selectsParameter(pattern, parameter)).map(({ path }) => path);

describe("patterns of parameters", () => {
  test.each([
    ["head", ["head.bias", "head.weight"]],
    ["head.weight", ["head.weight"]],
    ["head/weight", ["head.weight"]],
    ["blocks.1", ["blocks.1.norm.gain", "blocks.1.query.bias", "blocks.1.query.weight"]],
    ["blocks.1.**", ["blocks.1.norm.gain", "blocks.1.query.bias", "blocks.1.query.weight"]],
    ["blocks.*.query.bias", paths.filter((path) => path.endsWith("query.bias"))],
    ["**.bias", paths.filter((path) => path.endsWith("bias"))],
    ["blocks.{9..11}.norm", ["blocks.9.norm.gain", "blocks.10.norm.gain", "blocks.11.norm.gain"]],
    ["**", paths],
    ["norms-and-biases", paths.filter((path) => /gain|bias/.test(path))],
    ["b", []],
    ["weight", []],
    ["blocks.1.query.weigh", []],
  ])("%s", (pattern, expected) => expect(selected(pattern).toSorted()).toEqual(expected.toSorted()));

  test("are rejected if they match nothing, with a suggestion", () => {
    const patterns = (pattern: string) => () =>
      parameterGroups({ rates: { [pattern]: 1 } }, params, { frozen: new Set() });
    expect(patterns("haed.**")).toThrow(
      'rates: "haed.**" matches none of the model\'s 39 parameters and no part of it; did you mean "head"?',
    );
    expect(patterns("blocks.12")).toThrow('did you mean "blocks.1"?');
    expect(patterns("model.layers.0.self_attn")).toThrow("its parts are blocks, embedding, head");
    expect(patterns("blocks.*.attention.**")).toThrow("the parts of blocks.* are norm, query");
    expect(patterns("blocks.0.query.scale")).toThrow('did you mean "blocks.0.query.bias"?');
    expect(patterns("blocks/0/attention/bias")).toThrow("the parts of blocks.0 are norm, query");
    expect(patterns("blocks.first")).toThrow("the parts of blocks are 0, 1, 2, 3, 4, 5, 6, 7, and 4 more");
    expect(patterns("**.attention")).toThrow("its parts are blocks, embedding, head");
  });
});

const anyPattern = fc.constantFrom("**", "head", "blocks", "blocks.*.query", "**.bias", "norms-and-biases", ...paths);

test("the last pattern that matches a parameter decides", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(anyPattern, fc.nat()), { minLength: 1, maxLength: 6 }), (entries) => {
      const patterns = Object.fromEntries(entries);
      const { rates } = parameterGroups({ rates: patterns }, params, { frozen: new Set() });
      for (const parameter of parameters) {
        const last = Object.entries(patterns).findLast(([pattern]) => selectsParameter(pattern, parameter));
        expect(rates.get(parameter.path)).toBe(last?.[1]);
      }
    }),
  );
});

test("a parameter is frozen unless the last pattern that matches it unfreezes it", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), anyPattern), { maxLength: 5 }), (entries) => {
      const freeze = ["blocks.0", ...entries.map(([takesBack, pattern]) => `${takesBack ? "!" : ""}${pattern}`)];
      const last = (parameter: (typeof parameters)[number]): string | undefined =>
        freeze.findLast((pattern) => selectsParameter(pattern.replace("!", ""), parameter));
      const expected = parameters.filter((parameter) => last(parameter)?.startsWith("!") === false);
      let frozen: ReadonlySet<string>;
      try {
        frozen = frozenPaths(freeze, params);
      } catch (error) {
        const rule =
          expected.length === parameters.length
            ? /nothing is left|unfreezes/
            : /unfreezes parameters that no earlier pattern/;
        expect(String(error)).toMatch(rule);
        return;
      }
      expect([...frozen].toSorted()).toEqual(expected.map(({ path }) => path).toSorted());
    }),
  );
});
