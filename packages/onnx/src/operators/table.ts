import { elementwise } from "./elementwise.ts";
import type { EmitterTable } from "./emitter.ts";
import { movement } from "./movement.ts";
import { products } from "./products.ts";
import { rows } from "./rows.ts";

/** Why operators without an emitter are not written, where more can be said than that ONNX has none. */
export const unwritten: ReadonlyMap<string, string> = new Map([
  ["grouped-matmul", "mixtures of experts are not exported; export a dense model"],
  ["random-bits", "no operators of ONNX give the same random numbers; export the function without them"],
]);

/** How each operator is written, by its name. */
export const emitters: EmitterTable = new Map([...elementwise, ...movement, ...products, ...rows]);
