import { type EmptyState, leakyRelu, reshape, scope, splitKey, type Tensor } from "@skein/tensor-core";
import {
  type Affine,
  applyConv2d,
  applyGroupNorm,
  applyLayerNorm,
  dense,
  headNormal,
  initConv2d,
  initDense,
  initGroupNorm,
  initLayerNorm,
  labelledModel,
  type Model,
  type NormParams,
} from "../src/index.ts";

interface Params {
  readonly conv: Affine;
  readonly groups: NormParams;
  readonly hidden: Affine;
  readonly rows: NormParams;
  readonly head: Affine;
}

/** Builds a model from layers only, as a user would write it. Inputs [B, 4, 4, 2]. */
export const ownModel = (numClasses: number): Model<Params, EmptyState> =>
  labelledModel({
    init: (key) => {
      const [first, second, third] = splitKey(key, 3) as [Tensor, Tensor, Tensor];
      const params = {
        conv: initConv2d(first, [3, 3, 2, 4]),
        groups: initGroupNorm(4),
        hidden: initDense(second, [16, 8]),
        rows: initLayerNorm(8),
        head: initDense(third, [8, numClasses], { initialise: headNormal }),
      };
      return { params, state: {} };
    },
    apply: (params, state, images) => {
      const x = scope("conv", () =>
        leakyRelu(applyGroupNorm(params.groups, applyConv2d(params.conv, images), { groups: 2 })),
      );
      const h = scope("hidden", () =>
        leakyRelu(applyLayerNorm(params.rows, dense(params.hidden, reshape(x, [x.shape[0]!, -1])))),
      );
      return [scope("head", () => dense(params.head, h)), state];
    },
  });
