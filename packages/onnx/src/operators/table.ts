import { elementwise } from "./elementwise.ts";
import type { EmitterTable } from "./emitter.ts";
import { movement } from "./movement.ts";
import { products } from "./products.ts";
import { rows } from "./rows.ts";

/**
 * Reasons why some operators have no emitter, by operator name. All other operators without an emitter have no ONNX
 * equivalent.
 */
export const unwritten: ReadonlyMap<string, string> = new Map([
  ["grouped-matmul", "mixtures of experts are not exported; export a dense model"],
  ["random-bits", "no operators of ONNX give the same random numbers; export the function without them"],
]);

/** Emitters by operator name. */
export const emitters: EmitterTable = new Map([...elementwise, ...movement, ...products, ...rows]);
