import { elementCount, InvariantError } from "@skein/tensor-core";
import {
  foldTile,
  type FusedFold,
  type FusedParams,
  rowMajorStrides,
  type KernelNode,
} from "@skein/tensor-core/backend";
import { kindOf, laneBits, lowerInstruction } from "./fused-lowering.ts";
import { TILE } from "../assembly/fused-blocks.ts";
import * as Fold from "../assembly/fused-fold.ts";
import { type Opcode, opcodes } from "./fused-opcode.ts";

/** A program for the elementwise interpreter in `assembly/fused.ts`, and the scratch memory that the program needs. */
export interface FusedProgram {
  readonly words: Int32Array;
  readonly scratchBytes: number;
  /** Number of work units that threads can share: tiles, or rows of tiles if a fold spans several tiles. */
  readonly units: number;
  readonly micros: number;
}

interface Micro {
  readonly op: Opcode;
  readonly args: readonly number[];
  readonly result: number;
}

const foldNumbers: { readonly [op in FusedFold["op"]]: number } = {
  sum: Fold.Sum,
  "reduce-max": Fold.Max,
  "reduce-min": Fold.Min,
  "pack-bits": Fold.Bits,
};
/**
 * Fold codes that replace a fold and the micro-operation before it: sums or maxima of float magnitudes, and counts of
 * true masks.
 */
const joinedFolds: { readonly [fold in FusedFold["op"]]?: { readonly [op in Opcode]?: number } } = {
  sum: { abs: Fold.SumMagnitudes, boolToFloat: Fold.Count },
  "reduce-max": { abs: Fold.MaxMagnitudes },
};

// Minimum row length for which each row has its own tiles. In such tiles, broadcast operands cost nothing. Shorter rows
// are copied into shared tiles.
const longRow = 256;

const alignUp16 = (bytes: number): number => Math.ceil(bytes / 16) * 16;

/**
 * Merges a multiplication and an addition or subtraction into one multiply-add if nothing else reads the product. The
 * merged program has one pass less over the tile, and one rounding less if the build has fused multiply-add.
 */
const joinMultiplyAdd = (micros: readonly Micro[], results: readonly number[]): Micro[] => {
  const uses = new Map<number, number>();
  for (const register of [...micros.flatMap((micro) => micro.args), ...results])
    uses.set(register, (uses.get(register) ?? 0) + 1);
  const products = new Map(
    micros
      .filter(({ op, result }) => op === "multiply" && uses.get(result) === 1)
      .map((micro) => [micro.result, micro]),
  );
  const joined = new Set<number>();
  const rewritten = micros.map((micro): Micro => {
    if (micro.op !== "add" && micro.op !== "subtract") return micro;
    const [x, y] = micro.args as [number, number];
    const right = products.get(y);
    const product = right ?? products.get(x);
    if (product === undefined) return micro;
    joined.add(product.result);
    const other = right === undefined ? y : x;
    const op = micro.op === "add" ? "madd" : right === undefined ? "msub" : "nmadd";
    return { op, args: [...product.args, other], result: micro.result };
  });
  return rewritten.filter((micro) => !joined.has(micro.result));
};

const commutative: ReadonlySet<Opcode> = new Set(["add", "multiply", "madd", "nmadd", "msub"]);

/**
 * Swaps the operands of a commutative micro-operation if the first operand is constant for the whole tile and the
 * second is not. The loops are fastest with the constant operand second.
 */
const constantSecond = (micro: Micro, isConstant: (register: number) => boolean): Micro => {
  const [a, b, ...rest] = micro.args;
  return commutative.has(micro.op) && isConstant(a!) && !isConstant(b!) ? { ...micro, args: [b!, a!, ...rest] } : micro;
};

/**
 * Replaces `max(x, c)`, for a constant c that is neither NaN nor zero, by one instruction instead of eight. With such a
 * constant, both instructions propagate NaN equally, and two zeros are never compared.
 */
const plainExtreme = (micro: Micro, constantBits: (register: number) => number | undefined): Micro => {
  if (micro.op !== "maximum" && micro.op !== "minimum") return micro;
  const second = constantBits(micro.args[1]!) === undefined ? 0 : 1;
  const bits = constantBits(micro.args[second]!);
  const magnitude = (bits ?? 0) & 0x7fffffff;
  if (magnitude === 0 || magnitude > 0x7f800000) return micro;
  return {
    ...micro,
    op: micro.op === "maximum" ? "pmaximum" : "pminimum",
    args: [micro.args[1 - second]!, micro.args[second]!],
  };
};

/**
 * Replaces the conversion of unsigned words to floats by the signed conversion if the highest bit of the words is
 * clear. The results are equal, and only the signed conversion of a vector is a single instruction.
 */
