import { LaunchError } from "./errors.ts";

/** Which mpirun this is, as far as its options differ. Hydra is MPICH's. */
export type MpirunVersion = "open-mpi-4" | "open-mpi-5" | "hydra";

/** Read what `mpirun --version` prints. @throws LaunchError for one that we do not know. */
export const parseMpirunVersion = (text: string): MpirunVersion => {
  const major = /\(Open MPI\) (\d+)\./.exec(text)?.[1];
  if (major === "4") return "open-mpi-4";
  if (major === "5") return "open-mpi-5";
  if (/^HYDRA build details:/m.test(text)) return "hydra";
  const [line = ""] = text.trim().split("\n");
  throw new LaunchError(
    `mpirun --version says ${JSON.stringify(line.slice(0, 80))}, which is none of Open MPI 4, Open MPI 5 and MPICH (Hydra); put one of these first on PATH`,
  );
};
