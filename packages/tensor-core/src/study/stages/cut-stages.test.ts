import { describe, expect, test } from "vitest";
import {
  add,
  cast,
  checkpoint,
  customGradient,
  cutStages,
  foldIn,
  matmul,
  mean,
  mixedPrecision,
  multiply,
  NdArray,
  relu,
  reshape,
  rewriteSaved,
  sendReceive,
  sin,
  stageForward,
  stageOfRank,
  sum,
  tanh,
  tap,
  type Tensor,
  trace,
  transpose,
  uniform,
} from "../../index.ts";
import { type Loss, run, throughStages, whole } from "../../../test/cut-steps.ts";
import type { CutOptions } from "./cut-stages.ts";
import type { CutStep, Stage } from "./stage.ts";

const numbers = (shape: readonly number[], seed: number): NdArray =>
  NdArray.from(
    Array.from(
      { length: shape.reduce((product, size) => product * size, 1) },
      (_, i) => ((i * 7 + seed) % 11) / 8 - 0.5,
    ),
    shape,
  );
const args: [Record<string, NdArray>, ...NdArray[]] = [
  { a: numbers([4, 4], 1), b: numbers([4, 4], 2), c: numbers([4], 3) },
  numbers([3, 4], 5),
  NdArray.from([1, 2], [2], "u32"),
];

const cut = (loss: Loss, cuts: CutOptions["cuts"], options: Partial<CutOptions> = {}): CutStep =>
  cutStages(loss as never, args as never, { cuts, ...options });

const keptOf = ({ kept }: Stage): string[] => kept.map(({ from, index }) => `${from} ${index}`);

/** Expects that the results of all stages are bitwise identical to the results of the step without cuts. */
const expectSame = async (loss: Loss, step: CutStep, passes: CutOptions["passes"] = []): Promise<void> => {
  expect(await run(throughStages(step), args)).toEqual(await run(whole(loss), args, { passes }));
};

