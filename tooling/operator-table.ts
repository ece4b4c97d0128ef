import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as cpu from "@skein/cpu-kernels";
import * as gpu from "@skein/gpu-kernels";
import { type ConformanceCase, conformanceCases } from "@skein/testing";
import { type DType, dtypes, flattenTree, type Graph, type Tensor, trace } from "@skein/tensor-core";
import { operators } from "@skein/tensor-core/backend";
import { repository } from "./repository.ts";

/** Path of the page with the table of operators. Two markers enclose the table. */
export const tablePage = "packages/gpu-kernels/README.md";
const [begin, end] = ["<!-- operators: begin -->", "<!-- operators: end -->"];

const backends: { readonly [name: string]: (graph: Graph) => readonly string[] } = {
  cpu: (graph) => cpu.unsupportedOnCpu(cpu.prepareForCpu(graph)),
  webgpu: (graph) => gpu.unsupportedOnWebGpu(gpu.prepareForWebGpu(graph, gpu.minimalDevice), gpu.minimalDevice),
};

/**
 * Whether an operator needs no row, because the executable runs the operator itself, or expands it before a backend
 * receives it.
 */
const withoutRows = (name: string): boolean =>
  ["input", "collective-start", "collective-done"].includes(name) || operators[name]!.collective !== undefined;

const graphOf = (row: ConformanceCase): Graph =>
  trace((...inputs: Tensor[]) => flattenTree<Tensor>(row.fn(...inputs)).leaves, row.inputs as never).graph;

/**
 * Returns the supported dtypes per operator and backend, according to the conformance cases that compile. The dtype is
 * the dtype of the first operand, or of the result if there is no operand.
 */
export const supportedDtypes = (): ReadonlyMap<string, { readonly [backend: string]: readonly DType[] }> => {
  const found = new Map<string, { [backend: string]: Set<DType> }>();
  for (const row of conformanceCases) {
    const cells =
      found.get(row.op) ?? Object.fromEntries(Object.keys(backends).map((name) => [name, new Set<DType>()]));
    found.set(row.op, cells);
    const graph = graphOf(row);
    const result = graph.outputs[0]!;
    const dtype = row.inputs[0]?.dtype ?? graph.nodes[result.node]!.specs[result.output]!.dtype;
    for (const [name, reasons] of Object.entries(backends))
      if (!cells[name]!.has(dtype) && reasons(graph).length === 0) cells[name]!.add(dtype);
  }
  const ordered = [...found].sort(([a], [b]) => a.localeCompare(b));
  return new Map(
    ordered.map(([op, cells]) => [
      op,
      Object.fromEntries(Object.entries(cells).map(([name, set]) => [name, dtypes.filter((dtype) => set.has(dtype))])),
    ]),
  );
};

/** Returns operators that a backend must run but that have no row in the table. */
export const missingOperators = (): string[] => {
  const found = supportedDtypes();
  return Object.keys(operators).filter((name) => !withoutRows(name) && !found.has(name));
};

export const operatorTable = (): string => {
  const names = Object.keys(backends);
  const lines = [...supportedDtypes()].map(
    ([op, cells]) => `| \`${op}\` | ${names.map((name) => cells[name]!.join(" ") || "–").join(" | ")} |`,
  );
  return [`| operator | ${names.join(" | ")} |`, `| --- | ${names.map(() => "---").join(" | ")} |`, ...lines].join(
    "\n",
  );
};

/** Returns the table in a page, which is the text between the markers. */
export const printedTable = (page: string): string =>
  page.slice(page.indexOf(begin) + begin.length, page.indexOf(end)).trim();

if (import.meta.main) {
  const path = join(repository, tablePage);
  const page = readFileSync(path, "utf8");
  writeFileSync(
    path,
    `${page.slice(0, page.indexOf(begin) + begin.length)}\n${operatorTable()}\n${page.slice(page.indexOf(end))}`,
  );
}
