import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkJob, type DecodedJob, type Job } from "@skein/job/node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { jobHashOf } from "../preparation/job-hash.ts";
import { preprocessorRemarks } from "./preprocessor.ts";
import { settlePretrained } from "./settle-pretrained.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-preprocessor-"));
  writeFileSync(join(folder, "config.json"), '{"model_type":"vit"}');
});
afterEach(() => rmSync(folder, { recursive: true }));

const say = (said: unknown, file = "preprocessor_config.json"): void =>
  writeFileSync(join(folder, file), JSON.stringify(said));

const vit = { image_mean: [0.5, 0.4, 0.3], image_std: [0.2, 0.2, 0.1], size: { height: 224, width: 224 }, resample: 3 };
const cut = { ...vit, image_processor_type: "CLIPImageProcessor", size: { shortest_edge: 256 }, crop_size: 224 };

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

type Made = Pick<DecodedJob, "fit" | "resize" | "resample" | "normalise">;
const madeOf = ({ data }: Job): Made => {
  const { fit, resize, resample, normalise } = data as DecodedJob;
  return JSON.parse(JSON.stringify({ fit, resize, resample, normalise })) as Made;
};
const normalise = { mean: [0.5, 0.4, 0.3], std: [0.2, 0.2, 0.1] };

describe("options that the job leaves open follow the checkpoint", () => {
  test("and are reported in one line, and part of the job from then on", async () => {
    say(vit);
    const settled = await settlePretrained(job({ trainSamples: 5 }));
    expect(madeOf(settled)).toEqual({ fit: "stretch", resample: "bicubic", normalise });
    expect(preprocessorRemarks(settled)).toEqual([
      "as in preprocessor_config.json of model.folder: data.normalise mean 0.5, 0.4, 0.3, deviation 0.2, 0.2, 0.1; data.fit stretch; data.resample bicubic",
    ]);
    const again = checked(JSON.parse(JSON.stringify(settled)));
    expect(again).toEqual(settled);
    // threads and resumed runs read the job again
    expect(jobHashOf(again)).toBe(jobHashOf(settled));
  });

  test("also where a newer file contains it among other things, which takes precedence", async () => {
    say({ ...vit, resample: 0 });
    say({ processor_class: "Own", image_processor: vit }, "processor_config.json");
    const settled = await settlePretrained(job());
    expect(madeOf(settled).resample).toBe("bicubic");
    expect(preprocessorRemarks(settled)[0]).toMatch(/^as in processor_config\.json of model\.folder: /);
  });

  test.each([
    [{}, 256],
    [{ size: 112 }, 128],
    [{ size: [112, 56] }, 128],
    // the result of ConvNeXt's processor for the same crop: int(s / 0.875)
    [{ size: 383 }, 437],
  ])("with %j, in proportion to the size", async (data, resize) => {
    say(cut);
    const settled = await settlePretrained(job(data));
    expect(madeOf(settled)).toEqual({ resize, resample: "bicubic", normalise });
    expect(preprocessorRemarks(settled)[0]).toContain(`data.resize ${resize};`);
  });

  test("stretched, then cropped", async () => {
    say({ ...cut, size: 256, image_processor_type: "DeiTImageProcessor" });
    expect(madeOf(await settlePretrained(job())).resize).toEqual([256, 256]);
    expect(madeOf(await settlePretrained(job({ size: [112, 224] }))).resize).toEqual([256, 256]);
    const larger = await settlePretrained(job({ cacheMegabytes: 1, decodeSize: 300 }));
    expect(madeOf(larger)).toEqual({ resample: "bicubic", normalise });
    expect(preprocessorRemarks(larger)).toContain(
      "data.fit: cover, but the model was trained on images stretched to 256×256, and cut to their middle, 224×224, as its preprocessor_config.json says",
    );
  });
});

