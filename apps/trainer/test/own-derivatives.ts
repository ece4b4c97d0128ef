import {
  add,
  customGradient,
  defineOperator,
  dropout,
  foldIn,
  matmul,
  multiply,
  round,
  softplus,
  splitKey,
  tanh,
  type Tensor,
  zeros,
} from "@skein/tensor-core";
import { heNormal, labelledModel, type Model } from "@skein/models";

const mish = defineOperator({ name: "acme/mish", composition: ([x]) => [multiply(x!, tanh(softplus(x!)))] });

/** Rounds, with a straight-through gradient. Without this gradient rule, the first layer would receive no gradient. */
const roundStraightThrough = customGradient(
  (x: Tensor) => multiply(round(multiply(x, 8)), 1 / 8),
  ({ cotangents }) => [cotangents],
);

/**
 * A model with a user-defined operator and derivative, and with dropout: the most difficult case for moving a model to
 * another thread.
 */
export const ownDerivatives = (): Model<
  { readonly first: Tensor; readonly second: Tensor; readonly shift: Tensor },
  object
> =>
  labelledModel({
    init: (key) => {
      const [a, b] = splitKey(key, 2);
      return { params: { first: heNormal(a!, [2, 16]), second: heNormal(b!, [16, 2]), shift: zeros([2]) }, state: {} };
    },
    apply: ({ first, second, shift }, state, inputs, { train, key }) => {
      const hidden = roundStraightThrough(mish([matmul(inputs, first)])[0]);
      const kept = train ? dropout(hidden, 0.1, foldIn(key!, 1)) : hidden;
      return [add(matmul(kept, second), shift), state];
    },
  });
