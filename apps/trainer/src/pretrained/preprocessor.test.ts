import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkJob } from "../job/config.ts";
import type { Job } from "../job/job.ts";
import { preprocessorRemarks } from "./preprocessor.ts";
import { settlePretrained } from "./settle-pretrained.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-preprocessor-"));
  writeFileSync(join(folder, "config.json"), '{"model_type":"vit"}');
});
afterEach(() => rmSync(folder, { recursive: true }));

const say = (said: unknown): void => writeFileSync(join(folder, "preprocessor_config.json"), JSON.stringify(said));

const vit = { image_mean: [0.5, 0.4, 0.3], image_std: [0.2, 0.2, 0.1], size: { height: 224, width: 224 } };

const checked = (root: unknown): Job => checkJob(root, { file: "job.yaml" });

const job = (data: object = {}, model: object = {}): Job =>
  checked({
    name: "vit",
    batch: 2,
    steps: 1,
    data: { kind: "image-folder", folder: "images", size: 224, ...data },
    model: { kind: "pretrained", folder, ...model },
    optimizer: { kind: "sgd" },
    learningRate: { peak: 0.1 },
  });

const normaliseOf = ({ data }: Job): unknown => ("normalise" in data ? data.normalise : undefined);

test("images are normalised as the checkpoint says, and that is told", async () => {
  say(vit);
  const settled = await settlePretrained(job());
  expect(normaliseOf(settled)).toEqual({ mean: [0.5, 0.4, 0.3], std: [0.2, 0.2, 0.1] });
  expect(preprocessorRemarks(settled)).toEqual([
    "data.normalise: as preprocessor_config.json of model.folder says: mean 0.5, 0.4, 0.3, deviation 0.2, 0.2, 0.1",
  ]);
  // it is part of the job from then on, which is read again by threads and by who resumes
  expect(checked(JSON.parse(JSON.stringify(settled)))).toEqual(settled);
});

test("what the job says stays, and what differs is told", async () => {
  say({ ...vit, size: { shortest_edge: 256 }, crop_size: 224 });
  const own = { mean: [0], std: [1] };
  const settled = await settlePretrained(job({ normalise: own, size: [224, 160] }));
  expect(normaliseOf(settled)).toEqual(own);
  expect(preprocessorRemarks(settled)).toEqual([
    expect.stringMatching(/^data\.normalise: mean 0, deviation 1, but the model was trained with mean 0\.5, 0\.4/),
    expect.stringMatching(/^data\.size: images are 224×160, but the model was trained on 224×224/),
  ]);
  const grey = await settlePretrained(job({ channels: 1 }));
  expect(normaliseOf(grey)).toBeUndefined();
  expect(preprocessorRemarks(grey)[0]).toMatch(/^data\.normalise: none, but/);
});

test("nothing changes without the file, for fresh weights, and for a run that began before", async () => {
  expect(preprocessorRemarks(await settlePretrained(job()))).toEqual([]);
  const before = await settlePretrained(job());
  say(vit);
  expect(await settlePretrained(before)).toEqual(before);
  expect(normaliseOf(await settlePretrained(job({}, { weights: "none" })))).toBeUndefined();
  say({ ...vit, do_normalize: false });
  expect(normaliseOf(await settlePretrained(job()))).toBeUndefined();
});

test("a damaged file is told, with what to do", async () => {
  writeFileSync(join(folder, "preprocessor_config.json"), "{");
  await expect(settlePretrained(job())).rejects.toThrow(/preprocessor_config\.json cannot be read/);
  say({ ...vit, image_std: [0.2, 0, 0.1] });
  await expect(settlePretrained(job())).rejects.toThrow(/image_std \[0\.2,0,0\.1\], but must have as many numbers/);
});
