import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { SavedFile } from "./checkpoint-part.ts";
import { sha256 } from "../files/sha256.ts";
import { type DataStanding, dataStandingSchema, standingFault } from "./data-standing.ts";
import { type BestSoFar, bestSoFarSchema } from "../evaluation/best-so-far.ts";
import { ConfigError } from "../errors.ts";
import { type ExchangePlan, exchangePlanSchema } from "../plans/exchange-plan.ts";
import { recordSchema } from "../files/record-schema.ts";

const digest = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);

/** `manifest.json`: what a checkpoint holds. Written last; a folder without one is no checkpoint. */
export interface Manifest {
  readonly format: "skein-checkpoint";
  readonly version: 2;
  /** Steps done. */
  readonly step: number;
  readonly data: DataStanding;
  readonly worldSize: number;
  /** Of names, dtypes and shapes of the saved tensors. */
  readonly modelHash: string;
  /** Of everything in the job that steers the training. */
  readonly jobHash: string;
  /** The settings under that hash by dotted key, as JSON or, if that is long, its hash. Absent in older checkpoints. */
  readonly job?: Readonly<Record<string, string>> | undefined;
  /** What was measured and decided about the exchange of gradients; residuals lie as it says. */
  readonly plan?: ExchangePlan | undefined;
  /** How evaluations compared, where something follows from that. */
  readonly best?: BestSoFar | undefined;
  readonly files: readonly SavedFile[];
}

const manifestSchema: z.ZodType<Manifest> = z.strictObject({
  format: z.literal("skein-checkpoint"),
  version: z.literal(2),
  step: count,
  data: dataStandingSchema,
  worldSize: z.int().min(1),
  modelHash: digest,
  jobHash: digest,
  job: recordSchema(z.string()).optional(),
  plan: exchangePlanSchema.optional(),
  best: bestSoFarSchema.optional(),
  files: z
    .array(z.strictObject({ name: z.string().regex(/^[a-z0-9-]+\.safetensors$/), bytes: count, sha256: digest }))
    .min(1),
});

/** The variable with the secret that signs manifests. */
export const checkpointSecretVariable = "SKEIN_CHECKPOINT_SECRET";

const shortestSecretBytes = 16;

/**
 * The secret that signs the manifests of this process, if it has one.
 *
 * @throws ConfigError when it is too short to be one.
 */
export const checkpointSecret = (env: NodeJS.ProcessEnv): string | undefined => {
  const secret = env[checkpointSecretVariable];
  if (secret === undefined) return undefined;
  const bytes = Buffer.byteLength(secret);
  if (bytes < shortestSecretBytes)
    throw new ConfigError([
      `${checkpointSecretVariable} has ${bytes} bytes, and needs at least ${shortestSecretBytes}; make one with: openssl rand -hex 32`,
    ]);
  return secret;
};

const pretty = (value: object): string => JSON.stringify(value, undefined, 2);

/** The purpose stands in front, so that no other use of the same secret gives a signature that fits here. */
const signatureOf = (content: object, secret: string): string =>
  createHmac("sha256", secret)
    .update(`skein checkpoint manifest\n${pretty(content)}`)
    .digest("hex");

/**
 * What is written, to the byte: the content, its signature where there is one, and the digest of all that stands before
 * it.
 */
const seal = (content: object, signature: string | undefined): Uint8Array => {
  const signed = signature === undefined ? content : { ...content, signature };
  return new TextEncoder().encode(`${pretty({ ...signed, sha256: sha256(pretty(signed)) })}\n`);
};

/** @param secret signs the manifest: whoever writes the folder but does not know it cannot make one. */
export const encodeManifest = (manifest: Manifest, secret?: string): Uint8Array =>
  seal(manifest, secret === undefined ? undefined : signatureOf(manifest, secret));

/** What is wrong with a manifest, to be said of its path. */
export class ManifestFault extends Error {}

const equalText = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Read a manifest. It must be, byte for byte, what `encodeManifest` writes of what it says: so no altered bit passes,
 * be it one of spelling only.
 *
 * @param secret where given, a manifest that it has not signed is refused.
 * @throws ManifestFault
 */
export const decodeManifest = (bytes: Uint8Array, secret?: string): Manifest => {
  let said: unknown;
  try {
    said = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (cause) {
    throw new ManifestFault("is missing or damaged", { cause });
  }
  if (!isRecord(said)) throw new ManifestFault("is missing or damaged");
  const { sha256: _, signature, ...content } = said;
  if (!Buffer.from(bytes).equals(seal(content, signature as string | undefined)))
    throw new ManifestFault(
      "does not have the SHA-256 that it says of itself: it was altered, or is of an older version",
    );
  const { success, data: manifest } = manifestSchema.safeParse(content);
  if (!success) throw new ManifestFault("holds what no manifest of this version holds");
  if (secret !== undefined) {
    if (typeof signature !== "string") throw new ManifestFault(`is not signed, but ${checkpointSecretVariable} is set`);
    if (!equalText(signature, signatureOf(content, secret)))
      throw new ManifestFault(`is signed with another secret than that of ${checkpointSecretVariable}, or was altered`);
  }
  const { step, data } = manifest;
  const fault = standingFault(data, step);
  if (fault !== undefined) throw new ManifestFault(fault);
  return manifest;
};
