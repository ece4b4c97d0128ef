/** Messages between the page and its training worker. Plain data. */

export const modelNames = ["cnn", "mlp"] as const;
export type ModelName = (typeof modelNames)[number];

/** Names of the gradient compressions: no compression, or only the largest entries, with error feedback. */
export const compressionNames = ["none", "top-k"] as const;
export type CompressionName = (typeof compressionNames)[number];

/** Backends that the query string can request. `best`: a GPU if there is one, otherwise WebAssembly. */
export const backendWishes = ["best", "webgpu", "cpu"] as const;
export type BackendWish = (typeof backendWishes)[number];

export interface Settings {
  readonly model: ModelName;
  /** Global batch size: number of samples per step, over all ranks. */
  readonly batchSize: number;
  /** Number of workers that train together, each on its share of each batch. */
  readonly ranks: 1 | 2;
  /** Gradient compression. Has an effect only with two ranks. */
  readonly compression: CompressionName;
  readonly seed: number;
}

/** Test digits shown on the page, with their images of 28 × 28 bytes; 0 is background. */
export interface ShownDigits {
  readonly pixels: Uint8Array;
  readonly labels: Uint8Array;
}

/** Predictions of the model for the shown digits. */
export interface Readings {
  readonly classes: Int32Array;
  /** Probability of the predicted class, 0 to 1. */
  readonly confidences: Float32Array;
}

export type Command =
  /** Sent once, before all other commands. `digits` is the URL of the folder with the IDX files. */
  | { readonly type: "open"; readonly backend: BackendWish; readonly digits: string }
  /** Creates a new training run with new parameters. The run is paused at first. */
  | { readonly type: "reset"; readonly settings: Settings }
  | { readonly type: "train" }
  | { readonly type: "pause" }
  /** Requests a prediction for a drawn digit of 28 × 28 bytes in MNIST's format. */
  | { readonly type: "read"; readonly pixels: Uint8Array<ArrayBuffer> }
  | { readonly type: "save" };

export type Report =
  | {
      readonly type: "opened";
      readonly backend: "webgpu" | "cpu";
      /** Name of the GPU adapter, or of the build of the WebAssembly kernels. */
      readonly device: string;
      /** Reason why training does not use a GPU. Absent: training uses a GPU. */
      readonly notice?: string;
      /** Reason why two ranks cannot train together on this machine. Absent: two ranks can train together. */
      readonly oneRankOnly?: string;
      readonly trainCount: number;
      readonly testCount: number;
      readonly shown: ShownDigits;
    }
  | { readonly type: "reset"; readonly parameterCount: number }
  /** Losses of the steps since the last report, in order. `step` is the number of completed steps. */
  | {
      readonly type: "steps";
      readonly step: number;
      readonly losses: Float32Array;
      readonly stepsPerSecond: number;
      readonly bytesInUse: number;
      /** Bytes sent by one rank per step; 0 with a single rank. */
      readonly bytesSentPerStep: number;
    }
  /** Accuracy on the test digits, 0 to 1, after `step` steps, and the predictions for the shown digits. */
  | { readonly type: "evaluated"; readonly step: number; readonly accuracy: number; readonly readings: Readings }
  /** Class probabilities for the drawn digit. */
  | { readonly type: "read"; readonly probabilities: Float32Array }
  /** Sent after a reset or a pause is complete. */
  | { readonly type: "standstill"; readonly step: number }
  /** Saved model. A training run in progress continues. */
  | { readonly type: "saved"; readonly file: Uint8Array<ArrayBuffer> }
  /** The worker has stopped. The page may start a new worker. */
  | { readonly type: "failed"; readonly message: string };
