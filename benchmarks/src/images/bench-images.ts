import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { DecoderName } from "@skein/data/node";
import { type Summary, summarize } from "@skein/measuring";
import { complaintOf, type Failure } from "../all-reduce/complaint.ts";
import { makeRow, type Row } from "../report/row.ts";
import { programOf, runProgram } from "../studies/run-program.ts";
import { pythonWithTorch } from "../suites/contestants.ts";
import { type LoadedEpoch, type LoaderOptions, loaderWords } from "./loader-protocol.ts";
import { makeImages } from "./make-images.ts";

/** Number of decoding threads for Skein, and of worker processes for PyTorch. */
const workers = 2;
const longestMilliseconds = 600_000;
/**
 * Maximum difference between the mean pixel values of two loaders, 0 to 255. Different resampling methods stay below
 * this limit; a loader that decodes a wrong image, or skips an image, exceeds the limit.
 */
const meanTolerance = 1.5;

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/**
 * Measures the epochs of a loader. The first epoch is excluded, because it starts threads and fills the system's file
 * cache.
 */
const measure = async (
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
  options: LoaderOptions,
): Promise<LoadedEpoch[]> => {
  const [program, ...args] = command;
  const { stdout } = await promisify(execFile)(program!, [...args, ...loaderWords(options)], {
    timeout: longestMilliseconds,
    env: { ...process.env, ...environment },
  });
  const epochs = stdout.trimEnd().split("\n");
  return epochs.slice(1).map((line) => JSON.parse(line) as LoadedEpoch);
};

const speedsOf = (epochs: readonly LoadedEpoch[]): Summary =>
  summarize(epochs.map(({ images, seconds }) => images / seconds));

/** Checks that two loaders return the same images with the same labels. @throws Error if they differ. */
const requireAlike = (one: readonly LoadedEpoch[], other: readonly LoadedEpoch[]): void => {
  for (const [i, { images, meanPixel, labels }] of one.entries()) {
    const { images: count, meanPixel: mean, labels: sum } = other[i]!;
    if (images !== count || labels !== sum || !(Math.abs(meanPixel - mean) < meanTolerance))
      throw new Error(
        `epoch ${i}: ours gave ${images} images with labels of ${labels} and a mean pixel of ${meanPixel}, the peer ${count}, ${sum}, ${mean}; both must give the same images`,
      );
  }
};

/** Decoders of Skein's loader. */
const decoders: readonly DecoderName[] = ["napi-rs", "sharp"];

/** Variants of PyTorch's loader: decoding as in its own data sets, and decoding at reduced size (`draft`). */
const peers = [
  { name: "PyTorch DataLoader", draft: "0" },
  { name: "PyTorch DataLoader, drafted", draft: "1" },
] as const;

const loaderRows = async (options: LoaderOptions, versions: Record<string, string>): Promise<Row[]> => {
  const ours: { readonly decoder: DecoderName; readonly epochs: readonly LoadedEpoch[] }[] = [];
  for (const decoder of decoders) {
    const environment = { UV_THREADPOOL_SIZE: String(workers), SKEIN_BENCH_DECODER: decoder };
    const epochs = await measure([process.execPath, file("./skein-loader.ts")], environment, options);
    ours.push({ decoder, epochs });
  }
  const python = pythonWithTorch();
  const rows: Row[] = [];
  for (const { name, draft } of peers) {
    const addRows = (theirs: Summary | undefined, note?: string): void => {
      for (const { decoder, epochs } of ours) {
        const benchmark = `images: JPEG 256² to ${options.side}², ${workers} workers, decoder: ${decoder}`;
        const speeds = { ours: speedsOf(epochs), theirs };
        rows.push(makeRow({ benchmark, unit: "images/s", better: "higher", peer: name, ...speeds, note }));
      }
    };
    if (python === undefined) {
      addRows(undefined, "python3-torch is not installed");
      continue;
    }
    const told = spawnSync(python, ["-c", "import PIL, torch; print(torch.__version__, PIL.__version__)"], {
      encoding: "utf8",
    }).stdout.split(" ");
    if (told.length === 2) Object.assign(versions, { pytorch: told[0], pillow: told[1]!.trim() });
    let theirs: LoadedEpoch[];
    try {
      theirs = await measure(
        [python, file("./pytorch_loader.py")],
        { SKEIN_BENCH_WORKERS: String(workers), SKEIN_BENCH_DRAFT: draft },
        options,
      );
    } catch (error) {
      addRows(undefined, complaintOf(error as Failure, longestMilliseconds));
      continue;
    }
    for (const { epochs } of ours) requireAlike(epochs, theirs);
    addRows(speedsOf(theirs));
  }
  return rows;
};

