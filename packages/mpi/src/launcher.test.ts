import { expect, test } from "vitest";
import { findLauncher } from "./launcher.ts";

test.each([
  ["nothing", {}, undefined],
  [
    "mpirun of Open MPI",
    { OMPI_COMM_WORLD_SIZE: "4", OMPI_COMM_WORLD_RANK: "1", PMIX_RANK: "1" },
    { family: "open-mpi", worldSize: 4 },
  ],
  ["hydra of MPICH", { PMI_RANK: "0", PMI_SIZE: "2" }, { family: "mpich", worldSize: 2 }],
  ["srun --mpi=pmix", { SLURM_PROCID: "3", SLURM_NTASKS: "8", PMIX_RANK: "3" }, { worldSize: 8 }],
  [
    "srun --mpi=pmi2, which serves both",
    { SLURM_PROCID: "3", SLURM_NTASKS: "8", PMI_RANK: "3", PMI_SIZE: "8" },
    { worldSize: 8 },
  ],
  ["srun without MPI", { SLURM_PROCID: "3", SLURM_NTASKS: "8" }, undefined],
  ["a size that is no number", { OMPI_COMM_WORLD_SIZE: "many" }, undefined],
])("%s", (_, environment, expected) => {
  expect(findLauncher(environment as Record<string, string>)).toEqual(expected);
});
