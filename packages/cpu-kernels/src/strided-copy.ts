import { bytesPerElement, type DType, elementCount, NdArray, type Shape } from "@skein/tensor-core";
import { rowMajorStrides, type OperatorName, type OperatorParams, type KernelNode } from "@skein/tensor-core/backend";
import { type Kernel, kernelOf } from "./kernel.ts";
import { partBegin, type Team } from "./team/team.ts";

/** One dimension of a copy between two strided views. Steps are in bytes. */
interface CopyDim {
  readonly size: number;
  readonly output: number;
  readonly input: number;
}

/**
 * Copy of all elements between two strided views of the same shape, after dimensions were merged. Offsets are in bytes.
 */
export interface StridedCopy {
  readonly dims: readonly CopyDim[];
  readonly outputOffset: number;
  readonly inputOffset: number;
  readonly elementBytes: number;
}

/** Strides and offset of the first element of a view, in elements. Default: dense row-major. */
export interface View {
  readonly strides?: readonly number[];
  readonly offset?: number;
}

/** Removes dimensions of size 1, and merges adjacent dimensions that are contiguous in both views. */
const simplify = (dims: readonly CopyDim[]): CopyDim[] => {
  const result: CopyDim[] = [];
  for (const dim of dims) {
    if (dim.size === 1) continue;
    const outer = result.at(-1);
    if (outer !== undefined && outer.output === dim.output * dim.size && outer.input === dim.input * dim.size) {
      result[result.length - 1] = { ...dim, size: outer.size * dim.size };
    } else {
      result.push(dim);
    }
  }
  return result;
};

/**
 * If the rows of the output are columns of the input, moves the contiguous input dimension next to the last dimension,
 * so that both dimensions can be transposed tile by tile.
 */
const pairTransposed = (dims: readonly CopyDim[], elementBytes: number): CopyDim[] => {
  const last = dims.at(-1);
  if (last === undefined || last.input === elementBytes || last.output !== elementBytes) return [...dims];
  const contiguous = dims.findIndex((dim) => dim.input === elementBytes);
  if (contiguous < 0) return [...dims];
  return [...dims.slice(0, contiguous), ...dims.slice(contiguous + 1, -1), dims[contiguous]!, last];
};

/**
 * Plans a copy of `shape` from one view to another. The copies may run in any order, and no element is written twice.
 */
export const planCopy = (shape: Shape, dtype: DType, output: View, input: View): StridedCopy => {
  const elementBytes = bytesPerElement[dtype];
  const dense = rowMajorStrides(shape);
  const dims = shape.map((size, dim) => ({
    size,
    output: (output.strides ?? dense)[dim]! * elementBytes,
    input: (input.strides ?? dense)[dim]! * elementBytes,
  }));
  const ordered =
    elementCount(shape) === 0 ? [{ size: 0, output: 0, input: 0 }] : pairTransposed(simplify(dims), elementBytes);
  // The kernel needs at least two dimensions.
  while (ordered.length < 2)
    ordered.unshift(
      ordered.length === 0 ? { size: 1, output: elementBytes, input: elementBytes } : { size: 1, output: 0, input: 0 },
    );
  return {
    dims: ordered,
    outputOffset: (output.offset ?? 0) * elementBytes,
    inputOffset: (input.offset ?? 0) * elementBytes,
    elementBytes,
  };
};

/** Returns the table that the export reads: three words per dimension. */
export const copyTable = (copy: StridedCopy): Uint8Array =>
  new Uint8Array(Int32Array.from(copy.dims.flatMap((dim) => [dim.size, dim.output, dim.input])).buffer);

/** Estimated nanoseconds per byte of a dense copy, in one thread. */
const byteNanoseconds = 0.05;
const elementNanoseconds = 0.3;

const copyDense = (team: Team, bytes: number): ((output: number, input: number) => void) => {
  const copy = team.indexOf("copyDense");
  const parts = team.partsOf(bytes * byteNanoseconds, bytes);
  return (output, input) =>
    team.run(parts, (part, call) => {
      const first = partBegin(bytes, part, parts);
      call(copy, output + first, input + first, partBegin(bytes, part + 1, parts) - first);
    });
};

/**
 * Chooses the export for a planned copy. Threads share the outermost dimension. The returned function expects the
 * addresses of the complete output and input, and of the table.
 */
export const bindCopy = (copy: StridedCopy, team: Team): ((output: number, input: number, table: number) => void) => {
  const { dims, outputOffset, inputOffset, elementBytes } = copy;
  const [outer, inner] = dims as [CopyDim, CopyDim];
  if (inner.size === 0) return () => {};
  if (dims.length === 2 && outer.size === 1 && inner.output === elementBytes && inner.input === elementBytes) {
    const dense = copyDense(team, inner.size * elementBytes);
    return (output, input) => dense(output + outputOffset, input + inputOffset);
  }
  const copyStrided = team.indexOf(`copyStrided${elementBytes * 8}`);
  const elements = dims.reduce((product, { size }) => product * size, 1);
  const parts = team.partsOf(elements * elementNanoseconds, outer.size);
  return (output, input, table) =>
    team.run(parts, (part, call) => {
      const [first, last] = [partBegin(outer.size, part, parts), partBegin(outer.size, part + 1, parts)];
      call(copyStrided, output + outputOffset, input + inputOffset, table, dims.length, first, last);
    });
};

/** Creates a kernel that makes one strided copy from its single input to its single output. */
export const copyKernel = <Op extends OperatorName>(
  op: Op,
  plan: (node: KernelNode<OperatorParams[Op]>) => StridedCopy,
): Kernel =>
  kernelOf<Op>({
    op,
    constants: (node) => copyTable(plan(node)),
    bind: (node, _wasm, _memory, team) => {
      const copy = bindCopy(plan(node), team);
      return (inputs, outputs, _scratch, constants) => copy(outputs[0]!, inputs[0]!, constants);
    },
  });

/** Returns a 32-bit word that repeats `value` in the storage format of `dtype`. */
export const fillPattern = (value: number, dtype: DType): number => {
  const count = 4 / bytesPerElement[dtype];
  const bytes = NdArray.from(new Array<number>(count).fill(value), [count], dtype).bytes();
  return new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
};
