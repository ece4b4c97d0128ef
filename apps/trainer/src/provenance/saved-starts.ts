import { z } from "zod";
import { readBoundedJson } from "../files/bounded-json.ts";

/** A start of a run, as recorded by its provenance. Other fields are kept without a check. */
export interface SavedStart {
  readonly command?: readonly string[] | undefined;
  /** Working folder. */
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
 * Starts of a run, the earliest first. Empty: its provenance cannot be read, because its process was killed while
 * writing, or because another program wrote it.
 *
 * @param path of `provenance.json`.
 */
export const savedStarts = (path: string): SavedStart[] => {
  try {
    const { earlier = [], ...last } = fileSchema.parse(readBoundedJson(path));
    return [...earlier, last];
  } catch {
    return [];
  }
};
