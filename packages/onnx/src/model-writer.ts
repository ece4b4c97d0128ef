import { type Affine, type Dim, isKnown } from "./affine.ts";
import type { Attribute, OnnxNode, OnnxTensor, OnnxType } from "./proto.ts";

const int64s = (values: readonly number[]): Uint8Array =>
  new Uint8Array(BigInt64Array.from(values, (value) => BigInt(value)).buffer);

const hostTypes = { f32: Float32Array, i32: Int32Array, u32: Uint32Array, u8: Uint8Array, bool: Uint8Array } as const;

/** Element types of constants. */
export type ConstantType = "f32" | "i32" | "u32" | "u8" | "bool";

/** Collects the nodes and constants of a model. Each value is identified by its name. */
export class ModelWriter {
  readonly nodes: OnnxNode[] = [];
  readonly initialisers: Map<string, OnnxTensor> = new Map();
  /** Name of the input whose first dimension is the batch. Undefined: no size depends on the batch size. */
  private readonly batchOf: string | undefined;
  private readonly vectors = new Map<string, string>();
  private prefix = "";
  private count = 0;

  constructor(batchOf?: string) {
    this.batchOf = batchOf;
  }

  /** Sets the name prefix of subsequent nodes and values. */
  startNode(name: string): void {
    this.prefix = name;
    this.count = 0;
  }

  private name(kind: string): string {
    return `${this.prefix}/${kind}${this.count++ === 0 ? "" : `_${this.count}`}`;
  }

  /** Adds a node with one result. @returns the name of the result. */
  node(op: string, inputs: readonly string[], attributes: Readonly<Record<string, Attribute>> = {}): string {
    return this.outputs(op, inputs, 1, attributes)[0]!;
  }

  /** Adds a node with several results. @returns the names of the results. */
  outputs(
    op: string,
    inputs: readonly string[],
    count: number,
    attributes: Readonly<Record<string, Attribute>> = {},
  ): string[] {
    const name = this.name(op);
    const outputs = Array.from({ length: count }, (_, i) => (i === 0 ? name : `${name}:${i}`));
    this.nodes.push({ op, name, inputs, outputs, attributes });
    return outputs;
  }

  /** Adds a constant tensor. @returns the name of the constant. */
  tensor(type: OnnxType, dims: readonly number[], bytes: Uint8Array): string {
    const name = this.name("constant");
    this.initialisers.set(name, { type, dims, bytes });
    return name;
  }

  /**
   * Adds a constant tensor with the given values.
   * @returns the name of the constant.
   */
  numbers(type: ConstantType, dims: readonly number[], values: readonly number[]): string {
    return this.tensor(type, dims, new Uint8Array(hostTypes[type].from(values).buffer));
  }

  /**
   * Adds a constant tensor without elements. Its shape contains a 0, so it is empty for any batch size.
   * @returns the name of the constant.
   */
  none(type: ConstantType, shape: readonly Dim[]): string {
    return this.numbers(
      type,
      shape.map((dim) => (isKnown(dim) ? dim : 0)),
      [],
    );
  }

  /**
   * Adds a constant i64 scalar.
   * @returns the name of the constant.
   */
  int64(value: number): string {
    return this.tensor("i64", [], int64s([value]));
  }

  /**
   * Adds a constant scalar.
   * @returns the name of the constant.
   */
  scalar(type: ConstantType, value: number): string {
    return this.numbers(type, [], [value]);
  }

  /**
   * Returns the name of an i64 vector with the given sizes: a constant, or a value that the model computes from the
   * actual batch size.
   */
  sizes(dims: readonly Dim[]): string {
    if (dims.every(isKnown)) return this.known(dims);
    const parts = dims.map((dim) => (isKnown(dim) ? this.known([dim]) : this.unknown(dim)));
    return parts.length === 1 ? parts[0]! : this.node("Concat", parts, { axis: 0 });
  }

  private known(dims: readonly number[]): string {
    const key = dims.join();
    const before = this.vectors.get(key);
    if (before !== undefined) return before;
    const name = this.tensor("i64", [dims.length], int64s(dims));
    this.vectors.set(key, name);
    return name;
  }

  private unknown({ times, plus }: Affine): string {
    const key = `${times} ${plus}`;
    const before = this.vectors.get(key);
    if (before !== undefined) return before;
    let value = this.node("Shape", [this.batchOf!], { start: 0, end: 1 });
    if (times !== 1) value = this.node("Mul", [value, this.known([times])]);
    if (plus !== 0) value = this.node("Add", [value, this.known([plus])]);
    this.vectors.set(key, value);
    return value;
  }
}
