import type { ComposedOperator, Operator, OperatorTable } from "../graph/operator.ts";
import { absoluteOperator } from "./absolute.ts";
import { addOperator } from "./add.ts";
import { allGatherOperator } from "./all-gather.ts";
import { allReduceOperator } from "./all-reduce.ts";
import { allToAllOperator } from "./all-to-all.ts";
import { argmaxOperator } from "./argmax.ts";
import { argminOperator } from "./argmin.ts";
import { attentionBackwardOperator } from "./attention-backward.ts";
import { attentionOperator } from "./attention.ts";
import { avgPool2dBackwardOperator } from "./avg-pool2d-backward.ts";
import { avgPool2dOperator } from "./avg-pool2d.ts";
import { axisIndexOperator } from "./axis-index.ts";
import { batchNormBackwardOperator } from "./batch-norm-backward.ts";
import { batchNormOperator } from "./batch-norm.ts";
import { bitcastOperator } from "./bitcast.ts";
import { bitwiseAndOperator } from "./bitwise-and.ts";
import { bitwiseOrOperator } from "./bitwise-or.ts";
import { bitwiseXorOperator } from "./bitwise-xor.ts";
import { broadcastToOperator } from "./broadcast-to.ts";
import { broadcastOperator } from "./broadcast.ts";
import { castOperator } from "./cast.ts";
import { ceilOperator } from "./ceil.ts";
import { choleskyOperator } from "./cholesky.ts";
import { collectiveDoneOperator } from "./collective-done.ts";
import { collectiveStartOperator } from "./collective-start.ts";
import { compactOperator } from "./compact.ts";
import { concatOperator } from "./concat.ts";
import { constantOperator } from "./constant.ts";
import { conv2dBackwardInputOperator } from "./conv2d-backward-input.ts";
import { conv2dBackwardWeightOperator } from "./conv2d-backward-weight.ts";
import { conv2dOperator } from "./conv2d.ts";
import { cosOperator } from "./cos.ts";
import { crossEntropyBackwardOperator } from "./cross-entropy-backward.ts";
import { crossEntropyOperator } from "./cross-entropy.ts";
import { cumsumOperator } from "./cumsum.ts";
import { divideOperator } from "./divide.ts";
import { dynamicSliceOperator } from "./dynamic-slice.ts";
import { dynamicUpdateSliceOperator } from "./dynamic-update-slice.ts";
import { eighOperator } from "./eigh.ts";
import { equalOperator } from "./equal.ts";
import { erfOperator } from "./erf.ts";
import { expOperator } from "./exp.ts";
import { floorOperator } from "./floor.ts";
import { foldInOperator } from "./fold-in.ts";
import { fusedOperator } from "./fused.ts";
import { gatherOperator } from "./gather.ts";
import { geluOperator } from "./gelu.ts";
import { greaterEqualOperator } from "./greater-equal.ts";
import { greaterOperator } from "./greater.ts";
import { groupedMatmulBackwardWeightOperator } from "./grouped-matmul-backward-weight.ts";
import { groupedMatmulOperator } from "./grouped-matmul.ts";
import { histogramOperator } from "./histogram.ts";
import { identityOperator } from "./identity.ts";
import { inputOperator } from "./input.ts";
import { iotaOperator } from "./iota.ts";
import { isFiniteOperator } from "./is-finite.ts";
import { layerNormBackwardOperator } from "./layer-norm-backward.ts";
import { layerNormOperator } from "./layer-norm.ts";
import { lessEqualOperator } from "./less-equal.ts";
import { lessOperator } from "./less.ts";
import { literalOperator } from "./literal.ts";
import { logSoftmaxBackwardOperator } from "./log-softmax-backward.ts";
import { logSoftmaxOperator } from "./log-softmax.ts";
import { logOperator } from "./log.ts";
import { logicalAndOperator } from "./logical-and.ts";
import { logicalNotOperator } from "./logical-not.ts";
import { logicalOrOperator } from "./logical-or.ts";
import { logicalXorOperator } from "./logical-xor.ts";
import { matmulOperator } from "./matmul.ts";
import { maxPool2dBackwardOperator } from "./max-pool2d-backward.ts";
import { maxPool2dOperator } from "./max-pool2d.ts";
import { maximumOperator } from "./maximum.ts";
import { minimumOperator } from "./minimum.ts";
import { multiplyOperator } from "./multiply.ts";
import { negateOperator } from "./negate.ts";
import { nonzeroOperator } from "./nonzero.ts";
import { notEqualOperator } from "./not-equal.ts";
import { oneHotOperator } from "./one-hot.ts";
import type { ComposedName, ElementwiseName, OperatorName } from "./operator-params.ts";
import { optimizationBarrierOperator } from "./optimization-barrier.ts";
import { packBitsOperator } from "./pack-bits.ts";
import { padOperator } from "./pad.ts";
import { powerOperator } from "./power.ts";
import { qrOperator } from "./qr.ts";
import { raggedAllGatherOperator } from "./ragged-all-gather.ts";
import { raggedAllToAllOperator } from "./ragged-all-to-all.ts";
import { randomBitsOperator } from "./random-bits.ts";
import { reduceMaxOperator } from "./reduce-max.ts";
import { reduceMinOperator } from "./reduce-min.ts";
import { reduceScatterOperator } from "./reduce-scatter.ts";
import { reduceOperator } from "./reduce.ts";
import { reluOperator } from "./relu.ts";
import { reshapeOperator } from "./reshape.ts";
import { rmsNormBackwardOperator } from "./rms-norm-backward.ts";
import { rmsNormOperator } from "./rms-norm.ts";
import { rotaryOperator } from "./rotary.ts";
import { roundOperator } from "./round.ts";
import { rsqrtOperator } from "./rsqrt.ts";
import { scatterAddOperator } from "./scatter-add.ts";
import { sendReceiveOperator } from "./send-receive.ts";
import { shiftLeftOperator } from "./shift-left.ts";
import { shiftRightOperator } from "./shift-right.ts";
import { sigmoidOperator } from "./sigmoid.ts";
import { signOperator } from "./sign.ts";
import { siluOperator } from "./silu.ts";
import { sinOperator } from "./sin.ts";
import { sliceOperator } from "./slice.ts";
import { softmaxBackwardOperator } from "./softmax-backward.ts";
import { softmaxOperator } from "./softmax.ts";
import { softplusOperator } from "./softplus.ts";
import { sqrtOperator } from "./sqrt.ts";
import { stopGradientOperator } from "./stop-gradient.ts";
import { subtractOperator } from "./subtract.ts";
import { sumOperator } from "./sum.ts";
import { tanhOperator } from "./tanh.ts";
import { topKOperator } from "./top-k.ts";
import { transposeOperator } from "./transpose.ts";
import { unpackBitsOperator } from "./unpack-bits.ts";
import { triangularSolveOperator } from "./triangular-solve.ts";
import { whereOperator } from "./where.ts";