const signedWords = (micros: readonly Micro[], constantBits: (register: number) => number | undefined): Micro[] => {
  const clear = new Set(
    micros
      .filter(({ op, args: [a, b] }) => {
        if (op === "and") return [a, b].some((arg) => (constantBits(arg!) ?? -1) >= 0);
        return op === "shiftRightU" && ((constantBits(b!) ?? 0) & 31) > 0;
      })
      .map(({ result }) => result),
  );
  return micros.map((micro) =>
    micro.op === "fromU32" && clear.has(micro.args[0]!) ? { ...micro, op: "fromI32" } : micro,
  );
};

/** Removes micro-operations that no result needs. */
const liveMicros = (micros: readonly Micro[], results: readonly number[]): Micro[] => {
  const needed = new Set(results);
  return micros
    .toReversed()
    .filter((micro) => {
      if (!needed.has(micro.result)) return false;
      for (const arg of micro.args) needed.add(arg);
      return true;
    })
    .toReversed();
};

/** Value of `Kind` in `assembly/fused-runs.ts` for float lanes that the store converts to bytes. */
const floatByte = 5;

/**
 * Moves a cast to bytes into the store if only one output reads the result of the cast. The program then has one pass
 * less over the tile.
 */
const castInStore = (
  micros: readonly Micro[],
  results: readonly number[],
  canStore: (output: number, operand: number) => boolean,
): { readonly micros: readonly Micro[]; readonly results: readonly number[]; readonly casts: readonly boolean[] } => {
  const reads = [...micros.flatMap(({ args }) => args), ...results];
  const casts = results.map((register, output) => {
    const micro = micros.find(({ result }) => result === register);
    return (
      micro?.op === "toU8" && reads.filter((read) => read === register).length === 1 && canStore(output, micro.args[0]!)
    );
  });
  const dropped = new Set(results.filter((_, output) => casts[output]));
  return {
    micros: micros.filter(({ result }) => !dropped.has(result)),
    results: results.map((register, output) =>
      casts[output] ? micros.find(({ result }) => result === register)!.args[0]! : register,
    ),
    casts,
  };
};

interface Lowered {
  readonly micros: readonly Micro[];
  /** Bits of the constant registers. These registers follow the registers of the inputs. */
  readonly constants: readonly number[];
  readonly results: readonly number[];
  /** Fold code of each result. Undefined: the result is not folded. */
  readonly folds: readonly (number | undefined)[];
  /** Storage kind of each result, as a value of `Kind` in `assembly/fused-runs.ts`. */
  readonly kinds: readonly number[];
  readonly numRegisters: number;
}

/** Lowers a node to micro-operations. Order of the registers: inputs, constants, results of micro-operations. */
const lower = (node: KernelNode<FusedParams>): Lowered => {
  const { instructions, results, folds } = node.params;
  const numInputs = node.inputs.length;
  const constants: number[] = [];
  const constantOf = new Map<number, number>();
  for (const { op, dtype, params } of instructions) {
    if (op !== "constant") continue;
    const bits = laneBits(Number(params["value"]), dtype);
    if (!constantOf.has(bits)) constantOf.set(bits, numInputs + constants.push(bits) - 1);
  }
  const micros: Micro[] = [];
  const append = (op: Opcode, ...args: number[]): number => {
    const result = numInputs + constants.length + micros.length;
    micros.push({ op, args, result });
    return result;
  };
  const dtypes = [...node.inputs.map((input) => input.dtype), ...instructions.map((instruction) => instruction.dtype)];
  const registers = node.inputs.map((_, input) => input);
  for (const instruction of instructions) {
    const { op, args, dtype, params } = instruction;
    registers.push(
      op === "constant"
        ? constantOf.get(laneBits(Number(params["value"]), dtype))!
        : lowerInstruction(
            append,
            instruction,
            args.map((arg) => registers[arg]!),
            dtypes[args[0]!]!,
          ),
    );
  }
  const firstComputed = numInputs + constants.length;
  const foldOf = (output: number): FusedFold | undefined => folds?.[output] ?? undefined;
  // Whether the memory plan may place a four-byte result over an operand that no later instruction reads.
  const overwrites = node.outputs.some(({ dtype }, output) => foldOf(output) === undefined && kindOf(dtype) === 0);
  const isLane = (register: number): boolean =>
    register < numInputs && isDense(node, register) && kindOf(node.inputs[register]!.dtype) === 0;
  const outputs: number[] = [];
  const numbers: (number | undefined)[] = [];
  for (const [output, result] of results.entries()) {
    const resultRegister = registers[result]!;
    const fold = foldOf(output);
    const last = micros.find((micro) => micro.result === resultRegister);
    const joined = fold && last && joinedFolds[fold.op]?.[last.op];
    const operand = last?.args[0] ?? -1;
    if (joined !== undefined && (operand >= firstComputed || (isLane(operand) && !overwrites))) {
      outputs.push(operand);
      numbers.push(joined);
      continue;
    }
    // A result must be computed even if it only repeats an operand. Otherwise the stores at the end of a tile could
    // read inputs that have already been overwritten. A fold may read an operand in place, because in this case the
    // plan places no output over the operand.
    const isStorable = resultRegister >= firstComputed || (fold !== undefined && isLane(resultRegister));
    outputs.push(isStorable ? resultRegister : append("copy", resultRegister));
    numbers.push(fold && foldNumbers[fold.op]);
  }
  const isConstant = (register: number): boolean => register >= numInputs && register < firstComputed;
  const constantBits = (register: number): number | undefined =>
    isConstant(register) ? constants[register - numInputs] : undefined;
  const joined = signedWords(liveMicros(joinMultiplyAdd(micros, outputs), outputs), constantBits).map((micro) =>
    plainExtreme(constantSecond(micro, isConstant), constantBits),
  );
  const stored = castInStore(
    joined,
    outputs,
    (output, operand) => foldOf(output) === undefined && operand >= firstComputed,
  );
  return {
    micros: stored.micros,
    constants,
    results: stored.results,
    folds: numbers,
    kinds: node.outputs.map(({ dtype }, output) => (stored.casts[output] ? floatByte : kindOf(dtype))),
    numRegisters: firstComputed + micros.length,
  };
};

