// One loop per micro-operation over a tile of 32-bit lanes. Pointers are in bytes. A step is the width of T, or 0 if
// one value is used for the complete tile. `n`, the number of lanes, is a multiple of T's lane count. A result may
// overwrite an operand.
import * as Opcode from "./fused-opcode";
import { byteOf } from "./fused-runs";
import { roundToBf16, roundToF16 } from "./half";
import { powerOf } from "./power";
import { erfOf, expOf, finiteOf, geluOf, geluTanhOf, logOf, negateWhere, rsqrtOf, sigmoidOf, signOf, softplusOf, tanhOf } from "./transcendental";
import { cosOf, sinOf } from "./trigonometric";
import {
  absF, addF, addI, andB, ceilF, divF, eqF, eqI, floorF, fromI, fromU, leF, leI, leU, ltF, ltI, ltU, maddF, maxF, maxI, maxU, minF, minI,
  minU, mulF, mulI, nearestF, neF, negF, neI, nmaddF, notB, orB, pmaxF, pminF, select, shlI, shrI, shrU, splat, splatBits, sqrtF, subF, subI,
  truncI, truncU, xorB,
} from "./vectors";

// @ts-ignore: decorator
@inline
function unaryLane<T>(op: i32, x: T): T {
  if (op == Opcode.Neg) return negF<T>(x);
  if (op == Opcode.Abs) return absF<T>(x);
  if (op == Opcode.Sign) return signOf<T>(x);
  if (op == Opcode.Exp) return expOf<T>(x);
  if (op == Opcode.Log) return logOf<T>(x);
  if (op == Opcode.Sqrt) return sqrtF<T>(x);
  if (op == Opcode.Rsqrt) return rsqrtOf<T>(x);
  if (op == Opcode.Sin) return sinOf<T>(x);
  if (op == Opcode.Cos) return cosOf<T>(x);
  if (op == Opcode.Tanh) return tanhOf<T>(x);
  if (op == Opcode.Sigmoid) return sigmoidOf<T>(x);
  if (op == Opcode.Erf) return erfOf<T>(x);
  if (op == Opcode.Floor) return floorF<T>(x);
  if (op == Opcode.Ceil) return ceilF<T>(x);
  if (op == Opcode.Round) return nearestF<T>(x);
  if (op == Opcode.Relu) return pmaxF<T>(x, splat<T>(0.0));
  if (op == Opcode.Silu) return mulF<T>(x, sigmoidOf<T>(x));
  if (op == Opcode.Softplus) return softplusOf<T>(x);
  if (op == Opcode.Gelu) return geluOf<T>(x);
  if (op == Opcode.GeluTanh) return geluTanhOf<T>(x);
  if (op == Opcode.Finite) return finiteOf<T>(x);
  if (op == Opcode.NegI) return subI<T>(splatBits<T>(0), x);
  if (op == Opcode.AbsI) return negateWhere<T>(ltI<T>(x, splatBits<T>(0)), x);
  if (op == Opcode.SignI) return orB<T>(shrI<T>(x, 31), andB<T>(neI<T>(x, splatBits<T>(0)), splatBits<T>(1)));
  if (op == Opcode.Not) return notB<T>(x);
  if (op == Opcode.ToI32) return truncI<T>(x);
  if (op == Opcode.ToU32) return truncU<T>(x);
  if (op == Opcode.ToU8) return byteOf<T>(x);
  if (op == Opcode.FloatToBool) return neF<T>(x, splat<T>(0.0));
  if (op == Opcode.RoundF16) return roundToF16<T>(x);
  if (op == Opcode.RoundBf16) return roundToBf16<T>(x);
  if (op == Opcode.FromI32) return fromI<T>(x);
  if (op == Opcode.FromU32) return fromU<T>(x);
  if (op == Opcode.IntToU8) return andB<T>(x, splatBits<T>(255));
  if (op == Opcode.IntToBool) return neI<T>(x, splatBits<T>(0));
  if (op == Opcode.BoolToFloat) return andB<T>(x, splat<T>(1.0));
  if (op == Opcode.BoolToInt) return andB<T>(x, splatBits<T>(1));
  return x;
}

// @ts-ignore: decorator
@inline
export function unary<T>(op: i32, d: usize, a: usize, stepA: usize, n: i32): void {
  const end = d + ((<usize>n) << 2);
  unaryRest<T>(op, d, a, stepA, end);
}

