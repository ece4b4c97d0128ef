import type { MatmulModel } from "./matmul-model.ts";
import { readMatmulModel } from "./parse-matmul-model.ts";

/** Keeps what was learned, by adapter. */
export interface ChoiceStore {
  /** @throws ArgumentError where something else lies in its place. */
  readonly load: (adapter: string) => Promise<MatmulModel | undefined>;
  readonly save: (model: MatmulModel) => Promise<void>;
}

/** Key of an adapter in stores that know plain names only. */
export const storeKey = (adapter: string): string => {
  let hash = 0x811c9dc5; // FNV-1a, so that adapters whose plain names agree stay apart
  for (const char of adapter) hash = Math.imul(hash ^ char.codePointAt(0)!, 0x01000193) >>> 0;
  const plain = adapter
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, 60);
  return `matmul-${plain}-${hash.toString(16).padStart(8, "0")}`;
};

/** What of `localStorage` is used, written out: `Storage` is a type of pages only. */
export interface TextStorage {
  getItem(key: string): string | null;
  setItem(key: string, text: string): void;
}

/** A store in `localStorage` of a page, or anything like it. */
export const webChoiceStore = (storage: TextStorage): ChoiceStore => ({
  load: async (adapter) => {
    const text = storage.getItem(storeKey(adapter));
    return text === null ? undefined : readMatmulModel(text);
  },
  save: async (model) => storage.setItem(storeKey(model.adapter), JSON.stringify(model)),
});
