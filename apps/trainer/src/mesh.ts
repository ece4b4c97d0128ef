import { meshPartition } from "@skein/collectives";
import type { Mesh, MeshPlace } from "@skein/tensor-core";
import { acrossHostsAxis, insideHostsAxis } from "./build-exchange.ts";
import type { Job } from "./job.ts";

/** The mesh axis along which ranks share the batch. */
export const dataAxis = "data";

/** Ranks along each axis of a job. */
export const meshOf = ({ ranks, compression }: Job): Mesh => ({
  [dataAxis]: ranks,
  ...(compression.kind === "hierarchical-top-k" && {
    [acrossHostsAxis]: ranks / compression.ranksPerHost,
    [insideHostsAxis]: compression.ranksPerHost,
  }),
});

/**
 * The groups of ranks along each axis of a job's mesh, each rank in one: all of them along the data axis, which the
 * other axes share out.
 */
export const meshGroups = (
  job: Job,
): { readonly [dataAxis]: readonly number[][]; readonly [axis: string]: readonly number[][] } => {
  const { [dataAxis]: worldSize, ...axes } = meshOf(job);
  return {
    ...Object.fromEntries(Object.keys(axes).map((axis) => [axis, meshPartition(axes, axis)])),
    [dataAxis]: [Array.from({ length: worldSize! }, (_, rank) => rank)],
  };
};

/** The place of the first rank along each axis. */
export const firstPlace = (mesh: Mesh): MeshPlace => Object.fromEntries(Object.keys(mesh).map((axis) => [axis, 0]));
