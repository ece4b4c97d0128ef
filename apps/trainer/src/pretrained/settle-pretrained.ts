import { createHash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { readConfig } from "@skein/pretrained/node";
import { ConfigError } from "../errors.ts";
import type { Job } from "../job/job.ts";
import { readPreprocessor, withPreprocessor } from "./preprocessor.ts";

/** Files of a checkpoint that say what a run begins with. */
const isWeights = (name: string): boolean => /^model.*\.safetensors(\.index\.json)?$/.test(name);

/** SHA-256 of the names and content of files in a folder. Cost: each is read once. */
const digestOf = async (folder: string, names: readonly string[]): Promise<string> => {
  const hash = createHash("sha256");
  for (const name of names) {
    hash.update(`${name}\n`);
    for await (const bytes of createReadStream(join(folder, name))) hash.update(bytes as Uint8Array);
  }
  return hash.digest("hex");
};

/**
 * The same job with what its pretrained model is made of: the configuration, and the digest of the weights; and with
 * its images made as those that the model was trained on, unless it says how. A job that knows all this keeps it where
 * the folder is gone: a run goes on from its own checkpoints.
 *
 * @throws PretrainedError where the folder holds no checkpoint.
 */
export const settlePretrained = async (job: Job): Promise<Job> => {
  const { model } = job;
  if (model.kind !== "pretrained") return job;
  if (model.config !== undefined && !existsSync(model.folder)) return job;
  const config = await readConfig(model.folder);
  if (model.weights === "none") return { ...job, model: { ...model, config } };
  const names = (await readdir(model.folder)).filter(isWeights).sort();
  const settled = { ...model, config, digest: await digestOf(model.folder, names) };
  // a job that was settled before keeps what its run began with
  const preprocessor =
    model.config === undefined ? await readPreprocessor(model.folder, config["model_type"]) : undefined;
  return preprocessor === undefined
    ? { ...job, model: settled }
    : withPreprocessor({ ...job, model: { ...settled, preprocessor } }, preprocessor);
};

/**
 * Require that this process has the checkpoint that the controller of the run has.
 *
 * @throws ConfigError
 */
export const requireSamePretrained = async (job: Job): Promise<void> => {
  const own = await settlePretrained(job);
  const [theirs, ours] = [job.model, own.model];
  if (theirs.kind !== "pretrained" || ours.kind !== "pretrained" || theirs.digest === ours.digest) return;
  throw new ConfigError([
    `model.folder ${ours.folder}: its weights, SHA-256 ${String(ours.digest).slice(0, 16)}…, are not what the controller of the run has, ${String(theirs.digest).slice(0, 16)}…; copy the folder from there`,
  ]);
};
