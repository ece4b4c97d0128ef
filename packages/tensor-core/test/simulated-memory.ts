import { byteLength, bytesPerElement, elementCount, type Graph, type TensorSpec } from "../src/index.ts";
import {
  type FusedParams,
  interpretWorld,
  type MemoryPlan,
  type Node,
  operators,
  type Place,
  type ReferenceArray,
  rowMajorStrides,
  specOf,
  valueKey,
} from "../src/backend.ts";
import { operatorOf } from "../src/ops/lookup.ts";

const poison = Symbol("poison");

/** Simulated memory of one rank, with one cell per byte, so that partial overwrites are detected. */
class Memory {
  private readonly regions = new Map<string, (number | typeof poison)[]>();
  /**
   * Vector size of kernels in bytes. Kernels write a full last vector, so they overwrite the bytes after a result up to
   * a multiple of this size.
   */
  private readonly vectorBytes: number;

  constructor(vectorBytes: number) {
    this.vectorBytes = vectorBytes;
  }

  private cells(place: Place): (number | typeof poison)[] {
    const key = `${place.region} ${place.index}`;
    let cells = this.regions.get(key);
    if (cells === undefined) this.regions.set(key, (cells = []));
    return cells;
  }

  readElement(place: Place, dtype: TensorSpec["dtype"], index: number): number {
    const cells = this.cells(place);
    const width = bytesPerElement[dtype];
    const begin = place.offset + index * width;
    const value = cells[begin] ?? poison;
    for (let byte = 1; byte < width; byte++)
      if (!Object.is(cells[begin + byte], value))
        throw new Error(`element ${index} at ${JSON.stringify(place)} is torn`);
    if (value === poison)
      throw new Error(
        `element ${index} at ${JSON.stringify(place)} was read before it was written, or after it was overwritten`,
      );
    return value;
  }

  writeElement(place: Place, dtype: TensorSpec["dtype"], index: number, value: number | typeof poison): void {
    const cells = this.cells(place);
    const width = bytesPerElement[dtype];
    for (let byte = 0; byte < width; byte++) cells[place.offset + index * width + byte] = value;
  }

  read(place: Place, spec: TensorSpec): ReferenceArray {
    return {
      spec,
      data: Float64Array.from({ length: elementCount(spec.shape) }, (_, i) => this.readElement(place, spec.dtype, i)),
    };
  }

  /** Writes a result, and overwrites the rest of the last vector, as a kernel does. */
  write(place: Place, spec: TensorSpec, data: Float64Array): void {
    data.forEach((value, i) => this.writeElement(place, spec.dtype, i, value));
    this.poisonTail(place, spec);
  }

  /** Writes a part of a result, without overwriting the bytes after the part, which belong to other parts. */
  writePart(place: Place, spec: TensorSpec, data: Float64Array): void {
    data.forEach((value, i) => this.writeElement(place, spec.dtype, i, value));
  }

  /** Marks the bytes between a result and the end of its last vector as invalid. */
  poisonTail(place: Place, spec: TensorSpec): void {
    const cells = this.cells(place);
    const end = Math.ceil(byteLength(spec) / this.vectorBytes) * this.vectorBytes;
    for (let byte = byteLength(spec); byte < end; byte++) cells[place.offset + byte] = poison;
  }

  /** Copies bytes, including the padding after a value. */
  copy(from: Place, to: Place, bytes: number): void {
    const [source, target] = [this.cells(from), this.cells(to)];
    for (let byte = 0; byte < bytes; byte++) target[to.offset + byte] = source[from.offset + byte] ?? poison;
  }

  poison(place: Place, spec: TensorSpec): void {
    for (let i = 0; i < elementCount(spec.shape); i++) this.writeElement(place, spec.dtype, i, poison);
    this.poisonTail(place, spec);
  }
}

const samePlace = (a: Place, b: Place): boolean =>
  a.region === b.region && a.index === b.index && a.offset === b.offset;

/**
 * Runs a worst-case fused kernel: in blocks of 3 elements, the kernel reads operands from memory and immediately writes
 * results. At the end of each block, folds read their operands from memory again, and write each row when it is
 * complete.
 */
