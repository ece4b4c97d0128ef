/** Messages between the page and its training worker. Plain data. */

export const modelNames = ["cnn", "mlp"] as const;
export type ModelName = (typeof modelNames)[number];

/** Compression of the gradients that ranks exchange: none, or only the largest entries, with error feedback. */
export const compressionNames = ["none", "top-k"] as const;
export type CompressionName = (typeof compressionNames)[number];

/** Backends that the query string may request; `best` is a GPU if there is one, otherwise WebAssembly. */
export const backendWishes = ["best", "webgpu", "cpu"] as const;
export type BackendWish = (typeof backendWishes)[number];

export interface Settings {
  readonly model: ModelName;
  /** Global batch size: samples per step, over all ranks. */
  readonly batchSize: number;
  /** Number of workers that train together, each on its part of every batch. */
  readonly ranks: 1 | 2;
  /** Gradient compression; has an effect only with two ranks. */
  readonly compression: CompressionName;
  readonly seed: number;
}

/** Test digits that the page shows, with their images: 28 × 28 bytes each, 0 is background. */
export interface ShownDigits {
  readonly pixels: Uint8Array;
  readonly labels: Uint8Array;
}

/** Predictions of the model for the shown digits. */
export interface Readings {
  readonly classes: Int32Array;
  /** Probability of the predicted class, 0…1. */
  readonly confidences: Float32Array;
}

export type Command =
  /** Sent once, before all other commands. `digits` is the URL of the folder with the IDX files. */
  | { readonly type: "open"; readonly backend: BackendWish; readonly digits: string }
  /** Starts a new training with new parameters, paused. */
  | { readonly type: "reset"; readonly settings: Settings }
  | { readonly type: "train" }
  | { readonly type: "pause" }
  /** Requests a prediction for a drawn digit: 28 × 28 bytes in MNIST's format. */
  | { readonly type: "read"; readonly pixels: Uint8Array<ArrayBuffer> }
  | { readonly type: "save" };

export type Report =
  | {
      readonly type: "opened";
      readonly backend: "webgpu" | "cpu";
      /** Name of the adapter, or the build of the WebAssembly kernels. */
      readonly device: string;
      /** Why training does not use a GPU. Absent: training uses a GPU. */
      readonly notice?: string;
      /** Why two ranks cannot train together here. Absent: two ranks are possible. */
      readonly oneRankOnly?: string;
      readonly trainCount: number;
      readonly testCount: number;
      readonly shown: ShownDigits;
    }
  | { readonly type: "reset"; readonly parameterCount: number }
  /** Losses of the steps since the last report, in order; `step` is the number of completed steps. */
  | {
      readonly type: "steps";
      readonly step: number;
      readonly losses: Float32Array;
      readonly stepsPerSecond: number;
      readonly bytesInUse: number;
      /** Bytes sent by a rank per step; 0 with a single rank. */
      readonly bytesSentPerStep: number;
    }
  /** `accuracy` on the test digits, 0…1, after `step` steps. */
  | { readonly type: "evaluated"; readonly step: number; readonly accuracy: number; readonly readings: Readings }
  /** Probabilities of the classes for the drawn digit. */
  | { readonly type: "read"; readonly probabilities: Float32Array }
  /** A reset or a pause is complete. */
  | { readonly type: "standstill"; readonly step: number }
  /** The model was saved; training continues if it was running. */
  | { readonly type: "saved"; readonly file: Uint8Array<ArrayBuffer> }
  /** The worker has stopped; the page may start another. */
  | { readonly type: "failed"; readonly message: string };
