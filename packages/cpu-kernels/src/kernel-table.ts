import type { KernelName, OperatorRows } from "@skein/tensor-core/backend";
import type { Kernel } from "./kernel.ts";
import { argmaxKernel } from "./ops/argmax.ts";
import { argminKernel } from "./ops/argmin.ts";
import { attentionBackwardKernel } from "./ops/attention-backward.ts";
import { attentionKernel } from "./ops/attention.ts";
import { avgPool2dBackwardKernel } from "./ops/avg-pool2d-backward.ts";
import { avgPool2dKernel } from "./ops/avg-pool2d.ts";
import { batchNormBackwardKernel } from "./ops/batch-norm-backward.ts";
import { batchNormKernel } from "./ops/batch-norm.ts";
import { bitcastKernel } from "./ops/bitcast.ts";
import { broadcastToKernel } from "./ops/broadcast-to.ts";
import { choleskyKernel } from "./ops/cholesky.ts";
import { compactKernel } from "./ops/compact.ts";
import { concatKernel } from "./ops/concat.ts";
import { constantKernel } from "./ops/constant.ts";
import { conv2dBackwardInputKernel } from "./ops/conv2d-backward-input.ts";
import { conv2dBackwardWeightKernel } from "./ops/conv2d-backward-weight.ts";
import { conv2dKernel } from "./ops/conv2d.ts";
import { crossEntropyBackwardKernel } from "./ops/cross-entropy-backward.ts";
import { crossEntropyKernel } from "./ops/cross-entropy.ts";
import { cumsumKernel } from "./ops/cumsum.ts";
import { dynamicSliceKernel } from "./ops/dynamic-slice.ts";
import { dynamicUpdateSliceKernel } from "./ops/dynamic-update-slice.ts";
import { eighKernel } from "./ops/eigh.ts";
import { foldInKernel } from "./ops/fold-in.ts";
import { fusedKernel } from "./ops/fused.ts";
import { gatherKernel } from "./ops/gather.ts";
import { groupedMatmulKernel } from "./ops/grouped-matmul.ts";
import { groupedMatmulBackwardWeightKernel } from "./ops/grouped-matmul-backward-weight.ts";
import { histogramKernel } from "./ops/histogram.ts";
import { iotaKernel } from "./ops/iota.ts";
import { layerNormBackwardKernel } from "./ops/layer-norm-backward.ts";
import { layerNormKernel } from "./ops/layer-norm.ts";
import { literalKernel } from "./ops/literal.ts";
import { logSoftmaxBackwardKernel } from "./ops/log-softmax-backward.ts";
import { logSoftmaxKernel } from "./ops/log-softmax.ts";
import { matmulKernel } from "./ops/matmul.ts";
import { maxPool2dBackwardKernel } from "./ops/max-pool2d-backward.ts";
import { maxPool2dKernel } from "./ops/max-pool2d.ts";
import { nonzeroKernel } from "./ops/nonzero.ts";
import { oneHotKernel } from "./ops/one-hot.ts";
import { packBitsKernel } from "./ops/pack-bits.ts";
import { padKernel } from "./ops/pad.ts";
import { qrKernel } from "./ops/qr.ts";
import { randomBitsKernel } from "./ops/random-bits.ts";
import { reduceMaxKernel } from "./ops/reduce-max.ts";
import { reduceMinKernel } from "./ops/reduce-min.ts";
import { reshapeKernel } from "./ops/reshape.ts";
import { rmsNormBackwardKernel } from "./ops/rms-norm-backward.ts";
import { rmsNormKernel } from "./ops/rms-norm.ts";
import { rotaryKernel } from "./ops/rotary.ts";
import { scatterAddKernel } from "./ops/scatter-add.ts";
import { sliceKernel } from "./ops/slice.ts";
import { softmaxBackwardKernel } from "./ops/softmax-backward.ts";
import { softmaxKernel } from "./ops/softmax.ts";
import { sumKernel } from "./ops/sum.ts";
import { topKKernel } from "./ops/top-k.ts";
import { transposeKernel } from "./ops/transpose.ts";
import { triangularSolveKernel } from "./ops/triangular-solve.ts";
import { unpackBitsKernel } from "./ops/unpack-bits.ts";

/** Kernels by operator name. */
export type KernelTable = { readonly [op: string]: Kernel };

const rows: OperatorRows<KernelName, Kernel> = {
  argmax: argmaxKernel,
  argmin: argminKernel,
  attention: attentionKernel,
  "attention-backward": attentionBackwardKernel,
  "avg-pool2d": avgPool2dKernel,
  "avg-pool2d-backward": avgPool2dBackwardKernel,
  "batch-norm": batchNormKernel,
  "batch-norm-backward": batchNormBackwardKernel,
  bitcast: bitcastKernel,
  "broadcast-to": broadcastToKernel,
  cholesky: choleskyKernel,
  compact: compactKernel,
  concat: concatKernel,
  constant: constantKernel,
  conv2d: conv2dKernel,
  "conv2d-backward-input": conv2dBackwardInputKernel,
  "conv2d-backward-weight": conv2dBackwardWeightKernel,
  "cross-entropy": crossEntropyKernel,
  "cross-entropy-backward": crossEntropyBackwardKernel,
  cumsum: cumsumKernel,
  "dynamic-slice": dynamicSliceKernel,
  "dynamic-update-slice": dynamicUpdateSliceKernel,
  eigh: eighKernel,
  "fold-in": foldInKernel,
  fused: fusedKernel,
  gather: gatherKernel,
  "grouped-matmul": groupedMatmulKernel,
  "grouped-matmul-backward-weight": groupedMatmulBackwardWeightKernel,
  histogram: histogramKernel,
  iota: iotaKernel,
  "layer-norm": layerNormKernel,
  "layer-norm-backward": layerNormBackwardKernel,
  literal: literalKernel,
  "log-softmax": logSoftmaxKernel,
  "log-softmax-backward": logSoftmaxBackwardKernel,
  matmul: matmulKernel,
  "max-pool2d": maxPool2dKernel,
  "max-pool2d-backward": maxPool2dBackwardKernel,
  nonzero: nonzeroKernel,
  "one-hot": oneHotKernel,
  "pack-bits": packBitsKernel,
  pad: padKernel,
  qr: qrKernel,
  "random-bits": randomBitsKernel,
  "reduce-max": reduceMaxKernel,
  "reduce-min": reduceMinKernel,
  reshape: reshapeKernel,
  "rms-norm": rmsNormKernel,
  "rms-norm-backward": rmsNormBackwardKernel,
  rotary: rotaryKernel,
  "scatter-add": scatterAddKernel,
  slice: sliceKernel,
  softmax: softmaxKernel,
  "softmax-backward": softmaxBackwardKernel,
  sum: sumKernel,
  "top-k": topKKernel,
  transpose: transposeKernel,
  "triangular-solve": triangularSolveKernel,
  "unpack-bits": unpackBitsKernel,
};

/**
 * Built-in kernels by operator name. To add a kernel, add one file, and one row here. Elementwise operators have
 * instructions of `fused` instead.
 */
export const kernels: KernelTable = rows;
