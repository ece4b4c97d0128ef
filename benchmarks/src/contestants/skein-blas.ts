import { findBlas, openBlas } from "@skein/blas/node";
import { createCpuBackend } from "@skein/cpu-kernels";
import { serve } from "../measure/serve.ts";
import { skeinContestant } from "./skein-contestant.ts";
import { threads } from "./threads.ts";

const place = findBlas();
if (place === undefined) throw new Error("no BLAS was built here: skein-train blas build");
const blas = openBlas(place);
const contestant = skeinContestant(await createCpuBackend({ blas, threads: threads() }));

await serve({ ...contestant, version: `${contestant.version}, products by ${blas.identity}` });
