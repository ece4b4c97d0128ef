import { byteLength, OperatorError } from "@skein/tensor-core";
import type { KernelNode } from "@skein/tensor-core/backend";
import type { Binding, DeviceFacts, KernelPlan, Pass } from "./kernel.ts";

const isCount = (value: number, least: number, most: number): boolean =>
  Number.isInteger(value) && value >= least && value <= most;

/** Returns a description of an error in a pass of a user's kernel, or undefined if the pass is valid. */
const faultOf = (pass: Pass, plan: KernelPlan, node: KernelNode, facts: DeviceFacts): string | undefined => {
  const { bindings, workgroupSize, groups } = pass;
  if (!isCount(workgroupSize, 1, facts.maxWorkgroupSize))
    return `has workgroups of ${workgroupSize} invocations; ${facts.adapter} supports 1 to ${facts.maxWorkgroupSize}`;
  if (!isCount(groups, 0, 2 ** 32 - 1)) return `has ${groups} workgroups; the number must be an integer below 2^32`;
  if (bindings.length > facts.maxBindings)
    return `has ${bindings.length} bindings; ${facts.adapter} supports at most ${facts.maxBindings}`;
  const names = bindings.map(({ name }) => name);
  const duplicate = names.find((name, i) => names.indexOf(name) !== i);
  if (duplicate !== undefined) return `has two bindings with the name ${duplicate}; use unique names`;
  const exists = ({ source }: Binding): boolean => {
    const [[kind, index] = ["", 0]] = Object.entries(source) as [string, number][];
    const blocks: { readonly [kind: string]: readonly unknown[] | undefined } = {
      input: node.inputs,
      output: node.outputs,
      scratch: plan.scratch,
      constants: plan.constants,
    };
    return isCount(index, 0, (blocks[kind]?.length ?? 0) - 1);
  };
  const unresolved = bindings.find((binding) => !exists(binding));
  if (unresolved !== undefined)
    return `binds ${unresolved.name} to ${JSON.stringify(unresolved.source)}, which the node does not have`;
  const written = bindings.find(({ source, access }) => "input" in source && access === "write");
  return written === undefined
    ? undefined
    : `writes ${written.name}, an input that other kernels may read; write an output or a scratch block`;
};

/** Throws OperatorError if the plan of a user's kernel cannot run, or does not write a result. */
export const checkPlan = (plan: KernelPlan, node: KernelNode, facts: DeviceFacts): void => {
  for (const pass of plan.passes) {
    const fault = faultOf(pass, plan, node, facts);
    if (fault !== undefined) throw new OperatorError(node.op, `pass "${pass.label}" of its kernel ${fault}`);
  }
  const written = new Set(
    plan.passes.flatMap(({ bindings }) =>
      bindings
        .filter(({ access }) => access === "write")
        .map(({ source }) => ("output" in source ? source.output : -1)),
    ),
  );
  node.outputs.forEach((spec, output) => {
    if (byteLength(spec) > 0 && !written.has(output))
      throw new OperatorError(
        node.op,
        `no pass of its kernel writes result ${output}; bind { output: ${output} } with access "write"`,
      );
  });
};
