/**
 * Mesh axis along which ranks hold the same values of a parameter: one axis for all parameters, or the axis by path,
 * for models whose experts are shared out over ranks.
 */
export type ReplicaAxis = string | ((path: string) => string);

export const replicaAxisOf = (axis: ReplicaAxis | undefined, path: string): string | undefined =>
  typeof axis === "function" ? axis(path) : axis;
