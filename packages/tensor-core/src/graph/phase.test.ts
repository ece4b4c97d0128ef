import { expect, test } from "vitest";
import { modelScope, phaseOf } from "./phase.ts";

test.each([
  ["matmul", "block-0/attention", "forward", "block-0/attention"],
  ["matmul", "block-0/attention/backward", "backward", "block-0/attention"],
  ["fused", "backward", "backward", ""],
  ["matmul", "backward-looking", "forward", "backward-looking"],
  ["matmul", "attend/backward/inner", "backward", "attend/inner"],
  ["fused", "update", "update", "update"],
  ["fused", "exchange-3", "communication", "exchange-3"],
  ["collective-start", "head", "communication", "head"],
  ["fused", "mean-loss", "communication", "mean-loss"],
  ["fused", "", "other", ""],
])("%s in %j belongs to %s of %j", (op, scope, phase, model) => {
  expect([phaseOf(op, scope), modelScope(scope)]).toEqual([phase, model]);
});
