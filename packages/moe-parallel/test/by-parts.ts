import { concat, pad, slice, type Tensor } from "@skein/tensor-core";
import type { ExpertChoices, Gate, Mixture } from "../src/index.ts";

/**
 * Concatenates the slots of all parts of a batch. In the slots of a part, only tokens of the same part have nonzero
 * weights.
 */
const besideEachOther = (parts: readonly Tensor[]): Tensor => {
  const [, , slots] = parts[0]!.shape as [number, number, number];
  return concat(
    parts.map((part, i) =>
      pad(part, [
        [0, 0],
        [0, 0],
        [i * slots, (parts.length - 1 - i) * slots],
      ]),
    ),
  );
};

const joinRoutings = (parts: readonly (ExpertChoices | Mixture)[]): ExpertChoices | Mixture => {
  if (parts[0]!.kind === "mixture") {
    const mixtures = parts as readonly Mixture[];
    return {
      kind: "mixture",
      dispatch_TEC: besideEachOther(mixtures.map(({ dispatch_TEC }) => dispatch_TEC)),
      combine_TEC: besideEachOther(mixtures.map(({ combine_TEC }) => combine_TEC)),
    };
  }
  const choices = parts as readonly ExpertChoices[];
  const most = choices[0]!.maxPerExpert;
  return {
    kind: "choices",
    choices_TK: concat(choices.map(({ choices_TK }) => choices_TK)),
    weights_TK: concat(choices.map(({ weights_TK }) => weights_TK)),
    ...(most !== undefined && { maxPerExpert: most * parts.length }),
  };
};

/**
 * Returns a gate that routes each part of the tokens separately, like gates on separate ranks.
 *
 * @param keys one key per part.
 */
export const byParts = <Params, State>(gate: Gate<Params, State>, keys: readonly Tensor[]): Gate<Params, State> => ({
  ...gate,
  choose: (params, state, x_TD, context) => {
    const rows = x_TD.shape[0]! / keys.length;
    const gated = keys.map((key, part) =>
      gate.choose(params, state, slice(x_TD, [part * rows], [(part + 1) * rows]), { ...context, key }),
    );
    return { ...gated[0]!, routing: joinRoutings(gated.map(({ routing }) => routing)) };
  },
});
