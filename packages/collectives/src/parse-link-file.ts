import { SkeinError } from "@skein/tensor-core";
import { z } from "zod";
import type { LinkFile } from "./link-file.ts";

/** Thrown if a link file is invalid: not JSON, an unsupported version, or a missing or invalid field. */
export class LinkFileError extends SkeinError {
  override name = "LinkFileError";

  constructor(problem: string) {
    super("user", "link-file", `${problem}; measure the links again with "skein-train links"`);
  }
}

const seconds = z.number().nonnegative();
const fit = z.object({
  secondsPerMessage: seconds,
  secondsPerByte: seconds,
  r2: z.number(),
  worstRelativeError: z.number().nonnegative(),
});
const rank = z.number().int().nonnegative();

const linkFileSchema: z.ZodType<LinkFile> = z
  .object({
    format: z.literal("skein-links"),
    version: z.literal(1),
    measuredAt: z.iso.datetime(),
    machine: z.string().min(1),
    transport: z.string().min(1),
    messageBytes: z.array(z.number().int().nonnegative()).min(2),
    hosts: z.array(z.array(rank).min(1)).min(1),
    within: fit.optional(),
    across: fit.optional(),
    pairs: z.array(fit.extend({ from: rank, to: rank })),
    allToAll: z
      .array(fit.extend({ level: z.enum(["all", "within", "across"]), ranks: z.number().int().min(1) }))
      .optional(),
    reduceSecondsPerByte: seconds,
  })
  .refine(
    ({ within, across }) => within !== undefined || across !== undefined,
    "neither links within a host nor across hosts were measured",
  );

/** Describes the first invalid field in one line. */
const problemOf = (error: z.ZodError): string => {
  const [issue] = error.issues;
  const path = issue!.path.join(".");
  return path === "" ? issue!.message : `${path}: ${issue!.message}`;
};

/**
 * Parses a link file.
 *
 * @param name file name, for error messages.
 * @throws LinkFileError with a one-line message.
 */
export const parseLinkFile = (text: string, name: string): LinkFile => {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new LinkFileError(`${name} is not JSON (${(error as Error).message.replaceAll(/\s+/g, " ")})`);
  }
  const parsed = linkFileSchema.safeParse(content);
  if (!parsed.success) throw new LinkFileError(`${name} is not a link file of version 1 (${problemOf(parsed.error)})`);
  return parsed.data;
};
