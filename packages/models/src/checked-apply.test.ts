import { ArgumentError, type Tensor, trace } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { checkedApply } from "./checked-apply.ts";
import { labelledModel } from "./model.ts";
import { rowLossModel } from "./row-loss-model.ts";

const inputs = { dtype: "f32", shape: [4, 3] } as unknown as Tensor;
const batch = { inputs, labels: { dtype: "i32", shape: [4] } as unknown as Tensor };

/** Return values of a faulty `apply`, with the errors that they cause. */
const faults: readonly (readonly [name: string, apply: (x: Tensor) => unknown, says: RegExp])[] = [
  ["nothing", () => undefined, /^apply returned nothing, but must return \[logits, state\]; a function body in braces/],
  [
    "the tensor alone",
    (x) => x,
    /^apply returned the tensor f32\[4, 3\] alone, but must return \[logits, state\]; return/,
  ],
  ["a promise", async (x) => [x, {}], /^apply returned a Promise, .*; it is traced, which cannot wait: remove async/],
  ["a rejected promise", async () => Promise.reject(new Error("no")), /^apply returned a Promise/],
  ["logits without state", (x) => [x], /^apply returned a list of 1: /],
  ["an undefined state", (x) => [x, undefined], /^apply returned a list of 2: /],
  ["numbers", () => [[1, 2], {}], /^apply returned a list of 2: /],
  ["an object", (x) => ({ logits: x, state: {} }), /^apply returned \{.*, but must return \[logits, state\]/],
];

test.each(faults)("loss, evaluate and apply reject an apply that returns %s", (_, apply, says) => {
  const model = labelledModel<object, object>({
    init: () => ({ params: {}, state: {} }),
    apply: ((_params: unknown, _state: unknown, x: Tensor) => apply(x)) as never,
  });
  const calls = [
    (own: typeof batch) => model.loss({}, {}, own, { train: true })[0],
    (own: typeof batch) => model.evaluate({}, {}, own).lossSum,
    (own: typeof batch) => model.apply({}, {}, own.inputs, { train: false })[0],
  ];
  for (const call of calls) {
    expect(() => trace(call, [batch])).toThrow(ArgumentError);
    expect(() => trace(call, [batch])).toThrow(says);
  }
});

test("the stack of the error begins at the creation of the model, since the faulty function has returned", () => {
  const makeModel = () =>
    rowLossModel<object, object, { inputs: Tensor }, Tensor>({
      init: () => ({ params: {}, state: {} }),
      apply: () => undefined as never,
      losses: (outputs) => outputs,
    });
  const model = makeModel();
  let error: unknown;
  try {
    trace((own: { inputs: Tensor }) => model.loss({}, {}, own, { train: true })[0], [{ inputs }]);
  } catch (caught) {
    error = caught;
  }
  expect(error).toBeInstanceOf(ArgumentError);
  const { message, stack } = error as ArgumentError;
  expect(message).toContain("must return [outputs, state]");
  expect(stack).toContain(message);
  expect(stack).toMatch(/at makeModel \(.*checked-apply\.test\.ts/);
});

test("a valid pair is returned unchanged, and outputs may be any tree if no logits are required", () => {
  const pair = [{ a: 1 }, {}];
  expect(checkedApply(() => pair, "outputs")()).toBe(pair);
  expect(() => checkedApply(() => pair, "logits")()).toThrow("must return [logits, state]");
});
