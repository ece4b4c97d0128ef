import * as Opcode from "./fused-opcode";
import {
  addITile,
  addTile,
  andTile,
  divideITile,
  divideTile,
  divideUTile,
  equalITile,
  equalTile,
  lessEqualITile,
  lessEqualTile,
  lessEqualUTile,
  lessITile,
  lessTile,
  lessUTile,
  maddTile,
  maximumITile,
  maximumTile,
  maximumUTile,
  minimumITile,
  minimumTile,
  minimumUTile,
  msubTile,
  multiplyITile,
  multiplyTile,
  nmaddTile,
  notEqualITile,
  notEqualTile,
  orTile,
  pmaximumTile,
  pminimumTile,
  powerTile,
  selectTile,
  shiftLeftTile,
  shiftRightITile,
  shiftRightUTile,
  subtractITile,
  subtractTile,
  xorTile,
} from "./fused-binary";
import {
  absITile,
  absTile,
  boolToFloatTile,
  boolToIntTile,
  ceilTile,
  copyTile,
  cosTile,
  erfTile,
  expTile,
  finiteTile,
  floatToBoolTile,
  floorTile,
  fromI32Tile,
  fromU32Tile,
  geluTanhTile,
  geluTile,
  intToBoolTile,
  intToU8Tile,
  logTile,
  negITile,
  negTile,
  notTile,
  reluTile,
  roundBf16Tile,
  roundF16Tile,
  roundTile,
  rsqrtTile,
  sigmoidTile,
  signITile,
  signTile,
  siluTile,
  sinTile,
  softplusTile,
  sqrtTile,
  tanhTile,
  toI32Tile,
  toU32Tile,
  toU8Tile,
} from "./fused-unary";

/** Runs one micro-operation over a tile. */
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
    case Opcode.Pmaximum:
      pmaximumTile<T>(d, a, stepA, b, stepB, n);
      break;
    case Opcode.Pminimum:
      pminimumTile<T>(d, a, stepA, b, stepB, n);
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
