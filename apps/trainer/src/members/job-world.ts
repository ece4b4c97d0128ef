import type { Job } from "@skein/job/node";
import packageJson from "../../package.json" with { type: "json" };
import { productsBy } from "../backend/job-blas.ts";
import { jobHashOf } from "../preparation/job-hash.ts";

/**
 * Returns the facts that all processes of a run must agree on before they exchange messages. The backend is not
 * included, because the controller chooses the backend later.
 */
export const worldOf = (
  job: Job,
): { readonly worldSize: number; readonly job: string; readonly build: string; readonly buildCure: string } => ({
  worldSize: job.ranks,
  job: jobHashOf({ ...job, backend: "auto" }),
  build: `skein-train ${packageJson.version}, ${productsBy(job)}`,
  buildCure:
    "install the same version on all hosts; if their products differ, give all hosts the folder of one skein-train blas build ($SKEIN_BLAS), or set blas: off in the job",
});
