// Copies of elements without arithmetic. Every movement operator is a copy between two strided views
// (`src/strided-copy.ts` writes the table). There are four cases for the innermost pair of dimensions: rows, repeated
// elements, a transposed tile, or single strided elements.
import { transpose4 } from "./lanes";

/** Copies `bytes` bytes. The ranges must not overlap. */
// @ts-ignore: decorator
@inline
export function copyBytes(output: usize, input: usize, bytes: usize): void {
  // Copying a short row in a loop costs less than a call of memory.copy.
  if (bytes > 512) {
    memory.copy(output, input, bytes);
    return;
  }
  let i: usize = 0;
  if (ASC_FEATURE_SIMD) {
    for (; i + 16 <= bytes; i += 16) v128.store(output + i, v128.load(input + i));
  }
  for (; i + 4 <= bytes; i += 4) store<u32>(output + i, load<u32>(input + i));
  for (; i < bytes; i++) store<u8>(output + i, load<u8>(input + i));
}

/** Writes `bytes` bytes of the repeated 4-byte `pattern`. */
export function fillBytes(output: usize, pattern: u32, bytes: usize): void {
  let i: usize = 0;
  if (ASC_FEATURE_SIMD) {
    const lanes = i32x4.splat(pattern);
    for (; i + 16 <= bytes; i += 16) v128.store(output + i, lanes);
  }
  for (; i + 4 <= bytes; i += 4) store<u32>(output + i, pattern);
  for (; i < bytes; i++) {
    store<u8>(output + i, <u8>pattern);
    pattern = (pattern >> 8) | (pattern << 24);
  }
}

/** Copies `bytes` contiguous bytes. */
export function copyDense(output: usize, input: usize, bytes: usize): void {
  memory.copy(output, input, bytes);
}

/** Fills a row of `count` elements with a single element. */
// @ts-ignore: decorator
@inline
function repeatElement<T>(output: usize, input: usize, count: i32): void {
  const value = load<T>(input);
  let pattern: u32 = 0;
  if (sizeof<T>() == 1) pattern = <u32>value * 0x01010101;
  else if (sizeof<T>() == 2) pattern = <u32>value * 0x00010001;
  else pattern = <u32>value;
  fillBytes(output, pattern, <usize>count * sizeof<T>());
}

/**
 * Transposes a matrix: `rows` rows of the input, `inputStep` bytes apart, become columns of the output, whose rows are
 * `outputStep` bytes apart. A block has 16 columns, so that each input cache line is used completely, and 64 rows.
 * Larger blocks do not fit in the cache if rows are a power of two apart and share cache sets (1024 × 1024 words on an
 * EPYC of the Zen 5 family: 11 GB/s, compared with 7 GB/s for blocks of 32 × 32; 85 GB/s at other widths).
 */
export function transposeTile<T>(output: usize, outputStep: usize, input: usize, inputStep: usize, rows: i32, columns: i32): void {
  const size = <usize>sizeof<T>();
  for (let row = 0; row < rows; row += 64) {
    const rowEnd = min(row + 64, rows);
    for (let column = 0; column < columns; column += 16) {
      const columnEnd = min(column + 16, columns);
      let r = row;
      if (ASC_FEATURE_SIMD && sizeof<T>() == 4) {
        for (; r + 4 <= rowEnd; r += 4) {
          let c = column;
          for (; c + 4 <= columnEnd; c += 4) {
            transpose4(input + <usize>r * inputStep + <usize>c * 4, inputStep, output + <usize>c * outputStep + <usize>r * 4, outputStep);
          }
          for (; c < columnEnd; c++) {
            for (let i = 0; i < 4; i++) {
              store<T>(output + <usize>c * outputStep + <usize>(r + i) * 4, load<T>(input + <usize>(r + i) * inputStep + <usize>c * 4));
            }
          }
        }
      }
      for (; r < rowEnd; r++) {
        for (let c = column; c < columnEnd; c++) {
          store<T>(output + <usize>c * outputStep + <usize>r * size, load<T>(input + <usize>r * inputStep + <usize>c * size));
        }
      }
    }
  }
}

// Bytes per table entry. An entry has three words: dimension size, output stride in bytes, input stride in bytes.
const ENTRY: usize = 12;

/**
 * Copies indices 0 … `count` − 1 of the first dimension in `table`, with all indices of the following dimensions. The
 * last two dimensions are copied together.
 */
function copyDims<T>(output: usize, input: usize, table: usize, dims: i32, count: i32): void {
  const outputStep = <usize>load<i32>(table, 4);
  const inputStep = <usize>load<i32>(table, 8);
  if (dims > 2) {
    for (let i = 0; i < count; i++) {
      copyDims<T>(output, input, table + ENTRY, dims - 1, load<i32>(table + ENTRY));
      output += outputStep;
      input += inputStep;
    }
    return;
  }
  const size = <usize>sizeof<T>();
  const inner = load<i32>(table, 12);
  const innerOutput = <usize>load<i32>(table, 16);
  const innerInput = <usize>load<i32>(table, 20);
  if (innerOutput == size && innerInput == size) {
    for (let i = 0; i < count; i++) {
      copyBytes(output, input, <usize>inner * size);
      output += outputStep;
      input += inputStep;
    }
  } else if (innerOutput == size && innerInput == 0) {
    for (let i = 0; i < count; i++) {
      repeatElement<T>(output, input, inner);
      output += outputStep;
      input += inputStep;
    }
  } else if (innerOutput == size && inputStep == size) {
    transposeTile<T>(output, outputStep, input, innerInput, inner, count);
  } else {
    for (let i = 0; i < count; i++) {
      let to = output;
      let from = input;
      for (let j = 0; j < inner; j++) {
        store<T>(to, load<T>(from));
        to += innerOutput;
        from += innerInput;
      }
      output += outputStep;
      input += inputStep;
    }
  }
}

// @ts-ignore: decorator
@inline
function copySteps<T>(output: usize, input: usize, table: usize, dims: i32, first: i32, last: i32): void {
  copyDims<T>(output + <usize>first * <usize>load<i32>(table, 4), input + <usize>first * <usize>load<i32>(table, 8), table, dims, last - first);
}

/**
 * Copies a strided view of bytes, limited to indices `first` … `last` − 1 of its first dimension. `table` has `dims` ≥
 * 2 entries, outermost first.
 */
export function copyStrided8(output: usize, input: usize, table: usize, dims: i32, first: i32, last: i32): void {
  copySteps<u8>(output, input, table, dims, first, last);
}

export function copyStrided16(output: usize, input: usize, table: usize, dims: i32, first: i32, last: i32): void {
  copySteps<u16>(output, input, table, dims, first, last);
}

export function copyStrided32(output: usize, input: usize, table: usize, dims: i32, first: i32, last: i32): void {
  copySteps<u32>(output, input, table, dims, first, last);
}
