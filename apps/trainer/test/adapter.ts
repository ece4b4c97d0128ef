import { openWebGpu } from "../src/backend/backend.ts";

/** Whether this machine has a WebGPU device, which may be a software device. */
export const hasAdapter: boolean = await openWebGpu().then(
  (backend) => {
    backend.close();
    return true;
  },
  () => false,
);
