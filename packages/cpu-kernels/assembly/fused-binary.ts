// One function per micro-operation of two or three operands, so that each function is compiled separately.
import * as Opcode from "./fused-opcode";
import { binary, hotBinary, scalarBinary, shift, ternary } from "./fused-loops";

export function addTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Add, d, a, stepA, b, stepB, n);
}

export function subtractTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Subtract, d, a, stepA, b, stepB, n);
}

export function multiplyTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Multiply, d, a, stepA, b, stepB, n);
}

export function divideTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Divide, d, a, stepA, b, stepB, n);
}

export function maximumTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Maximum, d, a, stepA, b, stepB, n);
}

export function minimumTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Minimum, d, a, stepA, b, stepB, n);
}

export function pmaximumTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Pmaximum, d, a, stepA, b, stepB, n);
}

export function pminimumTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Pminimum, d, a, stepA, b, stepB, n);
}

export function equalTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Equal, d, a, stepA, b, stepB, n);
}

export function notEqualTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.NotEqual, d, a, stepA, b, stepB, n);
}

export function lessTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Less, d, a, stepA, b, stepB, n);
}

export function lessEqualTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.LessEqual, d, a, stepA, b, stepB, n);
}

export function addITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.AddI, d, a, stepA, b, stepB, n);
}

export function subtractITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.SubtractI, d, a, stepA, b, stepB, n);
}

export function multiplyITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.MultiplyI, d, a, stepA, b, stepB, n);
}

export function maximumITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.MaximumI, d, a, stepA, b, stepB, n);
}

export function maximumUTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.MaximumU, d, a, stepA, b, stepB, n);
}

export function minimumITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.MinimumI, d, a, stepA, b, stepB, n);
}

export function minimumUTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.MinimumU, d, a, stepA, b, stepB, n);
}

export function equalITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.EqualI, d, a, stepA, b, stepB, n);
}

export function notEqualITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.NotEqualI, d, a, stepA, b, stepB, n);
}

export function lessITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.LessI, d, a, stepA, b, stepB, n);
}

export function lessUTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.LessU, d, a, stepA, b, stepB, n);
}

export function lessEqualITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.LessEqualI, d, a, stepA, b, stepB, n);
}

export function lessEqualUTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  binary<T>(Opcode.LessEqualU, d, a, stepA, b, stepB, n);
}

export function andTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.And, d, a, stepA, b, stepB, n);
}

export function orTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Or, d, a, stepA, b, stepB, n);
}

export function xorTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  hotBinary<T>(Opcode.Xor, d, a, stepA, b, stepB, n);
}

export function powerTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  scalarBinary<T>(Opcode.Power, d, a, stepA, b, stepB, n);
}

export function divideITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  scalarBinary<T>(Opcode.DivideI, d, a, stepA, b, stepB, n);
}

export function divideUTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  scalarBinary<T>(Opcode.DivideU, d, a, stepA, b, stepB, n);
}

export function shiftLeftTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  shift<T>(Opcode.ShiftLeft, d, a, stepA, b, stepB, n);
}

export function shiftRightITile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  shift<T>(Opcode.ShiftRightI, d, a, stepA, b, stepB, n);
}

export function shiftRightUTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, n: i32): void {
  shift<T>(Opcode.ShiftRightU, d, a, stepA, b, stepB, n);
}

export function maddTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, c: usize, stepC: usize, n: i32): void {
  ternary<T>(Opcode.Madd, d, a, stepA, b, stepB, c, stepC, n);
}

export function nmaddTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, c: usize, stepC: usize, n: i32): void {
  ternary<T>(Opcode.Nmadd, d, a, stepA, b, stepB, c, stepC, n);
}

export function msubTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, c: usize, stepC: usize, n: i32): void {
  ternary<T>(Opcode.Msub, d, a, stepA, b, stepB, c, stepC, n);
}

export function selectTile<T>(d: usize, a: usize, stepA: usize, b: usize, stepB: usize, c: usize, stepC: usize, n: i32): void {
  ternary<T>(Opcode.Select, d, a, stepA, b, stepB, c, stepC, n);
}
