import type { OnnxTensor } from "./proto.ts";

/**
 * Minimum size of tensors in the separate file, bytes. Smaller tensors stay in the model, where programs that infer
 * shapes look for them.
 */
const minBytes = 1024;
/** Alignment of tensors, bytes: the size of a memory page, so that runtimes can map them. */
const pageBytes = 4096;
/** Alignment of large tensors, bytes: Windows maps files at multiples of this size. */
const coarsePageBytes = 65_536;
const coarseFrom = 2 ** 20;
/** Maximum size of one write, bytes; no system writes more at once. */
const maxPieceBytes = 2 ** 30;

/** Tensors of a model, some of them in a separate file. */
export interface ExternalData {
  readonly initialisers: ReadonlyMap<string, OnnxTensor>;
  /** The content of the separate file, in order: views of the tensors, with zeros between them. */
  readonly pieces: readonly Uint8Array[];
}

/**
 * Moves all tensors except small ones to a separate file, one after the other, each aligned to a page.
 *
 * @param locationOf returns the name of the file, in the folder of the model, from its content.
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
