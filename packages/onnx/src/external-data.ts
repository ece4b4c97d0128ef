import type { OnnxTensor } from "./proto.ts";

/**
 * Minimum size in bytes of tensors that are moved to the separate file. Smaller tensors stay in the model, where
 * programs that infer shapes look for them.
 */
const minBytes = 1024;
/**
 * Alignment of tensors in the separate file, in bytes: the size of a memory page, so that runtimes can map tensors into
 * memory.
 */
const pageBytes = 4096;
/** Alignment of large tensors in the separate file, in bytes. Windows can map files only at multiples of this size. */
const coarsePageBytes = 65_536;
const coarseFrom = 2 ** 20;
/** Maximum size in bytes of one element of `pieces`, because operating systems limit the size of one write. */
const maxPieceBytes = 2 ** 30;

/** Tensors of a model. Some tensors are stored in a separate file. */
export interface ExternalData {
  readonly initialisers: ReadonlyMap<string, OnnxTensor>;
  /** Content of the separate file, in order: views of the tensors, with zeros between tensors for alignment. */
  readonly pieces: readonly Uint8Array[];
}

/**
 * Moves all tensors except small tensors to a separate file. Tensors are stored consecutively, each aligned to a page.
 * Source: https://github.com/onnx/onnx/blob/main/docs/ExternalData.md
 *
 * @param locationOf Returns the name of the separate file in the folder of the model, given the content of the file.
 */
export const withExternalData = (
  initialisers: ReadonlyMap<string, OnnxTensor>,
  locationOf: (pieces: readonly Uint8Array[]) => string,
): ExternalData => {
  const pieces: Uint8Array[] = [];
  const offsets = new Map<string, number>();
  let end = 0;
  for (const [name, { bytes }] of initialisers) {
    if (bytes.length < minBytes) continue;
    const page = bytes.length < coarseFrom ? pageBytes : coarsePageBytes;
    const offset = Math.ceil(end / page) * page;
    if (offset > end) pieces.push(new Uint8Array(offset - end));
    for (let from = 0; from < bytes.length; from += maxPieceBytes)
      pieces.push(bytes.subarray(from, from + maxPieceBytes));
    end = offset + bytes.length;
    offsets.set(name, offset);
  }
  const location = offsets.size === 0 ? "" : locationOf(pieces);
  const placed = [...initialisers].map(([name, tensor]): [string, OnnxTensor] => {
    const offset = offsets.get(name);
    return [name, offset === undefined ? tensor : { ...tensor, external: { location, offset } }];
  });
  return { initialisers: new Map(placed), pieces };
};
