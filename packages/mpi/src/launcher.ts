import type { MpiFamily } from "./addon.ts";

/** MPI launcher of this process, derived from its environment. */
export interface Launcher {
  /** MPI family of the launcher; undefined if the launcher supports both families, as Slurm does. */
  readonly family?: MpiFamily;
  readonly worldSize?: number;
}

const count = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;

/**
 * Detects from the environment whether an MPI launcher started this process, and which launcher. Returns undefined if
 * no launcher started this process.
 */
export const findLauncher = (environment: Readonly<Record<string, string | undefined>>): Launcher | undefined => {
  const openMpi = count(environment["OMPI_COMM_WORLD_SIZE"]);
  if (openMpi !== undefined) return { family: "open-mpi", worldSize: openMpi };
  // Slurm's value is the size of the job step, which is also the size that MPI will report.
  const slurm = count(environment["SLURM_NTASKS"]);
  const underSlurm = environment["SLURM_PROCID"] !== undefined;
  if (environment["PMIX_RANK"] !== undefined) return underSlurm && slurm !== undefined ? { worldSize: slurm } : {};
  const pmi = count(environment["PMI_SIZE"]);
  if (environment["PMI_RANK"] !== undefined) {
    // Slurm's pmi2 supports both MPI families, Hydra only MPICH.
    return { ...(underSlurm ? {} : { family: "mpich" as const }), ...(pmi === undefined ? {} : { worldSize: pmi }) };
  }
  return undefined;
};