// Operations of one or two instructions, processed four vectors per iteration.
// @ts-ignore: decorator
@inline
export function hotUnary<T>(op: i32, d: usize, a: usize, stepA: usize, n: i32): void {
  const end = d + ((<usize>n) << 2);
  if (stepA != 0) {
    for (const blocks = d + ((<usize>(n & ~(4 * (<i32>sizeof<T>() >> 2) - 1))) << 2); d < blocks; d += 4 * sizeof<T>(), a += 4 * sizeof<T>()) {
      store<T>(d, unaryLane<T>(op, load<T>(a)));
      store<T>(d, unaryLane<T>(op, load<T>(a, sizeof<T>())), sizeof<T>());
      store<T>(d, unaryLane<T>(op, load<T>(a, 2 * sizeof<T>())), 2 * sizeof<T>());
      store<T>(d, unaryLane<T>(op, load<T>(a, 3 * sizeof<T>())), 3 * sizeof<T>());
    }
  }
  unaryRest<T>(op, d, a, stepA, end);
}

// @ts-ignore: decorator
@inline
function unaryRest<T>(op: i32, d: usize, a: usize, stepA: usize, end: usize): void {
  while (d < end) {
    store<T>(d, unaryLane<T>(op, load<T>(a)));
    d += sizeof<T>();
    a += stepA;
  }
}

// @ts-ignore: decorator
@inline
function binaryLane<T>(op: i32, x: T, y: T): T {
  if (op == Opcode.Add) return addF<T>(x, y);
  if (op == Opcode.Subtract) return subF<T>(x, y);
  if (op == Opcode.Multiply) return mulF<T>(x, y);
  if (op == Opcode.Divide) return divF<T>(x, y);
  if (op == Opcode.Maximum) return maxF<T>(x, y);
  if (op == Opcode.Minimum) return minF<T>(x, y);
  if (op == Opcode.Pmaximum) return pmaxF<T>(x, y);
  if (op == Opcode.Pminimum) return pminF<T>(x, y);
  if (op == Opcode.Equal) return eqF<T>(x, y);
  if (op == Opcode.NotEqual) return neF<T>(x, y);
  if (op == Opcode.Less) return ltF<T>(x, y);
  if (op == Opcode.LessEqual) return leF<T>(x, y);
  if (op == Opcode.AddI) return addI<T>(x, y);
  if (op == Opcode.SubtractI) return subI<T>(x, y);
  if (op == Opcode.MultiplyI) return mulI<T>(x, y);
  if (op == Opcode.MaximumI) return maxI<T>(x, y);
  if (op == Opcode.MaximumU) return maxU<T>(x, y);
  if (op == Opcode.MinimumI) return minI<T>(x, y);
  if (op == Opcode.MinimumU) return minU<T>(x, y);
  if (op == Opcode.EqualI) return eqI<T>(x, y);
  if (op == Opcode.NotEqualI) return neI<T>(x, y);
  if (op == Opcode.LessI) return ltI<T>(x, y);
  if (op == Opcode.LessU) return ltU<T>(x, y);
  if (op == Opcode.LessEqualI) return leI<T>(x, y);
  if (op == Opcode.LessEqualU) return leU<T>(x, y);
  if (op == Opcode.And) return andB<T>(x, y);
  if (op == Opcode.Or) return orB<T>(x, y);
  return xorB<T>(x, y);
}

// @ts-ignore: decorator
@inline
export function binary<T>(op: i32, d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  const end = d + ((<usize>n) << 2);
  while (d < end) {
    store<T>(d, binaryLane<T>(op, load<T>(a), load<T>(b)));
    d += sizeof<T>();
    a += stepA;
    b += stepB;
  }
}

