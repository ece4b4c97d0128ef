import { createWebGpuBackend } from "@skein/gpu-kernels";
import { skeinContestant } from "../../src/contestants/skein-contestant.ts";
import { serveOnPage } from "../../src/measure/serve-page.ts";

await serveOnPage(async () => {
  const backend = await createWebGpuBackend({ gpu: navigator.gpu });
  return skeinContestant(backend, () => backend.device.gpu.queue.onSubmittedWorkDone());
});
