import { operator, type Operator, type PassSetting, type Projection, quantizedBytes, work } from "./operator.ts";

/** A matrix that multiplies the input of a module. */
export interface DenseOutput {
  readonly name: string;
  readonly columns: number;
  readonly bias?: boolean;
  /**
   * Role of the matrix in a layer. Matrices with a role may be quantized and have an adapter. Absent for the output
   * head.
   */
  readonly projection?: Projection;
  /** Whether the matrix reuses the weights of another operator, such as the embedding. Default: false. */
  readonly tied?: boolean;
}

/** Shared input of several matrix products: `rows` rows of `inner` values. */
export interface DenseInput {
  readonly rows: number;
  readonly inner: number;
  readonly outputs: readonly DenseOutput[];
}

/**
 * Builds the operators that multiply one input by one or more matrices. Forward takes 2·rows·inner·columns flops.
 * Backward takes the same number for the input gradient, and again for the weight gradient if the weights are trained.
 * The input is saved once if a trained matrix reads it. In training, a kernel dequantizes quantized weights before each
 * product; in inference, the product dequantizes them.
 */
export const dense = (setting: PassSetting, { rows, inner, outputs }: DenseInput): readonly Operator[] => {
  const { valueBytes, type, training, adapters } = setting;
  const inputBytes = rows * inner * valueBytes;
  let isInputSaved = false;
  const saveInput = (needed: boolean): number => {
    const saves = needed && !isInputSaved;
    isInputSaved ||= needed;
    return saves ? inputBytes : 0;
  };

  const product = (columns: number, readWeightBytes: number, trained: boolean) => {
    const flops = 2 * rows * inner * columns;
    const outputBytes = rows * columns * valueBytes;
    const toInput = work(flops, outputBytes + readWeightBytes, inputBytes);
    const toWeights = work(flops, outputBytes + inputBytes, inner * columns * setting.weightBytes);
    return {
      type,
      forward: work(flops, inputBytes + readWeightBytes, outputBytes),
      backward: training ? [toInput, ...(trained ? [toWeights] : [])] : [],
      outputBytes,
    };
  };

  const adapter = (name: string, columns: number): Operator[] => {
    const { kind, rank } = adapters!;
    const trainsBoth = kind === "lora";
    const down = product(rank, inner * rank * setting.weightBytes, trainsBoth);
    const narrowBytes = rows * rank * valueBytes;
    const wideBytes = rows * columns * valueBytes;
    const upBytes = rank * columns * setting.weightBytes;
    const flops = 2 * rows * rank * columns;
    return [
      operator(`${name} adapter A`, "matmul", {
        ...down,
        [trainsBoth ? "trainable" : "frozen"]: inner * rank,
        weightBytes: inner * rank * setting.weightBytes,
        savedBytes: saveInput(trainsBoth && training),
      }),
      operator(`${name} adapter B`, "matmul", {
        type,
        trainable: rank * columns,
        weightBytes: upBytes,
        // The product with adapter B accumulates into the result of the frozen matrix.
        forward: work(flops, narrowBytes + upBytes + wideBytes, wideBytes),
        backward: training
          ? [work(flops, wideBytes + upBytes, narrowBytes), work(flops, wideBytes + narrowBytes, upBytes)]
          : [],
        savedBytes: training ? narrowBytes : 0,
        outputBytes: wideBytes,
      }),
    ];
  };

  return outputs.flatMap(({ name, columns, bias = false, projection, tied = false }) => {
    const values = inner * columns;
    const plainBytes = values * setting.weightBytes;
    const quantized = projection === undefined ? undefined : setting.quantized;
    const storedBytes = quantized === undefined ? plainBytes : values * quantizedBytes[quantized];
    const trained = training && adapters === undefined;
    const biases = bias ? columns : 0;
    const parameters = tied ? 0 : values + biases;
    const unpack = work(values, storedBytes, plainBytes);
    const unpacks = training && quantized !== undefined;
    return [
      ...(unpacks
        ? [
            operator(`${name} dequantize`, "dequantize", {
              forward: unpack,
              backward: [unpack],
              outputBytes: plainBytes,
            }),
          ]
        : []),
      operator(name, "matmul", {
        ...product(columns, unpacks ? plainBytes : storedBytes, trained),
        [adapters === undefined ? "trainable" : "frozen"]: parameters,
        weightBytes: tied ? 0 : storedBytes + biases * setting.weightBytes,
        savedBytes: saveInput(trained),
      }),
      ...(projection !== undefined && adapters?.projections.includes(projection) ? adapter(name, columns) : []),
    ];
  });
};
