import { createCpuBackend, type WasmBuild } from "@skein/cpu-kernels";
import type { Facts } from "@skein/collectives";
import type { Job } from "@skein/job/node";
import type { DataSet } from "@skein/step/node";
import { expect, test } from "vitest";
import type { EncodedRecords, Records } from "@skein/data";
import { rankFacts } from "./rank-facts.ts";

const job = { precision: { kind: "f32" } } as Job;
const data = { train: { count: 0, fields: {} } } as unknown as DataSet<Records>;
const factsOn = async (build: WasmBuild): Promise<Facts> =>
  rankFacts({ job, data, backend: "cpu", dataDigest: undefined }, await createCpuBackend({ build }));

test("ranks that run one build have the same facts, and fused multiply-add is distinguished from rounded products", async () => {
  const [relaxed, again, scalar] = [await factsOn("relaxed"), await factsOn("relaxed"), await factsOn("scalar")];
  expect(again).toEqual(relaxed);
  expect(Object.keys(relaxed).filter((name) => relaxed[name] !== scalar[name])).toEqual([
    "arithmetic (a digest of a small product)",
  ]);
});

test("precision, the user's own samples and what decodes them are facts", async () => {
  const mixed = { precision: { kind: "mixed-f16", initialScale: 1, growthInterval: 2 } } as Job;
  const images = { decoder: "sharp 1.2.3" };
  const encoded = { train: { count: 0, fields: {}, images } } as unknown as DataSet<EncodedRecords>;
  const facts = await rankFacts(
    { job: mixed, data: encoded, backend: "cpu", dataDigest: "0123" },
    await createCpuBackend(),
  );
  expect(facts["precision"]).toMatch(/mixed-f16/);
  expect(Object.values(facts)).toEqual(expect.arrayContaining(["0123", "sharp 1.2.3"]));
});
