import { elementwise } from "./elementwise.ts";
import type { EmitterTable } from "./emitter.ts";
import { movement } from "./movement.ts";
import { products } from "./products.ts";
import { rows } from "./rows.ts";

/** How each operator is written, by its name. */
export const emitters: EmitterTable = new Map([...elementwise, ...movement, ...products, ...rows]);
