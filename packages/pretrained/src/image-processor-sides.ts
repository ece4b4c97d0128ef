/** Number of rows and columns of an image. */
export type Sides = readonly [rows: number, columns: number];

/** Fields of an image processor file. */
export type ProcessorFields = Readonly<Record<string, unknown>>;

const isSide = (value: unknown): value is number => Number.isInteger(value) && (value as number) > 0;

/**
 * Parses a size in any format used in image processor files: a number, two numbers, `{ height, width }`, or `{
 * shortest_edge }`.
 *
 * @param isSquare Whether a single number sets the length of both sides. If false, the number sets the shorter side.
 * @param fault Throws the error. Receives the key and the rule.
 * @returns the length of the shorter side as a number, or the lengths of both sides.
 */
export const sidesIn = (
  key: string,
  value: unknown,
  isSquare: boolean,
  fault: (key: string, rule: string) => never,
): number | Sides => {
  if (isSide(value)) return isSquare ? [value, value] : value;
  if (Array.isArray(value) && value.length === 2 && value.every(isSide)) return value as unknown as Sides;
  const { height, width, shortest_edge: edge, ...others } = (value ?? {}) as ProcessorFields;
  const isAlone = Object.keys(others).length === 0;
  if (isAlone && edge === undefined && isSide(height) && isSide(width)) return [height, width];
  if (isAlone && height === undefined && width === undefined && isSide(edge)) return edge;
  return fault(key, "one or two positive integers, {height, width} or {shortest_edge}");
};
