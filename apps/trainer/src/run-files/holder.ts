import { z } from "zod";
import { readBoundedJson } from "../files/bounded-json.ts";

/** Who writes to an output folder. */
export interface Holder {
  readonly host: string;
  readonly pid: number;
  /** System that counts the process, as `processPlace` says, or "unknown". Absent in files of older versions. */
  readonly place?: string | undefined;
  /** When that process began, as its system counts it; a later process may have the same number. */
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

/** The holder that a file names; undefined if the file is gone, torn, or another's. */
export const readHolder = (path: string): Holder | undefined => {
  try {
    return holderSchema.parse(readBoundedJson(path, maxHolderBytes));
  } catch {
    return undefined;
  }
};
