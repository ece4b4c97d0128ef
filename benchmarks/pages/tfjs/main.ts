import "@tensorflow/tfjs-backend-webgpu";
import * as tf from "@tensorflow/tfjs";
import { tfjsContestant } from "../../src/contestants/tfjs-contestant.ts";
import { serveOnPage } from "../../src/measure/serve-page.ts";

interface WebGpuEngine {
  readonly commandEncoder: GPUCommandEncoder | null;
  endComputePassEncoder(): void;
  submitQueue(): void;
  readonly device: GPUDevice;
}

await serveOnPage(async () => {
  if (!(await tf.setBackend("webgpu"))) throw new Error("its WebGPU backend does not start here");
  await tf.ready();
  return tfjsContestant(async () => {
    const engine = tf.backend() as unknown as WebGpuEngine;
    // TensorFlow.js collects commands and submits them later.
    if (engine.commandEncoder !== null) {
      engine.endComputePassEncoder();
      engine.submitQueue();
    }
    await engine.device.queue.onSubmittedWorkDone();
  });
});
