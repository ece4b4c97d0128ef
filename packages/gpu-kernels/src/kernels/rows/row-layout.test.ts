import { describeLayouts } from "../../../test/row-calls.ts";

// One program that keeps its row in registers, one that reads the row only once, one with sums over columns; columns
// that are multiples of four. `row-layout.full.test.ts` tests the other programs, and columns that are no multiple of 2
// or 4.
describeLayouts(["softmax", "cross-entropy", "layer-norm-backward"], 5, 260);
