import { checkLaws } from "./laws/check.ts";
import { sparsifierRows } from "./rows/sparsifiers.ts";

checkLaws(sparsifierRows);
