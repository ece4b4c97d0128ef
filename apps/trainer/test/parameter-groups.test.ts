import { checkJob } from "@skein/job/node";
import { mlp } from "@skein/models";
import { buildParts } from "@skein/step/node";
import { add, evaluate, mapTree, type NdArray, randomKey, referenceBackend, type Tensor } from "@skein/tensor-core";
import { leavesByPath } from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";
import { data } from "./points.ts";
import { jobHashOf } from "../src/preparation/job-hash.ts";

const base = {
  name: "groups",
  batch: 10,
  steps: 10,
  data: { kind: "program", digest: "0".repeat(64) },
  model: { kind: "program", digest: "0".repeat(64) },
  learningRate: { peak: 0.25 },
};

/**
 * Makes two updates of an optimizer with equal gradients. Returns the change of each parameter by the second update, by
 * path.
 */
const moves = async (settings: object): Promise<ReadonlyMap<string, number[]>> => {
  const job = checkJob({ ...base, ...settings } as never, { file: "test" });
  const { model, optimizer, frozen, mesh } = buildParts({
    job,
    model: mlp({ sizes: [2, 4, 3, 2] }) as never,
    totalSteps: 10,
    train: data.train,
  });
  expect(frozen.size).toBe(0);
  const result = await evaluate(
    (key: Tensor, other: Tensor) => {
      // Biases are initialized to zero, so 0.5 is added.
      const [params, gradients] = [key, other].map((own) =>
        mapTree(model.init(own).params, (x: Tensor) => add(x, 0.5)),
      );
      const first = optimizer.update(gradients, optimizer.init(params), { params, first: true });
      return optimizer.update(params, first[1], { params: gradients })[0];
    },
    referenceBackend(),
    { mesh },
  )(randomKey(1), randomKey(2));
  return new Map([...leavesByPath<NdArray>(result)].map(([path, array]) => [path, array.toNumbers()]));
};

const expectClose = (values: readonly number[] | undefined, expected: readonly number[]): void =>
  expected.forEach((value, i) => expect(values![i]).toBeCloseTo(value, 5));

const decaying = ["sgd", "momentum", "nesterov", "adamw", "soap", "muon", "shampoo", "eva-s", "lars", "lamb"];
const own = "layers.1.weight";

describe.each(["adam", ...decaying])("%s", (kind) => {
  test("moves parameters with a factor further by that factor, and no others", async () => {
    const [plain, other] = await Promise.all([
      moves({ optimizer: { kind } }),
      moves({ optimizer: { kind }, rates: { "**.bias": 0.5, "layers.{1..2}": 3, "layers.2": 1 } }),
    ]);
    for (const [path, values] of plain) {
      const factor = path.startsWith("layers.1") ? 3 : path === "layers.0.bias" ? 0.5 : 1;
      expectClose(
        other.get(path),
        values.map((value) => value * factor),
      );
    }
  });
});

describe.each(decaying)("weight decay of %s", (kind) => {
  const decayed = (weightDecay: number, weightDecays?: object) =>
    moves({ optimizer: { kind, weightDecay }, ...(weightDecays && { weightDecays }) });

  test("has a factor where the job sets one", async () => {
    const [plain, other, less, more] = await Promise.all([
      decayed(0.25),
      decayed(0.25, { [own]: 0.5, "layers.2.bias": 2 }),
      decayed(0.125, { "**": 1 }),
      decayed(0.5, { "**": 1 }),
    ]);
    for (const [path, values] of plain)
      expectClose(
        other.get(path),
        path === own ? less.get(path)! : path === "layers.2.bias" ? more.get(path)! : values,
      );
    expect(other.get(own)).not.toEqual(plain.get(own));
  });

  test("excludes norms and biases by default, or where the job says so", async () => {
    const [none, plain, spared] = await Promise.all([
      moves({ optimizer: { kind, weightDecay: 0 } }),
      decayed(0.25),
      decayed(0.25, { "norms-and-biases": 0 }),
    ]);
    const isSpared = ["adamw", "soap", "lars", "lamb"].includes(kind);
    for (const [path, values] of none) {
      if (!path.endsWith("bias")) continue;
      expect(spared.get(path)).toEqual(values);
      expect(plain.get(path)).toEqual(isSpared ? values : expect.not.arrayContaining(values));
    }
    expect(spared.get(own)).toEqual(plain.get(own));
    expect(spared.get(own)).not.toEqual(none.get(own));
  });
});

test("settings of parameters and labels must match a checkpoint", () => {
  const jobOf = (settings: object) =>
    checkJob({ ...base, optimizer: { kind: "sgd", weightDecay: 0.1 }, ...settings }, { file: "test" });
  const hashes = [
    {},
    { freeze: ["layers.0"] },
    { freeze: ["layers.1"] },
    { rates: { "layers.0": 2 } },
    { weightDecays: { "layers.0": 2 } },
    { labelSmoothing: 0.1 },
  ].map((settings) => jobHashOf(jobOf(settings)));
  expect(new Set(hashes).size).toBe(6);
  expect(jobHashOf({ ...jobOf({}), freeze: undefined, rates: undefined })).toBe(hashes[0]);
});

test("factors without effect are refused", async () => {
  const refused = async (settings: object, text: string): Promise<void> =>
    expect(moves(settings)).rejects.toThrow(text);
  const sgd = { kind: "sgd" };
  await refused(
    { optimizer: sgd, freeze: ["layers.0"], rates: { "layers.0.bias": 2 } },
    'rates: "layers.0.bias" matches 1 parameter, which is frozen, so 2 has no effect; remove it, or unfreeze the parameter',
  );
  await refused({ optimizer: { kind: "adam" }, weightDecays: { "**": 2 } }, "adam has no weight decay");
  await refused({ optimizer: sgd, weightDecays: { "**": 2 } }, "optimizer.weightDecay, which is 0");
  await refused({ optimizer: sgd, rates: { "**": 0 } }, '"rates.**" is 0, but must be above 0');
  await refused({ optimizer: sgd, rates: { "**": 2, 0: 1 } }, "write @(0)");
  await refused({ optimizer: sgd, rates: { "layer.0": 2 } }, 'did you mean "layers.0"?');
});
