import { createHash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ConfigError } from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import { readConfig } from "@skein/pretrained/node";
import { readPreprocessor, withPreprocessor } from "./preprocessor.ts";

/** Whether a file name is the name of a weight file of a checkpoint. */
const isWeights = (name: string): boolean => /^model.*\.safetensors(\.index\.json)?$/.test(name);

/** Returns the SHA-256 of the names and contents of files in a folder. Reads all of these files. */
const digestOf = async (folder: string, names: readonly string[]): Promise<string> => {
  const hash = createHash("sha256");
  for (const name of names) {
    hash.update(`${name}\n`);
    for await (const bytes of createReadStream(join(folder, name))) hash.update(bytes as Uint8Array);
  }
  return hash.digest("hex");
};

/**
 * Adds the configuration of a pretrained model and the digest of its weights to a job. If the job had no configuration
 * yet, also adds the preprocessing of the model's training images, unless the job specifies preprocessing. If the job
 * has a configuration, but the model's folder no longer exists, returns the job unchanged, because a resumed run reads
 * only its own checkpoints.
 *
 * @throws PretrainedError if the folder contains no checkpoint.
 */
export const settlePretrained = async (job: Job): Promise<Job> => {
  const { model } = job;
  if (model.kind !== "pretrained") return job;
  if (model.config !== undefined && !existsSync(model.folder)) return job;
  const config = await readConfig(model.folder);
  if (model.weights === "none") return { ...job, model: { ...model, config } };
  const names = (await readdir(model.folder)).filter(isWeights).sort();
  const settled = { ...model, config, digest: await digestOf(model.folder, names) };
  // a job that already contains the configuration keeps the settings of its run
  const preprocessor =
    model.config === undefined ? await readPreprocessor(model.folder, config["model_type"]) : undefined;
  return preprocessor === undefined
    ? { ...job, model: settled }
    : withPreprocessor({ ...job, model: { ...settled, preprocessor } }, preprocessor);
};

/**
 * Requires that the checkpoint on this machine equals the checkpoint on the controller's machine.
 *
 * @throws ConfigError
 */
export const requireSamePretrained = async (job: Job): Promise<void> => {
  const own = await settlePretrained(job);
  const [theirs, ours] = [job.model, own.model];
  if (theirs.kind !== "pretrained" || ours.kind !== "pretrained" || theirs.digest === ours.digest) return;
  throw new ConfigError([
    `model.folder ${ours.folder}: its weights, SHA-256 ${String(ours.digest).slice(0, 16)}…, differ from the controller's, ${String(theirs.digest).slice(0, 16)}…; copy the folder from there`,
  ]);
};
