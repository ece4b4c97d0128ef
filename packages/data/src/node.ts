export { loadFashionMnist } from "./node/load-fashion-mnist.ts";
export { loadMnist, loadMobyDick } from "./node/load.ts";
export { type Prefetched, Prefetcher, type PrefetchOptions } from "./node/prefetch.ts";
