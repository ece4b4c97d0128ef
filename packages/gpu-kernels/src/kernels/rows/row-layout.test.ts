import { describeLayouts } from "../../../test/row-calls.ts";

// One that keeps what it reads, one without a second look at the row, one with sums over columns; columns that vectors
// of four divide. The other programs, and columns that nothing divides, are in `row-layout.full.test.ts`.
describeLayouts(["softmax", "cross-entropy", "layer-norm-backward"], 5, 260);
