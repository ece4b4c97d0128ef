import { elementCount, type FusedParams, rowMajorStrides, type KernelNode } from "@skein/tensor-core";
import { kindOf, laneBits, lowerInstruction } from "./fused-lowering.ts";
import { type Opcode, opcodes } from "./fused-opcode.ts";

/** A program of the elementwise machine in `assembly/fused.ts`, and the memory that it needs beside its operands. */
export interface FusedProgram {
  readonly words: Int32Array;
  readonly scratchBytes: number;
}

interface Micro {
  readonly op: Opcode;
  readonly args: readonly number[];
  readonly result: number;
}

/** Lanes of a tile, as in `assembly/fused.ts`. */
const tileLanes = 1024;

// A row as long as this is worth its own tiles, in which stretched operands cost nothing; shorter ones are copied together into tiles.
const longRow = 256;

const alignUp16 = (bytes: number): number => Math.ceil(bytes / 16) * 16;

/** Turn `add` of a product that nothing else reads into one multiply-add: a pass over the tile less, and one rounding less where the build has it. */
const joinMultiplyAdd = (micros: readonly Micro[], results: readonly number[]): Micro[] => {
  const uses = new Map<number, number>();
  for (const register of [...micros.flatMap((micro) => micro.args), ...results]) uses.set(register, (uses.get(register) ?? 0) + 1);
  const products = new Map(
    micros.filter(({ op, result }) => op === "multiply" && uses.get(result) === 1).map((micro) => [micro.result, micro]),
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

/** The loops are fastest with the value that serves a whole tile in second place. */
const constantSecond = (micro: Micro, isConstant: (register: number) => boolean): Micro => {
  const [a, b, ...rest] = micro.args;
  return commutative.has(micro.op) && isConstant(a!) && !isConstant(b!) ? { ...micro, args: [b!, a!, ...rest] } : micro;
};

/**
 * `max(x, c)` of a constant that is a number and not zero: one instruction instead of eight, as only then both carry NaN alike and no zeros meet.
 */
const plainExtreme = (micro: Micro, constantBits: (register: number) => number | undefined): Micro => {
  if (micro.op !== "maximum" && micro.op !== "minimum") return micro;
  const second = constantBits(micro.args[1]!) === undefined ? 0 : 1;
  const bits = constantBits(micro.args[second]!);
  const magnitude = (bits ?? 0) & 0x7fffffff;
  if (magnitude === 0 || magnitude > 0x7f800000) return micro;
  return { ...micro, op: micro.op === "maximum" ? "pmaximum" : "pminimum", args: [micro.args[1 - second]!, micro.args[second]!] };
};

/** A word whose highest bit is clear is the same number with a sign and without; only with one a vector becomes floats by one instruction. */
const signedWords = (micros: readonly Micro[], constantBits: (register: number) => number | undefined): Micro[] => {
  const clear = new Set(
    micros
      .filter(({ op, args: [a, b] }) => {
        if (op === "and") return [a, b].some((arg) => (constantBits(arg!) ?? -1) >= 0);
        return op === "shiftRightU" && ((constantBits(b!) ?? 0) & 31) > 0;
      })
      .map(({ result }) => result),
  );
  return micros.map((micro) => (micro.op === "fromU32" && clear.has(micro.args[0]!) ? { ...micro, op: "fromI32" } : micro));
};

/** Drop what no result needs. */
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

interface Lowered {
  readonly micros: readonly Micro[];
  /** Bits of the registers after the inputs. */
  readonly constants: readonly number[];
  readonly results: readonly number[];
  readonly numRegisters: number;
}

/** Registers: inputs, then constants, then results of micro-operations in order. */
const lower = (node: KernelNode): Lowered => {
  const { instructions, results } = node.params as unknown as FusedParams;
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
  // A result must be computed, even if it only shows an operand: the stores at a tile's end would else meet inputs that they overwrite.
  const outputs = results.map((register) =>
    registers[register]! < firstComputed ? append("copy", registers[register]!) : registers[register]!,
  );
  const isConstant = (register: number): boolean => register >= numInputs && register < firstComputed;
  const constantBits = (register: number): number | undefined => (isConstant(register) ? constants[register - numInputs] : undefined);
  const joined = signedWords(liveMicros(joinMultiplyAdd(micros, outputs), outputs), constantBits).map((micro) =>
    plainExtreme(constantSecond(micro, isConstant), constantBits),
  );
  return { micros: joined, constants, results: outputs, numRegisters: firstComputed + micros.length };
};

/** How the machine walks: rows of `inner` elements, `outerSizes` of them, and for each input its words. */
interface Walk {
  readonly outerSizes: readonly number[];
  readonly inner: number;
  /** Inputs that are read where they lie. */
  readonly direct: readonly boolean[];
  /** Inputs that one value per row serves. */
  readonly single: readonly boolean[];
  readonly inputWords: (input: number, slot: number) => number[];
}

const planWalk = (node: KernelNode): Walk => {
  const { shape, views } = node.params as unknown as FusedParams;
  const kinds = node.inputs.map((input) => kindOf(input.dtype));
  const count = elementCount(shape);
  const rank = shape.length;
  if (rank === 0 || rank === 1 || shape[rank - 1]! >= longRow) {
    const stride = views.map((view) => (rank === 0 ? 0 : view.strides[rank - 1]!));
    return {
      outerSizes: shape.slice(0, -1),
      inner: rank === 0 ? 1 : shape[rank - 1]!,
      direct: stride.map((step, i) => step === 1 && kinds[i] === 0),
      single: stride.map((step) => step === 0),
      inputWords: (i, slot) => [kinds[i]!, 0, slot, stride[i]!, ...views[i]!.strides.slice(0, Math.max(0, rank - 1))],
    };
  }
  const dense = rowMajorStrides(shape);
  const isDense = views.map((view) => view.strides.every((stride, dim) => shape[dim] === 1 || stride === dense[dim]));
  const isSingle = views.map((view) => view.strides.every((stride, dim) => shape[dim] === 1 || stride === 0));
  return {
    outerSizes: [],
    inner: count,
    direct: isDense.map((holds, i) => holds && kinds[i] === 0),
    single: isSingle,
    inputWords: (i, slot) => {
      if (isDense[i] || isSingle[i]) return [kinds[i]!, 0, slot, isDense[i] ? 1 : 0];
      return [kinds[i]!, rank, slot, ...shape, ...views[i]!.strides];
    },
  };
};

/**
 * Write the program of a `fused` node.
 *
 * Words: numbers of inputs, outputs, constants, micro-operations, registers, outer dimensions; elements of a row; number of rows;
 * bytes of operand addresses at the head of the scratch memory; index of the first constant; outer sizes; words of the inputs; bits
 * of the constants; per output its register, kind and whether it is written in place; per micro-operation its opcode, result, three
 * operands, and the slot of the result (-1 where it goes straight into an output).
 */
export const fusedProgram = (node: KernelNode): FusedProgram => {
  const { micros, constants, results, numRegisters } = lower(node);
  const walk = planWalk(node);
  const numInputs = node.inputs.length;

  const lastUse = new Map<number, number>();
  micros.forEach((micro, i) => {
    for (const arg of micro.args) lastUse.set(arg, i);
  });
  // The memory plan may lay an output over an input that no later instruction reads. Joined and dropped instructions move reads
  // to later micro-operations, so where that has happened the output waits for the end of the tile.
  const { instructions, results: planned } = node.params as unknown as FusedParams;
  const overtakes = (output: number): boolean => {
    const planWrites = planned[output]! - numInputs;
    const writes = micros.findIndex((micro) => micro.result === results[output]);
    return walk.direct.some(
      (direct, input) =>
        direct && instructions.findLastIndex(({ args }) => args.includes(input)) <= planWrites && (lastUse.get(input) ?? -1) > writes,
    );
  };
  const direct = results.map(
    (register, output) => kindOf(node.outputs[output]!.dtype) === 0 && results.indexOf(register) === output && !overtakes(output),
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
    return [opcodes.indexOf(micro.op), micro.result, a, b, c, slot];
  });

  const addressBytes = alignUp16(4 * (numInputs + results.length));
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
    10 + walk.outerSizes.length + inputWords.length,
  ];
  const outputWords = results.flatMap((register, output) => [register, kindOf(node.outputs[output]!.dtype), direct[output] ? 1 : 0]);
  return {
    words: Int32Array.from([...header, ...walk.outerSizes, ...inputWords, ...constants, ...outputWords, ...code]),
    scratchBytes: addressBytes + alignUp16(8 * numRegisters) + 16 * numRegisters + 4 * tileLanes * numSlots,
  };
};