/** Elementwise operators, which fused programs may contain. */
const elementwiseRows: {
  readonly [op in ElementwiseName]: op extends ComposedName ? ComposedOperator : Operator;
} = {
  absolute: absoluteOperator,
  add: addOperator,
  bitcast: bitcastOperator,
  "bitwise-and": bitwiseAndOperator,
  "bitwise-or": bitwiseOrOperator,
  "bitwise-xor": bitwiseXorOperator,
  cast: castOperator,
  ceil: ceilOperator,
  cos: cosOperator,
  divide: divideOperator,
  equal: equalOperator,
  erf: erfOperator,
  exp: expOperator,
  floor: floorOperator,
  gelu: geluOperator,
  "greater-equal": greaterEqualOperator,
  greater: greaterOperator,
  "is-finite": isFiniteOperator,
  "less-equal": lessEqualOperator,
  less: lessOperator,
  log: logOperator,
  "logical-and": logicalAndOperator,
  "logical-not": logicalNotOperator,
  "logical-or": logicalOrOperator,
  "logical-xor": logicalXorOperator,
  maximum: maximumOperator,
  minimum: minimumOperator,
  multiply: multiplyOperator,
  negate: negateOperator,
  "not-equal": notEqualOperator,
  power: powerOperator,
  relu: reluOperator,
  round: roundOperator,
  rsqrt: rsqrtOperator,
  "shift-left": shiftLeftOperator,
  "shift-right": shiftRightOperator,
  sigmoid: sigmoidOperator,
  sign: signOperator,
  silu: siluOperator,
  sin: sinOperator,
  softplus: softplusOperator,
  sqrt: sqrtOperator,
  "stop-gradient": stopGradientOperator,
  subtract: subtractOperator,
  tanh: tanhOperator,
  where: whereOperator,
};

