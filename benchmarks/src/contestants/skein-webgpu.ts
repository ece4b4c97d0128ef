import { createWebGpuBackend } from "@skein/gpu-kernels";
import { openNodeGpu } from "@skein/gpu-kernels/node";
import { serve } from "../measure/serve.ts";
import { skeinContestant } from "./skein-contestant.ts";

const backend = await createWebGpuBackend({ gpu: await openNodeGpu() });
await serve(skeinContestant(backend, () => backend.device.gpu.queue.onSubmittedWorkDone()));
