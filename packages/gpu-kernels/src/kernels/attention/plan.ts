import type { DeviceFacts, KernelPlan } from "../../kernel.ts";
import type { AttentionNode } from "./attention-node.ts";
import { attentionBackward } from "./backward.ts";
import { attentionBackwardByRow } from "./backward-by-row.ts";
import { attentionForwardByRow } from "./forward-by-row.ts";
import { attentionForward } from "./forward.ts";

/** Returns the plan that computes the result and the logsumexp. */
export const planAttention = (node: AttentionNode, facts: DeviceFacts): KernelPlan =>
  facts.software ? attentionForwardByRow(node) : attentionForward(node, facts);

/** Returns the plan that computes the gradients of q, k and v. */
export const planAttentionBackward = (node: AttentionNode, facts: DeviceFacts): KernelPlan =>
  facts.software ? attentionBackwardByRow(node) : attentionBackward(node, facts);
