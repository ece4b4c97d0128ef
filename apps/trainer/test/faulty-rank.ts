import { existsSync, writeFileSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { describeError } from "@skein/cli/node";
import type { WebGpuBackend } from "@skein/gpu-kernels";
import type { DeviceState } from "@skein/step/node";
import { type Backend, type DeviceArray, flattenTree, unflattenTree } from "@skein/tensor-core";
import type { RankInput, RankMessage } from "../src/rank/messages.ts";
import { trainRank } from "../src/rank/train-rank.ts";

/** A fault that is injected once over all attempts of a run. */
export interface RankFault {
  /**
   * The WebGPU device of the rank is lost; a bit of its first parameter flips; or its thread ends, either before the
   * step, or between moves of experts after the step, when the experts of one layer have moved and the experts of the
   * next layer have not.
   */
  readonly kind: "lose-device" | "flip-bit" | "end" | "end-amid-moves";
  readonly rank: number;
  /** Number of the step before which the fault is injected. */
  readonly step: number;
  /** Path of a file that does not exist yet. The file is written when the fault has been injected. */
  readonly mark: string;
}

/**
 * Name of the environment variable with the fault. Threads inherit the environment, but do not receive the query of a
 * URL.
 */
const variable = "SKEIN_TEST_FAULT";

/** Returns the entry file of a faulty rank's thread, for runs that are started after this call. */
export const faultyRank = (fault: RankFault): URL => {
  process.env[variable] = JSON.stringify(fault);
  return new URL("./faulty-rank.ts", import.meta.url);
};

/**
 * Returns the state with one flipped bit, as after a memory fault. The bit is so significant that rounding does not
 * hide the change.
 */
const withFlippedBit = async (state: DeviceState, backend: Backend): Promise<DeviceState> => {
  const { leaves, structure } = flattenTree<DeviceArray>(state.params);
  const array = await backend.download(leaves[0]!);
  array.bytes()[2]! ^= 1;
  backend.free(leaves[0]!);
  return { ...state, params: unflattenTree(structure, [backend.upload(array), ...leaves.slice(1)]) };
};

/**
 * Number of uploads before the thread ends. Placements are uploaded twice for each layer: for the move, and as the new
 * state.
 */
const uploadsBefore = 2;

const endAmidMoves = (backend: Backend): void => {
  const upload = backend.upload.bind(backend);
  let numPlaces = 0;
  backend.upload = (array) => {
    if (array.dtype === "i32" && array.shape.length === 1 && numPlaces++ === uploadsBefore) process.exit(1);
    return upload(array);
  };
};

// Vitest also runs tests in threads; only the thread of a rank has a connection.
if (parentPort !== null && (workerData as Partial<RankInput>).connection !== undefined) {
  const { kind, rank, step, mark } = JSON.parse(process.env[variable]!) as RankFault;
  const input = workerData as RankInput;
  const post = (message: RankMessage): void => parentPort!.postMessage(message);
  trainRank(input, post, async (state, next, backend) => {
    if (next !== step || input.connection.rank !== rank || existsSync(mark)) return state;
    writeFileSync(mark, "");
    if (kind === "flip-bit") return withFlippedBit(state, backend);
    if (kind === "end") process.exit(1);
    if (kind === "end-amid-moves") {
      endAmidMoves(backend);
      return state;
    }
    (backend as WebGpuBackend).device.gpu.destroy();
    return state;
  }).catch((error: unknown) => post({ type: "failed", error: describeError(error) }));
}
