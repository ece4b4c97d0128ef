import { DataError } from "../errors.ts";
import { bytesOfToken, type FileWindows, lengthOf } from "../file-windows.ts";
import { batchLayout } from "../records.ts";
import { openFile } from "./file-pieces.ts";

/**
 * Returns a function that writes windows of a file's tokens into a batch. Caching is left to the operating system.
 *
 * @returns 0, the number of cached images.
 * @throws DataError if the file has changed, or, with the position of the token, if a token is beyond the vocabulary.
 */
export const fillFromFile =
  (windows: FileWindows) =>
  async (indices: ArrayLike<number>, target: Uint8Array): Promise<number> => {
    const { path, headerBytes, vocabulary } = windows.file;
    const length = lengthOf(windows);
    const each = bytesOfToken(windows.file);
    const { offsets } = batchLayout(windows, indices.length);
    const rowsOf = (field: string): Int32Array =>
      new Int32Array(target.buffer, target.byteOffset + offsets[field]!, length * indices.length);
    const [inputs, labels] = [rowsOf("inputs"), rowsOf("labels")];
    const bytes = new Uint8Array(each * (length + 1));
    const view = new DataView(bytes.buffer);
    // opened for each batch, so that a missing file is detected
    const file = openFile(path, "check that the file still exists and is complete", "tokens");
    try {
      for (let i = 0; i < indices.length; i++) {
        const first = windows.firstToken + indices[i]! * length;
        file.read(headerBytes + each * first, bytes);
        for (let t = 0; t <= length; t++) {
          const token = each === 2 ? view.getUint16(2 * t, true) : view.getUint32(4 * t, true);
          if (token >= vocabulary)
            throw new DataError(
              `${path}: token ${first + t}, at byte ${headerBytes + each * (first + t)}, is ${token}, but the vocabulary has ${vocabulary}; check dtype, headerBytes and vocabulary`,
            );
          if (t < length) inputs[i * length + t] = token;
          if (t > 0) labels[i * length + t - 1] = token;
        }
      }
    } finally {
      file.close();
    }
    return 0;
  };
