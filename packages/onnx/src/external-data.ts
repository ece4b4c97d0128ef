import type { OnnxTensor } from "./proto.ts";

/** Smaller tensors stay in the model, where programs that work out shapes look for them. */
const leastBytes = 1024;
/** Pages of memory: where tensors begin, so that runtimes can map them. */
const pageBytes = 4096;
/** Windows maps files from multiples of this on; it costs nothing beside tensors that are much larger. */
const coarsePageBytes = 65_536;
const coarseFrom = 2 ** 20;
/** No system writes more at once. */
const mostPieceBytes = 2 ** 30;

/** Tensors of a model, some of which lie in a file beside it. */
export interface ExternalData {
  readonly initialisers: ReadonlyMap<string, OnnxTensor>;
  /** The bytes of that file, in order; views of the tensors, and zeros between them. */
  readonly pieces: readonly Uint8Array[];
}

/**
 * Put all tensors but small ones into a file beside the model, one after the other, each at a multiple of a page.
 *
 * @param locationOf gives the name of the file, in the folder of the model, for the pieces that it will hold.
 * Source: https://github.com/onnx/onnx/blob/main/docs/ExternalData.md
 */
export const withExternalData = (
  initialisers: ReadonlyMap<string, OnnxTensor>,
  locationOf: (pieces: readonly Uint8Array[]) => string,
): ExternalData => {
  const pieces: Uint8Array[] = [];
  const offsets = new Map<string, number>();
  let end = 0;
  for (const [name, { bytes }] of initialisers) {
    if (bytes.length < leastBytes) continue;
    const page = bytes.length < coarseFrom ? pageBytes : coarsePageBytes;
    const offset = Math.ceil(end / page) * page;
    if (offset > end) pieces.push(new Uint8Array(offset - end));
    for (let from = 0; from < bytes.length; from += mostPieceBytes)
      pieces.push(bytes.subarray(from, from + mostPieceBytes));
    end = offset + bytes.length;
    offsets.set(name, offset);
  }
  const location = offsets.size === 0 ? "" : locationOf(pieces);
  const laidOut = [...initialisers].map(([name, tensor]): [string, OnnxTensor] => {
    const offset = offsets.get(name);
    return [name, offset === undefined ? tensor : { ...tensor, external: { location, offset } }];
  });
  return { initialisers: new Map(laidOut), pieces };
};
