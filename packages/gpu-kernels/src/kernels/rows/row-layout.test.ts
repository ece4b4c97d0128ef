import { describeLayouts } from "../../../test/row-calls.ts";

// Tests a program that keeps its row in registers, a program that reads the row only once, and a program with sums over
// columns. The number of columns is a multiple of four. `row-layout.full.test.ts` tests the other programs, and numbers
// of columns that are not multiples of 2 or 4.
describeLayouts(["softmax", "cross-entropy", "layer-norm-backward"], 5, 260);
