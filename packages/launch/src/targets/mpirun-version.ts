import { LaunchError } from "./errors.ts";

/** Implementations of mpirun, which have different options. Hydra is the mpirun of MPICH. */
export type MpirunVersion = "open-mpi-4" | "open-mpi-5" | "hydra";

/** Parses the output of `mpirun --version`. @throws LaunchError if the implementation is unknown. */
export const parseMpirunVersion = (text: string): MpirunVersion => {
  const major = /\(Open MPI\) (\d+)\./.exec(text)?.[1];
  if (major === "4") return "open-mpi-4";
  if (major === "5") return "open-mpi-5";
  if (/^HYDRA build details:/m.test(text)) return "hydra";
  const [line = ""] = text.trim().split("\n");
  throw new LaunchError(
    `mpirun --version prints ${JSON.stringify(line.slice(0, 80))}, which is not Open MPI 4, Open MPI 5 or MPICH (Hydra); put one of these first on PATH`,
  );
};
