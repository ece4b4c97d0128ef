// Interpreter of elementwise programs. The interpreter iterates over the shape in tiles that stay in the L1 cache, and
// runs each micro-operation over a complete tile. `src/fused-program.ts` writes the programs and documents their
// format.
import { TILE } from "./fused-blocks";
import { foldLanes } from "./fused-folds";
import { loadRun, storeRun, widthOf } from "./fused-runs";
import { runTile } from "./fused-tiles";
import { partBegin } from "./parts";

/** Index of the first size of an outer dimension among the words of a program. */
const OUTER_SIZES: i32 = 12;

// @ts-ignore: decorator
@inline
function word(program: usize, index: i32): i32 {
  return load<i32>(program + ((<usize>index) << 2));
}

// @ts-ignore: decorator
@inline
function alignUp16(address: usize): usize {
  return (address + 15) & ~15;
}

/** Writes four words from address `at` on. The host uses this function to pass the addresses of operands. */
export function setWords(at: usize, a: i32, b: i32, c: i32, d: i32): void {
  store<i32>(at, a);
  store<i32>(at, b, 4);
  store<i32>(at, c, 8);
  store<i32>(at, d, 12);
}

/**
 * Runs part `part` of `parts` of a program: a range of its tiles, or a range of its rows if a fold spans several tiles.
 * `scratch` begins with the addresses of the inputs, followed by the addresses of the outputs.
 */
export function fused(program: usize, scratch: usize, part: i32, parts: i32): void {
  if (ASC_FEATURE_SIMD) drive<v128>(program, scratch, part, parts);
  else drive<f32>(program, scratch, part, parts);
}

/** Whether a fold continues from one tile to the next. */
function foldsRows(codeEnd: usize, folds: i32, tile: i32): bool {
  for (let f = 0, at = codeEnd; f < folds; f++, at += 20) if (load<i32>(at, 16) > tile) return true;
  return false;
}