describe("cutStages", () => {
  test("gives a stage its own parameters and arguments, and lists shared ones", () => {
    const loss: Loss = ({ a, b }, x) => {
      const hidden = tap("hidden", tanh(matmul(x!, a!)));
      return [mean(matmul(matmul(hidden, b!), transpose(a!))), []];
    };
    const { stages, shared } = cut(loss, ["hidden"]);
    // Parameter c is unused: the first stage has c, and its gradient is zero.
    expect(stages.map(({ params, args: own }) => [params, own])).toEqual([
      [[0, 2], [0]],
      [[0, 1], []],
    ]);
    expect(shared).toEqual([{ leaf: 0, path: "a", stages: [0, 1] }]);
  });

  test("keeps each value of the backward pass once, and no value that can be rearranged", async () => {
    const loss: Loss = ({ a, b, c }, x) => {
      const first = relu(matmul(x!, transpose(a!)));
      const hidden = tap("hidden", first);
      const second = tanh(matmul(multiply(hidden, c!), b!));
      return [mean(multiply(second, reshape(second, [3, 4]))), []];
    };
    const step = cut(loss, ["hidden"]);
    // The outgoing value is the result of relu; the transposed and the broadcast parameter are recomputed from the
    // parameters.
    expect(step.stages.map(keptOf)).toEqual([
      ["args 0", "outgoing 0"],
      ["params 0", "params 1", "incoming 0", "saved 0", "saved 1"],
    ]);
    await expectSame(loss, step);
    const mixed = cut(loss, ["hidden"], { passes: [mixedPrecision] });
    // The f16 copies of parameters and arguments are recomputed.
    expect(keptOf(mixed.stages[0]!)).toEqual(["args 0", "outgoing 0"]);
    await expectSame(loss, mixed, [mixedPrecision]);
    const twice: Loss = ({ a, b }, x) => {
      const wide = sin(matmul(x!, a!));
      return [mean(tap("hidden", add(matmul(cast(cast(wide, "f16"), "f32"), b!), multiply(wide, wide)))), []];
    };
    // If the backward pass reads a value and its f16 copy, only the value is kept; also kept is the operand of the
    // sine.
    expect(keptOf(cut(twice, ["hidden"]).stages[0]!)).toEqual(["params 1", "args 0", "saved 0", "saved 1"]);
    await expectSame(twice, cut(twice, ["hidden"]));
  });

  test("keeps the codes of rewriteSaved instead of the encoded values", () => {
    const code = rewriteSaved({ encode: (x) => [cast(x, "bf16")], decode: ([x]) => cast(x!, "f32") });
    const loss: Loss = ({ a }, x) => [mean(tap("hidden", multiply(tanh(tanh(matmul(x!, a!))), 2))), []];
    const { forward, outgoing, kept } = cut(loss, ["hidden"], { passes: [code] }).stages[0]!;
    const saved = forward.outputs.slice(outgoing.length).map(({ node }) => forward.nodes[node]!.specs[0]!.dtype);
    expect(saved).toEqual(kept.filter(({ from }) => from === "saved").map(() => "bf16"));
    expect(saved).toHaveLength(2);
  });

  test("repeats a checkpoint in the backward pass of its own stage, from the first node on", async () => {
    // The derivative of the sine reads a recomputed value before it reads a cotangent.
    const block = (x: Tensor, w: Tensor): Tensor => sin(matmul(tanh(x), w));
    const loss: Loss = ({ a, b }, x) => {
      const hidden = tap("hidden", checkpoint(block)(x!, a!));
      return [mean(tap("late", checkpoint(block)(hidden, b!))), []];
    };
    for (const passes of [[], [mixedPrecision]]) {
      const step = cut(loss, ["hidden", "late"], { passes });
      expect(keptOf(step.stages[0]!).filter((one) => one.startsWith("saved"))).toEqual([]);
      await expectSame(loss, step, passes);
    }
  });

  test("prevents merges across a cut", async () => {
    const loss: Loss = ({ a }, x) => {
      const hidden = tap("hidden", reshape(matmul(x!, a!), [12]));
      return [mean(matmul(reshape(hidden, [3, 4]), a!)), []];
    };
    await expectSame(loss, cut(loss, ["hidden"], { passes: [mixedPrecision] }), [mixedPrecision]);
  });

  test("computes keys and masks in every stage, and further results where they belong", async () => {
    const loss: Loss = ({ a, c }, x, key) => {
      const drawn = uniform(foldIn(key!, 1), [4]);
      const hidden = tap("hidden", multiply(matmul(x!, a!), drawn));
      return [mean(multiply(hidden, drawn)), [sum(x!), key!, mean(hidden), sum(c!), drawn, mean(multiply(a!, a!))]];
    };
    const step = cut(loss, ["hidden"]);
    expect(step.stages.map(({ aux }) => aux)).toEqual([
      [0, 3, 5],
      [1, 2, 4],
    ]);
    await expectSame(loss, step);
  });

  test("lets a gradient flow to an argument that forward does not read", async () => {
    const scaled = customGradient(
      (x: Tensor, _w: Tensor) => tanh(x),
      ({ cotangents, args: [x, w] }) => [multiply(cotangents, sum(w)), multiply(w, mean(multiply(x, cotangents)))],
    );
    const loss: Loss = ({ a, b }, x) => [mean(scaled(tap("hidden", matmul(x!, a!)), b!)), []];
    const step = cut(loss, ["hidden"]);
    expect(step.stages[1]!.params).toEqual([1]);
    await expectSame(loss, step);
  });

  test("accepts cuts of several values, with separate cotangents even if they are equal", async () => {
    const loss: Loss = ({ a, b }, x) => {
      const [left, right] = [tap("left", matmul(x!, a!)), tap("right", matmul(x!, b!))];
      return [sum(add(left, right)), []];
    };
    const step = cut(loss, [["left", "right"]]);
    await expectSame(loss, step);
    const { backward, kept } = step.stages[0]!;
    expect(new Set(backward.inputs).size).toBe(kept.length + 2);
    const read = new Set(backward.nodes.flatMap(({ inputs }) => inputs.map(({ node }) => node)));
    expect(backward.inputs.slice(kept.length).every((id) => read.has(id))).toBe(true);
  });

  test("returns one stage without cuts; messages inside a stage stay in it", () => {
    const loss: Loss = ({ a }, x) => {
      sendReceive(x!, "data", [[0, 1]]);
      return [mean(matmul(tap("hidden", sendReceive(matmul(x!, a!), "data", [[1, 0]])), a!)), []];
    };
    const count = ({ nodes }: Stage["forward"]): number => nodes.filter(({ op }) => op === "send-receive").length;
    const options = { mesh: { data: 2 } };
    expect(cut(loss, [], options).stages.map((one) => [count(one.forward), count(one.backward)])).toEqual([[2, 1]]);
    expect(cut(loss, ["hidden"], options).stages.map((one) => [count(one.forward), count(one.backward)])).toEqual([
      [2, 1],
      [0, 0],
    ]);
  });

  const chain: Loss = ({ a, b }, x) => {
    const first = tap("first", matmul(x!, a!));
    const second = tap("second", tanh(matmul(first, b!)));
    return [mean(tap("third", add(second, first))), []];
  };

  test.each<[string, CutOptions["cuts"], RegExp]>([
    [
      "a name that nothing has",
      ["frist"],
      /no value is tapped as "frist"; did you mean "first"\?; tapped are "first", "second", "third": write tap\("frist", x\)/,
    ],
    ["a name in two cuts", ["first", "first"], /"first" is in two cuts; tap it again/],
    [
      "cuts in another order",
      ["third", "first"],
      /"first" \(optimization-barrier f32\[3, 4\]\) comes after the cut "first", but is read by .* which "third" depends on/,
    ],
    [
      "a value past a cut",
      ["second"],
      /"second" does not separate the stages: (?:"first"|optimization-barrier|identity|matmul).* is computed before it and read by add f32\[3, 4\] after it; tap that value/,
    ],
    [
      "a cut that is read two stages on",
      ["first", "second"],
      /"second" does not separate the stages: "first" .* read by add .* tap that value again, under another name/,
    ],
    ["no list", "first" as never, /its cuts are .*; name tapped values/],
    ["an empty cut", [[]], /its cuts are .*; name tapped values/],
  ])("rejects %s", (_, cuts, message) => {
    expect(() => cut(chain, cuts)).toThrow(message);
  });

  test("rejects an invalid loss, and wrong numbers of values for a stage", () => {
    expect(() => cut(((_: unknown, x: Tensor) => [x, []]) as never, [])).toThrow(/cutStages needs a scalar loss/);
    const step = cut(chain, []);
    const { stages } = step;
    expect(() =>
      trace((x: Tensor) => stageForward(stages[0]!, { params: [x], args: [x], incoming: [] }).outgoing, [args[1]!]),
    ).toThrow(/stageForward: 1 params were given to a stage that takes 3/);
    expect(() =>
      trace((x: Tensor) => [stageOfRank(step, "pipeline") && x], [args[1]!], { mesh: { pipeline: 2 } }),
    ).toThrow(/stageOfRank: axis "pipeline" has 2 ranks for 1 stages/);
  });
});
