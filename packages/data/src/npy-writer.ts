import type { Shape } from "@skein/tensor-core";
import { DataError } from "./errors.ts";
import { joinBytes } from "./join-bytes.ts";
import { npyElement, type NpyHeader } from "./npy.ts";

/** Dtypes to which arrays are converted. */
export type NpyTarget = "f32" | "i32" | "u8";

type Elements = Float32Array | Int32Array | Uint8Array;

const allowed = {
  f32: "must be a finite number of 32 bits",
  i32: "must be an integer from -2147483648 to 2147483647",
  u8: "must be an integer from 0 to 255",
} as const;

const fits = (value: number, target: NpyTarget): boolean => {
  if (target === "f32") return Number.isFinite(Math.fround(value));
  return target === "i32" ? (value | 0) === value : (value & 255) === value;
};

/** Enumerates the C-order indices of elements stored in Fortran order, in which the first dimension varies fastest. */
class FortranWalk {
  private readonly shape: Shape;
  private readonly strides: readonly number[];
  private readonly at: number[];
  private index = 0;

  constructor(shape: Shape) {
    this.shape = shape;
    this.strides = shape.map((_, dim) => shape.slice(dim + 1).reduce((product, size) => product * size, 1));
    this.at = shape.map(() => 0);
  }

  /** Returns the C-order index of the current element, and advances to the next element. */
  next(): number {
    const { shape, strides, at, index } = this;
    for (let dim = 0; dim < shape.length; dim++) {
      this.index += strides[dim]!;
      if (++at[dim]! < shape[dim]!) break;
      this.index -= at[dim]! * strides[dim]!;
      at[dim] = 0;
    }
    return index;
  }
}

/** Formats the indices of an element, given by its C-order index, such as `[2, 5]`. */
const formatIndices = (index: number, shape: Shape): string => {
  const at: number[] = [];
  for (let dim = shape.length - 1, rest = index; dim >= 0; rest = Math.floor(rest / shape[dim--]!))
    at.unshift(rest % shape[dim]!);
  return `[${at.join(", ")}]`;
};

/**
 * Writes the elements of an array to memory in C order, chunk by chunk as the file is read. The total size must match
 * the header.
 *
 * Cost: one pass. Elements in Fortran order are written to scattered addresses.
 */
export class NpyWriter {
  private readonly header: NpyHeader;
  private readonly name: string;
  private readonly target: NpyTarget;
  private readonly elements: Elements;
  private readonly element: (view: DataView, offset: number) => number;
  /**
   * Returns the C-order index of each element of a file in Fortran order. Undefined: the elements of the file are
   * already in C order.
   */
  private readonly walk: FortranWalk | undefined;
  /** First bytes of an element that is continued in the next chunk. */
  private rest: Uint8Array = new Uint8Array(0);
  private done = 0;

  /** Creates a writer. @param elements Target array, with the number of elements given in the header. */
  constructor(header: NpyHeader, name: string, target: NpyTarget, elements: Elements) {
    this.header = header;
    this.name = name;
    this.target = target;
    this.elements = elements;
    this.element = npyElement(header);
    const isStraight = !header.fortranOrder || header.shape.filter((size) => size > 1).length < 2;
    this.walk = isStraight ? undefined : new FortranWalk(header.shape);
  }

  /** Converts and stores a chunk of the file. @throws DataError if the target dtype cannot represent a value. */
  take(piece: Uint8Array): void {
    const each = this.header.bytesPerElement;
    const bytes = this.rest.length === 0 ? piece : joinBytes(this.rest, piece);
    const number = Math.floor(bytes.length / each);
    this.rest = bytes.slice(number * each);
    if (this.walk === undefined && this.target === "u8" && this.header.descr.endsWith("u1"))
      this.elements.set(bytes, this.done); // no conversion and no check is needed
    else this.write(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), number);
    this.done += number;
  }

  private write(view: DataView, number: number): void {
    const { header, name, elements, target, element, walk, done } = this;
    const { bytesPerElement: each, shape } = header;
    for (let i = 0; i < number; i++) {
      const value = element(view, i * each);
      const index = walk?.next() ?? done + i;
      if (!fits(value, target))
        throw new DataError(
          `${name}${formatIndices(index, shape)} is ${value}, but ${allowed[target]}; correct the data`,
        );
      elements[index] = value;
    }
  }

  /** Checks that all elements were written. @throws DataError if elements are missing. */
  end(): void {
    if (this.done < this.elements.length)
      throw new DataError(
        `${this.name} ended after ${this.done} of ${this.elements.length} elements during reading; write it again`,
      );
  }
}