const isDense = (node: KernelNode<FusedParams>, input: number): boolean => {
  const { shape, views } = node.params;
  const dense = rowMajorStrides(shape);
  return views[input]!.strides.every((stride, dim) => shape[dim] === 1 || stride === dense[dim]);
};

/**
 * Iteration order of the interpreter: outer dimensions of sizes `outerSizes`, rows of `inner` elements, and the words
 * that describe each input.
 */
interface Walk {
  readonly outerSizes: readonly number[];
  readonly inner: number;
  /** Whether each input is read directly from memory, without a copy to the scratch memory of a tile. */
  readonly direct: readonly boolean[];
  /** Whether each input has one value per row. */
  readonly single: readonly boolean[];
  readonly inputWords: (input: number, slot: number) => number[];
}

const planWalk = (node: KernelNode<FusedParams>, folds: readonly FusedFold[]): Walk => {
  const { shape, views } = node.params;
  const kinds = node.inputs.map((input) => kindOf(input.dtype));
  const count = elementCount(shape);
  const rank = shape.length;
  const folded = folds.reduce((most, { size }) => Math.max(most, size), 1);
  const inner = rank === 0 ? 1 : shape[rank - 1]!;
  const foldsFit = folded <= TILE ? inner % folded === 0 : inner === folded;
  if ((rank <= 1 || inner >= longRow) && foldsFit) {
    const stride = views.map((view) => (rank === 0 ? 0 : view.strides[rank - 1]!));
    return {
      outerSizes: shape.slice(0, -1),
      inner,
      direct: stride.map((step, i) => step === 1 && kinds[i] === 0),
      single: stride.map((step) => step === 0),
      inputWords: (i, slot) => [kinds[i]!, 0, slot, stride[i]!, ...views[i]!.strides.slice(0, Math.max(0, rank - 1))],
    };
  }
  // Each tile covers several rows. If the rows of a fold are longer than a tile, the tiles cover one row after another.
  const outerSizes = folded > TILE ? [count / folded] : [];
  const dense = views.map((_, i) => isDense(node, i));
  const isSingle = views.map((view) => view.strides.every((stride, dim) => shape[dim] === 1 || stride === 0));
  return {
    outerSizes,
    inner: outerSizes.length === 0 ? count : folded,
    direct: dense.map((holds, i) => holds && kinds[i] === 0),
    single: isSingle,
    inputWords: (i, slot) => {
      if (dense[i] || isSingle[i])
        return [kinds[i]!, 0, slot, dense[i] ? 1 : 0, ...outerSizes.map(() => (dense[i] ? folded : 0))];
      return [kinds[i]!, rank, slot, ...shape, ...views[i]!.strides];
    },
  };
};