function drive<T>(program: usize, scratch: usize, part: i32, parts: i32): void {
  const inputs = word(program, 0);
  const outputs = word(program, 1);
  const constants = word(program, 2);
  const registers = word(program, 4);
  const rank = word(program, 5);
  const inner = word(program, 6);
  const outer = word(program, 7);
  const tile = word(program, 10);
  const folds = word(program, 11);
  const table = scratch + <usize>word(program, 8);
  const totals = table - alignUp16((<usize>folds) << 3);
  const cells = table + alignUp16((<usize>registers) << 3);
  const slots = cells + ((<usize>registers) << 4);
  const inputWords = OUTER_SIZES + rank;
  const constantWords = word(program, 9);
  const outputWords = constantWords + constants;
  const code = program + ((<usize>(outputWords + 3 * outputs)) << 2);
  const codeEnd = code + (<usize>word(program, 3)) * 24;

  for (let i = 0; i < constants; i++) {
    const cell = cells + ((<usize>(inputs + i)) << 4);
    fillCell(cell, word(program, constantWords + i));
    setRegister(table, inputs + i, cell, 0);
  }
  bindSlots<T>(code, codeEnd, table, slots);

  const across = foldsRows(codeEnd, folds, tile) ? 1 : max<i32>(1, (inner + tile - 1) / tile);
  const firstUnit = partBegin(outer * across, part, parts);
  const end = partBegin(outer * across, part + 1, parts);
  for (let row = firstUnit / across; row * across < end; row++) {
    const firstColumn = max<i32>(0, firstUnit - row * across) * tile;
    const lastColumn = across == 1 ? inner : min<i32>(inner, (end - row * across) * tile);
    for (let column = firstColumn; column < lastColumn; ) {
      const length = min<i32>(tile, lastColumn - column);
      const begin = <usize>(row * inner + column);
      for (let done = 0; done < length; ) {
        const left = length - done;
        const whole = left & ~(<i32>(sizeof<T>() >> 2) - 1);
        // Fewer elements than a vector holds are processed in cells (16 bytes of scratch memory), so that no memory
        // outside of the operands is accessed.
        const staged = whole == 0;
        const n = staged ? left : whole;
        const first = begin + <usize>done;
        let at = inputWords;
        for (let r = 0; r < inputs; r++) {
          at = bindInput<T>(program, at, r, table, cells, slots, load<usize>(scratch + ((<usize>r) << 2)), row, inner, column + done, n, staged, column + done == firstColumn);
        }
        for (let o = 0; o < outputs; o++) {
          if (word(program, outputWords + 3 * o + 2) != 1) continue;
          const r = word(program, outputWords + 3 * o);
          const address = staged ? cells + ((<usize>r) << 4) : load<usize>(scratch + ((<usize>(inputs + o)) << 2)) + (first << 2);
          setRegister(table, r, address, sizeof<T>());
        }
        // Use cells, because the content of the slots has not been folded yet.
        if (staged && folds > 0) bindCells<T>(code, codeEnd, table, cells);
        run<T>(code, codeEnd, table, staged ? <i32>(sizeof<T>() >> 2) : n);
        for (let o = 0; o < outputs; o++) {
          const mode = word(program, outputWords + 3 * o + 2);
          if (mode == 2 || (!staged && mode == 1)) continue;
          const entry = table + ((<usize>word(program, outputWords + 3 * o)) << 3);
          const kind = word(program, outputWords + 3 * o + 1);
          storeRun<T>(kind, load<usize>(entry), load<usize>(scratch + ((<usize>(inputs + o)) << 2)) + first * widthOf(kind), n);
        }
        if (staged && folds > 0) {
          moveToSlots(code, codeEnd, cells, slots + ((<usize>done) << 2), n);
          bindSlots<T>(code, codeEnd, table, slots);
        }
        done += n;
      }
      for (let f = 0, at = codeEnd; f < folds; f++, at += 20) {
        const operand = load<i32>(at, 4);
        const source =
          operand < 0 ? slots + <usize>load<i32>(at, 8) * (TILE * 4) : load<usize>(scratch + ((<usize>operand) << 2)) + (begin << 2);
        const output = load<usize>(scratch + ((<usize>load<i32>(at, 12)) << 2));
        foldLanes(load<i32>(at), source, length, <i32>begin, load<i32>(at, 16), tile, output, totals + ((<usize>f) << 3));
      }
      column += length;
    }
  }
}

/**
 * Sets the destination of each micro-operation's result to the slot of the micro-operation. A slot is scratch memory
 * for one tile. Micro-operations without a slot are skipped.
 */
function bindSlots<T>(code: usize, end: usize, table: usize, slots: usize): void {
  for (let at = code; at < end; at += 24) {
    const slot = load<i32>(at, 20);
    if (slot >= 0) setRegister(table, load<i32>(at, 4), slots + <usize>slot * (TILE * 4), sizeof<T>());
  }
}

/**
 * Variant of `bindSlots` that sets the destination to the cell of the result's register. A cell is 16 bytes of scratch
 * memory.
 */
function bindCells<T>(code: usize, end: usize, table: usize, cells: usize): void {
  for (let at = code; at < end; at += 24) {
    const r = load<i32>(at, 4);
    if (load<i32>(at, 20) >= 0) setRegister(table, r, cells + ((<usize>r) << 4), sizeof<T>());
  }
}

/**
 * Copies the first `n` lanes in the cell of each micro-operation that has a slot to the slot. Copies in program order,
 * so that a slot receives its latest result last.
 */
function moveToSlots(code: usize, end: usize, cells: usize, slots: usize, n: i32): void {
  for (let at = code; at < end; at += 24) {
    const slot = load<i32>(at, 20);
    if (slot >= 0) memory.copy(slots + <usize>slot * (TILE * 4), cells + ((<usize>load<i32>(at, 4)) << 4), (<usize>n) << 2);
  }
}

