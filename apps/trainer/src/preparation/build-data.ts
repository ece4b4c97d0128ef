import { ConfigError } from "@skein/cli/node";
import { cacheFolder } from "@skein/cli/start";
import { type Augmentation, isStreamed, mnistClasses, type Samples } from "@skein/data";
import {
  findImages,
  findInParquet,
  findInShards,
  type FoundImages,
  type ImageOptions,
  loadFashionMnist,
  loadFoundImages,
  loadIdx,
  loadMnist,
  loadNumpy,
  openFoundImages,
  openImageStream,
  readManifest,
} from "@skein/data/node";
import { type DataJob, type DecodedJob, decodingOf, sidesOf } from "@skein/job/node";
import {
  type DataSet,
  limitSamples,
  mobyDickData,
  textData,
  tokenData,
  type TrainingData,
  validationSplit,
} from "@skein/step/node";
import { augmentationFault } from "../modules/checked-augmentation.ts";
import { checkedData } from "../modules/checked-data.ts";
import { failWithoutProgram } from "../modules/program-objects.ts";
import { makeOwn, moduleName } from "../modules/load-module.ts";

const findImagesOf = async (job: DecodedJob): Promise<FoundImages> => {
  switch (job.kind) {
    case "image-folder":
      return findImages(job.folder, job.testFraction);
    case "image-manifest":
      return readManifest(job.file, job.testFraction);
    case "image-parquet":
      return findInParquet(job, job);
    case "webdataset":
      return findInShards(job, job);
  }
};

/** Loads images, which are decoded before training, decoded during training, or streamed, depending on the job. */
const loadImages = async (job: DecodedJob): Promise<Omit<TrainingData, "predicts">> => {
  const { fit: _, resize: __, resample: ___, ...others } = job;
  const options: ImageOptions = { ...others, ...decodingOf(job), size: sidesOf(job.size), from: import.meta.url };
  const { cacheMegabytes, decodesAtOnce } = job;
  const decodeSize = job.decodeSize === undefined ? undefined : sidesOf(job.decodeSize);
  const lazy =
    cacheMegabytes === undefined
      ? undefined
      : { cacheMegabytes, decodesAtOnce, decodeSize, digestFolder: cacheFolder("digests") };
  if ("stream" in job && job.stream !== undefined) {
    const { kind, stream, file, testFile, image, label } = job;
    const field = kind === "webdataset" ? job.field : undefined;
    return openImageStream({
      ...options,
      ...stream,
      shards: { of: kind, file, testFile, image, label, field },
      lazy,
      decodesAtOnce,
    });
  }
  const found = await findImagesOf(job);
  return lazy === undefined ? loadFoundImages(found, options) : openFoundImages(found, { ...options, ...lazy });
};

const loadData = async (job: DataJob): Promise<TrainingData> => {
  switch (job.kind) {
    case "mnist":
      return {
        ...loadMnist({ folder: job.folder, from: import.meta.url }),
        predicts: "classes",
        classes: mnistClasses,
      };
    case "fashion-mnist":
      return { ...loadFashionMnist({ folder: job.folder }), predicts: "classes", classes: mnistClasses };
    case "idx":
      return { ...loadIdx(job), predicts: "classes" };
    case "image-folder":
    case "image-manifest":
    case "image-parquet":
    case "webdataset":
      return { ...(await loadImages(job)), predicts: "classes" };
    case "numpy":
      return loadNumpy(job);
    case "moby-dick":
      return mobyDickData(job, import.meta.url);
    case "text":
      return textData(job, import.meta.url);
    case "tokens":
      return tokenData(job, import.meta.url);
    case "module":
      return checkedData(await makeOwn("data", job), moduleName("data", job));
    case "program":
      return failWithoutProgram("data");
  }
};

/**
 * Limits the samples of a data set as set in the job. With `validationFraction`, samples held out from training replace
 * the test samples. `trainSamples` then limits the training samples. With `judgeBy: training`, the limited training
 * samples replace the test samples. `testSamples` is applied last.
 */
export const limitData = <Of extends Samples>(data: DataSet<Of>, job: DataJob): DataSet<Of> => {
  const { trainSamples, testSamples, judgeBy } = job;
  const { train, test } = job.validationFraction === undefined ? data : validationSplit(data, job);
  const trainPart = limitSamples(train, trainSamples, data);
  const evaluated = judgeBy === "training" ? trainPart : test;
  return { ...data, train: trainPart, test: limitSamples(evaluated, testSamples, data) };
};

/**
 * Limits the samples of a data set as set in the job, if the samples are not streamed. Streamed training samples are
 * not limited.
 */
const limitAny = (data: TrainingData, job: DataJob): TrainingData => {
  const { train, test } = data;
  return isStreamed(train)
    ? { ...data, test: limitSamples(test, job.testSamples, data) }
    : limitData<Samples>({ ...data, train }, job);
};

/**
 * Loads the samples into shared memory, or opens their files.
 *
 * @throws DataError, ModuleError if samples are missing, truncated or altered.
 */
export const buildData = async (job: DataJob): Promise<TrainingData> => {
  const data = limitAny(await loadData(job), job);
  if (!("augment" in job) || job.augment === undefined) return data;
  const { crop, flip, resizedCrop, jitter } = job.augment;
  const augmentation: Augmentation = { cropPadding: crop, flip, resizedCrop, jitter };
  const fault = augmentationFault(augmentation, data.train.fields["inputs"]);
  if (fault !== undefined)
    throw new ConfigError([
      `data.augment${{ "": "", cropPadding: ".crop", jitter: ".jitter" }[fault.part]}: ${fault.rule}`,
    ]);
  return { ...data, augmentation };
};
