import { partBegin } from "./team/team.ts";

/** Number of f32 columns in a cache line. Threads that write to the same line would slow each other down. */
const lineColumns = 16;
/** Minimum number of columns per part. Shorter pieces of every row cost more than another thread saves. */
const minColumns = 128;

/** Maximum number of parts such that no two parts write to the same cache line. */
export const maxColumnParts = (columns: number): number => Math.max(1, Math.floor(columns / minColumns));

/** First column of a part. The end of a part is the first column of the next part. */
export const columnBegin = (columns: number, part: number, parts: number): number =>
  part === parts ? columns : lineColumns * partBegin(Math.floor(columns / lineColumns), part, parts);
