import { bytesPerElement, fromBf16Bits, fromF16Bits, hostArrayType, toBf16Bits, toF16Bits, type DType, type HostData } from "./dtype.ts";
import { ArgumentError } from "./errors.ts";
import { elementCount, formatShape, type Shape, type TensorSpec } from "./shape.ts";

/** Values on the host: dense row-major, 16-bit floats as bit patterns. The caller owns `data`. */
export class NdArray implements TensorSpec {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly data: HostData;

  constructor(dtype: DType, shape: Shape, data: HostData) {
    if (data.length !== elementCount(shape)) {
      throw new ArgumentError(
        `an array of shape ${formatShape(shape)} holds ${elementCount(shape)} elements, but ${data.length} were given; pass as many elements as the shape says`,
      );
    }
    this.dtype = dtype;
    this.shape = shape;
    this.data = data;
  }

  /** Values as numbers, 16-bit floats decoded. Cost: one copy. */
  toNumbers(): number[] {
    const decode = this.dtype === "f16" ? fromF16Bits : this.dtype === "bf16" ? fromBf16Bits : undefined;
    return decode ? Array.from(this.data, decode) : Array.from(this.data);
  }

  /** The only value of a one-element array. */
  item(): number {
    if (this.data.length !== 1)
      throw new ArgumentError(`item() needs one element, this array has ${this.data.length}: ${formatShape(this.shape)}; use toNumbers()`);
    return this.toNumbers()[0]!;
  }

  /** The bytes as they lie in memory (little-endian), without a copy. */
  bytes(): Uint8Array {
    return new Uint8Array(this.data.buffer, this.data.byteOffset, this.data.byteLength);
  }

  static zeros(dtype: DType, shape: Shape): NdArray {
    return new NdArray(dtype, shape, new hostArrayType[dtype](new ArrayBuffer(elementCount(shape) * bytesPerElement[dtype])));
  }

  /** Make an array from numbers; each is rounded to what `dtype` can hold. */
  static from(values: ArrayLike<number>, shape: Shape = [values.length], dtype: DType = "f32"): NdArray {
    const array = NdArray.zeros(dtype, shape);
    if (values.length !== array.data.length) {
      throw new ArgumentError(
        `shape ${formatShape(shape)} holds ${array.data.length} elements, but ${values.length} were given; pass as many elements as the shape says`,
      );
    }
    const encode =
      dtype === "f16" ? toF16Bits : dtype === "bf16" ? toBf16Bits : dtype === "bool" ? (value: number) => (value === 0 ? 0 : 1) : undefined;
    if (encode) for (let i = 0; i < values.length; i++) array.data[i] = encode(values[i]!);
    else array.data.set(values);
    return array;
  }

  static scalar(value: number, dtype: DType = "f32"): NdArray {
    return NdArray.from([value], [], dtype);
  }
}