test("options of the job stay, and differences are reported, a line each", async () => {
  say(cut);
  const own = { normalise: { mean: [0], std: [1] }, fit: "contain", resample: "decoder" };
  const settled = await settlePretrained(job({ ...own, size: [224, 160] }));
  expect(madeOf(settled)).toEqual(own);
  expect(preprocessorRemarks(settled)).toEqual([
    expect.stringMatching(/^data\.normalise: mean 0, deviation 1, but the model was trained with mean 0\.5, 0\.4/),
    expect.stringMatching(
      /^data\.fit: contain, but the model was trained on images whose shorter side was 256, and cut/,
    ),
    expect.stringMatching(/^data\.resample: decoder, but the model was trained on images resized by bicubic/),
    expect.stringMatching(/^data\.size: images are 224×160, but the model was trained on 224×224/),
  ]);
  const resized = await settlePretrained(job({ resize: 300, resample: "box" }));
  expect(madeOf(resized)).toEqual({ resize: 300, resample: "box", normalise });
  expect(preprocessorRemarks(resized)[1]).toMatch(/^data\.resize: 300, but the model was trained on images whose/);
  const grey = await settlePretrained(job({ channels: 1 }));
  expect(madeOf(grey).normalise).toBeUndefined();
  expect(preprocessorRemarks(grey)[1]).toMatch(/^data\.normalise: none, but/);
});

test("nothing changes without the file, for fresh weights, and for a run that began before", async () => {
  expect(preprocessorRemarks(await settlePretrained(job()))).toEqual([]);
  const before = await settlePretrained(job());
  say(vit);
  expect(await settlePretrained(before)).toEqual(before);
  expect(madeOf(await settlePretrained(job({}, { weights: "none" })))).toEqual({});
  say({ ...vit, do_normalize: false, do_resize: false });
  expect(madeOf(await settlePretrained(job()))).toEqual({});
  // runs of older versions recorded this preprocessing
  const preprocessor = { normalise, size: [224, 224] };
  const old = job({ normalise, fit: "cover" }, { config: { model_type: "vit" }, digest: "a".repeat(64), preprocessor });
  expect(preprocessorRemarks(await settlePretrained(old))).toEqual([
    expect.stringMatching(/^as in preprocessor_config\.json of model\.folder: data\.normalise mean [^;]*$/),
  ]);
});

test("a size outside the limits of a job is reported, and not used", async () => {
  say({ image_processor_type: "ConvNextImageProcessor", size: 224, crop_pct: 0.01 });
  const settled = await settlePretrained(job());
  expect(madeOf(settled).resize).toBeUndefined();
  expect(preprocessorRemarks(settled)[1]).toMatch(/^data\.fit: cover, but .* whose shorter side was 22400, and cut/);
});

test("cropping without resizing is not supported, which is reported", async () => {
  say({ ...cut, do_resize: false });
  expect(preprocessorRemarks(await settlePretrained(job()))[1]).toMatch(
    /^data\.fit: cover, but the model was trained on images as large as they were, and cut to their middle, 224×224/,
  );
});

test("the hash of a job is that of a job with the former default of fit", () => {
  const hash = jobHashOf(job());
  expect([jobHashOf(job({ fit: "cover" })), jobHashOf(job({ resample: "decoder" }))]).toEqual([hash, hash]);
  for (const other of [{ fit: "stretch" }, { resample: "bicubic" }, { resize: 256 }])
    expect(jobHashOf(job(other))).not.toBe(hash);
});

test("a damaged file is reported, with what to do", async () => {
  writeFileSync(join(folder, "preprocessor_config.json"), "{");
  await expect(settlePretrained(job())).rejects.toThrow(
    /preprocessor_config\.json is not valid JSON .*; restore it from/,
  );
  say({ ...vit, image_std: [0.2, 0, 0.1] });
  await expect(settlePretrained(job())).rejects.toThrow(
    /image_std \[0\.2,0,0\.1\], but both must have the same number of values/,
  );
});

test("a job with both, or with more than there is, is refused", () => {
  expect(() => job({ fit: "cover", resize: 256 })).toThrow(/data\.resize.*both resize and fit \(cover\) determine how/);
  expect(() => job({ resize: 200 })).toThrow(
    /data\.resize.*200 is smaller than size 224×224, so images cannot be cropped/,
  );
  expect(() => job({ resize: [256, 223] })).toThrow(/data\.resize.*256×223 is smaller than size 224×224/);
  expect(() => job({ resize: 256, decodeSize: 300, cacheMegabytes: 1 })).toThrow(
    /256 is smaller than decodeSize 300×300/,
  );
  expect(() => job({ resample: "cubic" })).toThrow(/data\.resample is "cubic".*did you mean "bicubic"/);
});
