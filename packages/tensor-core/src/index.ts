export type { Backend, DeviceArray } from "./execution/backend.ts";
export type { Communicator, Communicators, Reduction } from "./communicator.ts";
export type { BucketPlan } from "./bucket-plan.ts";
export { bytesPerElement, type DType, dtypes, type HalfDType, type HostData, isFloat } from "./dtype.ts";
export {
  ArgumentError,
  ArrayStateError,
  CollectiveOrderError,
  type ErrorKind,
  InvariantError,
  OperatorError,
  ShapeError,
  SkeinError,
  UnsupportedError,
} from "./errors.ts";
export { ThreadFileError } from "./thread-file.ts";
export { defineOperator, type DefinedOperator, type OperatorDefinition, withOperators } from "./define-operator.ts";
export { inPhase, type Mesh, meshCoordinate, type MeshCoordinates, scope } from "./graph/emit.ts";
export type { Graph, Phase } from "./graph/graph.ts";
export { Tensor } from "./graph/tensor.ts";
export { trace, type Traced } from "./tracing/trace.ts";
export { type ArrayTree, type CompiledFunction, evaluate, jit, type JitOptions } from "./jit.ts";
export { NdArray } from "./nd-array.ts";
export type { NestedNumbers } from "./nested-numbers.ts";
export { referenceBackend } from "./reference/reference-backend.ts";
export { byteLength, elementCount, formatShape, sameShape, type Shape, type TensorSpec } from "./shape.ts";
export {
  type ForeignDType,
  storedByteLength,
  type StoredDType,
  type StoredSpec,
  type StoredTensor,
} from "./stored-dtype.ts";
export {
  type RankSpans,
  type Span,
  type SpanArgs,
  spanned,
  SpanRecorder,
  type Track,
  type SpanSink,
  tracks,
} from "./span-sink.ts";
export {
  flattenTree,
  leafPaths,
  type MapTree,
  mapTree,
  type Tree,
  type TreeStructure,
  unflattenTree,
  zipTrees,
} from "./tree.ts";
export { customGradient, type CustomGradientContext, type GradientOf } from "./autodiff/custom-gradient.ts";
export { cutStages, type CutOptions } from "./study/stages/cut-stages.ts";
export { stageBackward, stageForward, type StageForward, type StageInputs } from "./study/stages/run-stage.ts";
export type { CutStep, CutValue, KeptValue, SharedParam, Stage } from "./study/stages/stage.ts";
export { type RankStage, stageOfRank } from "./study/stages/stage-of-rank.ts";
export { checkpoint } from "./autodiff/checkpoint.ts";
export { tap, type Tap, type TapOptions, type Taps } from "./autodiff/tap.ts";
export { type ValueAndGrad, type ValueAndGradWithAux, vjp, valueAndGrad, valueAndGradWithAux } from "./autodiff/vjp.ts";
export {
  type CollectiveOptions,
  raggedAllGather,
  raggedAllToAll,
  type RaggedResult,
  allGather,
  allReduce,
  allReduceMean,
  allToAll,
  axisIndex,
  broadcastFromRoot,
  reduceScatter,
  reduceMeanToRoot,
  reduceToRoot,
  sendReceive,
} from "./functions/collective.ts";
export {
  absolute,
  add,
  arange,
  bitcast,
  bitwiseAnd,
  bitwiseOr,
  bitwiseXor,
  cast,
  ceil,
  clip,
  constant,
  cos,
  divide,
  equal,
  erf,
  exp,
  floor,
  full,
  fullLike,
  greater,
  greaterEqual,
  identity,
  iota,
  isFinite,
  less,
  lessEqual,
  log,
  logicalAnd,
  logicalNot,
  logicalOr,
  logicalXor,
  maximum,
  minimum,
  multiply,
  negate,
  notEqual,
  ones,
  onesLike,
  power,
  reciprocal,
  round,
  rsqrt,
  shiftLeft,
  shiftRight,
  sigmoid,
  sign,
  sin,
  sqrt,
  square,
  stopGradient,
  subtract,
  tanh,
  where,
  zeros,
  zerosLike,
} from "./functions/elementwise.ts";
export { conv2d, type Conv2dOptions } from "./functions/convolution.ts";
export {
  conv1d,
  type Conv1dOptions,
  convTranspose1d,
  type ConvTranspose1dOptions,
} from "./functions/convolution-1d.ts";
export { convTranspose2d, type ConvTranspose2dOptions } from "./functions/transposed-convolution.ts";
export {
  cholesky,
  choleskySolve,
  type Eigendecomposition,
  eigh,
  inverseFromCholesky,
  qr,
  type QrFactors,
  triangularSolve,
  type TriangularSolveOptions,
} from "./functions/decomposition.ts";
export { matmul, type MatmulOptions } from "./functions/linear.ts";
export { avgPool2d, type AvgPool2dOptions, globalAvgPool, maxPool2d, type Pool2dOptions } from "./functions/pooling.ts";
export type { Padding, PaddingOption, Pair } from "./window.ts";
export {
  broadcastTo,
  concat,
  expandDims,
  flatten,
  pad,
  padInterior,
  reshape,
  slice,
  split,
  squeeze,
  stack,
  broadcastDims,
  sumTo,
  swapDims,
  transpose,
} from "./functions/movement.ts";
export { elu, gelu, leakyRelu, relu, silu, softplus } from "./functions/activation.ts";
export { einsum } from "./functions/einsum.ts";
export { flip } from "./functions/flip.ts";
export { groupNorm, type GroupNormOptions } from "./functions/group-norm.ts";
export { logSumExp } from "./functions/log-sum-exp.ts";
export { norm } from "./functions/norm.ts";
export { optimizationBarrier } from "./functions/optimization-barrier.ts";
export { prod } from "./functions/product.ts";
export { roll } from "./functions/roll.ts";
export { argsort, sort, type SortOptions } from "./functions/sort.ts";
export { gatherShards, ownShard, sumToShards } from "./functions/shards.ts";
export { type TriangleOptions, tril, triu } from "./functions/triangular.ts";
export {
  all,
  any,
  argmax,
  argmin,
  cumsum,
  histogram,
  mean,
  reduceMax,
  reduceMin,
  type ReduceOptions,
  sum,
  topK,
  type TopKOptions,
  variance,
} from "./functions/reduce.ts";
export { packBits, unpackBits } from "./functions/bits.ts";
export { oneHot } from "./functions/one-hot.ts";
export { bernoulli, categorical, dropout, foldIn, normal, randomBits, splitKey, uniform } from "./functions/random.ts";
export { dequantize, type DequantizeOptions, quantize, type QuantizeOptions } from "./functions/quantization.ts";
export { permutation, randomKey } from "./random.ts";
export { groupedMatmul } from "./functions/grouped-matmul.ts";
export { dynamicSlice, dynamicUpdateSlice, type Starts } from "./functions/dynamic-slice.ts";
export { attention, type AttentionOptions } from "./functions/attention.ts";
export { rotary, type RotaryOptions, type RotaryScaling } from "./functions/rotary.ts";
export {
  compact,
  type CompactEntries,
  embedding,
  gather,
  invertPermutation,
  nonzero,
  permuteRows,
  scatterAdd,
  segmentSum,
} from "./functions/indexing.ts";
export { batchNorm, batchNormInference, type BatchNormResult, layerNorm, rmsNorm } from "./functions/normalisation.ts";
export {
  crossEntropy,
  type CrossEntropyOptions,
  crossEntropyPerRow,
  logSoftmax,
  softmax,
} from "./functions/softmax.ts";
export { accumulateMomentum, type MomentumOptions, type MomentumState } from "./optim/accumulate-momentum.ts";
export { clipByGlobalNorm, globalNorm } from "./optim/clip-by-global-norm.ts";
export {
  adam,
  type AdamOptimizerOptions,
  adamw,
  type AdamWOptions,
  momentum,
  type MomentumSgdOptions,
  nesterov,
  sgd,
  type SgdOptions,
} from "./optim/optimizers.ts";
export { scale, scaleByLearningRate, scaleBySchedule, type ScheduleState } from "./optim/scale.ts";
export { type AdamOptions, type AdamState, scaleByAdam } from "./optim/scale-by-adam.ts";
export {
  dynamicLossScale,
  type LossScale,
  type LossScaleOptions,
  type LossScaleState,
} from "./optim/dynamic-loss-scale.ts";
export { partition, type PartitionLabel } from "./optim/partition.ts";
export {
  cosineDecay,
  joinSchedules,
  linearRamp,
  polynomialDecay,
  resolveSchedule,
  type Schedule,
  stepDecay,
  warmUp,
} from "./optim/schedule.ts";
export {
  applyUpdates,
  chain,
  type EmptyState,
  type GradientTransformation,
  type ObserveOptions,
  stateless,
  type TensorTree,
  type UpdateContext,
} from "./optim/transformation.ts";
export { addDecayedWeights, decayMatrices, type DecayMask } from "./optim/weight-decay.ts";
export {
  layoutSafetensors,
  readSafetensors,
  type SafetensorsContent,
  readSafetensorsEntry,
  type SafetensorsEntry,
  SafetensorsError,
  type SafetensorsHeader,
  readSafetensorsHeader,
  readStoredHeader,
  safetensorsDataBegin,
  writeSafetensors,
} from "./safetensors.ts";
export { type Shard, shardAxes, type Sharding, unsharded } from "./sharding.ts";
export { printGraph, type PrintOptions } from "./inspection/print.ts";
export { mixedPrecision, type MixedPrecisionOptions } from "./passes/mixed-precision.ts";
export { blockOnCollectives } from "./passes/schedule-collectives.ts";
export { rewriteSaved, type SavedCode } from "./passes/memory-budget/rewrite-saved.ts";
