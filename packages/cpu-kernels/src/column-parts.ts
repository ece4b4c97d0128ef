import { partBegin } from "./team/team.ts";

/** Number of f32 columns in a cache line. Threads that write to the same line slow each other down. */
const lineColumns = 16;
/**
 * Minimum number of columns per part. With narrower parts, the additional cost per row exceeds the time that another
 * thread saves.
 */
const minColumns = 128;

/** Returns the maximum number of parts such that no two parts write to the same cache line. */
export const maxColumnParts = (columns: number): number => Math.max(1, Math.floor(columns / minColumns));

/** Returns the first column of a part. The end of a part is the first column of the next part. */
export const columnBegin = (columns: number, part: number, parts: number): number =>
  part === parts ? columns : lineColumns * partBegin(Math.floor(columns / lineColumns), part, parts);
