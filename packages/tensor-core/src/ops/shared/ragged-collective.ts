import { InvariantError, ShapeError } from "../../errors.ts";
import {
  defineOperator,
  type Operator,
  type RaggedFact,
  type ReferenceArray,
  type VjpContext,
} from "../../graph/operator.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { checkRowCounts } from "../../ragged-rows.ts";
import { byteLength, elementCount, formatSpec, sameShape, type TensorSpec } from "../../shape.ts";
import { checkRanks, chunkRows, leadingRows } from "./collective.ts";
import type { CollectiveParams } from "../../graph/collective-params.ts";

export interface RaggedRule extends RaggedFact {
  readonly name: string;
  readonly vjp: (context: VjpContext<CollectiveParams>) => (Tensor | undefined)[];
}

/**
 * Creates a ragged collective operator. The chunks have capacity for a fixed number of rows. The second operand is the
 * number of rows to send, known only at run time. Results: the received chunks in rank order, with zeros after the
 * received rows, and the number of rows received from each rank.
 */
export const raggedCollective = ({ name, kind, chunkPerRank, vjp }: RaggedRule): Operator => {
  const capacityOf = (x: TensorSpec, params: CollectiveParams): number =>
    chunkPerRank ? chunkRows(name, x, params) : leadingRows(name, x);

  const world = (
    ranks: readonly (readonly ReferenceArray[])[],
    params: CollectiveParams,
    outputs: readonly TensorSpec[],
  ): Float64Array[][] => {
    checkRanks(name, ranks.length, params);
    const operand = ranks[0]![0]!.spec;
    const capacity = capacityOf(operand, params);
    const width = elementCount(operand.shape.slice(1));
    ranks.forEach(([, rows], rank) => checkRowCounts(name, rank, [...rows!.data], capacity));
    return ranks.map((_, to) => {
      const chunk = chunkPerRank ? to : 0;
      const begin = chunk * capacity * width;
      const data = new Float64Array(elementCount(outputs[0]!.shape));
      const received = Float64Array.from(ranks, ([, rows]) => rows!.data[chunk]!);
      ranks.forEach(([x], from) =>
        data.set(x!.data.subarray(begin, begin + received[from]! * width), from * capacity * width),
      );
      return [data, received];
    });
  };

  return defineOperator<CollectiveParams>({
    name,
    ragged: { kind, chunkPerRank },
    infer: (inputs, params) => {
      if (inputs.length !== 2) throw new InvariantError(`${name} takes 2 operands, got ${inputs.length}`);
      const [x, rows] = inputs as [TensorSpec, TensorSpec];
      const capacity = capacityOf(x, params);
      const expected = { dtype: "i32", shape: chunkPerRank ? [params.axisSize] : [] } as const;
      if (rows.dtype !== expected.dtype || !sameShape(rows.shape, expected.shape)) {
        throw new ShapeError(
          name,
          `rows is ${formatSpec(rows)}, but ${params.axisSize} ranks on axis "${params.axis}" need ${formatSpec(expected)}: ${chunkPerRank ? "a count for each peer" : "one count"}`,
        );
      }
      return [
        { dtype: x.dtype, shape: [capacity * params.axisSize, ...x.shape.slice(1)] },
        { dtype: "i32", shape: [params.axisSize] },
      ];
    },
    vjp,
    // Upper bound of the cost, because shapes contain the capacity, not the actual number of rows.
    cost: (inputs, outputs) => ({
      flops: 0,
      bytesRead: inputs.reduce((sum, spec) => sum + byteLength(spec), 0),
      bytesWritten: outputs.reduce((sum, spec) => sum + byteLength(spec), 0),
    }),
    reference: (inputs, params, outputs) => world([inputs], params, outputs)[0]!,
    collective: world,
  });
};
