/**
 * Mesh axis along which ranks have equal values of a parameter: one axis for all parameters, or a function from path to
 * axis, for models whose experts are distributed over ranks.
 */
export type ReplicaAxis = string | ((path: string) => string);

export const replicaAxisOf = (axis: ReplicaAxis | undefined, path: string): string | undefined =>
  typeof axis === "function" ? axis(path) : axis;
