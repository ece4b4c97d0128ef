import { Rows } from "@skein/run-files";
import type { MessageHeader } from "../encode-rows.ts";

/** Metric tables of a run that are loaded in the page, by line type. */
export interface LoadedTables {
  generation: number;
  byType: Map<string, Rows>;
}

/**
 * Adds the rows of a message of `/api/rows`. If the generation has changed, all earlier rows are removed.
 *
 * @param message Bytes written by `encodeRows`.
 */
export const applyRows = (tables: LoadedTables, message: ArrayBuffer): void => {
  const headerBytes = new DataView(message).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(message, 4, headerBytes))) as MessageHeader;
  if (header.generation !== tables.generation) {
    tables.generation = header.generation;
    tables.byType = new Map();
  }
  let offset = Math.ceil((4 + headerBytes) / 8) * 8;
  for (const { type, from, count, names } of header.tables) {
    const rows = tables.byType.get(type) ?? new Rows();
    tables.byType.set(type, rows);
    const steps = new Float64Array(message, offset, count);
    const times = new Float64Array(message, offset + 8 * count, count);
    offset += 16 * count;
    const columns = new Map<string, Float32Array>();
    for (const name of names) {
      columns.set(name, new Float32Array(message, offset, count));
      offset += Math.ceil(count / 2) * 8;
    }
    if (rows.length === from) rows.append(steps, times, columns);
  }
};
