import { type Kernel, kernelOf } from "../kernel.ts";
import { attentionNode } from "../kernels/attention/attention-node.ts";
import { planAttentionBackward } from "../kernels/attention/plan.ts";
import { attentionRefusal } from "../kernels/attention/refusal.ts";

/** Computes the gradients of attention tile by tile; see `kernels/attention/plan.ts`. */
export const attentionBackwardKernel: Kernel = kernelOf({
  op: "attention-backward",
  refuses: attentionRefusal,
  plan: (node, facts) => planAttentionBackward(attentionNode(node), facts),
});
