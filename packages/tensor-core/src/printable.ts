import type { DType } from "./dtype.ts";
import { ArgumentError } from "./errors.ts";
import type { Disposing } from "./platform-types.ts";
import { formatSpec, type Shape, type TensorSpec } from "./shape.ts";

/** Replacement for JavaScript operators in error messages, per kind of value. */
const cures = {
  Tensor:
    "a Tensor has no value while a function is traced: compute with add(x, 1), multiply(x, 2), greater(x, 0), equal(x, 2), and choose with where(condition, a, b)",
  NdArray: "get its numbers by toNumbers(), the number of a one-element array by item()",
  DeviceArray: "its values are on the device: download them by `await backend.download(array)`",
} as const;

/**
 * A value with a dtype and a shape that prints as one short line, and that throws if a JavaScript operator uses it as a
 * number, because objects cannot overload operators.
 */
export abstract class Printable implements TensorSpec {
  abstract readonly dtype: DType;
  abstract readonly shape: Shape;
  protected abstract readonly kind: keyof typeof cures;

  /** `Tensor f32[2, 3]` */
  toString(): string {
    return `${this.kind} ${formatSpec(this)}`;
  }

  /** Value that `JSON.stringify` writes. */
  toJSON(): object {
    return { dtype: this.dtype, shape: this.shape };
  }

  static {
    // Node and compatible runtimes look up the output of `console.log` under this symbol; the symbol is registered, so
    // no import of Node is needed.
    Object.defineProperty(this.prototype, Symbol.for("nodejs.util.inspect.custom"), {
      value(this: Printable): string {
        return this.toString();
      },
    });
  }

  /** @throws ArgumentError in arithmetic and comparisons; `${x}` is the text of `toString`. */
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

  /** Free the memory. */
  protected abstract dispose(): void;

  static {
    // Browsers of 2025 may lack the symbol.
    if (Symbol.dispose !== undefined)
      Object.defineProperty(this.prototype, Symbol.dispose, {
        value(this: PrintableOnDevice): void {
          this.dispose();
        },
      });
  }
}

/** Base class of values on a device. `using` calls their `dispose`. */
export const PrintableDeviceArray: abstract new () => PrintableOnDevice & Disposing = PrintableOnDevice as never;