// Arithmetic of optimizers and activations, processed four vectors per iteration. A value that is used for the complete
// tile stays in a register.
// @ts-ignore: decorator
@inline
export function hotBinary<T>(op: i32, d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  const blocks = n & ~(4 * (<i32>sizeof<T>() >> 2) - 1);
  const end = d + ((<usize>blocks) << 2);
  if (stepA != 0 && stepB != 0) {
    while (d < end) {
      store<T>(d, binaryLane<T>(op, load<T>(a), load<T>(b)));
      store<T>(d, binaryLane<T>(op, load<T>(a, sizeof<T>()), load<T>(b, sizeof<T>())), sizeof<T>());
      store<T>(d, binaryLane<T>(op, load<T>(a, 2 * sizeof<T>()), load<T>(b, 2 * sizeof<T>())), 2 * sizeof<T>());
      store<T>(d, binaryLane<T>(op, load<T>(a, 3 * sizeof<T>()), load<T>(b, 3 * sizeof<T>())), 3 * sizeof<T>());
      d += 4 * sizeof<T>();
      a += 4 * sizeof<T>();
      b += 4 * sizeof<T>();
    }
  } else if (stepA != 0) {
    const y = load<T>(b);
    while (d < end) {
      store<T>(d, binaryLane<T>(op, load<T>(a), y));
      store<T>(d, binaryLane<T>(op, load<T>(a, sizeof<T>()), y), sizeof<T>());
      store<T>(d, binaryLane<T>(op, load<T>(a, 2 * sizeof<T>()), y), 2 * sizeof<T>());
      store<T>(d, binaryLane<T>(op, load<T>(a, 3 * sizeof<T>()), y), 3 * sizeof<T>());
      d += 4 * sizeof<T>();
      a += 4 * sizeof<T>();
    }
  } else {
    const x = load<T>(a);
    while (d < end) {
      store<T>(d, binaryLane<T>(op, x, load<T>(b)));
      d += sizeof<T>();
      b += stepB;
    }
  }
  if (n != blocks) binary<T>(op, d, a, stepA, b, stepB, n - blocks);
}

// @ts-ignore: decorator
@inline
function ternaryLane<T>(op: i32, x: T, y: T, z: T): T {
  if (op == Opcode.Madd) return maddF<T>(x, y, z);
  if (op == Opcode.Nmadd) return nmaddF<T>(x, y, z);
  if (op == Opcode.Msub) return maddF<T>(x, y, negF<T>(z));
  return select<T>(x, y, z);
}

// @ts-ignore: decorator
@inline
export function ternary<T>(op: i32, d: usize, a: usize, stepA: usize, b: usize, stepB: usize, c: usize, stepC: usize, n: i32): void {
  const end = d + ((<usize>n) << 2);
  if (stepB == 0 && stepA != 0 && stepC != 0) {
    const y = load<T>(b);
    const blocks = d + ((<usize>(n & ~(4 * (<i32>sizeof<T>() >> 2) - 1))) << 2);
    while (d < blocks) {
      store<T>(d, ternaryLane<T>(op, load<T>(a), y, load<T>(c)));
      store<T>(d, ternaryLane<T>(op, load<T>(a, sizeof<T>()), y, load<T>(c, sizeof<T>())), sizeof<T>());
      store<T>(d, ternaryLane<T>(op, load<T>(a, 2 * sizeof<T>()), y, load<T>(c, 2 * sizeof<T>())), 2 * sizeof<T>());
      store<T>(d, ternaryLane<T>(op, load<T>(a, 3 * sizeof<T>()), y, load<T>(c, 3 * sizeof<T>())), 3 * sizeof<T>());
      d += 4 * sizeof<T>();
      a += 4 * sizeof<T>();
      c += 4 * sizeof<T>();
    }
  }
  if (stepC == 0 && stepA != 0 && stepB != 0) {
    const z = load<T>(c);
    const blocks = d + ((<usize>(n & ~(4 * (<i32>sizeof<T>() >> 2) - 1))) << 2);
    while (d < blocks) {
      store<T>(d, ternaryLane<T>(op, load<T>(a), load<T>(b), z));
      store<T>(d, ternaryLane<T>(op, load<T>(a, sizeof<T>()), load<T>(b, sizeof<T>()), z), sizeof<T>());
      store<T>(d, ternaryLane<T>(op, load<T>(a, 2 * sizeof<T>()), load<T>(b, 2 * sizeof<T>()), z), 2 * sizeof<T>());
      store<T>(d, ternaryLane<T>(op, load<T>(a, 3 * sizeof<T>()), load<T>(b, 3 * sizeof<T>()), z), 3 * sizeof<T>());
      d += 4 * sizeof<T>();
      a += 4 * sizeof<T>();
      b += 4 * sizeof<T>();
    }
  }
  if (stepB == 0 && stepA != 0 && stepC == 0) {
    const y = load<T>(b);
    const z = load<T>(c);
    for (const blocks = d + ((<usize>(n & ~(4 * (<i32>sizeof<T>() >> 2) - 1))) << 2); d < blocks; d += 4 * sizeof<T>(), a += 4 * sizeof<T>()) {
      store<T>(d, ternaryLane<T>(op, load<T>(a), y, z));
      store<T>(d, ternaryLane<T>(op, load<T>(a, sizeof<T>()), y, z), sizeof<T>());
      store<T>(d, ternaryLane<T>(op, load<T>(a, 2 * sizeof<T>()), y, z), 2 * sizeof<T>());
      store<T>(d, ternaryLane<T>(op, load<T>(a, 3 * sizeof<T>()), y, z), 3 * sizeof<T>());
    }
  }
  for (const blocks = d + ((<usize>(end - d) & ~(4 * sizeof<T>() - 1))); d < blocks; d += 4 * sizeof<T>()) {
    store<T>(d, ternaryLane<T>(op, load<T>(a), load<T>(b), load<T>(c)));
    store<T>(d, ternaryLane<T>(op, load<T>(a + stepA), load<T>(b + stepB), load<T>(c + stepC)), sizeof<T>());
    store<T>(d, ternaryLane<T>(op, load<T>(a + 2 * stepA), load<T>(b + 2 * stepB), load<T>(c + 2 * stepC)), 2 * sizeof<T>());
    store<T>(d, ternaryLane<T>(op, load<T>(a + 3 * stepA), load<T>(b + 3 * stepB), load<T>(c + 3 * stepC)), 3 * sizeof<T>());
    a += 4 * stepA;
    b += 4 * stepB;
    c += 4 * stepC;
  }
  while (d < end) {
    store<T>(d, ternaryLane<T>(op, load<T>(a), load<T>(b), load<T>(c)));
    d += sizeof<T>();
    a += stepA;
    b += stepB;
    c += stepC;
  }
}

