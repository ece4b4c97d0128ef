/** Rows and columns. */
export type Sides = readonly [rows: number, columns: number];

/** Fields of a file of an image processor's. */
export type Said = Readonly<Record<string, unknown>>;

const isSide = (value: unknown): value is number => Number.isInteger(value) && (value as number) > 0;

/**
 * A size as files of either age say it: a number, two, `{ height, width }`, `{ shortest_edge }`.
 *
 * @param isSquare whether a number stands for both sides, or for the shorter one.
 * @param fault is told what the key must be.
 * @returns the shorter side, or both.
 */
export const sidesIn = (
  key: string,
  said: unknown,
  isSquare: boolean,
  fault: (key: string, rule: string) => never,
): number | Sides => {
  if (isSide(said)) return isSquare ? [said, said] : said;
  if (Array.isArray(said) && said.length === 2 && said.every(isSide)) return said as unknown as Sides;
  const { height, width, shortest_edge: edge, ...others } = (said ?? {}) as Said;
  const isAlone = Object.keys(others).length === 0;
  if (isAlone && edge === undefined && isSide(height) && isSide(width)) return [height, width];
  if (isAlone && height === undefined && width === undefined && isSide(edge)) return edge;
  return fault(key, "whole numbers from 1: one, two, {height, width} or {shortest_edge}");
};
