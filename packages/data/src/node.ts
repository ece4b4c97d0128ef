export { type DataPackage, dataPackages, findPackage, installCommand } from "./node/data-packages.ts";
export { loadFashionMnist } from "./node/load-fashion-mnist.ts";
export { type IdxOptions, type IdxPair, loadIdx } from "./node/load-idx.ts";
export { type ImageFolder, type ImageFolderOptions, loadImageFolder } from "./node/load-image-folder.ts";
export { loadMnist, loadMobyDick, loadText } from "./node/load.ts";
export { loadNumpy, type NumpyOptions } from "./node/load-numpy.ts";
export { loadTokenizer, tokenizerFile } from "./node/load-tokenizer.ts";
export { type Prefetched, Prefetcher, type PrefetchOptions } from "./node/prefetch.ts";
