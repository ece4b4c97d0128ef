import fc from "fast-check";
import { expect, test } from "vitest";
import type { Job } from "./job.ts";
import { batchPartOf, everyRankAxis, meshGroups, meshOf, numBatchParts, placeOf, replicasAxisOf } from "./mesh.ts";

const jobOf = (data: number, expert: number, tensor: number, shards = "none"): Job =>
  ({
    ranks: data * expert * tensor,
    mesh: { expert, tensor },
    compression: { kind: "identity" },
    optimizer: { kind: "sgd" },
    model: { kind: "gpt", experts: { shards } },
  }) as Job;
const jobs = fc
  .tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 3 }))
  .map(([data, expert, tensor]) => ({ data, expert, tensor, job: jobOf(data, expert, tensor) }));

test("each axis has every rank once, in groups of its size", () => {
  fc.assert(
    fc.property(jobs, ({ job }) => {
      const mesh = meshOf(job);
      for (const [axis, groups] of Object.entries(meshGroups(job))) {
        expect(groups.flat().toSorted((a, b) => a - b)).toEqual(Array.from({ length: job.ranks }, (_, rank) => rank));
        for (const group of groups) expect(group).toHaveLength(mesh[axis]!);
      }
    }),
  );
});

test("ranks that hold a part, and those over which it is averaged, are all ranks, each once", () => {
  fc.assert(
    fc.property(jobs, ({ job, expert, tensor }) => {
      const [mesh, groups] = [meshOf(job), meshGroups(job)];
      const axes = [...(expert > 1 ? ["expert"] : []), ...(tensor > 1 ? ["tensor"] : [])];
      for (const axis of axes) {
        const replicas = replicasAxisOf({ sharding: () => [{ axis, dim: 0 }], mesh })("w");
        expect(mesh[axis]! * mesh[replicas]!).toBe(job.ranks);
        for (const group of groups[replicas]!)
          expect(new Set(group.map((rank) => placeOf(job, rank)[axis])).size).toBe(1);
      }
      const every = replicasAxisOf({ sharding: () => [], mesh })("w");
      expect(every).toBe(everyRankAxis(mesh));
      expect(mesh[every]).toBe(job.ranks);
    }),
  );
});

test("ranks with shards of experts lie along the product of both axes, with the shards of one expert adjacent", () => {
  fc.assert(
    fc.property(jobs, ({ data, expert, tensor }) => {
      const job = jobOf(data, expert, tensor, "split-before-gate");
      const mesh = meshOf(job);
      expect(mesh["expert-shards"]).toBe(tensor === 1 ? undefined : expert * tensor);
      if (tensor === 1) return;
      const shards = [...(expert > 1 ? [{ axis: "expert", dim: 0 }] : []), { axis: "tensor", dim: 2 }];
      const replicas = replicasAxisOf({ sharding: () => shards, mesh })("w");
      expect(mesh[replicas]).toBe(data);
      for (let rank = 0; rank < job.ranks; rank++) {
        const place = placeOf(job, rank);
        expect(place["expert-shards"]).toBe((place["expert"] ?? 0) * tensor + place["tensor"]!);
        for (const group of meshGroups(job)[replicas]!.filter((ranks) => ranks.includes(rank)))
          for (const other of group) expect(placeOf(job, other)["expert-shards"]).toBe(place["expert-shards"]);
      }
    }),
  );
});

test("ranks with one coordinate along tensor split the batch, and the others have the same parts", () => {
  fc.assert(
    fc.property(jobs, ({ job, tensor }) => {
      const parts = Array.from({ length: job.ranks }, (_, rank) => batchPartOf(job, rank));
      for (const { worldSize } of parts) expect(worldSize).toBe(numBatchParts(job));
      const counts = Map.groupBy(parts, ({ rank }) => rank);
      expect([...counts.keys()].toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: job.ranks / tensor }, (_, part) => part),
      );
      for (const same of counts.values()) expect(same).toHaveLength(tensor);
      // Ranks of the tensor axis are adjacent, because they exchange activations.
      parts.forEach(({ rank: part }, rank) => expect(part).toBe(Math.floor(rank / tensor)));
    }),
  );
});

test("eight ranks, two along each axis", () => {
  expect(meshGroups(jobOf(2, 2, 2))).toEqual({
    data: [
      [0, 2, 4, 6],
      [1, 3, 5, 7],
    ],
    "expert-replicas": [
      [0, 1, 4, 5],
      [2, 3, 6, 7],
    ],
    expert: [
      [0, 2],
      [1, 3],
      [4, 6],
      [5, 7],
    ],
    tensor: [
      [0, 1],
      [2, 3],
      [4, 5],
      [6, 7],
    ],
    world: [[0, 1, 2, 3, 4, 5, 6, 7]],
  });
});
