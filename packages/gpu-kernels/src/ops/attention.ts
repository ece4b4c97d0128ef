import { type Kernel, kernelOf } from "../kernel.ts";
import { attentionNode } from "../kernels/attention/attention-node.ts";
import { planAttention } from "../kernels/attention/plan.ts";
import { attentionRefusal } from "../kernels/attention/refusal.ts";

/** Computes attention tile by tile; see `kernels/attention/plan.ts`. */
export const attentionKernel: Kernel = kernelOf({
  op: "attention",
  refuses: attentionRefusal,
  plan: (node, facts) => planAttention(attentionNode(node), facts),
});
