import { createCpuBackend } from "@skein/cpu-kernels";
import { serve } from "../measure/serve.ts";
import { skeinContestant } from "./skein-contestant.ts";
import { threads } from "./threads.ts";

await serve(skeinContestant(await createCpuBackend({ threads: threads() })));