const runFused = (
  memory: Memory,
  graph: Graph,
  node: Node,
  inputs: readonly Place[],
  outputs: readonly Place[],
): void => {
  const { shape, views, instructions, results, folds = [] } = node.params as unknown as FusedParams;
  const isFolded = (output: number): boolean => (folds[output] ?? null) !== null;
  const rows: number[][] = results.map(() => []);
  const count = elementCount(shape);
  const steps = rowMajorStrides(shape);
  for (let begin = 0; begin < count; begin += 3) {
    const block = Array.from({ length: Math.min(3, count - begin) }, (_, i) => begin + i);
    const registers: number[][] = [];
    const load = (register: number): number[] => {
      const own = registers[register];
      if (own !== undefined) return own;
      const { dtype } = specOf(graph, node.inputs[register]!);
      return block.map((flat) =>
        memory.readElement(
          inputs[register]!,
          dtype,
          shape.reduce(
            (at, size, dim) => at + (Math.floor(flat / steps[dim]!) % size) * views[register]!.strides[dim]!,
            0,
          ),
        ),
      );
    };
    for (const [i, instruction] of instructions.entries()) {
      const args = instruction.args.map(load);
      const dtypeOf = (register: number): TensorSpec["dtype"] =>
        register < views.length
          ? specOf(graph, node.inputs[register]!).dtype
          : instructions[register - views.length]!.dtype;
      const spec = { dtype: instruction.dtype, shape: [block.length] };
      const from = instruction.args.map((register, j) => ({
        spec: { dtype: dtypeOf(register), shape: [block.length] },
        data: Float64Array.from(args[j]!),
      }));
      const [result] =
        instruction.op === "constant"
          ? [new Float64Array(block.length).fill(Number(instruction.params["value"]))]
          : operators[instruction.op]!.reference(from, instruction.params, [spec]);
      const register = views.length + i;
      registers[register] = [...rounded(result!, spec)];
      results.forEach((wanted, output) => {
        if (wanted === register && !isFolded(output)) {
          registers[register]!.forEach((value, j) =>
            memory.writeElement(outputs[output]!, spec.dtype, begin + j, value),
          );
          if (begin + block.length === count) memory.poisonTail(outputs[output]!, node.specs[output]!);
        }
      });
    }
    for (const [output, fold] of folds.entries()) {
      if (fold === null) continue;
      const register = results[output]!;
      const { dtype } =
        register < views.length ? specOf(graph, node.inputs[register]!) : instructions[register - views.length]!;
      for (const [j, value] of load(register).entries()) {
        const row = rows[output]!;
        if (row.push(value) < fold.size) continue;
        const data = Float64Array.from(row.splice(0));
        const spec = {
          dtype: node.specs[output]!.dtype,
          shape: fold.op === "pack-bits" ? [Math.ceil(fold.size / 32)] : [],
        };
        const params = fold.op === "pack-bits" ? {} : { dims: [0] };
        const [result] = operators[fold.op]!.reference([{ spec: { dtype, shape: [fold.size] }, data }], params, [spec]);
        const first = ((begin + j + 1) / fold.size - 1) * result!.length;
        rounded(result!, spec).forEach((one, k) => memory.writeElement(outputs[output]!, spec.dtype, first + k, one));
        if (begin + j + 1 === count) memory.poisonTail(outputs[output]!, node.specs[output]!);
      }
    }
  }
};

/** Rounds values to the dtype of `spec`, as the interpreter does. */
const rounded = (data: Float64Array, spec: TensorSpec): Float64Array => {
  const id = {
    nodes: [
      {
        id: 0,
        op: "input",
        inputs: [],
        params: { index: 0 },
        specs: [spec],
        scope: "",
        phase: "forward" as const,
        region: "",
      },
    ],
    inputs: [0],
    outputs: [{ node: 0, output: 0 }],
  };
  return interpretWorld(id, [[{ spec, data }]])[0]![0]!.data;
};

/**
 * Runs a planned graph on simulated memories, one per rank, node by node on all ranks. Settled nodes do nothing; other
 * nodes read and write at the planned locations. Results of a collective are invalid until the collective is done.
 */
