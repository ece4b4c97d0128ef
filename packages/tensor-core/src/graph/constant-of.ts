import { currentTrace, operatorIn } from "./emit.ts";
import type { Tensor } from "./tensor.ts";

/** Number that fills a tensor of the running trace, if it is known while tracing; undefined otherwise. */
export const constantOf = ({ ref, trace }: Tensor): number | undefined => {
  const state = currentTrace("constantOf");
  if (trace !== state) return undefined;
  const { op, params } = state.nodes[ref.node]!;
  const value = operatorIn(state, op)?.constantValue?.(params);
  return value === undefined ? undefined : Number(value);
};
