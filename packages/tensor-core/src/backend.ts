// Entry point for authors of backends, kernels and passes. The entry point for users is index.ts.
export type { CompileOptions, Executable } from "./execution/backend.ts";
export type { CollectiveHandle, CollectiveKind, CollectiveRequest, RaggedRows } from "./communicator.ts";
export { checkRowCounts, readRowCounts } from "./ragged-rows.ts";
export { fromBf16Bits, fromF16Bits, hostArrayType, isHalf, roundToStorage, toBf16Bits, toF16Bits } from "./dtype.ts";
export { type FileContent, foreignContent, headBytes } from "./foreign-content.ts";
export { openIfRegular, openCheckedFile, readRegularText } from "./regular-file.ts";
export { utf8Fault } from "./utf8-fault.ts";
export { maxBytesPerCall, type RangeSource, readRange } from "./read-range.ts";
export { threadFile, threadFlags } from "./thread-file.ts";
export { excerpt, excerptName } from "./excerpt.ts";
export { boundedLine, visibleLine, visibleText } from "./visible-text.ts";
export { ArgumentLoan, type Signature } from "./execution/argument-loan.ts";
export { ArrayLedger, type ArrayState, OwnedArray } from "./execution/array-ledger.ts";
export { retryAfterReclaim } from "./execution/memory-reclaimer.ts";
export { modelScope } from "./inspection/phase.ts";
export { CollectiveSpans, nodeArgsOf, spanNameOf } from "./execution/node-spans.ts";
export { beginCollective, type CollectivePlan, planCollective, rankAlong } from "./execution/collective-plan.ts";
export { ExclusiveRun } from "./execution/exclusive-run.ts";
export { type KernelNode, kernelNodeOf } from "./graph/kernel-node.ts";
export type { ElementwiseName, KernelName, OperatorName, OperatorParams, OperatorRows } from "./ops/operator-params.ts";
export { roleOf } from "./ops/role.ts";
export { kernelTable, missingKernelReason } from "./execution/kernel-table.ts";
export { alongDim, type ReductionStep, reductionSteps } from "./execution/reduction-steps.ts";
export { didYouMean } from "./did-you-mean.ts";
export { constantOf } from "./graph/constant-of.ts";
export { axisSize, emit, emitDefined, emitOne } from "./graph/emit.ts";
export {
  encodeNumber,
  GraphBuilder,
  type Node,
  type Origin,
  type Params,
  type ParamValue,
  phases,
  specOf,
  valueKey,
  type ValueRef,
} from "./graph/graph.ts";
export { traceWithin } from "./tracing/trace.ts";
export {
  isUserOperator,
  type ComposedOperator,
  type Cost,
  type LayerKind,
  type Operator,
  type OperatorTable,
  type ReferenceArray,
  type VjpContext,
} from "./graph/operator.ts";
export { replay, type ReplayOptions } from "./tracing/replay.ts";
export { operators } from "./ops/table.ts";
export type { WasmMemory, WasmModule } from "./platform-types.ts";
export { interpretRanks, interpretWorld } from "./reference/interpret.ts";
export { formatSpec, rowMajorStrides, sameSpec } from "./shape.ts";
export { foldInKey, threefry2x32, threefryWord } from "./random.ts";
export { type FoldOp, foldTile, type FusedFold, type FusedInstruction, type FusedParams } from "./ops/fused.ts";
export { type ComposedRule, composedElementwise, type ElementwiseRule } from "./ops/shared/elementwise.ts";
export { attentionSizes, type AttentionSizes } from "./ops/shared/attention-sizes.ts";
export { groupRanges } from "./ops/shared/grouped-rows.ts";
export { windowOffset } from "./ops/shared/dynamic-window.ts";
export { invalidValue } from "./ops/shared/indexing.ts";
export { graphCost, nodeCost } from "./inspection/cost.ts";
export { validateGraph } from "./inspection/validate.ts";
export { digestOf } from "./execution/agree-on-order.ts";
export {
  canonicalOrder,
  type CollectiveOrder,
  collectiveOrderOf,
  type GraphCollective,
  type RankCollectives,
} from "./passes/collective-order.ts";
export { eliminateCommonSubexpressions } from "./passes/common-subexpressions.ts";
export { layersOf, type LayerUse, type WeightLayers } from "./passes/layers-of.ts";
export { eliminateDeadCode } from "./passes/dead-code.ts";
export { expandCompositions } from "./passes/expand-compositions.ts";
export { fuseElementwise, type FusionOptions } from "./passes/fusion/fuse-elementwise.ts";
export { type InPlaceRule, standardInPlaceRule } from "./memory/in-place.ts";
export { widenHalf } from "./passes/widen-half.ts";
export {
  type MemoryPlan,
  type MemoryPlanOptions,
  type Place,
  type PlanCopy,
  planMemory,
} from "./memory/memory-plan.ts";
export { optimize, type OptimizeOptions } from "./passes/optimize.ts";
export { type Recomputation, type RecomputeOptions, recomputeWithin } from "./passes/memory-budget/recompute-within.ts";
export { recomputeRegions } from "./passes/recompute/recompute-regions.ts";
export { simplify } from "./passes/simplify.ts";
export { leavesByPath } from "./tree.ts";
export { BinaryHeap } from "./binary-heap.ts";
