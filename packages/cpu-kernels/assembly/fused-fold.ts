// Codes of the folds (reductions) of `fused`. This file is both AssemblyScript and TypeScript, like fused-opcode.ts.

export const Sum = 0;
export const Max = 1;
export const Min = 2;
export const Bits = 3;
export const SumMagnitudes = 4;
export const MaxMagnitudes = 5;
export const Count = 6;
