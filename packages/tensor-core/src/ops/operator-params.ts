import type { CollectiveParams } from "../graph/collective-params.ts";
import type { ParamValue } from "../graph/graph.ts";
import type { AllReduceParams } from "./all-reduce.ts";
import type { AvgPool2dBackwardParams } from "./avg-pool2d-backward.ts";
import type { AvgPool2dParams } from "./avg-pool2d.ts";
import type { BatchNormBackwardParams } from "./batch-norm-backward.ts";
import type { BatchNormParams } from "./batch-norm.ts";
import type { BitcastParams } from "./bitcast.ts";
import type { BroadcastToParams } from "./broadcast-to.ts";
import type { BroadcastParams } from "./broadcast.ts";
import type { CastParams } from "./cast.ts";
import type { CollectiveStartParams } from "./collective-start.ts";
import type { CompactParams } from "./compact.ts";
import type { ConcatParams } from "./concat.ts";
import type { ConstantParams } from "./constant.ts";
import type { Conv2dBackwardInputParams } from "./conv2d-backward-input.ts";
import type { Conv2dBackwardWeightParams } from "./conv2d-backward-weight.ts";
import type { CumsumParams } from "./cumsum.ts";
import type { DynamicSliceParams } from "./dynamic-slice.ts";
import type { FusedParams } from "./fused.ts";
import type { GatherParams } from "./gather.ts";
import type { GeluParams } from "./gelu.ts";
import type { GroupedMatmulParams } from "./grouped-matmul.ts";
import type { HistogramParams } from "./histogram.ts";
import type { InputParams } from "./input.ts";
import type { IotaParams } from "./iota.ts";
import type { LayerNormParams } from "./layer-norm.ts";
import type { LiteralParams } from "./literal.ts";
import type { MatmulParams } from "./matmul.ts";
import type { NonzeroParams } from "./nonzero.ts";
import type { OneHotParams } from "./one-hot.ts";
import type { PadParams } from "./pad.ts";
import type { RandomBitsParams } from "./random-bits.ts";
import type { ReduceScatterParams } from "./reduce-scatter.ts";
import type { ReduceParams } from "./reduce.ts";
import type { ReshapeParams } from "./reshape.ts";
import type { RmsNormParams } from "./rms-norm.ts";
import type { RotaryParams } from "./rotary.ts";
import type { ScatterAddParams } from "./scatter-add.ts";
import type { SendReceiveParams } from "./send-receive.ts";
import type { ArgReductionParams } from "./shared/arg-reduction.ts";
import type { AttentionParams } from "./shared/attention-sizes.ts";
import type { ConvolutionParams } from "./shared/convolution.ts";
import type { PoolingParams } from "./shared/pooling.ts";
import type { ReductionParams } from "./shared/reduction.ts";
import type { SliceParams } from "./slice.ts";
import type { TopKParams } from "./top-k.ts";
import type { TransposeParams } from "./transpose.ts";
import type { TriangularSolveParams } from "./triangular-solve.ts";
import type { UnpackBitsParams } from "./unpack-bits.ts";

/** Parameter type of operators that have no parameters. */
type NoParams = { readonly [key in never]: ParamValue };

// Parameter types of all built-in operators, by operator name. A backend table is typed by the names in one of the
// following interfaces, so a table without a row for each name does not compile.

/**
 * Elementwise operators with a composition (`composedElementwise`). A backend or exporter that does not implement the
 * operator uses the composition.
 */
export interface ComposedParams {
  readonly silu: NoParams;
}

/** Elementwise operators: each backend has an instruction for fused programs. */
export interface ElementwiseParams extends ComposedParams {
  readonly absolute: NoParams;
  readonly add: NoParams;
  readonly bitcast: BitcastParams;
  readonly "bitwise-and": NoParams;
  readonly "bitwise-or": NoParams;
  readonly "bitwise-xor": NoParams;
  readonly cast: CastParams;
  readonly ceil: NoParams;
  readonly cos: NoParams;
  readonly divide: NoParams;
  readonly equal: NoParams;
  readonly erf: NoParams;
  readonly exp: NoParams;
  readonly floor: NoParams;
  readonly gelu: GeluParams;
  readonly greater: NoParams;
  readonly "greater-equal": NoParams;
  readonly "is-finite": NoParams;
  readonly less: NoParams;
  readonly "less-equal": NoParams;
  readonly log: NoParams;
  readonly "logical-and": NoParams;
  readonly "logical-not": NoParams;
  readonly "logical-or": NoParams;
  readonly "logical-xor": NoParams;
  readonly maximum: NoParams;
  readonly minimum: NoParams;
  readonly multiply: NoParams;
  readonly negate: NoParams;
  readonly "not-equal": NoParams;
  readonly power: NoParams;
  readonly relu: NoParams;
  readonly round: NoParams;
  readonly rsqrt: NoParams;
  readonly "shift-left": NoParams;
  readonly "shift-right": NoParams;
  readonly sigmoid: NoParams;
  readonly sign: NoParams;
  readonly sin: NoParams;
  readonly softplus: NoParams;
  readonly sqrt: NoParams;
  readonly "stop-gradient": NoParams;
  readonly subtract: NoParams;
  readonly tanh: NoParams;
  readonly where: NoParams;
}

