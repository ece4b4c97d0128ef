import { threadFile, threadFlags, type WasmMemory, type WasmModule } from "@skein/tensor-core/backend";
import type { ThreadProduct } from "../blas.ts";
import { HostError } from "../errors.ts";

/** Data that a helper receives at start. */
export interface HelperSetup {
  readonly module: WasmModule;
  readonly memory: WasmMemory;
  /** Memory that all threads of a team share: state words, and the text of an error message; see `ParallelRegion`. */
  readonly shared: SharedArrayBuffer;
  readonly spins: number;
  readonly product: ThreadProduct | undefined;
}

/** A helper thread, which runs parts of kernels. The thread does not prevent the process from exiting. */
export interface HelperThread {
  /** Resolves when the thread waits for work. */
  readonly ready: Promise<void>;
  /** Resolves with the reason when the thread has exited. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

/**
 * Node's function that returns built-in modules. Undefined in a browser. Read from the global `process`, because a
 * browser cannot resolve an import of a Node module.
 */
const builtinModule = globalThis.process?.getBuiltinModule as typeof process.getBuiltinModule | undefined;

const startInNode = (node: typeof process.getBuiltinModule, setup: HelperSetup): HelperThread => {
  const { Worker } = node("node:worker_threads");
  const file = threadFile(
    () => new URL("./helper-thread.ts", import.meta.url),
    "@skein/cpu-kernels",
    node("node:fs").existsSync,
  );
  const worker = new Worker(file, {
    workerData: setup,
    name: "kernels",
    resourceLimits: { maxYoungGenerationSizeMb: 2 }, // helpers allocate few objects
    ...threadFlags(process.execArgv),
  });
  const ready = new Promise<void>((resolve) => worker.once("message", () => resolve()));
  const ended = new Promise<string>((resolve) => {
    worker.once("error", (error: Error) => resolve(error.message));
    worker.once("exit", (code) => resolve(`it ended with code ${code}`));
  });
  void ready.then(() => worker.unref());
  return { ready, ended, stop: async () => void (await worker.terminate()) };
};

const startInBrowser = (setup: HelperSetup): HelperThread => {
  // Bundlers only recognize a worker by exactly this expression.
  const worker = new Worker(new URL("./helper-thread.ts", import.meta.url), { type: "module", name: "kernels" });
  const ready = new Promise<void>((resolve) => worker.addEventListener("message", () => resolve(), { once: true }));
  const ended = new Promise<string>((resolve) =>
    worker.addEventListener("error", ({ message }) => resolve(message || "its file could not be loaded")),
  );
  worker.postMessage(setup);
  return { ready, ended, stop: async () => worker.terminate() };
};

/**
 * Starts a helper thread.
 *
 * @throws HostError if threads cannot share memory, that is, in a page that is not cross-origin isolated.
 * ThreadFileError if a bundle for Node does not contain the helper's file.
 */
export const startHelper = (setup: HelperSetup): HelperThread => {
  if (builtinModule !== undefined) return startInNode(builtinModule, setup);
  if (!globalThis.crossOriginIsolated)
    throw new HostError(
      "kernel threads need shared memory, which this page does not have: serve the page with COOP/COEP headers (cross-origin isolation), or use one thread",
    );
  return startInBrowser(setup);
};
