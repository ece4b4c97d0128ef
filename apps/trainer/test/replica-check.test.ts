import { createCpuBackend } from "@skein/cpu-kernels";
import { type DeviceState, findDrift, replicaCheck } from "@skein/step/node";
import { type Backend, type Communicator, type DeviceArray, NdArray } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hasAdapter } from "./adapter.ts";
import { type BackendName, openWebGpu } from "../src/backend/backend.ts";

/** Returns the communicators of ranks in one thread. An exchange completes when each rank has contributed a text. */
const meeting = (worldSize: number): Communicator[] => {
  const rounds: { readonly texts: string[]; readonly all: PromiseWithResolvers<readonly string[]> }[] = [];
  const nobody = (): never => {
    throw new Error("only texts are exchanged here");
  };
  return Array.from({ length: worldSize }, (_, rank) => {
    let round = 0;
    return {
      rank,
      worldSize,
      members: Array.from({ length: worldSize }, (__, other) => other),
      exchangeTexts: (text) => {
        const { texts, all } = (rounds[round++] ??= { texts: [], all: Promise.withResolvers() });
        texts[rank] = text;
        if (texts.filter((one) => one !== undefined).length === worldSize) all.resolve(texts);
        return all.promise;
      },
      start: nobody,
      wait: nobody,
      split: nobody,
      bytesSent: () => 0,
    };
  });
};

const open: { readonly [name in BackendName]: () => Promise<Backend & { close?: () => void }> } = {
  cpu: () => createCpuBackend(),
  webgpu: () => openWebGpu(),
};

/**
 * Returns the report of each rank on states that are equal except for their private values and at most one flipped bit.
 * @param numParts Number of shards of the weight. Consecutive ranks have different shards.
 */
const compare = async (
  name: BackendName,
  worldSize: number,
  flipped?: { readonly rank: number; readonly bit: number; readonly tensor?: "weight" | "momentum" | "residual" },
  numParts = 1,
): Promise<string[]> => {
  const backend = await open[name]();
  const stateOf = (rank: number): DeviceState => {
    const matrix = (name: "weight" | "momentum" | "residual"): DeviceArray => {
      const array = NdArray.from(
        Array.from({ length: 65 }, (_, i) => Math.sin(i + (rank % numParts))),
        [13, 5],
      );
      if (flipped?.rank === rank && (flipped.tensor ?? "weight") === name)
        array.bytes()[flipped.bit >> 3]! ^= 1 << (flipped.bit & 7);
      return backend.upload(array);
    };
    return {
      params: { bias: backend.upload(NdArray.from([1, 2])), weight: matrix("weight") },
      model: { mean: backend.upload(NdArray.scalar(3)) },
      optimizer: [{ momentum: { weight: matrix("momentum") } }],
      average: {},
      lossScale: {},
      residuals: [matrix("residual")],
      pending: [[backend.upload(NdArray.scalar(rank))]],
      due: backend.upload(NdArray.scalar(rank, "u32")),
      key: backend.upload(NdArray.from([1, 2], [2], "u32")),
      step: backend.upload(NdArray.scalar(40, "u32")),
    };
  };
  const answers = await Promise.all(
    meeting(worldSize).map((world) =>
      replicaCheck(
        backend,
        world,
        {
          sharding: (path) => (numParts > 1 && path === "weight" ? [{ axis: "tensor", dim: 1 }] : []),
          mesh: {},
          zero: 0,
        },
        Array.from({ length: worldSize }, (_, rank) => ({ tensor: rank % numParts })),
      )(stateOf(world.rank), 40).then(
        () => "the same",
        (error: { code: string; kind: string; message: string }) => `${error.kind} ${error.code} ${error.message}`,
      ),
    ),
  );
  backend.close?.();
  return answers;
};

describe.each<BackendName>(["cpu", "webgpu"])("replicas on %s", (name) => {
  test.skipIf(name === "webgpu" && !hasAdapter)(
    "that are equal continue; one flipped bit is found, wherever it is, and named on every rank",
    async () => {
      expect(await compare(name, 2)).toEqual(["the same", "the same"]);
      for (const bit of [0, 65 * 32 - 1])
        for (const answer of await compare(name, 3, { rank: 1, bit }))
          expect(answer).toMatch(
            /^environment replicas-differ step 40: params\.weight on rank 1 differs from ranks 0, 2; replicas must hold the same bits .* resume from the last checkpoint/,
          );
    },
  );
});

test("the optimizer's state is compared; private values of a rank are not", async () => {
  for (const bit of [0, 65 * 32 - 1])
    for (const answer of await compare("cpu", 3, { rank: 2, bit, tensor: "momentum" }))
      expect(answer).toMatch(/step 40: optimizer\.0\.momentum\.weight on rank 2 differs from ranks 0, 1;/);
  expect(await compare("cpu", 2, { rank: 1, bit: 5, tensor: "residual" })).toEqual(["the same", "the same"]);
});

test("of a shard, the ranks that have the same one are compared", async () => {
  expect(await compare("cpu", 4, undefined, 2)).toEqual(Array.from({ length: 4 }, () => "the same"));
  for (const tensor of ["weight", "momentum"] as const)
    for (const answer of await compare("cpu", 4, { rank: 3, bit: 5, tensor }, 2))
      expect(answer).toMatch(/step 40: (params|optimizer\.0\.momentum)\.weight on rank 3 differs from rank 1;/);
});

test("without a majority, rank 0 is the reference", async () => {
  for (const answer of await compare("cpu", 2, { rank: 0, bit: 5 }))
    expect(answer).toMatch(/params\.weight on rank 1 differs from rank 0;/);
});

test("law: every tensor that differs is found, and no other; differing ranks hold something else than the majority, which is equal", () => {
  const digest = fc.constantFrom("a", "b", "c");
  fc.assert(
    fc.property(
      fc
        .integer({ min: 1, max: 4 })
        .chain((tensors) =>
          fc.array(fc.array(digest, { minLength: tensors, maxLength: tensors }), { minLength: 1, maxLength: 6 }),
        ),
      (digests) => {
        const tensors = digests[0]!.map((_, i) => `t${i}`);
        const drift = findDrift(tensors, digests);
        expect(drift.map(({ tensor }) => tensor)).toEqual(
          tensors.filter((_, i) => new Set(digests.map((own) => own[i])).size > 1),
        );
        for (const { tensor, majority, differing } of drift) {
          const held = (rank: number): string => digests[rank]![tensors.indexOf(tensor)]!;
          expect([...majority, ...differing].toSorted()).toEqual(digests.map((_, rank) => rank));
          expect(new Set(majority.map(held)).size).toBe(1);
          for (const rank of differing) {
            expect(held(rank)).not.toBe(held(majority[0]!));
            expect(digests.filter((own) => own[tensors.indexOf(tensor)] === held(rank)).length).toBeLessThanOrEqual(
              majority.length,
            );
          }
        }
      },
    ),
  );
});
