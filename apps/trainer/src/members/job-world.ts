import type { Job } from "@skein/job/node";
import packageJson from "../../package.json" with { type: "json" };
import { productsBy } from "../backend/job-blas.ts";
import { jobHashOf } from "../preparation/job-hash.ts";

/**
 * Returns the identity of a run that all its processes must agree on before they exchange messages: number of ranks,
 * job hash and build. The backend is not included in the job hash, because the controller chooses the backend later.
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
