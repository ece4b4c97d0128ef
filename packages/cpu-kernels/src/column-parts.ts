import { partBegin } from "./team/team.ts";

/** Columns of f32 in a cache line: threads that write beside each other in one would wait for each other. */
const lineColumns = 16;
/** Columns of a part, at least: shorter stretches of every row cost more than the thread saves. */
const leastColumns = 128;

/** Into how many parts columns can be cut without that two of them write into one line. */
export const mostColumnParts = (columns: number): number => Math.max(1, Math.floor(columns / leastColumns));

/** First column of a part; that of the next part is its end. */
export const columnBegin = (columns: number, part: number, parts: number): number =>
  part === parts ? columns : lineColumns * partBegin(Math.floor(columns / lineColumns), part, parts);
