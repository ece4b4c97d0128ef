import * as jax from "@jax-js/jax";
import { jaxContestant } from "../../src/contestants/jax-js-contestant.ts";
import { serveOnPage } from "../../src/measure/serve-page.ts";

await serveOnPage(async () => {
  const devices = await jax.init("webgpu");
  if (!devices.includes("webgpu")) throw new Error("its WebGPU backend does not start here");
  jax.defaultDevice("webgpu");
  // Waits for submitted work, as the other pages do. jax-js itself waits by mapping an empty buffer, which a driver may
  // complete before the submitted work.
  return jaxContestant(__JAX_JS_VERSION__, () => jax.getWebGPUDevice().queue.onSubmittedWorkDone());
});