/**
 * Returns the two's-complement quotient, rounded towards zero. If the divisor is 0, returns 0. The smallest integer
 * divided by -1 returns the smallest integer.
 */
function divideSigned(x: i32, y: i32): i32 {
  if (y == 0) return 0;
  return y == -1 ? 0 - x : x / y;
}

// @ts-ignore: decorator
@inline
function laneByLane(op: i32, x: u32, y: u32): u32 {
  if (op == Opcode.Power) return reinterpret<u32>(powerOf(reinterpret<f32>(x), reinterpret<f32>(y)));
  if (op == Opcode.DivideI) return <u32>divideSigned(<i32>x, <i32>y);
  if (op == Opcode.DivideU) return y == 0 ? 0 : x / y;
  if (op == Opcode.ShiftLeft) return x << (y & 31);
  if (op == Opcode.ShiftRightI) return <u32>((<i32>x) >> (<i32>y & 31));
  return x >> (y & 31);
}

// Operators without a vector form, one lane at a time.
// @ts-ignore: decorator
@inline
export function scalarBinary<T>(op: i32, d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  const end = d + ((<usize>n) << 2);
  const nextA: usize = stepA == 0 ? 0 : 4;
  const nextB: usize = stepB == 0 ? 0 : 4;
  while (d < end) {
    store<u32>(d, laneByLane(op, load<u32>(a), load<u32>(b)));
    d += 4;
    a += nextA;
    b += nextB;
  }
}

// @ts-ignore: decorator
@inline
function shiftLane<T>(op: i32, x: T, by: i32): T {
  if (op == Opcode.ShiftLeft) return shlI<T>(x, by);
  return op == Opcode.ShiftRightI ? shrI<T>(x, by) : shrU<T>(x, by);
}

// Shifts. If one amount is used for the complete tile, the usual case, the shift has a vector form.
// @ts-ignore: decorator
@inline
export function shift<T>(op: i32, d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  if (stepB != 0) {
    scalarBinary<T>(op, d, a, stepA, b, stepB, n);
    return;
  }
  const by = load<i32>(b) & 31;
  const end = d + ((<usize>n) << 2);
  if (stepA != 0) {
    for (const blocks = d + ((<usize>(n & ~(4 * (<i32>sizeof<T>() >> 2) - 1))) << 2); d < blocks; d += 4 * sizeof<T>(), a += 4 * sizeof<T>()) {
      store<T>(d, shiftLane<T>(op, load<T>(a), by));
      store<T>(d, shiftLane<T>(op, load<T>(a, sizeof<T>()), by), sizeof<T>());
      store<T>(d, shiftLane<T>(op, load<T>(a, 2 * sizeof<T>()), by), 2 * sizeof<T>());
      store<T>(d, shiftLane<T>(op, load<T>(a, 3 * sizeof<T>()), by), 3 * sizeof<T>());
    }
  }
  while (d < end) {
    store<T>(d, shiftLane<T>(op, load<T>(a), by));
    d += sizeof<T>();
    a += stepA;
  }
}
