import { elementCount } from "@skein/tensor-core";
import type { FusedParams, KernelNode } from "@skein/tensor-core/backend";
import type { Binding, Pass } from "../../kernel.ts";
import { expressionOf } from "./expressions.ts";
import { functionsFor } from "./functions.ts";
import { literal } from "./literal.ts";
import { packVector, vectorBinding } from "./vectors.ts";
import { readOperand, walkOf } from "./views.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 128;

/**
 * Runs a complete elementwise program in one pass over memory: each invocation computes four adjacent elements in
 * vectors. All operands are read before the first result is written, so results may overwrite operands. Programs
 * without broadcast operands share a pipeline for all lengths.
 *
 * Bytes: every operand is read once, and every result is written once. Format of a program: `FusedParams`.
 */
export const fusedPass = (node: KernelNode<FusedParams>): Pass => {
  const { shape, views, instructions, results } = node.params;
  const vectors = Math.ceil(elementCount(shape) / 4);
  const bindings: Binding[] = [];
  const body: string[] = [];
  const dtypes = [...node.inputs.map((input) => input.dtype), ...instructions.map((instruction) => instruction.dtype)];
  /**
   * Names of the variables that hold the bits of 16-bit floats, by register. Only floats that this program has rounded
   * have such a variable.
   */
  const encoded = new Map<number, string>();

  const reads = node.inputs.map(({ dtype }, i) => readOperand(`x${i}`, dtype, shape, views[i]!.strides));
  body.push(...walkOf(shape, reads.find(({ walk }) => walk !== "none")?.walk ?? "none"));
  reads.forEach(({ type, expression }, i) => {
    bindings.push({ name: `x${i}`, type, source: { input: i }, access: "read" });
    body.push(`let r${i} = ${expression};`);
  });
  instructions.forEach((instruction, j) => {
    const { op, args, dtype, params } = instruction;
    const register = node.inputs.length + j;
    const expression =
      op === "constant"
        ? literal(Number(params["value"]), dtype)
        : expressionOf(
            instruction,
            args.map((arg) => `r${arg}`),
            args.map((arg) => dtypes[arg]!),
          );
    if ((op === "cast" || op === "constant") && (dtype === "f16" || dtype === "bf16")) {
      encoded.set(register, `h${register}`);
      body.push(
        `let h${register} = encode_${dtype}(${expression});`,
        `let r${register} = decode_${dtype}(h${register});`,
      );
    } else body.push(`let r${register} = ${expression};`);
  });
  results.forEach((register, i) => {
    const { dtype } = node.outputs[i]!;
    bindings.push({ name: `y${i}`, type: vectorBinding(dtype), source: { output: i }, access: "write" });
    body.push(`y${i}[at] = ${packVector(`r${register}`, dtype, encoded.get(register))};`);
  });
  const code = wgsl`
    ${functionsFor(body.join("\n"))}
    ${reads.map(({ functions }) => functions)}
    fn main(group: u32, lane: u32) {
      let at = group * ${workgroupSize}u + lane;
      if (at >= sizes.vectors) { return; }
      ${body}
    }
  `;
  return {
    label: "fused",
    bindings,
    workgroupSize,
    groups: Math.ceil(vectors / workgroupSize),
    code,
    sizes: { vectors, never: 0 },
  };
};