/** Names of the operators that are built from other operators of the table. */
type DerivedName = "collective-done" | "collective-start" | "fused";

const otherRows: { readonly [op in Exclude<OperatorName, DerivedName | ElementwiseName>]: Operator } = {
  "all-gather": allGatherOperator,
  "all-reduce": allReduceOperator,
  "all-to-all": allToAllOperator,
  argmax: argmaxOperator,
  argmin: argminOperator,
  "attention-backward": attentionBackwardOperator,
  attention: attentionOperator,
  "avg-pool2d-backward": avgPool2dBackwardOperator,
  "avg-pool2d": avgPool2dOperator,
  "axis-index": axisIndexOperator,
  "batch-norm-backward": batchNormBackwardOperator,
  "batch-norm": batchNormOperator,
  broadcast: broadcastOperator,
  "broadcast-to": broadcastToOperator,
  cholesky: choleskyOperator,
  compact: compactOperator,
  concat: concatOperator,
  constant: constantOperator,
  "conv2d-backward-input": conv2dBackwardInputOperator,
  "conv2d-backward-weight": conv2dBackwardWeightOperator,
  conv2d: conv2dOperator,
  "cross-entropy-backward": crossEntropyBackwardOperator,
  "cross-entropy": crossEntropyOperator,
  cumsum: cumsumOperator,
  "dynamic-slice": dynamicSliceOperator,
  "dynamic-update-slice": dynamicUpdateSliceOperator,
  eigh: eighOperator,
  "fold-in": foldInOperator,
  gather: gatherOperator,
  "grouped-matmul-backward-weight": groupedMatmulBackwardWeightOperator,
  "grouped-matmul": groupedMatmulOperator,
  histogram: histogramOperator,
  identity: identityOperator,
  input: inputOperator,
  iota: iotaOperator,
  "layer-norm-backward": layerNormBackwardOperator,
  "layer-norm": layerNormOperator,
  literal: literalOperator,
  "log-softmax-backward": logSoftmaxBackwardOperator,
  "log-softmax": logSoftmaxOperator,
  matmul: matmulOperator,
  "max-pool2d-backward": maxPool2dBackwardOperator,
  "max-pool2d": maxPool2dOperator,
  nonzero: nonzeroOperator,
  "one-hot": oneHotOperator,
  "optimization-barrier": optimizationBarrierOperator,
  "pack-bits": packBitsOperator,
  pad: padOperator,
  qr: qrOperator,
  "ragged-all-gather": raggedAllGatherOperator,
  "ragged-all-to-all": raggedAllToAllOperator,
  "random-bits": randomBitsOperator,
  reduce: reduceOperator,
  "reduce-max": reduceMaxOperator,
  "reduce-min": reduceMinOperator,
  "reduce-scatter": reduceScatterOperator,
  reshape: reshapeOperator,
  "rms-norm-backward": rmsNormBackwardOperator,
  "rms-norm": rmsNormOperator,
  rotary: rotaryOperator,
  "scatter-add": scatterAddOperator,
  "send-receive": sendReceiveOperator,
  slice: sliceOperator,
  "softmax-backward": softmaxBackwardOperator,
  softmax: softmaxOperator,
  sum: sumOperator,
  "top-k": topKOperator,
  transpose: transposeOperator,
  "triangular-solve": triangularSolveOperator,
  "unpack-bits": unpackBitsOperator,
};

const rows: readonly Operator[] = Object.values<Operator>({ ...elementwiseRows, ...otherRows });

const start = collectiveStartOperator(rows);

const derivedRows: { readonly [op in DerivedName]: Operator } = {
  "collective-done": collectiveDoneOperator(start),
  "collective-start": start,
  fused: fusedOperator(rows),
};

/** Built-in operators by name. CONTRIBUTING.md lists the files that a new operator needs. */
export const operators: OperatorTable = { ...elementwiseRows, ...otherRows, ...derivedRows };