// @ts-ignore: decorator
@inline
function setRegister(table: usize, register: i32, address: usize, step: usize): void {
  const entry = table + ((<usize>register) << 3);
  store<usize>(entry, address);
  store<usize>(entry, step, 4);
}

function fillCell(cell: usize, bits: i32): void {
  setWords(cell, bits, bits, bits, bits);
}

/**
 * Binds register `r` to the elements of an input that the tile needs.
 * - Elements that are stored as lanes are used in place.
 * - A value that is constant for the complete row is loaded into a cell at the `begin` of the row.
 * - All other elements are converted to lanes in a slot, or in a cell if `staged`.
 *
 * @returns the index of the next input's words in the program.
 */
function bindInput<T>(program: usize, at: i32, r: i32, table: usize, cells: usize, slots: usize, base: usize, row: i32, inner: i32, column: i32, n: i32, staged: bool, begin: bool): i32 {
  const kind = word(program, at);
  const walkRank = word(program, at + 1);
  const slot = word(program, at + 2);
  const cell = cells + ((<usize>r) << 4);
  const target = staged ? cell : slots + <usize>slot * (TILE * 4);
  if (walkRank > 0) {
    walk<T>(program, at + 3, walkRank, kind, base, row * inner + column, target, n);
    setRegister(table, r, target, sizeof<T>());
    return at + 3 + 2 * walkRank;
  }
  const rank = word(program, 5);
  const stride = word(program, at + 3);
  let rest = row;
  let offset = 0;
  for (let dim = rank - 1; dim > 0; dim--) {
    const size = word(program, OUTER_SIZES + dim);
    offset += (rest % size) * word(program, at + 4 + dim);
    rest /= size;
  }
  if (rank > 0) offset += rest * word(program, at + 4);
  const source = base + <usize>(offset + column * stride) * widthOf(kind);
  if (stride == 0) {
    if (begin) {
      loadRun<T>(kind, source, 0, cell, 1);
      fillCell(cell, load<i32>(cell));
      setRegister(table, r, cell, 0);
    }
  } else if (slot < 0 && !staged) {
    setRegister(table, r, source, sizeof<T>());
  } else {
    loadRun<T>(kind, source, stride, target, n);
    setRegister(table, r, target, sizeof<T>());
  }
  return at + 4 + rank;
}

/** Copies elements `first` … `first + n - 1` of a strided view, row by row. */
function walk<T>(program: usize, at: i32, rank: i32, kind: i32, base: usize, first: i32, target: usize, n: i32): void {
  const size = word(program, at + rank - 1);
  const stride = word(program, at + 2 * rank - 1);
  let row = first / size;
  let column = first % size;
  while (n > 0) {
    let rest = row;
    let offset = column * stride;
    for (let dim = rank - 2; dim > 0; dim--) {
      const extent = word(program, at + dim);
      offset += (rest % extent) * word(program, at + rank + dim);
      rest /= extent;
    }
    if (rank > 1) offset += rest * word(program, at + rank);
    const count = min<i32>(n, size - column);
    loadRun<T>(kind, base + <usize>offset * widthOf(kind), stride, target, count);
    target += (<usize>count) << 2;
    n -= count;
    column = 0;
    row++;
  }
}

function run<T>(code: usize, end: usize, table: usize, n: i32): void {
  for (let at = code; at < end; at += 24) {
    const d = table + ((<usize>load<i32>(at, 4)) << 3);
    const a = table + ((<usize>load<i32>(at, 8)) << 3);
    const b = table + ((<usize>load<i32>(at, 12)) << 3);
    const c = table + ((<usize>load<i32>(at, 16)) << 3);
    runTile<T>(load<i32>(at), load<usize>(d), load<usize>(a), load<usize>(a, 4), load<usize>(b), load<usize>(b, 4), load<usize>(c), load<usize>(c, 4), n);
  }
}
