import { checkLaws } from "./laws/check.ts";
import { quantizerRows } from "./rows/quantizers.ts";

checkLaws(quantizerRows);
