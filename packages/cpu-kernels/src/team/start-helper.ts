import { threadFile, threadFlags, type WasmMemory, type WasmModule } from "@skein/tensor-core/backend";
import type { ThreadProduct } from "../blas.ts";
import { HostError } from "../errors.ts";

/** What a helper is told when it starts. */
export interface HelperSetup {
  readonly module: WasmModule;
  readonly memory: WasmMemory;
  /** The words of `ParallelRegion`. */
  readonly shared: SharedArrayBuffer;
  readonly spins: number;
  readonly product: ThreadProduct | undefined;
}

/** A thread that carries out parts of kernels. It never keeps a process alive. */
export interface HelperThread {
  /** It waits for work. */
  readonly ready: Promise<void>;
  /** It has ended, and why. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

/** Modules of Node; undefined in a browser. Found without an import, which a browser could not resolve. */
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
    resourceLimits: { maxYoungGenerationSizeMb: 2 }, // it makes little garbage
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
  // Bundlers know a worker by these very words.
  const worker = new Worker(new URL("./helper-thread.ts", import.meta.url), { type: "module", name: "kernels" });
  const ready = new Promise<void>((resolve) => worker.addEventListener("message", () => resolve(), { once: true }));
  const ended = new Promise<string>((resolve) =>
    worker.addEventListener("error", ({ message }) => resolve(message || "its file could not be loaded")),
  );
  worker.postMessage(setup);
  return { ready, ended, stop: async () => worker.terminate() };
};

/**
 * Start a helper.
 *
 * @throws HostError where threads cannot share memory: a page that is not cross-origin isolated. ThreadFileError in a
 * bundle for Node that has left its file behind.
 */
export const startHelper = (setup: HelperSetup): HelperThread => {
  if (builtinModule !== undefined) return startInNode(builtinModule, setup);
  if (!globalThis.crossOriginIsolated)
    throw new HostError(
      "threads of kernels share memory, which this page may not share: serve it with COOP/COEP headers (cross-origin isolation), or use one thread",
    );
  return startInBrowser(setup);
};