interface StepLine {
  readonly type: string;
  readonly samplesPerSecond: number;
  readonly seconds: number;
  readonly dataSeconds: number;
}

/** Trains a ResNet-18 on the images, which are decoded during training or beforehand. Returns the measured steps. */
const trained = async (
  folder: string,
  { images, side, steps, duringTraining }: { images: string; side: number; steps: number; duringTraining: boolean },
): Promise<StepLine[]> => {
  const place = join(folder, duringTraining ? "beside" : "before");
  mkdirSync(place);
  const job = {
    name: "images",
    ranks: 1,
    backend: "cpu",
    batch: 32,
    steps,
    data: { kind: "image-folder", folder: images, size: side, ...(duringTraining && { cacheMegabytes: 0 }) },
    model: { kind: "resnet18" },
    optimizer: { kind: "momentum" },
    learningRate: { peak: 0.01 },
  };
  writeFileSync(join(place, "job.yaml"), JSON.stringify(job));
  const command = [...programOf("trainer"), "run", "job.yaml", "--output", "run", "--quiet"];
  const { code, stderr } = await runProgram(command, place, longestMilliseconds / 60_000);
  if (code !== 0) throw new Error(`the job on images failed: ${stderr}`);
  return readFileSync(join(place, "run/metrics.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as StepLine)
    .filter(({ type }) => type === "step")
    .slice(2); // step 1 compiles, and the batch of step 2 was decoded meanwhile
};

const jobRow = async (folder: string, images: string, side: number, steps: number): Promise<Row> => {
  const [during, before] = [
    await trained(folder, { images, side, steps, duringTraining: true }),
    await trained(folder, { images, side, steps, duringTraining: false }),
  ];
  const sum = (of: (line: StepLine) => number): number => during.reduce((total, line) => total + of(line), 0);
  const share = sum(({ dataSeconds }) => dataSeconds) / sum(({ seconds }) => seconds);
  const speeds = (lines: readonly StepLine[]): Summary =>
    summarize(lines.map(({ samplesPerSecond }) => samplesPerSecond));
  return makeRow({
    benchmark: `images: ResNet-18 at ${side}², decoded beside it`,
    unit: "images/s",
    better: "higher",
    peer: "ours, decoded before",
    ours: speeds(during),
    theirs: speeds(before),
    note: `${(100 * share).toFixed(1)} % of steps went to waiting for images`,
  });
};

/**
 * Measures images per second of Skein's loader and PyTorch's on one folder of JPEGs, with two workers each and without
 * a cache. Also measures how long a ResNet-18 waits for images that are decoded during training.
 *
 * @param quick Whether to use few images, to check only whether the loaders run and agree.
 */
export const benchImages = async (folder: string, versions: Record<string, string>, quick: boolean): Promise<Row[]> => {
  const images = join(folder, "images");
  await makeImages(images, quick ? 128 : 4096);
  const options: LoaderOptions = { folder: images, epochs: quick ? 2 : 6, side: 64, batchSize: 64 };
  return [...(await loaderRows(options, versions)), await jobRow(folder, images, options.side, quick ? 4 : 40)];
};
