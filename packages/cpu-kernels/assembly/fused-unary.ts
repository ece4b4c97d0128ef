// One function per micro-operation of one operand, so that each function is compiled separately.
import * as Opcode from "./fused-opcode";
import { hotUnary, unary } from "./fused-loops";

export function copyTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.Copy, d, a, stepA, n);
}

export function negTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.Neg, d, a, stepA, n);
}

export function absTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.Abs, d, a, stepA, n);
}

export function signTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Sign, d, a, stepA, n);
}

export function expTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Exp, d, a, stepA, n);
}

export function logTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Log, d, a, stepA, n);
}

export function sqrtTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Sqrt, d, a, stepA, n);
}

export function rsqrtTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Rsqrt, d, a, stepA, n);
}

export function sinTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Sin, d, a, stepA, n);
}

export function cosTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Cos, d, a, stepA, n);
}

export function tanhTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Tanh, d, a, stepA, n);
}

export function sigmoidTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Sigmoid, d, a, stepA, n);
}

export function erfTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Erf, d, a, stepA, n);
}

export function floorTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.Floor, d, a, stepA, n);
}

export function ceilTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.Ceil, d, a, stepA, n);
}

export function roundTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.Round, d, a, stepA, n);
}

export function reluTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.Relu, d, a, stepA, n);
}

export function siluTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Silu, d, a, stepA, n);
}

export function softplusTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Softplus, d, a, stepA, n);
}

export function geluTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.Gelu, d, a, stepA, n);
}

export function geluTanhTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.GeluTanh, d, a, stepA, n);
}

export function finiteTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.Finite, d, a, stepA, n);
}

export function negITile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.NegI, d, a, stepA, n);
}

export function absITile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.AbsI, d, a, stepA, n);
}

export function signITile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.SignI, d, a, stepA, n);
}

export function notTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.Not, d, a, stepA, n);
}

export function toI32Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.ToI32, d, a, stepA, n);
}

export function toU32Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.ToU32, d, a, stepA, n);
}

export function toU8Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.ToU8, d, a, stepA, n);
}

export function floatToBoolTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.FloatToBool, d, a, stepA, n);
}

export function roundF16Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.RoundF16, d, a, stepA, n);
}

export function roundBf16Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.RoundBf16, d, a, stepA, n);
}

export function fromI32Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.FromI32, d, a, stepA, n);
}

export function fromU32Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  unary<T>(Opcode.FromU32, d, a, stepA, n);
}

export function intToU8Tile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.IntToU8, d, a, stepA, n);
}

export function intToBoolTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.IntToBool, d, a, stepA, n);
}

export function boolToFloatTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.BoolToFloat, d, a, stepA, n);
}

export function boolToIntTile<T>(d: usize, a: usize, stepA: usize, n: i32): void {
  hotUnary<T>(Opcode.BoolToInt, d, a, stepA, n);
}
