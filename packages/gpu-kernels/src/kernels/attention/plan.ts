import type { DeviceFacts, KernelPlan } from "../../kernel.ts";
import type { AttentionNode } from "./attention-node.ts";
import { attentionBackward } from "./backward.ts";
import { attentionBackwardByRow } from "./backward-by-row.ts";
import { attentionForwardByRow } from "./forward-by-row.ts";
import { attentionForward } from "./forward.ts";

/** Returns the plan of attention: the result, and the logsumexp of the scores. */
export const planAttention = (node: AttentionNode, facts: DeviceFacts): KernelPlan =>
  facts.software ? attentionForwardByRow(node) : attentionForward(node, facts);

/** Returns the plan of the attention gradients of q, k and v. */
export const planAttentionBackward = (node: AttentionNode, facts: DeviceFacts): KernelPlan =>
  facts.software ? attentionBackwardByRow(node) : attentionBackward(node, facts);