/** Operators that an executor runs without a kernel: arguments, barriers, views and collectives. */
export interface KernellessParams {
  readonly "all-gather": CollectiveParams;
  readonly "all-reduce": AllReduceParams;
  readonly "all-to-all": CollectiveParams;
  readonly "axis-index": CollectiveParams;
  readonly broadcast: BroadcastParams;
  readonly "collective-done": CollectiveStartParams;
  readonly "collective-start": CollectiveStartParams;
  readonly identity: NoParams;
  readonly input: InputParams;
  readonly "optimization-barrier": NoParams;
  readonly "ragged-all-gather": CollectiveParams;
  readonly "ragged-all-to-all": CollectiveParams;
  readonly reduce: ReduceParams;
  readonly "reduce-scatter": ReduceScatterParams;
  readonly "send-receive": SendReceiveParams;
}

/** Operators for which each backend has a kernel. A `bitcast` is an instruction or, if it is not fused, a kernel. */
export interface KernelParams {
  readonly argmax: ArgReductionParams;
  readonly argmin: ArgReductionParams;
  readonly attention: AttentionParams;
  readonly "attention-backward": AttentionParams;
  readonly "avg-pool2d": AvgPool2dParams;
  readonly "avg-pool2d-backward": AvgPool2dBackwardParams;
  readonly "batch-norm": BatchNormParams;
  readonly "batch-norm-backward": BatchNormBackwardParams;
  readonly bitcast: BitcastParams;
  readonly "broadcast-to": BroadcastToParams;
  readonly cholesky: NoParams;
  readonly compact: CompactParams;
  readonly concat: ConcatParams;
  readonly constant: ConstantParams;
  readonly conv2d: ConvolutionParams;
  readonly "conv2d-backward-input": Conv2dBackwardInputParams;
  readonly "conv2d-backward-weight": Conv2dBackwardWeightParams;
  readonly "cross-entropy": NoParams;
  readonly "cross-entropy-backward": NoParams;
  readonly cumsum: CumsumParams;
  readonly "dynamic-slice": DynamicSliceParams;
  readonly "dynamic-update-slice": NoParams;
  readonly eigh: NoParams;
  readonly "fold-in": NoParams;
  readonly fused: FusedParams;
  readonly gather: GatherParams;
  readonly "grouped-matmul": GroupedMatmulParams;
  readonly "grouped-matmul-backward-weight": NoParams;
  readonly histogram: HistogramParams;
  readonly iota: IotaParams;
  readonly "layer-norm": LayerNormParams;
  readonly "layer-norm-backward": NoParams;
  readonly literal: LiteralParams;
  readonly "log-softmax": NoParams;
  readonly "log-softmax-backward": NoParams;
  readonly matmul: MatmulParams;
  readonly "max-pool2d": PoolingParams;
  readonly "max-pool2d-backward": PoolingParams;
  readonly nonzero: NonzeroParams;
  readonly "one-hot": OneHotParams;
  readonly "pack-bits": NoParams;
  readonly pad: PadParams;
  readonly qr: NoParams;
  readonly "random-bits": RandomBitsParams;
  readonly "reduce-max": ReductionParams;
  readonly "reduce-min": ReductionParams;
  readonly reshape: ReshapeParams;
  readonly "rms-norm": RmsNormParams;
  readonly "rms-norm-backward": NoParams;
  readonly rotary: RotaryParams;
  readonly "scatter-add": ScatterAddParams;
  readonly slice: SliceParams;
  readonly softmax: NoParams;
  readonly "softmax-backward": NoParams;
  readonly sum: ReductionParams;
  readonly "top-k": TopKParams;
  readonly transpose: TransposeParams;
  readonly "triangular-solve": TriangularSolveParams;
  readonly "unpack-bits": UnpackBitsParams;
}

/** Parameter type of each built-in operator, by operator name. */
export interface OperatorParams extends ElementwiseParams, KernellessParams, KernelParams {}

/** Name of a built-in operator. */
export type OperatorName = keyof OperatorParams;

/** Name of an elementwise operator. */
export type ElementwiseName = keyof ElementwiseParams;

/** Name of an operator with a composition. */
export type ComposedName = keyof ComposedParams;

/** Name of an operator that needs a kernel. */
export type KernelName = keyof KernelParams;

/**
 * Table with one entry per given operator. The entry of an operator with a composition may be missing; the composition
 * is then used.
 */
export type OperatorRows<Name extends OperatorName, Row> = {
  readonly [op in Exclude<Name, ComposedName>]: Row;
} & { readonly [op in Extract<Name, ComposedName>]?: Row };