export const runPlanned = (
  graph: Graph,
  plan: MemoryPlan,
  inputs: readonly (readonly ReferenceArray[])[],
  donate: readonly number[],
  vectorBytes: number = 1,
): { outputs: ReferenceArray[][]; kept: ReferenceArray[][] } => {
  const memories = inputs.map(() => new Memory(vectorBytes));
  const placeOf = (node: number, output: number): Place => plan.places.get(valueKey({ node, output }))!;
  const vectorsOf = (spec: TensorSpec): number => Math.ceil(byteLength(spec) / vectorBytes) * vectorBytes;
  const regionBytes = ({ region, index }: Place): number =>
    region === "workspace"
      ? plan.slabBytes[index]!
      : region === "output"
        ? plan.outputBytes[index]!
        : vectorsOf(graph.nodes[graph.inputs[index]!]!.specs[0]!);
  for (const node of graph.nodes)
    for (const [output, spec] of node.specs.entries()) {
      const place = placeOf(node.id, output);
      if (byteLength(spec) > 0 && place.offset + vectorsOf(spec) > regionBytes(place))
        throw new Error(
          `value ${valueKey({ node: node.id, output })} at ${JSON.stringify(place)} reaches beyond its region`,
        );
    }
  graph.inputs.forEach((id, index) =>
    memories.forEach((memory, rank) =>
      memory.write({ region: "input", index, offset: 0 }, graph.nodes[id]!.specs[0]!, inputs[rank]![index]!.data),
    ),
  );
  const underWay = new Map<number, { operands: ReferenceArray[][]; results: Float64Array[][] }>();

  for (const node of graph.nodes) {
    const from = node.inputs.map((ref) => placeOf(ref.node, ref.output));
    const to = node.specs.map((_, output) => placeOf(node.id, output));
    const operands = (memory: Memory): ReferenceArray[] =>
      node.inputs.map((ref, i) => memory.read(from[i]!, specOf(graph, ref)));
    if (node.op === "input") continue;
    if (node.op === "collective-done") {
      const start = graph.nodes[node.inputs[0]!.node]!;
      const { operands: before, results } = underWay.get(start.id)!;
      memories.forEach((memory, rank) => {
        start.inputs.forEach((ref, i) => {
          const place = placeOf(ref.node, ref.output);
          if (from.some((output) => samePlace(output, place))) return;
          if (
            memory
              .read(place, specOf(graph, ref))
              .data.some((value, at) => !Object.is(value, before[rank]![i]!.data[at]))
          )
            throw new Error(`an operand of collective ${start.id} changed while it was under way`);
        });
        from.forEach((place, i) => memory.write(place, node.specs[i]!, results[rank]![i]!));
      });
    } else if (operatorOf(graph, node.op).collective !== undefined) {
      const before = memories.map(operands);
      const results = operatorOf(graph, node.op).collective!(before, node.params, node.specs);
      const wait = node.op === "collective-start";
      if (wait) underWay.set(node.id, { operands: before, results });
      memories.forEach((memory, rank) =>
        to.forEach((place, i) =>
          wait ? memory.poison(place, node.specs[i]!) : memory.write(place, node.specs[i]!, results[rank]![i]!),
        ),
      );
    } else if (!plan.settled.has(node.id)) {
      for (const memory of memories) runNode(memory, graph, plan, node, from, to, operands);
    }
  }
  const outputs = memories.map((memory) => {
    for (const { from, to, bytes } of plan.copies) memory.copy(from, to, bytes);
    return graph.outputs.map((ref, i) => memory.read(plan.outputs[i]!, specOf(graph, ref)));
  });
  const kept = memories.map((memory) =>
    graph.inputs.flatMap((id, index) =>
      donate.includes(index) ? [] : [memory.read({ region: "input", index, offset: 0 }, graph.nodes[id]!.specs[0]!)],
    ),
  );
  return { outputs, kept };
};

const runNode = (
  memory: Memory,
  graph: Graph,
  plan: MemoryPlan,
  node: Node,
  from: readonly Place[],
  to: readonly Place[],
  operands: (memory: Memory) => ReferenceArray[],
): void => {
  if (node.op === "fused") {
    runFused(memory, graph, node, from, to);
    return;
  }
  const placed = plan.placedOperands.get(node.id);
  if (placed !== undefined) {
    let begin = to[0]!.offset;
    node.inputs.forEach((ref, i) => {
      const spec = specOf(graph, ref);
      if (!placed[i]!) memory.writePart({ ...to[0]!, offset: begin }, spec, memory.read(from[i]!, spec).data);
      begin += byteLength(spec);
    });
    memory.poisonTail(to[0]!, node.specs[0]!);
    return;
  }
  if (node.op === "scatter-add" && samePlace(from[0]!, to[0]!)) {
    memory.write(to[0]!, node.specs[0]!, operators[node.op]!.reference(operands(memory), node.params, node.specs)[0]!);
    return;
  }
  // Other kernels may write results before they have read all operands, so results must not overlap operands.
  const values = operands(memory);
  to.forEach((place, i) => memory.poison(place, node.specs[i]!));
  operands(memory);
  operatorOf(graph, node.op)
    .reference(values, node.params, node.specs)
    .forEach((data, i) => memory.write(to[i]!, node.specs[i]!, rounded(data, node.specs[i]!)));
};
