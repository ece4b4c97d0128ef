import type { MatmulModel } from "./matmul-model.ts";
import { readMatmulModel } from "./parse-matmul-model.ts";

/** Store of measured models, by adapter. */
export interface ChoiceStore {
  /**
   * Returns the model stored for an adapter, or undefined if no model is stored. Throws ArgumentError if the stored
   * value is not a model.
   */
  readonly load: (adapter: string) => Promise<MatmulModel | undefined>;
  readonly save: (model: MatmulModel) => Promise<void>;
}

/** Returns the storage key of an adapter, for stores whose keys may only contain simple characters. */
export const storeKey = (adapter: string): string => {
  let hash = 0x811c9dc5; // hashed with FNV-1a, so that adapters with equal simple names have different keys
  for (const char of adapter) hash = Math.imul(hash ^ char.codePointAt(0)!, 0x01000193) >>> 0;
  const plain = adapter
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 60);
  return `matmul-${plain}-${hash.toString(16).padStart(8, "0")}`;
};

/** Methods of `localStorage` that the store uses. Declared here because the type `Storage` exists only in pages. */
export interface TextStorage {
  getItem(key: string): string | null;
  setItem(key: string, text: string): void;
}

/**
 * Creates a store in `localStorage` of a page, or in any object with the same methods.
 *
 * @example
 * ```ts
 * const values = new Map<string, string>();
 * const storage = {
 *   getItem: (key: string) => values.get(key) ?? null,
 *   setItem: (key: string, value: string) => void values.set(key, value),
 * }; // in a page: localStorage
 * console.log(await webChoiceStore(storage).load("an adapter")); // undefined
 * ```
 */
export const webChoiceStore = (storage: TextStorage): ChoiceStore => ({
  load: async (adapter) => {
    const text = storage.getItem(storeKey(adapter));
    return text === null ? undefined : readMatmulModel(text);
  },
  save: async (model) => storage.setItem(storeKey(model.adapter), JSON.stringify(model)),
});
