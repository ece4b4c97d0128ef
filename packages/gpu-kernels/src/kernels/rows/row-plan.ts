import { elementCount, type TensorSpec } from "@skein/tensor-core";
import type { DeviceFacts, KernelPlan } from "../../kernel.ts";
import { type RowLayout, rowLayout } from "./row-layout.ts";
import { applyPass, partialPass, residentPass, streamedPass } from "./row-passes.ts";
import type { RowProgram } from "./row-program.ts";

/** Returns the number of rows (along the last dimension) of a value, and their length. */
export const rowsOf = ({ shape }: TensorSpec): { rows: number; columns: number } => ({
  rows: elementCount(shape.slice(0, -1)),
  columns: shape.at(-1)!,
});

/** Returns the plan of a program under a layout: one pass, or two passes if a row is split over workgroups. */
export const planWith = (program: RowProgram, layout: RowLayout, rows: number): KernelPlan => {
  if (layout.kind === "resident") return { passes: [residentPass(program, layout, rows)] };
  if (layout.parts === 1) return { passes: [streamedPass(program, layout, rows)] };
  if (program.statistics === undefined) return { passes: [applyPass(program, layout, rows)] };
  return {
    scratch: [16 * rows * layout.parts],
    passes: [partialPass(program, layout, rows), applyPass(program, layout, rows)],
  };
};

/** Returns the plan of a program over the rows of `spec`, which must have at least one element. */
export const rowPlan = (program: RowProgram, spec: TensorSpec, facts: DeviceFacts): KernelPlan => {
  const { rows, columns } = rowsOf(spec);
  return planWith(program, rowLayout(columns, facts, program.finish !== undefined), rows);
};
