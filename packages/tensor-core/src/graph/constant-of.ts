import { currentTrace, operatorIn } from "./emit.ts";
import type { Tensor } from "./tensor.ts";

/** Returns the value of a constant tensor of the running trace; undefined if the tensor is not a constant. */
export const constantOf = ({ ref, trace }: Tensor): number | undefined => {
  const state = currentTrace("constantOf");
  if (trace !== state) return undefined;
  const { op, params } = state.nodes[ref.node]!;
  const value = operatorIn(state, op)?.constantValue?.(params);
  return value === undefined ? undefined : Number(value);
};
