import type { DType } from "./dtype.ts";
import { ArgumentError } from "./errors.ts";
import type { Disposing } from "./platform-types.ts";
import { formatSpec, type Shape, type TensorSpec } from "./shape.ts";

/** Functions to use in place of JavaScript operators, per kind of value, for error messages. */
const cures = {
  Tensor:
    "a Tensor has no value while a function is traced: compute with add(x, 1), multiply(x, 2), greater(x, 0), equal(x, 2), and choose with where(condition, a, b)",
  NdArray: "get its numbers by toNumbers(), the number of a one-element array by item()",
  DeviceArray: "its values are on the device: download them by `await backend.download(array)`",
} as const;

/**
 * Base class of values with a dtype and a shape. Prints as one short line. Throws if a JavaScript operator converts the
 * value to a number, because JavaScript has no operator overloading.
 */
export abstract class Printable implements TensorSpec {
  abstract readonly dtype: DType;
  abstract readonly shape: Shape;
  protected abstract readonly kind: keyof typeof cures;

  /** Formats as class name and spec: `Tensor f32[2, 3]`. */
  toString(): string {
    return `${this.kind} ${formatSpec(this)}`;
  }

  /** Returns the object that `JSON.stringify` writes. */
  toJSON(): object {
    return { dtype: this.dtype, shape: this.shape };
  }

  static {
    // Node and compatible runtimes call the method under this symbol to format the value for `console.log`. The symbol
    // is in the global registry, so no Node import is needed.
    Object.defineProperty(this.prototype, Symbol.for("nodejs.util.inspect.custom"), {
      value(this: Printable): string {
        return this.toString();
      },
    });
  }

  /**
   * Converts the value to a primitive: `${x}` returns `toString()`. Throws ArgumentError if the conversion is for
   * arithmetic or a comparison.
   */
  [Symbol.toPrimitive](hint: string): string {
    if (hint === "string") return this.toString();
    throw new ArgumentError(
      `${this.toString()} was used with an operator of JavaScript, such as + or ${hint === "number" ? ">" : "=="}, which works on numbers and text only; ${cures[this.kind]}`,
    );
  }
}

abstract class PrintableOnDevice extends Printable {
  protected get kind(): "DeviceArray" {
    return "DeviceArray";
  }

  /** Frees the memory of the value. */
  protected abstract dispose(): void;

  static {
    // `Symbol.dispose` is missing in some browsers of 2025.
    if (Symbol.dispose !== undefined)
      Object.defineProperty(this.prototype, Symbol.dispose, {
        value(this: PrintableOnDevice): void {
          this.dispose();
        },
      });
  }
}

/** Base class of device arrays. At the end of a `using` scope, `dispose` is called. */
export const PrintableDeviceArray: abstract new () => PrintableOnDevice & Disposing = PrintableOnDevice as never;
