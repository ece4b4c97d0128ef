export { readBatch } from "./node/batch-filler.ts";
export { findInParquet, type ParquetOptions } from "./node/find-in-parquet.ts";
export { findInShards, type ShardOptions } from "./node/find-in-shards.ts";
export { findImages, type FoundImages, type ImageFile } from "./node/find-images.ts";
export { readManifest } from "./node/read-manifest.ts";
export type { TarEntry } from "./node/tar-entries.ts";
export { isAddress } from "./node/byte-source.ts";
export { type PackageFinding, surveyDataPackages } from "./node/data-packages.ts";
export { loadFashionMnist } from "./node/load-fashion-mnist.ts";
export {
  type DocumentOptions,
  type Documents,
  haveFields,
  joinDocuments,
  loadDocuments,
} from "./node/load-documents.ts";
export { type IdxOptions, type IdxPair, loadIdx } from "./node/load-idx.ts";
export {
  type ImageOptions,
  type Images,
  loadFoundImages,
  loadImageFolder,
  loadImageManifest,
  loadImageShards,
  openFoundImages,
  openImageFolder,
  openImageManifest,
  openImageShards,
} from "./node/load-images.ts";
export { loadMnist, loadMobyDick, loadText } from "./node/load.ts";
export { loadNumpy, type NumpyOptions } from "./node/load-numpy.ts";
export { loadTokenizer, tokenizerFile } from "./node/load-tokenizer.ts";
export { loadTokenFile, openTokenFile, type TokenFile, type TokenFileOptions } from "./node/load-token-file.ts";
export type { DecoderName } from "./node/image-decoder.ts";
export type { DamagedImage } from "./node/image-reader.ts";
export type { LazyOptions } from "./node/open-sources.ts";
export { EvaluationReader, type EvaluationReaderOptions, readEvaluationBatches } from "./node/evaluation-reader.ts";
export { type Prefetched, Prefetcher, type PrefetchOptions } from "./node/prefetch.ts";
export { type LearnedTokenizer, trainTokenizer } from "./node/train-tokenizer.ts";
export {
  type ImageStreamOptions,
  openImageStream,
  openTextStream,
  type StreamOptions,
  type TextStreamOptions,
} from "./node/streams/open-streams.ts";
