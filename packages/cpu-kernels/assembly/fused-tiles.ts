// One loop per micro-operation over a tile of 32-bit lanes. Pointers are in bytes; a step is the width of T, or 0 where one value serves
// the whole tile. `n` lanes, a multiple of what T holds. A result may stand where an operand stood.
import { Opcode } from "./fused-opcode";
import { roundToBf16, roundToF16 } from "./half";
import { powerOf } from "./power";
import { erfOf, expOf, finiteOf, geluOf, geluTanhOf, logOf, negateWhere, rsqrtOf, sigmoidOf, signOf, softplusOf, tanhOf } from "./transcendental";
import { cosOf, sinOf } from "./trigonometric";
import {
  absF, addF, addI, andB, ceilF, divF, eqF, eqI, floorF, fromI, fromU, leF, leI, leU, ltF, ltI, ltU, maddF, maxF, maxI, maxU, minF, minI, minU, mulF, mulI, nearestF, neF, negF, neI, nmaddF, notB, orB, pmaxF, select, shlI, shrI, shrU, splat, splatBits, sqrtF, subF, subI, truncI, truncU, xorB,
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
  if (op == Opcode.ToU8) return minI<T>(maxI<T>(truncI<T>(x), splatBits<T>(0)), splatBits<T>(255));
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
function unary<T>(op: i32, d: usize, a: usize, stepA: usize, n: i32): void {
  const end = d + ((<usize>n) << 2);
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
function binary<T>(op: i32, d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  const end = d + ((<usize>n) << 2);
  while (d < end) {
    store<T>(d, binaryLane<T>(op, load<T>(a), load<T>(b)));
    d += sizeof<T>();
    a += stepA;
    b += stepB;
  }
}

// The arithmetic that optimizers and activations are made of: four vectors a turn, with a value that serves the whole tile held in a register.
// @ts-ignore: decorator
@inline
function hotBinary<T>(op: i32, d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
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
function ternary<T>(op: i32, d: usize, a: usize, stepA: usize, b: usize, stepB: usize, c: usize, stepC: usize, n: i32): void {
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
  while (d < end) {
    store<T>(d, ternaryLane<T>(op, load<T>(a), load<T>(b), load<T>(c)));
    d += sizeof<T>();
    a += stepA;
    b += stepB;
    c += stepC;
  }
}

/** Two's-complement quotient towards zero; 0 for a zero divisor, and the least integer stays itself divided by -1. */
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

// Operators that have no vector form: one lane at a time.
// @ts-ignore: decorator
@inline
function scalarBinary<T>(op: i32, d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
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

// Shifts by one amount for the whole tile, the usual case, have a vector form.
// @ts-ignore: decorator
@inline
function shift<T>(op: i32, d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  if (stepB != 0) {
    scalarBinary<T>(op, d, a, stepA, b, stepB, n);
    return;
  }
  const by = load<i32>(b) & 31;
  const end = d + ((<usize>n) << 2);
  while (d < end) {
    const x = load<T>(a);
    if (op == Opcode.ShiftLeft) store<T>(d, shlI<T>(x, by));
    else if (op == Opcode.ShiftRightI) store<T>(d, shrI<T>(x, by));
    else store<T>(d, shrU<T>(x, by));
    d += sizeof<T>();
    a += stepA;
  }
}

function copyTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Copy, d, a, stepA, n);
}

function negTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Neg, d, a, stepA, n);
}

function absTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Abs, d, a, stepA, n);
}

function signTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Sign, d, a, stepA, n);
}

function expTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Exp, d, a, stepA, n);
}

function logTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Log, d, a, stepA, n);
}

function sqrtTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Sqrt, d, a, stepA, n);
}

function rsqrtTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Rsqrt, d, a, stepA, n);
}

function sinTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Sin, d, a, stepA, n);
}

function cosTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Cos, d, a, stepA, n);
}

function tanhTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Tanh, d, a, stepA, n);
}

function sigmoidTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Sigmoid, d, a, stepA, n);
}

function erfTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Erf, d, a, stepA, n);
}

function floorTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Floor, d, a, stepA, n);
}

function ceilTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Ceil, d, a, stepA, n);
}

function roundTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Round, d, a, stepA, n);
}

function reluTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Relu, d, a, stepA, n);
}

function siluTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Silu, d, a, stepA, n);
}

function softplusTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Softplus, d, a, stepA, n);
}

function geluTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Gelu, d, a, stepA, n);
}

function geluTanhTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.GeluTanh, d, a, stepA, n);
}

function finiteTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Finite, d, a, stepA, n);
}

function negITile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.NegI, d, a, stepA, n);
}

function absITile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.AbsI, d, a, stepA, n);
}

function signITile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.SignI, d, a, stepA, n);
}

function notTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Not, d, a, stepA, n);
}

function toI32Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.ToI32, d, a, stepA, n);
}

