import fc from "fast-check";
import { expect, test } from "vitest";
import type { Job } from "./job.ts";
import { batchPartOf, everyRankAxis, meshGroups, meshOf, numBatchParts, placeOf, replicasAxisOf } from "./mesh.ts";

const jobOf = (data: number, expert: number, tensor: number): Job =>
  ({
    ranks: data * expert * tensor,
    mesh: { expert, tensor },
    compression: { kind: "identity" },
    optimizer: { kind: "sgd" },
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

test("ranks that hold a part, and those along which it is averaged, are all ranks, each once", () => {
  fc.assert(
    fc.property(jobs, ({ job, expert, tensor }) => {
      const [mesh, groups] = [meshOf(job), meshGroups(job)];
      const axes = [...(expert > 1 ? ["expert"] : []), ...(tensor > 1 ? ["tensor"] : [])];
      for (const axis of axes) {
        const replicas = replicasAxisOf({ sharding: () => ({ axis, dim: 0 }), mesh })("w");
        expect(mesh[axis]! * mesh[replicas]!).toBe(job.ranks);
        for (const group of groups[replicas]!)
          expect(new Set(group.map((rank) => placeOf(job, rank)[axis])).size).toBe(1);
      }
      const every = replicasAxisOf({ sharding: () => undefined, mesh })("w");
      expect(every).toBe(everyRankAxis(mesh));
      expect(mesh[every]).toBe(job.ranks);
    }),
  );
});

test("ranks of one place along tensor share the batch out, and the others of it have the same part", () => {
  fc.assert(
    fc.property(jobs, ({ job, tensor }) => {
      const parts = Array.from({ length: job.ranks }, (_, rank) => batchPartOf(job, rank));
      for (const { worldSize } of parts) expect(worldSize).toBe(numBatchParts(job));
      const counts = Map.groupBy(parts, ({ rank }) => rank);
      expect([...counts.keys()].toSorted((a, b) => a - b)).toEqual(
        Array.from({ length: job.ranks / tensor }, (_, part) => part),
      );
      for (const same of counts.values()) expect(same).toHaveLength(tensor);
      // Neighbours: they send each other activations.
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
