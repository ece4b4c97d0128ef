import packageJson from "../../package.json" with { type: "json" };
import type { Job } from "../job/job.ts";
import { productsBy } from "../backend/job-blas.ts";
import { jobHashOf } from "../preparation/prepare.ts";

/**
 * What all processes of a run must agree on before they talk. The backend is settled only later, by the controller of
 * the run.
 */
export const worldOf = (
  job: Job,
): { readonly worldSize: number; readonly job: string; readonly build: string; readonly buildCure: string } => ({
  worldSize: job.ranks,
  job: jobHashOf({ ...job, backend: "auto" }),
  build: `skein-train ${packageJson.version}, ${productsBy(job)}`,
  buildCure:
    "install the same version on all hosts; where their products differ, give all hosts the folder of one skein-train blas build ($SKEIN_BLAS), or set blas: off in the job",
});