function toU32Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.ToU32, d, a, stepA, n);
}

function toU8Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.ToU8, d, a, stepA, n);
}

function floatToBoolTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.FloatToBool, d, a, stepA, n);
}

function roundF16Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.RoundF16, d, a, stepA, n);
}

function roundBf16Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.RoundBf16, d, a, stepA, n);
}

function fromI32Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.FromI32, d, a, stepA, n);
}

function fromU32Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.FromU32, d, a, stepA, n);
}

function intToU8Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.IntToU8, d, a, stepA, n);
}

function intToBoolTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.IntToBool, d, a, stepA, n);
}

function boolToFloatTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.BoolToFloat, d, a, stepA, n);
}

function boolToIntTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.BoolToInt, d, a, stepA, n);
}

function addTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Add, d, a, stepA, b, stepB, n);
}

function subtractTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Subtract, d, a, stepA, b, stepB, n);
}

function multiplyTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Multiply, d, a, stepA, b, stepB, n);
}

function divideTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Divide, d, a, stepA, b, stepB, n);
}

function maximumTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Maximum, d, a, stepA, b, stepB, n);
}

function minimumTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Minimum, d, a, stepA, b, stepB, n);
}

function equalTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.Equal, d, a, stepA, b, stepB, n);
}

function notEqualTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.NotEqual, d, a, stepA, b, stepB, n);
}

function lessTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.Less, d, a, stepA, b, stepB, n);
}

function lessEqualTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.LessEqual, d, a, stepA, b, stepB, n);
}

function addITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.AddI, d, a, stepA, b, stepB, n);
}

function subtractITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.SubtractI, d, a, stepA, b, stepB, n);
}

function multiplyITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.MultiplyI, d, a, stepA, b, stepB, n);
}

function maximumITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.MaximumI, d, a, stepA, b, stepB, n);
}

function maximumUTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.MaximumU, d, a, stepA, b, stepB, n);
}

function minimumITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.MinimumI, d, a, stepA, b, stepB, n);
}

function minimumUTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.MinimumU, d, a, stepA, b, stepB, n);
}

function equalITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.EqualI, d, a, stepA, b, stepB, n);
}

function notEqualITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.NotEqualI, d, a, stepA, b, stepB, n);
}

function lessITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.LessI, d, a, stepA, b, stepB, n);
}

function lessUTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.LessU, d, a, stepA, b, stepB, n);
}

function lessEqualITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.LessEqualI, d, a, stepA, b, stepB, n);
}

function lessEqualUTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.LessEqualU, d, a, stepA, b, stepB, n);
}

function andTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.And, d, a, stepA, b, stepB, n);
}

function orTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.Or, d, a, stepA, b, stepB, n);
}

function xorTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.Xor, d, a, stepA, b, stepB, n);
}

function powerTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  scalarBinary<T>(Opcode.Power, d, a, stepA, b, stepB, n);
}

function divideITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  scalarBinary<T>(Opcode.DivideI, d, a, stepA, b, stepB, n);
}

function divideUTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  scalarBinary<T>(Opcode.DivideU, d, a, stepA, b, stepB, n);
}

function shiftLeftTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  shift<T>(Opcode.ShiftLeft, d, a, stepA, b, stepB, n);
}

function shiftRightITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  shift<T>(Opcode.ShiftRightI, d, a, stepA, b, stepB, n);
}

function shiftRightUTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  shift<T>(Opcode.ShiftRightU, d, a, stepA, b, stepB, n);
}

function maddTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, c: usize, stepC: usize, n: i32): void {
  ternary<T>(Opcode.Madd, d, a, stepA, b, stepB, c, stepC, n);
}

function nmaddTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, c: usize, stepC: usize, n: i32): void {
  ternary<T>(Opcode.Nmadd, d, a, stepA, b, stepB, c, stepC, n);
}

function msubTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, c: usize, stepC: usize, n: i32): void {
  ternary<T>(Opcode.Msub, d, a, stepA, b, stepB, c, stepC, n);
}

function selectTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, c: usize, stepC: usize, n: i32): void {
  ternary<T>(Opcode.Select, d, a, stepA, b, stepB, c, stepC, n);
}

