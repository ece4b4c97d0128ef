import { readBoundedJson } from "@skein/cli/node";
import { z } from "zod";

/** Process that writes to an output folder. */
export interface Holder {
  readonly host: string;
  readonly pid: number;
  /**
   * System that assigned the process id, as returned by `pidNamespace`, or "unknown". Absent in files of older
   * versions.
   */
  readonly place?: string | undefined;
  /**
   * Start time of the process, in the unit of its system. Distinguishes the process from a later process with the same
   * id.
   */
  readonly began?: string | undefined;
  readonly since: string;
  readonly id: string;
}

const holderSchema: z.ZodType<Holder> = z.object({
  host: z.string(),
  pid: z.int().min(1),
  place: z.string().optional(),
  began: z.string().optional(),
  since: z.string(),
  id: z.string(),
});

const maxHolderBytes = 4096;

/**
 * Reads the description of the lock's holder from a lock file. Undefined: the file does not exist, is incomplete, or
 * has another format.
 */
export const readHolder = (path: string): Holder | undefined => {
  try {
    return holderSchema.parse(readBoundedJson(path, maxHolderBytes));
  } catch {
    return undefined;
  }
};
