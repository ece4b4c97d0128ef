// One function per micro-operation, so that each gets machine code of its own, and the switch between them.
import { Opcode } from "./fused-opcode";
import { binary, hotBinary, scalarBinary, shift, ternary, unary } from "./fused-loops";

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