/** Run one micro-operation over a tile. */
export function runTile<T>(op: i32, d: usize, a: usize, stepA: usize, b: usize, stepB: usize, c: usize, stepC: usize, n: i32): void {
  switch (op) {
    case Opcode.Copy:
      copyTile<T>(d, a, stepA, n);
      break;
    case Opcode.Neg:
      negTile<T>(d, a, stepA, n);
      break;
    case Opcode.Abs:
      absTile<T>(d, a, stepA, n);
      break;
    case Opcode.Sign:
      signTile<T>(d, a, stepA, n);
      break;
    case Opcode.Exp:
      expTile<T>(d, a, stepA, n);
      break;
    case Opcode.Log:
      logTile<T>(d, a, stepA, n);
      break;
    case Opcode.Sqrt:
      sqrtTile<T>(d, a, stepA, n);
      break;
    case Opcode.Rsqrt:
      rsqrtTile<T>(d, a, stepA, n);
      break;
    case Opcode.Sin:
      sinTile<T>(d, a, stepA, n);
      break;
    case Opcode.Cos:
      cosTile<T>(d, a, stepA, n);
      break;
    case Opcode.Tanh:
      tanhTile<T>(d, a, stepA, n);
      break;
    case Opcode.Sigmoid:
      sigmoidTile<T>(d, a, stepA, n);
      break;
    case Opcode.Erf:
      erfTile<T>(d, a, stepA, n);
      break;
    case Opcode.Floor:
      floorTile<T>(d, a, stepA, n);
      break;
    case Opcode.Ceil:
      ceilTile<T>(d, a, stepA, n);
      break;
    case Opcode.Round:
      roundTile<T>(d, a, stepA, n);
      break;
    case Opcode.Relu:
      reluTile<T>(d, a, stepA, n);
      break;
    case Opcode.Silu:
      siluTile<T>(d, a, stepA, n);
      break;
    case Opcode.Softplus:
      softplusTile<T>(d, a, stepA, n);
      break;
    case Opcode.Gelu:
      geluTile<T>(d, a, stepA, n);
      break;
    case Opcode.GeluTanh:
      geluTanhTile<T>(d, a, stepA, n);
      break;
    case Opcode.Finite:
      finiteTile<T>(d, a, stepA, n);
      break;
    case Opcode.Add:
      addTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.Subtract:
      subtractTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.Multiply:
      multiplyTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.Divide:
      divideTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.Power:
      powerTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.Maximum:
      maximumTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.Minimum:
      minimumTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.Equal:
      equalTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.NotEqual:
      notEqualTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.Less:
      lessTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.LessEqual:
      lessEqualTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.Madd:
      maddTile<T>(d, a, stepA, b, stepB, c, stepC, n);
      break;
    case Opcode.Nmadd:
      nmaddTile<T>(d, a, stepA, b, stepB, c, stepC, n);
      break;
    case Opcode.Msub:
      msubTile<T>(d, a, stepA, b, stepB, c, stepC, n);
      break;
    case Opcode.Select:
      selectTile<T>(d, a, stepA, b, stepB, c, stepC, n);
      break;
    case Opcode.AddI:
      addITile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.SubtractI:
      subtractITile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.MultiplyI:
      multiplyITile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.DivideI:
      divideITile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.DivideU:
      divideUTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.MaximumI:
      maximumITile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.MaximumU:
      maximumUTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.MinimumI:
      minimumITile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.MinimumU:
      minimumUTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.EqualI:
      equalITile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.NotEqualI:
      notEqualITile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.LessI:
      lessITile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.LessU:
      lessUTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.LessEqualI:
      lessEqualITile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.LessEqualU:
      lessEqualUTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.And:
      andTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.Or:
      orTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.Xor:
      xorTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.ShiftLeft:
      shiftLeftTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.ShiftRightI:
      shiftRightITile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.ShiftRightU:
      shiftRightUTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.NegI:
      negITile<T>(d, a, stepA, n);
      break;
    case Opcode.AbsI:
      absITile<T>(d, a, stepA, n);
      break;
    case Opcode.SignI:
      signITile<T>(d, a, stepA, n);
      break;
    case Opcode.Not:
      notTile<T>(d, a, stepA, n);
      break;
    case Opcode.ToI32:
      toI32Tile<T>(d, a, stepA, n);
      break;
    case Opcode.ToU32:
      toU32Tile<T>(d, a, stepA, n);
      break;
    case Opcode.ToU8:
      toU8Tile<T>(d, a, stepA, n);
      break;
    case Opcode.FloatToBool:
      floatToBoolTile<T>(d, a, stepA, n);
      break;
    case Opcode.RoundF16:
      roundF16Tile<T>(d, a, stepA, n);
      break;
    case Opcode.RoundBf16:
      roundBf16Tile<T>(d, a, stepA, n);
      break;
    case Opcode.FromI32:
      fromI32Tile<T>(d, a, stepA, n);
      break;
    case Opcode.FromU32:
      fromU32Tile<T>(d, a, stepA, n);
      break;
    case Opcode.IntToU8:
      intToU8Tile<T>(d, a, stepA, n);
      break;
    case Opcode.IntToBool:
      intToBoolTile<T>(d, a, stepA, n);
      break;
    case Opcode.BoolToFloat:
      boolToFloatTile<T>(d, a, stepA, n);
      break;
    case Opcode.BoolToInt:
      boolToIntTile<T>(d, a, stepA, n);
      break;
  }
}
