import { z } from "zod";
import { readBoundedJson } from "../files/bounded-json.ts";

/** A start of a run, as its provenance records it: what else it says is kept, and not looked at. */
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
 * Starts of a run, the earliest first. None if its provenance cannot be read: it is of a process that was killed while
 * it wrote, or of another program.
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
