import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import type { SavedFile } from "./checkpoint-part.ts";
import { sha256 } from "../files/sha256.ts";
import { type DataPosition, dataPositionSchema, positionFault } from "./data-position.ts";
import { type BestSoFar, bestSoFarSchema } from "../evaluation/best-so-far.ts";
import { ConfigError } from "../errors.ts";
import { type ExchangePlan, exchangePlanSchema } from "../plans/exchange-plan.ts";
import { recordSchema } from "../files/record-schema.ts";

const digest = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);

/**
 * `manifest.json`, which describes the contents of a checkpoint. Written last; a folder without a manifest is not a
 * checkpoint.
 */
export interface Manifest {
  readonly format: "skein-checkpoint";
  readonly version: 2;
  /** Steps done. */
  readonly step: number;
  readonly data: DataPosition;
  readonly worldSize: number;
  /** Hash of the names, dtypes and shapes of the saved tensors. */
  readonly modelHash: string;
  /** Hash of all settings of the job that determine the results of training. */
  readonly jobHash: string;
  /** The settings that `jobHash` covers, by dotted key, as JSON or, if long, as a hash. Absent in older checkpoints. */
  readonly job?: Readonly<Record<string, string>> | undefined;
  /** Measurements and plan of the gradient exchange, which determine the layout of residuals. */
  readonly plan?: ExchangePlan | undefined;
  /** Best evaluation so far. Absent: evaluations are not compared. */
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
  plan: exchangePlanSchema.optional(),
  best: bestSoFarSchema.optional(),
  files: z
    .array(z.strictObject({ name: z.string().regex(/^[a-z0-9-]+\.safetensors$/), bytes: count, sha256: digest }))
    .min(1),
});

/** Environment variable with the secret that signs manifests. */
export const checkpointSecretVariable = "SKEIN_CHECKPOINT_SECRET";

const shortestSecretBytes = 16;

/**
 * Returns the secret that signs manifests, if it is set.
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
 * Signature of a manifest's content. The purpose comes first, so that signatures for other purposes with the same
 * secret do not match.
 */
const signatureOf = (content: object, secret: string): string =>
  createHmac("sha256", secret)
    .update(`skein checkpoint manifest\n${pretty(content)}`)
    .digest("hex");

/** Bytes of a manifest file: the content, its signature if any, and the digest of everything before it. */
const seal = (content: object, signature: string | undefined): Uint8Array => {
  const signed = signature === undefined ? content : { ...content, signature };
  return new TextEncoder().encode(`${pretty({ ...signed, sha256: sha256(pretty(signed)) })}\n`);
};

/**
 * Encodes a manifest. @param secret signs the manifest, so that it cannot be forged by others who can write to the
 * folder.
 */
export const encodeManifest = (manifest: Manifest, secret?: string): Uint8Array =>
  seal(manifest, secret === undefined ? undefined : signatureOf(manifest, secret));

/** A fault of a manifest; the message completes a sentence that begins with its path. */
export class ManifestFault extends Error {}

const equalText = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Decodes a manifest. Its bytes must be exactly what `encodeManifest` writes for its content, so that any altered bit
 * is detected.
 *
 * @param secret Absent: signatures are not checked; otherwise a manifest without its signature is rejected.
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
