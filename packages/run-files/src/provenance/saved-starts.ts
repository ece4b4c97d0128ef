import { readBoundedJson } from "@skein/cli/node";
import { z } from "zod";

/** A start of a run, as recorded in its provenance. Unknown fields are not checked. */
export interface SavedStart {
  readonly command?: readonly string[] | undefined;
  /** Working folder in which the command was started. */
  readonly folder?: string | undefined;
  readonly startedAt?: string | undefined;
}

const startSchema = z.looseObject({
  command: z.array(z.string()).optional().catch(undefined),
  folder: z.string().optional().catch(undefined),
  startedAt: z.string().optional().catch(undefined),
});

const fileSchema = startSchema.extend({ earlier: z.array(startSchema).optional().catch(undefined) });

/**
 * Returns the starts of a run, earliest first. Empty if the provenance is unreadable: its process was killed while
 * writing, or another program wrote the file.
 *
 * @param path Path of `provenance.json`.
 */
export const savedStarts = (path: string): SavedStart[] => {
  try {
    const { earlier = [], ...last } = fileSchema.parse(readBoundedJson(path));
    return [...earlier, last];
  } catch {
    return [];
  }
};
