import { createCpuBackend, type WasmBuild } from "@skein/cpu-kernels";
import type { Facts } from "@skein/collectives";
import { expect, test } from "vitest";
import type { Job } from "./job.ts";
import { rankFacts } from "./rank-facts.ts";

const job = { precision: { kind: "f32" } } as Job;
const factsOn = async (build: WasmBuild): Promise<Facts> =>
  rankFacts({ job, backend: "cpu", dataDigest: undefined }, await createCpuBackend({ build }));

test("ranks that run one build have the same facts, and fused multiply-add is told from products that are rounded", async () => {
  const [relaxed, again, scalar] = [await factsOn("relaxed"), await factsOn("relaxed"), await factsOn("scalar")];
  expect(again).toEqual(relaxed);
  expect(Object.keys(relaxed).filter((name) => relaxed[name] !== scalar[name])).toEqual([
    "arithmetic (a digest of what a small product gives)",
  ]);
});

test("precision and the user's own samples are facts", async () => {
  const mixed = { precision: { kind: "mixed-f16", initialScale: 1, growthInterval: 2 } } as Job;
  const facts = await rankFacts({ job: mixed, backend: "cpu", dataDigest: "0123" }, await createCpuBackend());
  expect(facts["precision"]).toMatch(/mixed-f16/);
  expect(Object.values(facts)).toContain("0123");
});
