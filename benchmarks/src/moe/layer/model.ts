// Read as the text of a module of a job, so it imports nothing by a path.
import {
  capacityByMaximum,
  defineGate,
  denseDispatcher,
  duplicateFreeDispatcher,
  type Gate,
  geluExperts,
  hierarchicalDispatcher,
  moeLayer,
  raggedDispatcher,
  type TokenDispatcher,
} from "@skein/moe-parallel";
import type { Model } from "@skein/models";
import { add, full, mean, reshape, square, type Tensor, zeros } from "@skein/tensor-core";

export interface LayerOptions {
  readonly width: number;
  readonly hidden: number;
  readonly numExperts: number;
  readonly topK: number;
  readonly dispatch: "dense" | "ragged" | "hierarchical" | "duplicate-free";
  /** Mesh axes along which tokens are exchanged, outermost first. */
  readonly axes: readonly string[];
  readonly chunks: number;
  /** Slot of each expert; slots are numbered in rank order. Default: experts in order. */
  readonly placement?: readonly number[];
}

const dispatcherOf = ({ dispatch, axes }: LayerOptions): TokenDispatcher => {
  switch (dispatch) {
    case "dense":
      return denseDispatcher() as TokenDispatcher;
    case "ragged":
      return raggedDispatcher() as TokenDispatcher;
    case "hierarchical":
      return hierarchicalDispatcher({ axes }) as TokenDispatcher;
    case "duplicate-free":
      return duplicateFreeDispatcher({ axes }) as TokenDispatcher;
  }
};

/** Returns a gate that routes tokens to the experts returned by `chosen`, with equal weights. */
const tellGate = (
  { numExperts, width, topK }: LayerOptions,
  chosen: () => Tensor,
): Gate<Record<string, never>, Record<string, never>> =>
  defineGate({
    name: "told",
    numExperts,
    width,
    init: () => ({ params: {}, state: {} }),
    route: (_, __, { shape: [numTokens] }) => {
      const probabilities_TE = full([numTokens!, numExperts], 1 / numExperts);
      return {
        routing: { kind: "choices", choices_TK: chosen(), weights_TK: full([numTokens!, topK], 1 / topK) },
        scores: { logits_TE: zeros([numTokens!, numExperts]), probabilities_TE },
      };
    },
  });

/**
 * Returns a model that consists of a single expert layer. Labels of a batch are the experts to which its tokens are
 * routed.
 */
export const oneLayer = (_: unknown, options: LayerOptions): Model => {
  const { width, hidden, topK, chunks, placement } = options;
  let chosen_TK: Tensor | undefined; // of the batch that is being traced
  const layer = moeLayer({
    gate: tellGate(options, () => chosen_TK!),
    experts: geluExperts({ width, hidden }),
    capacity: capacityByMaximum(),
    dispatcher: dispatcherOf(options),
    chunks,
    ...(placement !== undefined && { placement }),
    tokenAxes: ["data"],
  });
  type State = ReturnType<typeof layer.init>["state"];
  type Params = ReturnType<typeof layer.init>["params"];
  const model: Model<Params, State> = {
    init: (key) => layer.init(key),
    apply: (params, state, inputs) => {
      const [y, next] = layer.apply(params, state, inputs, { train: false });
      return [y, next];
    },
    loss: (params, state, { inputs, labels }, { train }) => {
      chosen_TK = reshape(labels, [-1, topK]);
      const [y, next] = layer.apply(params, state, inputs, { train });
      return [mean(square(add(inputs, y))), next];
    },
    evaluate: (_, __, { inputs }) => ({
      correct: full([], 0),
      lossSum: full([], 0),
      count: full([], inputs.shape[0]!),
    }),
    sharding: (path) => (path.startsWith("experts.") ? [{ axis: "expert", dim: 0 }] : []),
  };
  return model as Model;
};
