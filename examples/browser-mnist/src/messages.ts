/** What the page and its training worker tell each other. Plain data. */

export const modelNames = ["cnn", "mlp"] as const;
export type ModelName = (typeof modelNames)[number];

/**
 * What of a gradient travels between ranks: all of it, or its largest entries, while the others wait for their turn.
 */
export const compressionNames = ["none", "top-k"] as const;
export type CompressionName = (typeof compressionNames)[number];

/** Backends that an address may ask for; `best` is a GPU where there is one, else WebAssembly. */
export const backendWishes = ["best", "webgpu", "cpu"] as const;
export type BackendWish = (typeof backendWishes)[number];

export interface Settings {
  readonly model: ModelName;
  /** Samples of a step, of all ranks together. */
  readonly batchSize: number;
  /** Workers that train together, each on its part of every batch. */
  readonly ranks: 1 | 2;
  /** Where there are two. */
  readonly compression: CompressionName;
  readonly seed: number;
}

/** Test digits that are shown, with their pictures: 28 × 28 bytes each, 0 is paper. */
export interface ShownDigits {
  readonly pixels: Uint8Array;
  readonly labels: Uint8Array;
}

/** What the model reads in the shown digits. */
export interface Readings {
  readonly classes: Int32Array;
  /** Probability that the model gives to what it reads, 0…1. */
  readonly confidences: Float32Array;
}

export type Command =
  /** Sent once and first. `digits` is the URL of the folder with the IDX files. */
  | { readonly type: "open"; readonly backend: BackendWish; readonly digits: string }
  /** New parameters; training stands still. */
  | { readonly type: "reset"; readonly settings: Settings }
  | { readonly type: "train" }
  | { readonly type: "pause" }
  /** What is in a drawn digit? 28 × 28 bytes, as MNIST has them. */
  | { readonly type: "read"; readonly pixels: Uint8Array<ArrayBuffer> }
  | { readonly type: "save" };

export type Report =
  | {
      readonly type: "opened";
      readonly backend: "webgpu" | "cpu";
      /** The adapter's name, or the kind of processor code. */
      readonly device: string;
      /** Why it is not a GPU that trains; absent when it is. */
      readonly notice?: string;
      /** Why two ranks cannot train together here; absent when they can. */
      readonly oneRankOnly?: string;
      readonly trainCount: number;
      readonly testCount: number;
      readonly shown: ShownDigits;
    }
  | { readonly type: "reset"; readonly parameterCount: number }
  /** Losses of the steps since the last report, in order; `step` counts those done. */
  | {
      readonly type: "steps";
      readonly step: number;
      readonly losses: Float32Array;
      readonly stepsPerSecond: number;
      readonly bytesInUse: number;
      /** What a rank has sent to the other, per step; 0 where there is none. */
      readonly bytesSentPerStep: number;
    }
  /** `accuracy` on the test digits, 0…1, after `step` steps. */
  | { readonly type: "evaluated"; readonly step: number; readonly accuracy: number; readonly readings: Readings }
  /** What a model sees in the drawn digit: a probability for each class. */
  | { readonly type: "read"; readonly probabilities: Float32Array }
  /** A reset or a pause is done. */
  | { readonly type: "standstill"; readonly step: number }
  /** Training goes on if it did before. */
  | { readonly type: "saved"; readonly file: Uint8Array<ArrayBuffer> }
  /** The worker does nothing more; the page may start another. */
  | { readonly type: "failed"; readonly message: string };
