import { checkLaws } from "./laws/check.ts";
import { sparseExchangeRows } from "./rows/sparse-exchanges.ts";

checkLaws(sparseExchangeRows);
