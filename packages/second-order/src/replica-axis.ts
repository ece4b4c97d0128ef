/**
 * Mesh axis along which ranks hold equal values of a parameter: one axis for all parameters, or a function of the path,
 * for models whose experts are distributed over ranks.
 */
export type ReplicaAxis = string | ((path: string) => string);

export const replicaAxisOf = (axis: ReplicaAxis | undefined, path: string): string | undefined =>
  typeof axis === "function" ? axis(path) : axis;
