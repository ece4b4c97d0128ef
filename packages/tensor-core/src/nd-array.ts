import {
  bytesPerElement,
  type DType,
  fromBf16Bits,
  fromF16Bits,
  hostArrayType,
  type HostData,
  toBf16Bits,
  toF16Bits,
} from "./dtype.ts";
import { ArgumentError } from "./errors.ts";
import { describe } from "./describe.ts";
import { excerpt } from "./excerpt.ts";
import { type NestedNumbers, readNested } from "./nested-numbers.ts";
import { elementCount, formatShape, requireDType, requireShape, type Shape } from "./shape.ts";
import { Printable } from "./printable.ts";

/** Maximum number of values in the text form of an array. */
const printedValues = 6;

/**
 * Dense row-major array on the host. f16 and bf16 are stored as bit patterns. The caller owns `data`.
 *
 * @example
 * ```ts
 * const matrix = NdArray.from([[1, 2], [3, 4]]);
 * console.log(matrix.shape, matrix.dtype, matrix.toNumbers()); // [2, 2] f32 [1, 2, 3, 4]
 * console.log(NdArray.from([1, 2, 3, 4], [2, 2], "i32").dtype); // i32
 * ```
 */
export class NdArray extends Printable {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly data: HostData;

  protected get kind(): "NdArray" {
    return "NdArray";
  }

  /**
   * Creates an array whose elements are `data`, without a copy. For lists of numbers, use `NdArray.from`.
   *
   * @throws ShapeError if the dtype is unknown or the shape is invalid; ArgumentError if `data` has the wrong type or
   * length.
   */
  constructor(dtype: DType, shape: Shape, data: HostData) {
    super();
    requireDType("NdArray", dtype);
    requireShape("NdArray", shape);
    // Compare the type tag, because it is equal in all realms and for Node's Buffer.
    if (Object.prototype.toString.call(data) !== `[object ${hostArrayType[dtype].name}]`)
      throw new ArgumentError(
        `NdArray: ${dtype} needs data in a ${hostArrayType[dtype].name}, but the data is ${describe(data)}; use NdArray.from(values, shape, "${dtype}"), which converts`,
      );
    if (data.length !== elementCount(shape)) {
      throw new ArgumentError(
        `an array of shape ${formatShape(shape)} holds ${elementCount(shape)} elements, but ${data.length} were given; pass as many elements as the shape says`,
      );
    }
    this.dtype = dtype;
    this.shape = shape;
    this.data = data;
  }

  /** Returns the elements as numbers; f16 and bf16 are decoded. Cost: one copy. */
  toNumbers(): number[] {
    const decode = this.dtype === "f16" ? fromF16Bits : this.dtype === "bf16" ? fromBf16Bits : undefined;
    return decode ? Array.from(this.data, decode) : Array.from(this.data);
  }

  /** Returns the element of a one-element array. */
  item(): number {
    if (this.data.length !== 1)
      throw new ArgumentError(
        `item() needs one element, but this array of shape ${formatShape(this.shape)} has ${this.data.length}; use toNumbers()`,
      );
    return this.toNumbers()[0]!;
  }

  /** Returns the bytes of `data` in memory order (little-endian), without a copy. */
  bytes(): Uint8Array {
    return new Uint8Array(this.data.buffer, this.data.byteOffset, this.data.byteLength);
  }

  /** Formats as `NdArray f32[2, 3] (1, 2, 3, 4, 5, 6)`, with at most `printedValues` values. */
  override toString(): string {
    const first = new NdArray(
      this.dtype,
      [Math.min(this.data.length, printedValues)],
      this.data.subarray(0, printedValues),
    );
    const rest = this.data.length > printedValues ? `, … ${this.data.length - printedValues} more` : "";
    return `${super.toString()} (${first.toNumbers().map(shortNumber).join(", ")}${rest})`;
  }

  override toJSON(): object {
    return { ...super.toJSON(), values: this.toNumbers() };
  }

  static zeros(dtype: DType, shape: Shape): NdArray {
    requireDType("NdArray.zeros", dtype);
    requireShape("NdArray.zeros", shape);
    return new NdArray(
      dtype,
      shape,
      new hostArrayType[dtype](allocate(elementCount(shape) * bytesPerElement[dtype], shape)),
    );
  }

  /**
   * Creates an array from a flat list of numbers, or from nested lists; each number is rounded to a value that `dtype`
   * can represent.
   *
   * @param givenShape Shape of the array. Default: the shape of the lists.
   * @throws ArgumentError if lists have different lengths, an element is not a number, or the number of values does not
   * match the shape.
   * @example NdArray.from([[1, 2], [3, 4]]); // f32[2, 2]
   */
  static from(numbers: ArrayLike<number> | NestedNumbers, givenShape?: Shape, dtype: DType = "f32"): NdArray {
    const { flat: values, shape: ownShape } = readNested("NdArray.from", numbers);
    const shape = givenShape ?? ownShape;
    requireDType("NdArray.from", dtype);
    requireShape("NdArray.from", shape);
    const array = NdArray.zeros(dtype, shape);
    if (values.length !== array.data.length) {
      throw new ArgumentError(
        `shape ${formatShape(shape)} holds ${array.data.length} elements, but ${values.length} were given; pass as many elements as the shape says`,
      );
    }
    const encode =
      dtype === "f16"
        ? toF16Bits
        : dtype === "bf16"
          ? toBf16Bits
          : dtype === "bool"
            ? (value: number) => (value === 0 ? 0 : 1)
            : undefined;
    if (encode) for (let i = 0; i < values.length; i++) array.data[i] = encode(values[i]!);
    else array.data.set(values);
    return array;
  }

  static scalar(value: number, dtype: DType = "f32"): NdArray {
    if (typeof value !== "number")
      throw new ArgumentError(`NdArray.scalar: ${excerpt(value)} is not a number; use NdArray.from for lists`);
    return NdArray.from([value], [], dtype);
  }
}

/** Formats a number with the 7 significant digits of an f32. */
const shortNumber = (value: number): string => String(Number(value.toPrecision(7)));

const allocate = (bytes: number, shape: Shape): ArrayBuffer => {
  try {
    return new ArrayBuffer(bytes);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ArgumentError(
      `NdArray: shape ${formatShape(shape)} takes ${bytes} bytes, which this host cannot allocate; use a smaller shape`,
    );
  }
};
