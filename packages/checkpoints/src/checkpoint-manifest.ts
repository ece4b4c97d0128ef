import { createHmac, timingSafeEqual } from "node:crypto";
import { ConfigError, recordSchema, sha256 } from "@skein/cli/node";
import { type BestSoFar, bestSoFarSchema } from "@skein/run-files/node";
import { z } from "zod";
import type { SavedFile } from "./checkpoint-part.ts";
import { type DataPosition, dataPositionSchema, positionFault } from "./data-position.ts";

const digest = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);

/**
 * `manifest.json`, which describes the contents of a checkpoint. Written last; a folder without a manifest is not a
 * checkpoint.
 */
export interface Manifest {
  readonly format: "skein-checkpoint";
  readonly version: 2;
  /** Number of completed steps. */
  readonly step: number;
  readonly data: DataPosition;
  readonly worldSize: number;
  /** Hash of the names, dtypes and shapes of the saved tensors. */
  readonly modelHash: string;
  /** Hash of all job settings that affect the results of training. */
  readonly jobHash: string;
  /**
   * Settings covered by `jobHash`, by dotted key, as JSON text or, if the text is long, as a hash. Absent in older
   * checkpoints.
   */
  readonly job?: Readonly<Record<string, string>> | undefined;
  /**
   * Plan of the gradient exchange, which determines the layout of compressor residuals. The schema of this JSON object
   * is defined by the program that made the plan.
   */
  readonly plan?: object | undefined;
  /** Best evaluation so far. Absent: the job does not compare evaluations. */
  readonly best?: BestSoFar | undefined;
  readonly files: readonly SavedFile[];
}

const manifestSchema: z.ZodType<Manifest> = z.strictObject({
  format: z.literal("skein-checkpoint"),
  version: z.literal(2),
  step: count,
  data: dataPositionSchema,
  worldSize: z.int().min(1),
  modelHash: digest,
  jobHash: digest,
  job: recordSchema(z.string()).optional(),
  plan: z.looseObject({}).optional(),
  best: bestSoFarSchema.optional(),
  files: z
    .array(z.strictObject({ name: z.string().regex(/^[a-z0-9-]+\.safetensors$/), bytes: count, sha256: digest }))
    .min(1),
});

/** Name of the environment variable with the secret that signs manifests. */
export const checkpointSecretVariable = "SKEIN_CHECKPOINT_SECRET";

const shortestSecretBytes = 16;

/**
 * Returns the secret that signs manifests; undefined if the environment has none.
 *
 * @throws ConfigError if the secret is too short.
 */
export const checkpointSecret = (env: NodeJS.ProcessEnv): string | undefined => {
  const secret = env[checkpointSecretVariable];
  if (secret === undefined) return undefined;
  const bytes = Buffer.byteLength(secret);
  if (bytes < shortestSecretBytes)
    throw new ConfigError([
      `${checkpointSecretVariable} has ${bytes} bytes, but needs at least ${shortestSecretBytes}; create a secret with: openssl rand -hex 32`,
    ]);
  return secret;
};

const pretty = (value: object): string => JSON.stringify(value, undefined, 2);

/**
 * Computes the signature of a manifest's content. The signed text begins with its purpose, so that signatures made with
 * the same secret for other purposes do not match.
 */
const signatureOf = (content: object, secret: string): string =>
  createHmac("sha256", secret)
    .update(`skein checkpoint manifest\n${pretty(content)}`)
    .digest("hex");

/**
 * Returns the bytes of a manifest file: the content, the signature if there is one, and the digest of all preceding
 * fields.
 */
const seal = (content: object, signature: string | undefined): Uint8Array => {
  const signed = signature === undefined ? content : { ...content, signature };
  return new TextEncoder().encode(`${pretty({ ...signed, sha256: sha256(pretty(signed)) })}\n`);
};

/**
 * Encodes a manifest.
 * @param secret secret that signs the manifest, so that other users with write access to the folder cannot forge it.
 */
export const encodeManifest = (manifest: Manifest, secret?: string): Uint8Array =>
  seal(manifest, secret === undefined ? undefined : signatureOf(manifest, secret));

/** Error for an invalid manifest. The message completes a sentence that begins with the manifest's path. */
export class ManifestFault extends Error {}

const equalText = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Decodes a manifest. The bytes must equal the output of `encodeManifest` for the decoded content, so that any altered
 * bit is detected.
 *
 * @param secret secret of the signature; a manifest without a valid signature is rejected. Absent: signatures are not
 * checked.
 * @throws ManifestFault
 */
export const decodeManifest = (bytes: Uint8Array, secret?: string): Manifest => {
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch (cause) {
    throw new ManifestFault("is missing or damaged", { cause });
  }
  if (!isRecord(parsed)) throw new ManifestFault("is missing or damaged");
  const { sha256: _, signature, ...content } = parsed;
  if (!Buffer.from(bytes).equals(seal(content, signature as string | undefined)))
    throw new ManifestFault("does not match its own SHA-256: it was altered, or is of an older version");
  const { success, data: manifest } = manifestSchema.safeParse(content);
  if (!success) throw new ManifestFault("is not a manifest of this version");
  if (secret !== undefined) {
    if (typeof signature !== "string") throw new ManifestFault(`is not signed, but ${checkpointSecretVariable} is set`);
    if (!equalText(signature, signatureOf(content, secret)))
      throw new ManifestFault(`is signed with a different secret than ${checkpointSecretVariable}, or was altered`);
  }
  const { step, data } = manifest;
  const fault = positionFault(data, step);
  if (fault !== undefined) throw new ManifestFault(fault);
  return manifest;
};
