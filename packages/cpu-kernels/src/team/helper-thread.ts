// A helper thread of a team: runs parts of kernels until the team is closed. Started by `start-helper.ts`.
import type { WasmMemory } from "@skein/tensor-core/backend";
import type { Sgemm } from "../blas.ts";
import { instantiateWasm } from "../wasm-build.ts";
import { ParallelRegion } from "./parallel-region.ts";
import type { HelperSetup } from "./start-helper.ts";
import { TeamFunctions } from "./team.ts";

interface ProductModule {
  readonly openInThread: (data: unknown, memory: WasmMemory) => Sgemm;
}

/** Properties of a worker's global scope that this file uses. Node has the same functions in a module. */
interface Scope {
  postMessage(message: unknown): void;
  addEventListener(type: "message", listener: (event: MessageEvent<HelperSetup>) => void): void;
}

const node = globalThis.process?.getBuiltinModule("node:worker_threads");
const scope = globalThis as unknown as Scope;

const { module, memory, shared, spins, product }: HelperSetup =
  node?.workerData ??
  (await new Promise<HelperSetup>((resolve) => scope.addEventListener("message", ({ data }) => resolve(data))));

const opened = product && ((await import(product.module)) as ProductModule).openInThread(product.data, memory);
const functions = new TeamFunctions(instantiateWasm(module, memory), opened);
(node?.parentPort ?? scope).postMessage("ready");
new ParallelRegion(shared, memory, functions).serve(spins);