/**
 * Writes the program of a `fused` node.
 *
 * Order of the words:
 * - numbers of inputs, outputs, constants, micro-operations, registers, outer dimensions
 * - elements per row; number of rows
 * - bytes of operand addresses and running totals at the start of the scratch memory
 * - index of the first constant; elements per tile; number of folds
 * - outer sizes; input words; constant bits
 * - per output: its register, its kind, and whether it is written in place (2: folded)
 * - per micro-operation: its opcode, result, three operands, and result slot (-1: written directly to an output)
 * - per fold: its code, the operand that it reads in memory (or -1), the slot if there is no such operand, the operand
 *   that it writes, and its size
 */
export const fusedProgram = (node: KernelNode<FusedParams>): FusedProgram => {
  const { micros, constants, results, folds: numbers, kinds, numRegisters } = lower(node);
  const { instructions, results: planned, folds = [] } = node.params;
  const foldOf = (output: number): FusedFold | undefined => folds[output] ?? undefined;
  const folded = folds.filter((fold) => fold !== null);
  const walk = planWalk(node, folded);
  const tile = foldTile(folded, TILE);
  if (tile === undefined)
    throw new InvariantError(
      `fused: rows of ${folded.map(({ size }) => size).join(", ")} elements do not fit in a common tile of ${TILE}`,
    );
  const numInputs = node.inputs.length;

  const lastUse = new Map<number, number>();
  micros.forEach((micro, i) => {
    for (const arg of micro.args) lastUse.set(arg, i);
  });
  // The memory plan may place an output over an input that no later instruction reads. Combining and removing
  // instructions may move a read of the input to a later micro-operation. In this case the output is written at the end
  // of the tile.
  const writesTooEarly = (output: number): boolean => {
    const planWrites = planned[output]! - numInputs;
    const writes = micros.findIndex((micro) => micro.result === results[output]);
    return walk.direct.some(
      (direct, input) =>
        direct &&
        instructions.findLastIndex(({ args }) => args.includes(input)) <= planWrites &&
        (lastUse.get(input) ?? -1) > writes,
    );
  };
  const isWritten = (output: number): boolean => foldOf(output) === undefined;
  const direct = results.map(
    (register, output) =>
      isWritten(output) &&
      kinds[output] === 0 &&
      results.findIndex((other, i) => other === register && isWritten(i) && kinds[i] === 0) === output &&
      !writesTooEarly(output),
  );
  const stored = new Set(results.filter((_, output) => !direct[output]));
  const straight = new Set(results.filter((_, output) => direct[output]));

  let numSlots = 0;
  const free: number[] = [];
  const take = (): number => free.pop() ?? numSlots++;
  const slots = new Map<number, number>();
  const inputWords = node.inputs.flatMap((_, input) => {
    const needsSlot = !walk.direct[input] && !walk.single[input];
    if (needsSlot) slots.set(input, take());
    return walk.inputWords(input, needsSlot ? slots.get(input)! : -1);
  });
  const code = micros.flatMap((micro, i) => {
    for (const arg of new Set(micro.args)) {
      if (lastUse.get(arg) === i && slots.has(arg) && !stored.has(arg)) free.push(slots.get(arg)!);
    }
    let slot = -1;
    if (!straight.has(micro.result)) {
      slot = take();
      slots.set(micro.result, slot);
    }
    const [a = 0, b = 0, c = 0] = micro.args;
    return [opcodes[micro.op], micro.result, a, b, c, slot];
  });

  const foldWords = results.flatMap((register, output) => {
    const fold = foldOf(output);
    if (fold === undefined) return [];
    const written = results.findIndex((other, i) => other === register && direct[i]!);
    const operand = register < numInputs ? register : written === -1 ? -1 : numInputs + written;
    return [numbers[output]!, operand, operand === -1 ? slots.get(register)! : -1, numInputs + output, fold.size];
  });

  const addressBytes = alignUp16(4 * (numInputs + results.length)) + alignUp16(8 * folded.length);
  const header = [
    numInputs,
    results.length,
    constants.length,
    micros.length,
    numRegisters,
    walk.outerSizes.length,
    walk.inner,
    elementCount(walk.outerSizes),
    addressBytes,
    12 + walk.outerSizes.length + inputWords.length,
    tile,
    folded.length,
  ];
  const outputWords = results.flatMap((register, output) => [
    register,
    kinds[output]!,
    isWritten(output) ? (direct[output] ? 1 : 0) : 2,
  ]);
  return {
    words: Int32Array.from([
      ...header,
      ...walk.outerSizes,
      ...inputWords,
      ...constants,
      ...outputWords,
      ...code,
      ...foldWords,
    ]),
    units: elementCount(walk.outerSizes) * (folded.some(({ size }) => size > tile) ? 1 : Math.ceil(walk.inner / tile)),
    micros: micros.length,
    scratchBytes: addressBytes + alignUp16(8 * numRegisters) + 16 * numRegisters + 4 * TILE * numSlots,
  };
};
